/* keras_node.c - gives recipes a call of a Keras layer as a neutral node. */
#include <stdio.h>
#include <string.h>

#include "formats/keras/keras_import.h"

static muc_subject subject(const void *self)
{
    return muc_keras_subject(self);
}

/* name: "new name,older name" */
static muc_status attribute(void *self, const char *name, muc_value_type wanted, muc_value *out)
{
    const muc_keras_import *im = self;
    char keys[64];

    snprintf(keys, sizeof(keys), "%s", name);
    for (char *comma = keys; (comma = strchr(comma, ',')) != NULL;)
        *comma = '|';
    *out = (muc_value){ .type = MUC_VALUE_ABSENT };
    if (!muc_keras_option(im, keys))
        return MUC_OK;
    out->type = wanted;
    if (wanted == MUC_VALUE_INTEGER && json_is_boolean(muc_keras_option(im, keys))) {
        out->integer = json_is_true(muc_keras_option(im, keys));
        return MUC_OK;
    }
    return wanted == MUC_VALUE_REAL
               ? muc_keras_real(im, keys, 0, &out->real)
               : muc_keras_integers(im, keys, 1, -MUC_GRAPH_MAX_RANK, NULL, &out->integer);
}

static muc_status input(void *self, uint32_t i, uint32_t *id)
{
    *id = muc_keras_input(self, i);
    return MUC_OK;
}

static muc_status constant(void *self, const char *name, muc_dtype dtype, const double *values,
                           uint32_t count, uint32_t *id)
{
    muc_keras_import *im = self;
    const char *copy;

    (void)dtype; /* Keras has but scalars of f32 */
    (void)count;
    MUC_TRY(muc_arena_string(im->ctx, im->arena, name, strlen(name), &copy));
    return muc_keras_number(im, copy, values[0], id);
}

static muc_status step(void *self, muc_op op, const char *name, const uint32_t *inputs,
                       uint32_t count, const muc_attributes *a, uint32_t *id)
{
    return muc_keras_step(self, op, name, inputs, count, a, id);
}

static muc_status last(void *self, muc_op op, const uint32_t *inputs, uint32_t count,
                       muc_attributes *a)
{
    return muc_keras_last(self, op, inputs, count, a);
}

muc_file_node muc_keras_node(muc_keras_import *im)
{
    static const muc_file_node_functions functions = { .subject = subject,
                                                       .attribute = attribute,
                                                       .input = input,
                                                       .constant = constant,
                                                       .step = step,
                                                       .last = last };

    return (muc_file_node){ .functions = &functions,
                            .self = im,
                            .ctx = im->ctx,
                            .graph = im->graph,
                            .arena = im->arena,
                            .input_count = im->call->input_count,
                            .op = im->to };
}
