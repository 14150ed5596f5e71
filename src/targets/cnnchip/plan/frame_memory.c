/* frame_memory.c - lifetimes of storages, shared bytes, places in FRAME. */
#include "targets/cnnchip/lower/chip_lower.h"

enum { ALIGNMENT = 4 };

/* ---- lifetimes ---- */

/* a storage, and those of which it is a part or another shape */
static void touch(muc_cnnchip_lowering *l, uint32_t storage, uint32_t step)
{
    for (;;) {
        muc_cnnchip_storage *s = &l->storages[storage];

        s->first = step < s->first ? step : s->first;
        s->last = step > s->last ? step : s->last;
        if (s->parent == MUC_NO_ID && s->alias == MUC_NO_ID)
            return;
        storage = s->parent != MUC_NO_ID ? s->parent : s->alias;
    }
}

static void touch_value(muc_cnnchip_lowering *l, uint32_t tensor, uint32_t step)
{
    if (tensor != MUC_NO_ID && l->values[tensor].on_chip)
        touch(l, l->values[tensor].view.storage, step);
}

static void touch_host(muc_cnnchip_lowering *l, const muc_cnnchip_host *host)
{
    for (uint32_t i = 0; i < host->node_count; i++) {
        const muc_node *node = &l->graph->nodes[host->nodes[i]];

        for (uint32_t k = 0; k < node->input_count; k++)
            touch_value(l, node->inputs[k], host->step);
        for (uint32_t k = 0; k < node->output_count; k++)
            touch_value(l, node->outputs[k], host->step);
    }
}

static void find_lifetimes(muc_cnnchip_lowering *l)
{
    for (uint32_t i = 0; i < l->step_count; i++) {
        const muc_cnnchip_step *step = &l->steps[i];

        if (step->kind == MUC_CNNCHIP_STEP_HOST) {
            touch_host(l, &l->hosts[step->host - 1]);
            continue;
        }
        touch(l, step->in.storage, i);
        touch(l, step->out.storage, i);
        if (step->two && !step->second.data)
            touch(l, step->in1.storage, i);
    }
    for (uint32_t i = 0; i < l->storage_count; i++)
        if (l->storages[i].port != MUC_NO_ID)
            touch(l, i, 0);
    for (uint32_t i = 0; i < l->graph->output_count; i++)
        touch_value(l, l->graph->outputs[i], l->step_count);
}

/* ---- shared bytes ---- */

static bool is_root(const muc_cnnchip_storage *s)
{
    return s->parent == MUC_NO_ID && s->alias == MUC_NO_ID;
}

static bool covers(const muc_cnnchip_storage *s, const muc_cnnchip_view *view)
{
    return view->c0 == 0 && view->y0 == 0 && view->x0 == 0 && view->c == s->c && view->h == s->h &&
           view->w == s->w;
}

/* the result of an ADD may lie where an operand lay that dies with it: element upon element */
static bool can_share(const muc_cnnchip_lowering *l, uint32_t i, const muc_cnnchip_view *in)
{
    const muc_cnnchip_step *step = &l->steps[i];
    const muc_cnnchip_storage *a = &l->storages[in->storage], *b = &l->storages[step->out.storage];

    return a != b && is_root(a) && is_root(b) && covers(a, in) && covers(b, &step->out) &&
           a->last == i && b->first == i && a->c == b->c && a->h == b->h && a->w == b->w &&
           a->border.t == b->border.t && a->border.b == b->border.b && a->border.l == b->border.l &&
           a->border.r == b->border.r;
}

static void share(const muc_cnnchip_lowering *l, const uint32_t *buffer_of, muc_plan *plan)
{
    for (uint32_t i = 0; i < l->step_count; i++) {
        const muc_cnnchip_step *step = &l->steps[i];
        const muc_cnnchip_view *in = NULL;

        if (step->kind != MUC_CNNCHIP_STEP_ADD || step->step[0] != 1 || step->step[1] != 1)
            continue;
        if (can_share(l, i, &step->in))
            in = &step->in;
        else if (step->two && !step->second.data && can_share(l, i, &step->in1))
            in = &step->in1;
        if (in)
            plan->buffers[buffer_of[step->out.storage]].anchor = 1 + buffer_of[in->storage];
    }
}

/* ---- places ---- */

static uint64_t bytes_of(const muc_cnnchip_lowering *l, const muc_cnnchip_storage *s)
{
    return (uint64_t)s->c * muc_cnnchip_rows(s) * muc_cnnchip_pitch(s) *
           muc_cnnchip_element_bytes(l->machine->element);
}

static void keep(muc_cnnchip_lowering *l, const uint32_t *buffer_of)
{
    for (uint32_t i = 0; i < l->storage_count; i++)
        if (buffer_of[i] != MUC_NO_ID)
            l->storages[i].address = l->plan.buffers[buffer_of[i]].address;
}

muc_status muc_cnnchip_hint(const muc_cnnchip_lowering *l, const char *key, uint64_t bytes)
{
    if (bytes <= UINT32_MAX)
        muc_hint(l->ctx, "--machine FILE with %s of %llu would do", key, (unsigned long long)bytes);
    if (l->machine->element == MUC_CNNCHIP_fp32)
        muc_hint(l->ctx, "--element fp16 takes about half");
    if (l->machine->element != MUC_CNNCHIP_int8)
        muc_hint(l->ctx, "--quant int8 --calib SAMPLES takes about a quarter of fp32");
    return MUC_NOFIT;
}

static muc_status check(const muc_cnnchip_lowering *l)
{
    muc_status status = muc_plan_check(l->ctx, &l->plan);

    return status == MUC_NOFIT ? muc_cnnchip_hint(l, "frame_bytes", l->plan.peak) : status;
}

muc_status muc_cnnchip_plan_frame(muc_cnnchip_lowering *l)
{
    muc_plan *plan = &l->plan;
    uint64_t apart, least;
    uint32_t *buffer_of;

    find_lifetimes(l);
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, l->storage_count + (size_t)1, &buffer_of));
    *plan = (muc_plan){
        .arena = "FRAME",
        .source = l->graph->name,
        .capacity = l->machine->frame_bytes ? l->machine->frame_bytes : UINT32_MAX,
        .alignment = ALIGNMENT,
    };
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, l->storage_count + (size_t)1, &plan->buffers));
    for (uint32_t i = 0; i < l->storage_count; i++) {
        const muc_cnnchip_storage *s = &l->storages[i];

        buffer_of[i] = MUC_NO_ID;
        if (!is_root(s) || s->first > s->last)
            continue;
        buffer_of[i] = (uint32_t)plan->count;
        plan->buffers[plan->count++] = (muc_plan_buffer){
            .name = s->name, .bytes = bytes_of(l, s), .first = s->first, .last = s->last
        };
    }
    MUC_TRY(muc_plan_place(l->ctx, plan));
    keep(l, buffer_of);
    apart = plan->peak;
    least = plan->least;
    share(l, buffer_of, plan);
    MUC_TRY(muc_plan_place(l->ctx, plan));
    if (plan->peak < apart)
        keep(l, buffer_of);
    for (uint32_t i = 0; i < l->storage_count; i++)
        if (buffer_of[i] != MUC_NO_ID)
            plan->buffers[buffer_of[i]].address = l->storages[i].address;
    plan->peak = plan->peak < apart ? plan->peak : apart;
    plan->least = plan->least < least ? plan->least : least;
    return check(l);
}
