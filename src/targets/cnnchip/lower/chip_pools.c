/* chip_pools.c - greatest elements of windows, as pools of pools where the window exceeds the PEs.
 */
#include "targets/cnnchip/lower/chip_lower.h"

enum { Y = 0, X = 1, MOST_WINDOW = 255, MOST_STAGES = 64 };
/* stages that are tried before the best so far is taken */
#define MOST_TRIED ((uint32_t)1 << 20)

/* A pool, from an image of its own to another. */
typedef struct stage {
    muc_cnnchip_side side[2];
} stage;

/* The first stages of the way at hand, and the best way so far. */
typedef struct search {
    const muc_cnnchip_machine *machine;
    uint32_t channels, tried;
    stage way[MOST_STAGES], best[MOST_STAGES];
    uint32_t best_count;
    uint64_t best_cycles;
} search;

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Along one direction: first the greatest of `taps` elements, of which those that begin every
 * `apart` elements are then the rest's; false: they would leave a gap or not end with the window.
 */
static bool part_side(const muc_cnnchip_side *s, uint32_t taps, uint32_t apart,
                      muc_cnnchip_side *first, muc_cnnchip_side *rest)
{
    uint32_t more = s->kernel - taps, step;

    *first = *rest = *s;
    first->kernel = taps;
    rest->kernel = 1 + more / apart;
    if (more == 0) { /* all in the first */
        rest->stride = rest->dilation = 1;
        rest->in = s->out;
        return apart == 1;
    }
    step = common_divisor(s->stride, apart * s->dilation);
    first->stride = step;
    rest->stride = s->stride / step;
    rest->dilation = apart * s->dilation / step;
    rest->in = (s->out - 1) * rest->stride + (rest->kernel - 1) * rest->dilation + 1;
    first->out = rest->in;
    return more % apart == 0 && rest->dilation <= MOST_WINDOW;
}

static uint64_t cycles_of(const search *f, const stage *s)
{
    const muc_cnnchip_side *y = &s->side[Y], *x = &s->side[X];
    const muc_cnnchip_insn pool = { .op = MUC_CNNCHIP_MAXPOOL,
                                    .in_c = f->channels,
                                    .in_h = y->in,
                                    .in_w = x->in,
                                    .out_c = f->channels,
                                    .out_h = y->out,
                                    .out_w = x->out,
                                    .kernel_h = y->kernel,
                                    .kernel_w = x->kernel };

    return muc_cnnchip_cycles(f->machine, &pool);
}

/* no way through the rest takes fewer: each stage divides the window by at most the PEs */
static uint64_t least_of(const search *f, const stage *rest)
{
    uint64_t window = (uint64_t)rest->side[Y].kernel * rest->side[X].kernel, stages = 1;

    for (; window > f->machine->pes; stages++)
        window = (window + f->machine->pes - 1) / f->machine->pes;
    return stages * f->channels * rest->side[Y].out * rest->side[X].out;
}

static void try_rest(search *f, const stage *rest, uint32_t count, uint64_t cycles);

/* all ways to begin with windows of these sizes */
static void try_taps(search *f, const stage *s, const uint32_t *taps, uint32_t count,
                     uint64_t cycles)
{
    stage rest, *first = &f->way[count];

    for (uint32_t down = taps[Y]; down > 0; down--)
        for (uint32_t across = taps[X]; across > 0; across--)
            if (part_side(&s->side[Y], taps[Y], down, &first->side[Y], &rest.side[Y]) &&
                part_side(&s->side[X], taps[X], across, &first->side[X], &rest.side[X])) {
                uint64_t so_far = cycles + cycles_of(f, first);

                if (so_far + least_of(f, &rest) < f->best_cycles)
                    try_rest(f, &rest, count + 1, so_far);
            }
}

static void try_rest(search *f, const stage *rest, uint32_t count, uint64_t cycles)
{
    uint32_t pes = f->machine->pes, height = rest->side[Y].kernel, width = rest->side[X].kernel;
    uint32_t taps[2];

    if ((uint64_t)height * width <= pes) {
        f->way[count] = *rest;
        cycles += cycles_of(f, rest);
        if (cycles >= f->best_cycles)
            return;
        f->best_cycles = cycles;
        f->best_count = count + 1;
        for (uint32_t i = 0; i <= count; i++)
            f->best[i] = f->way[i];
        return;
    }
    if (count + 2 > MOST_STAGES || (f->best_count && f->tried++ > MOST_TRIED))
        return;
    for (taps[Y] = 1; taps[Y] <= height && taps[Y] <= pes; taps[Y]++)
        for (taps[X] = pes / taps[Y] < width ? pes / taps[Y] : width; taps[X] > 0; taps[X]--)
            if (taps[Y] > 1 || taps[X] > 1)
                try_taps(f, rest, taps, count, cycles);
}

/* every element that windows see enters a pool once, at most as many as there are PEs a cycle */
static uint64_t least_before(const search *f, const stage *whole)
{
    uint64_t seen = f->channels;

    for (uint32_t d = Y; d <= X; d++) {
        const muc_cnnchip_side *s = &whole->side[d];
        uint64_t apart = (uint64_t)s->out * s->kernel;

        seen *= apart < s->in ? apart : s->in;
    }
    return (seen + f->machine->pes - 1) / f->machine->pes;
}

static muc_status add_stage(muc_cnnchip_lowering *l, const stage *s, muc_cnnchip_view in,
                            muc_cnnchip_view out, muc_cnnchip_step **step)
{
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_POOL, in, out, step));
    for (uint32_t d = Y; d <= X; d++) {
        (*step)->kernel[d] = s->side[d].kernel;
        (*step)->stride[d] = s->side[d].stride;
        (*step)->dilation[d] = s->side[d].dilation;
    }
    return MUC_OK;
}

static muc_status add_stages(muc_cnnchip_lowering *l, const search *f, const stage *whole,
                             muc_cnnchip_view in, muc_cnnchip_view out)
{
    const char *name = l->storages[out.storage].name;
    muc_cnnchip_step *step;
    uint32_t storage;

    for (uint32_t i = 0; i < f->best_count; i++) {
        const stage *s = &f->best[i];
        muc_cnnchip_view to = out;

        if (i + 1 < f->best_count) {
            MUC_TRY(
                muc_cnnchip_new_storage(l, name, in.c, s->side[Y].out, s->side[X].out, &storage));
            to = muc_cnnchip_whole(l, storage);
        }
        MUC_TRY(add_stage(l, s, in, to, &step));
        step->split = true;
        step->least_cycles = i == 0 ? least_before(f, whole) : 0;
        in = to;
    }
    return MUC_OK;
}

muc_status muc_cnnchip_add_pool(muc_cnnchip_lowering *l, const muc_cnnchip_side *side,
                                muc_cnnchip_view in, muc_cnnchip_view out)
{
    stage whole = { { side[Y], side[X] } };
    muc_cnnchip_step *step;
    search *f;

    whole.side[Y].in = in.h;
    whole.side[X].in = in.w;
    if (l->machine->pes == 0 || (uint64_t)side[Y].kernel * side[X].kernel <= l->machine->pes) {
        MUC_TRY(add_stage(l, &whole, in, out, &step));
    } else {
        MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, 1, &f));
        f->machine = l->machine;
        f->channels = in.c;
        f->best_cycles = UINT64_MAX;
        try_rest(f, &whole, 0, 0);
        MUC_TRY(add_stages(l, f, &whole, in, out));
    }
    step = &l->steps[l->step_count - 1];
    step->border = step->final = true;
    return MUC_OK;
}
