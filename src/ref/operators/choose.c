/* choose.c - where and clip: each element is one of several. */
#include <string.h>

#include "ref/walk.h"

typedef struct choice {
    const uint8_t *condition, *a, *b;
    uint8_t *out;
    size_t width, done;
} choice;

static void choose(void *arg, size_t n, const size_t *at, const size_t *step)
{
    choice *c = arg;

    for (size_t i = 0; i < n; i++, c->done++) {
        const uint8_t *from = c->condition[at[0] + i * step[0]]
                                  ? c->a + (at[1] + i * step[1]) * c->width
                                  : c->b + (at[2] + i * step[2]) * c->width;

        memcpy(c->out + c->done * c->width, from, c->width);
    }
}

muc_status muc_kernel_where(const muc_ref_call *call)
{
    choice c = { call->inputs[0]->read, call->inputs[1]->read,       call->inputs[2]->read,
                 call->output->data,    muc_ref_width(call->output), 0 };
    muc_ref_walk walk;

    muc_ref_walk_of(call->output, call->inputs, 3, &walk);
    muc_ref_walk_each(&walk, choose, &c);
    return MUC_OK;
}

#define CLAMP(argument, id, type) \
    case MUC_##id: { \
        const type *from = x->read, *least = low ? low->read : NULL; \
        const type *greatest = high ? high->read : NULL; \
        type *to = call->output->data; \
        for (size_t i = 0; i < x->elements; i++) { \
            type value = least && from[i] < *least ? *least : from[i]; \
            to[i] = greatest && value > *greatest ? *greatest : value; \
        } \
        break; \
    }

static void clamp(const muc_ref_call *call, const muc_ref_value *low, const muc_ref_value *high)
{
    const muc_ref_value *x = call->inputs[0];

    switch ((unsigned)x->dtype) {
        MUC_REF_NUMBERS(CLAMP, )
    }
}

muc_status muc_kernel_clip(const muc_ref_call *call)
{
    clamp(call, muc_ref_input_of(call, 1), muc_ref_input_of(call, 2));
    return MUC_OK;
}
