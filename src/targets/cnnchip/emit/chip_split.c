/* chip_split.c - blocks that exceed the processing elements, cut into boxes of the fewest cycles.
 *
 * A box is a range of a group's channels times a range of rows and one of columns of the window, or
 * a range of a linear layer's input. Boxes come of cuts across, one after the other; what a box
 * costs does not depend on where it lies, so the best cuts of all sizes are found from the smallest
 * size on. */
#include "targets/cnnchip/lower/chip_lower.h"

enum { AXES = MUC_CNNCHIP_AXES };
/* sizes of boxes times ways to cut each, of one table */
#define MOST_WORK ((uint64_t)1 << 27)

/* Of one size: the fewest cycles, and the first cut, after `cut` of it along axis; 0: none. */
typedef struct choice {
    uint64_t cycles;
    uint32_t cut, axis;
} choice;

typedef struct splitter {
    muc_cnnchip_lowering *l;
    const muc_cnnchip_insn *whole;
    uint32_t size[AXES]; /* of the largest box in the table */
    choice *table;
    muc_cnnchip_part *parts;
    size_t count, capacity;
} splitter;

void muc_cnnchip_block_sizes(const muc_cnnchip_insn *whole, uint32_t *size)
{
    bool dense = whole->op == MUC_CNNCHIP_DENSE;

    size[0] = dense ? (uint32_t)muc_cnnchip_block(whole) : whole->in_c / whole->groups;
    size[1] = dense ? 1 : whole->kernel_h;
    size[2] = dense ? 1 : whole->kernel_w;
}

void muc_cnnchip_shrink(muc_cnnchip_insn *insn, const uint32_t *size)
{
    if (insn->op == MUC_CNNCHIP_DENSE) {
        insn->in_c = size[0];
        insn->in_h = insn->in_w = 1;
        return;
    }
    if (insn->groups == 1)
        insn->in_c = size[0];
    insn->kernel_h = size[1];
    insn->kernel_w = size[2];
    insn->in_h = (insn->out_h - 1) * insn->stride_h + (size[1] - 1) * insn->dilation_h + 1;
    insn->in_w = (insn->out_w - 1) * insn->stride_w + (size[2] - 1) * insn->dilation_w + 1;
}

/* ---- the table ---- */

static choice *at(const splitter *s, const uint32_t *size)
{
    return &s->table[((size_t)(size[0] - 1) * s->size[1] + size[1] - 1) * s->size[2] + size[2] - 1];
}

/* a box that one instruction computes, with the sum that gathers it */
static uint64_t cycles_of_box(const splitter *s, const uint32_t *size)
{
    const muc_cnnchip_machine *machine = s->l->machine;
    muc_cnnchip_insn part = *s->whole;

    muc_cnnchip_shrink(&part, size);
    part.flags = MUC_CNNCHIP_FLAG_dst32;
    return muc_cnnchip_cycles(machine, &part) + muc_cnnchip_sum_cycles(machine, s->whole);
}

static void choose(const splitter *s, const uint32_t *size)
{
    choice best = { .cycles = UINT64_MAX };

    if ((uint64_t)size[0] * size[1] * size[2] <= s->l->machine->pes) {
        at(s, size)->cycles = cycles_of_box(s, size);
        return;
    }
    for (uint32_t axis = 0; axis < AXES; axis++) {
        uint32_t first[AXES] = { size[0], size[1], size[2] };
        uint32_t rest[AXES] = { size[0], size[1], size[2] };

        for (uint32_t cut = 1; cut <= size[axis] / 2; cut++) {
            uint64_t cycles;

            first[axis] = cut;
            rest[axis] = size[axis] - cut;
            cycles = at(s, first)->cycles + at(s, rest)->cycles;
            if (cycles < best.cycles)
                best = (choice){ cycles, cut, axis };
        }
    }
    *at(s, size) = best;
}

/* Channels of the largest box: all, or where there are too many as many as there is time for, a
 * multiple of the PEs, with which none of them is idle. */
static uint32_t channels_of_table(const splitter *s)
{
    uint64_t window = (uint64_t)s->size[1] * s->size[2], sides = s->size[1] + s->size[2];
    uint32_t channels = s->size[0], pes = s->l->machine->pes;

    while (channels > 1 && channels * window * (channels + sides) > MOST_WORK) {
        channels /= 2;
        channels -= channels > pes ? channels % pes : 0;
    }
    return channels;
}

static muc_status fill_table(splitter *s)
{
    uint32_t size[AXES];

    MUC_TRY(MUC_ARENA_NEW(s->l->ctx, &s->l->arena, (size_t)s->size[0] * s->size[1] * s->size[2],
                          &s->table));
    for (size[0] = 1; size[0] <= s->size[0]; size[0]++)
        for (size[1] = 1; size[1] <= s->size[1]; size[1]++)
            for (size[2] = 1; size[2] <= s->size[2]; size[2]++)
                choose(s, size);
    return MUC_OK;
}

/* ---- the parts ---- */

static muc_status add_boxes(splitter *s, muc_cnnchip_part box)
{
    const choice *c;

    while ((c = at(s, box.size))->cut) {
        muc_cnnchip_part first = box;

        first.size[c->axis] = c->cut;
        MUC_TRY(add_boxes(s, first));
        box.first[c->axis] += c->cut;
        box.size[c->axis] -= c->cut;
    }
    MUC_TRY(muc_arena_grow(s->l->ctx, &s->l->arena, s->count + 1, sizeof(*s->parts), &s->capacity,
                           (void **)&s->parts));
    s->parts[s->count++] = box;
    return MUC_OK;
}

muc_status muc_cnnchip_split(muc_cnnchip_lowering *l, const muc_cnnchip_insn *whole,
                             muc_cnnchip_part **parts, size_t *count)
{
    splitter s = { .l = l, .whole = whole };
    muc_cnnchip_part run = { .first = { 0 } };
    uint32_t channels;

    muc_cnnchip_block_sizes(whole, s.size);
    channels = s.size[0];
    run.size[1] = s.size[1];
    run.size[2] = s.size[2];
    s.size[0] = channels_of_table(&s);
    MUC_TRY(fill_table(&s));
    for (; run.first[0] < channels; run.first[0] += run.size[0]) {
        run.size[0] = channels - run.first[0] < s.size[0] ? channels - run.first[0] : s.size[0];
        MUC_TRY(add_boxes(&s, run));
    }
    *parts = s.parts;
    *count = s.count;
    return MUC_OK;
}
