/* patch_program.c - a chain of steps becomes a loop over patches.
 *
 * Design
 *
 * 1. The chain. Tensor 0 is what its first step reads, tensor i+1 what its step i makes. Steps are
 *    neighbours in the program's order, each an int8 convolution, pool or addition (int8_layer.h)
 * that reads the tensor before it; an addition's other side is any earlier tensor of the chain.
 *    Tensors between are read by the chain alone, are not outputs, and have no views. Of the chains
 *    that hold the plan's fullest step the longest is taken.
 * 2. The split and the grid come from muc_patch_find: the least peak of the chain, its whole
 *    stages after the patches and the rest of the network, among those that recompute no more
 *    than MUC_MCU_PATCH_OVERHEAD_PERCENT of the network's multiply-accumulates.
 * 3. The program changes in place; there are no new steps. The first stages' steps form
 *    program->loop. The values between them shrink to the largest patch; within a patch, a value's
 *    rows are dense. The chain's input and the last stage's output stay whole and live in all
 *    turns (plan_arena.c), and no step of the loop writes over them. So lifetimes, placement, the
 *    report and the trace go on as before; only the last stage's output can be traced.
 * 4. A step's descriptor becomes a table of descriptors, each distinct one once (corners, edges
 *    and the inside, as a rule nine), a table that says which one a patch takes, and, where a patch
 *    does not begin at its buffer's first byte, a table of offsets. Padding is only what lies
 *    outside of the whole image: a slice that begins inside has pad 0 and its neighbours' pixels.
 *    Rows of an addition's sides may be apart by different pitches, so it calls its kernel row by
 *    row. The same bits result, since every output pixel sees the same taps.
 * 5. What counts in the end is the planned arena: the program before is kept and comes back if the
 *    patches are not worth their work.
 */
#include "targets/mcu/plan/patch_program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_patches.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/plan/plan_arena.h"
#include "targets/mcu/program/runtime_files.h"

enum {
    MOST_PATCHES = MUC_PATCH_GRID * MUC_PATCH_GRID,
    /* What a call, and a row of one, costs for each channel beside the products, in
     * multiply-accumulates: from instructions of MCUNet's first layers by several grids, where all
     * cores agree within a factor of two. */
    CHANNEL_WORK = 50,
};

typedef struct chain {
    muc_context *ctx;
    muc_mcu_program *program;
    uint32_t first, count;                 /* steps */
    uint32_t tensor[MUC_PATCH_STAGES + 1]; /* values */
    muc_patch_stage stages[MUC_PATCH_STAGES];
    muc_patch_plan plan;
} chain;

/* What one patch of one stage is. Zeroed before it is filled: slices are compared as bytes. */
typedef struct slice {
    union {
        mur_conv_s8 conv;
        mur_pool_s8 pool;
        mur_add_s8 add;
    } as;
    int32_t rows, pitch[3]; /* of an addition: of its sides and its result */
} slice;

typedef struct stage_tables {
    slice slices[MOST_PATCHES]; /* the distinct ones */
    uint32_t slice_count;
    uint8_t which[MOST_PATCHES];
    uint32_t offset[3][MOST_PATCHES]; /* inputs, then the output at index 2 */
    uint32_t patches;
} stage_tables;

/* ---- the chain ---- */

static bool is_stage(const muc_mcu_step *step)
{
    return step->layer &&
           (step->layer->kind != MUC_MCU_LAYER_CONV || step->node->op == MUC_OP_CONV);
}

/* the value of the i-th argument of a kind */
static uint32_t value_of(const muc_mcu_step *step, muc_mcu_argument_kind kind, uint32_t i)
{
    for (uint32_t j = 0; j < step->argument_count; j++)
        if (step->arguments[j].kind == kind && i-- == 0)
            return step->arguments[j].value;
    return MUC_NO_ID;
}

static bool in_arena(const muc_mcu_program *program, uint32_t value)
{
    return program->values[value].kind == MUC_MCU_INPUT ||
           program->values[value].kind == MUC_MCU_ACTIVATION;
}

static muc_patch_window window(uint32_t kernel, uint32_t stride, uint32_t dilation, uint32_t pad,
                               int32_t in, int32_t out)
{
    return (muc_patch_window){ .kernel = kernel,
                               .stride = stride,
                               .dilation = dilation,
                               .pad = pad,
                               .in = (uint32_t)in,
                               .out = (uint32_t)out };
}

/* all but also_reads and in_place */
static muc_patch_stage describe(const muc_mcu_program *program, const muc_mcu_step *step)
{
    const muc_mcu_layer *layer = step->layer;
    const mur_conv_shape *conv = &layer->as.conv.shape;
    const mur_pool_s8 *pool = &layer->as.pool;
    uint32_t scratch = value_of(step, MUC_MCU_WORKING, 0);
    muc_patch_stage stage = {
        .name = step->name,
        .rows = window(1, 1, 1, 0, layer->in_h, layer->out_h),
        .columns = window(1, 1, 1, 0, layer->in_w, layer->out_w),
        .in_unit_bytes = (uint64_t)layer->in_c,
        .out_unit_bytes = (uint64_t)layer->out_c,
        .scratch_bytes = scratch == MUC_NO_ID ? 0 : program->values[scratch].bytes,
        .row_work = CHANNEL_WORK * (uint64_t)layer->out_c,
        .call_work = CHANNEL_WORK * (uint64_t)layer->out_c,
    };

    if (layer->kind == MUC_MCU_LAYER_CONV) {
        stage.rows = window(conv->kernel_h, conv->stride_h, conv->dilation_h, conv->pad_top,
                            conv->in_h, conv->out_h);
        stage.columns = window(conv->kernel_w, conv->stride_w, conv->dilation_w, conv->pad_left,
                               conv->in_w, conv->out_w);
        stage.unit_macs = (uint64_t)conv->out_c * conv->kernel_h * conv->kernel_w *
                          (uint64_t)(conv->in_c / conv->groups);
        if (conv->kernel_h * conv->kernel_w == 1) /* as a rule one row of pixels */
            stage.row_work = 0;
    } else if (layer->kind == MUC_MCU_LAYER_POOL) {
        stage.rows =
            window(pool->kernel_h, pool->stride_h, 1, pool->pad_top, pool->in_h, pool->out_h);
        stage.columns =
            window(pool->kernel_w, pool->stride_w, 1, pool->pad_left, pool->in_w, pool->out_w);
    }
    return stage;
}

/* Takes a step as the chain's next. An addition's other side is an earlier tensor. */
static bool extend(chain *c, const muc_mcu_step *step)
{
    muc_patch_stage *stage = &c->stages[c->count];
    uint32_t last = c->tensor[c->count], out = value_of(step, MUC_MCU_WRITE, 0);
    uint32_t a = value_of(step, MUC_MCU_READ, 0), b = value_of(step, MUC_MCU_READ, 1), other;

    if (!is_stage(step) || out == MUC_NO_ID || c->program->values[out].view_of != MUC_NO_ID ||
        c->program->values[out].layout)
        return false;
    *stage = describe(c->program, step);
    if (step->layer->kind == MUC_MCU_LAYER_ADD) {
        if (a != last && b != last)
            return false;
        other = a == last ? b : a;
        for (uint32_t t = 0; t <= c->count; t++)
            if (c->tensor[t] == other)
                stage->also_reads = t + 1;
        if (stage->also_reads == 0)
            return false;
    } else if (a != last) {
        return false;
    }
    for (uint32_t i = 0; i < step->overlap_count; i++) /* what is saved is near the smaller one */
        if (step->overlaps[i].in == last)
            stage->in_place = step->overlaps[i].lead * 8 <= (int64_t)c->program->values[last].bytes;
    c->tensor[++c->count] = out;
    return true;
}

/* whether a tensor between is the business of the chain's stages alone */
static bool is_inner(const chain *c, uint32_t t)
{
    const muc_mcu_program *program = c->program;
    uint32_t value = c->tensor[t];

    if (program->values[value].is_output)
        return false;
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].view_of == value)
            return false;
    for (uint32_t s = 0; s < program->step_count; s++)
        for (uint32_t i = 0; i < program->steps[s].argument_count; i++) {
            const muc_mcu_argument *argument = &program->steps[s].arguments[i];

            if (argument->kind != MUC_MCU_TEXT && argument->value == value &&
                (s < c->first || s >= c->first + c->count))
                return false;
        }
    return true;
}

/* the longest chain that begins with a step */
static void build(chain *c, uint32_t first)
{
    bool is_whole = false;

    c->first = first;
    c->count = 0;
    c->tensor[0] = value_of(&c->program->steps[first], MUC_MCU_READ, 0);
    if (c->tensor[0] == MUC_NO_ID || !in_arena(c->program, c->tensor[0]))
        return;
    while (c->count < MUC_PATCH_STAGES && first + c->count < c->program->step_count &&
           extend(c, &c->program->steps[first + c->count]))
        continue;
    while (!is_whole) { /* cutting it can leave a reader outside */
        is_whole = true;
        for (uint32_t t = 1; t < c->count && is_whole; t++)
            if (!is_inner(c, t)) {
                c->count = t;
                is_whole = false;
            }
    }
}

static bool find_chain(chain *c)
{
    uint32_t full = c->program->plan.full_step;

    for (uint32_t first = 0; first <= full && first < c->program->step_count; first++) {
        if (!is_stage(&c->program->steps[first]))
            continue;
        build(c, first);
        if (c->count && first + c->count > full)
            return true;
    }
    return false;
}

/* ---- the split ---- */

/* What steps outside of the chain need, as far as is known before placement: all that lives, less
 * what the best overlap saves. */
static uint64_t rest_bytes(const chain *c)
{
    const muc_mcu_program *program = c->program;
    uint64_t most = 0;

    for (uint32_t s = 0; s < program->step_count; s++) {
        const muc_mcu_step *step = &program->steps[s];
        uint64_t bytes = 0, saved = 0;

        if (s >= c->first && s < c->first + c->count)
            continue;
        for (size_t i = 0; i < program->plan.count; i++) {
            const muc_plan_buffer *buffer = &program->plan.buffers[i];

            if (buffer->persistent || (buffer->first <= s && s <= buffer->last))
                bytes += buffer->bytes;
        }
        for (uint32_t i = 0; i < step->overlap_count; i++) {
            uint64_t in = program->values[step->overlaps[i].in].bytes;
            uint64_t out = program->values[step->overlaps[i].out].bytes;
            uint64_t common = in < out ? in : out;

            saved = common > saved ? common : saved;
        }
        bytes -= saved < bytes ? saved : bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static muc_status find_split(chain *c, uint32_t trade)
{
    uint64_t total = 0, own = 0, percent;
    muc_patch_limits limits = { .grid = MUC_PATCH_GRID,
                                .rest_bytes = rest_bytes(c),
                                .trade = trade };

    for (uint32_t i = 0; i < c->program->step_count; i++) {
        total += c->program->steps[i].macs;
        own += i >= c->first && i < c->first + c->count ? c->program->steps[i].macs : 0;
    }
    limits.rest_macs = total - own;
    percent = own ? MUC_MCU_PATCH_OVERHEAD_PERCENT * total / own : 0;
    limits.overhead_percent = percent < 1000 ? (uint32_t)percent : 1000;
    limits.input_bytes = c->program->values[c->tensor[0]].bytes;
    return muc_patch_find(c->ctx, &c->program->arena, c->stages, c->count, &limits, &c->plan);
}

/* ---- slices ---- */

static uint32_t extent(muc_patch_range range)
{
    return range.last - range.first;
}

static const muc_patch_part *part_of(const chain *c, bool rows, uint32_t patch, uint32_t tensor)
{
    uint32_t at = rows ? patch / c->plan.grid_columns : patch % c->plan.grid_columns;

    return (rows ? c->plan.rows : c->plan.columns) + at * (c->plan.stages + 1) + tensor;
}

/* Where a tensor's rows and columns from some on lie in its buffer, and its pitch. The first and
 * last tensor are whole. */
static void locate(const chain *c, uint32_t patch, uint32_t t, uint32_t row, uint32_t column,
                   uint32_t *offset, int32_t *pitch)
{
    const muc_patch_stage *stage = &c->stages[t ? t - 1 : 0];
    uint32_t unit = (uint32_t)(t ? stage->out_unit_bytes : stage->in_unit_bytes);
    muc_patch_range rows = part_of(c, true, patch, t)->range;
    muc_patch_range columns = part_of(c, false, patch, t)->range;
    uint32_t width = extent(columns);

    if (t == 0 || t == c->plan.stages) {
        width = t ? stage->columns.out : stage->columns.in;
        rows.first = columns.first = 0;
    }
    *pitch = (int32_t)(width * unit);
    *offset = (row - rows.first) * (uint32_t)*pitch + (column - columns.first) * unit;
}

/* of a stage's input along a direction: the first element of the slice, its length, its padding */
typedef struct side {
    uint32_t first, in, out, pad;
} side;

static side side_of(const chain *c, uint32_t stage, uint32_t patch, bool rows)
{
    const muc_patch_window *w = rows ? &c->stages[stage].rows : &c->stages[stage].columns;
    muc_patch_range in = part_of(c, rows, patch, stage)->range;
    muc_patch_range out = part_of(c, rows, patch, stage + 1)->range;
    int64_t begin = (int64_t)out.first * w->stride - w->pad;
    side s = { .first = in.first, .out = extent(out) };

    if (begin > in.first) /* a later stage needs more of the input */
        s.first = (uint32_t)begin;
    else
        s.pad = (uint32_t)(in.first - begin);
    s.in = in.last > s.first ? in.last - s.first : 0;
    return s;
}

static void slice_add(const chain *c, uint32_t stage, uint32_t patch, slice *s, uint32_t *offsets)
{
    const muc_mcu_step *step = &c->program->steps[c->first + stage];
    uint32_t row = part_of(c, true, patch, stage + 1)->range.first;
    uint32_t column = part_of(c, false, patch, stage + 1)->range.first;
    uint32_t other = c->stages[stage].also_reads - 1;
    bool is_a = value_of(step, MUC_MCU_READ, 0) == c->tensor[stage];

    s->as.add = step->layer->as.add;
    s->rows = (int32_t)extent(part_of(c, true, patch, stage + 1)->range);
    s->as.add.count = (int32_t)(extent(part_of(c, false, patch, stage + 1)->range) *
                                (uint32_t)c->stages[stage].out_unit_bytes);
    s->as.add.b_count = s->as.add.count;
    locate(c, patch, is_a ? stage : other, row, column, &offsets[0], &s->pitch[0]);
    locate(c, patch, is_a ? other : stage, row, column, &offsets[1], &s->pitch[1]);
    locate(c, patch, stage + 1, row, column, &offsets[2], &s->pitch[2]);
}

#define SET_SLICE(layer) \
    ((layer)->in_h = (int32_t)rows.in, (layer)->in_w = (int32_t)columns.in, \
     (layer)->out_h = (int32_t)rows.out, (layer)->out_w = (int32_t)columns.out, \
     (layer)->pad_top = (uint16_t)rows.pad, (layer)->pad_left = (uint16_t)columns.pad, \
     (layer)->in_pitch = in_pitch, (layer)->out_pitch = out_pitch)

static void slice_window(const chain *c, uint32_t stage, uint32_t patch, slice *s,
                         uint32_t *offsets)
{
    const muc_mcu_layer *layer = c->program->steps[c->first + stage].layer;
    side rows = side_of(c, stage, patch, true), columns = side_of(c, stage, patch, false);
    int32_t in_pitch, out_pitch;

    locate(c, patch, stage, rows.first, columns.first, &offsets[0], &in_pitch);
    locate(c, patch, stage + 1, part_of(c, true, patch, stage + 1)->range.first,
           part_of(c, false, patch, stage + 1)->range.first, &offsets[2], &out_pitch);
    if (layer->kind == MUC_MCU_LAYER_CONV) {
        s->as.conv = layer->as.conv;
        SET_SLICE(&s->as.conv.shape);
        muc_mcu_flatten_conv(&s->as.conv.shape);
    } else {
        s->as.pool = layer->as.pool;
        SET_SLICE(&s->as.pool);
    }
}

static void make_tables(const chain *c, uint32_t stage, stage_tables *t)
{
    bool is_add = c->program->steps[c->first + stage].layer->kind == MUC_MCU_LAYER_ADD;

    memset(t, 0, sizeof(*t));
    t->patches = c->plan.grid_rows * c->plan.grid_columns;
    for (uint32_t p = 0; p < t->patches; p++) {
        uint32_t offsets[3] = { 0 }, at = 0;
        slice s;

        memset(&s, 0, sizeof(s));
        if (is_add)
            slice_add(c, stage, p, &s, offsets);
        else
            slice_window(c, stage, p, &s, offsets);
        while (at < t->slice_count && memcmp(&t->slices[at], &s, sizeof(s)) != 0)
            at++;
        if (at == t->slice_count)
            memcpy(&t->slices[t->slice_count++], &s, sizeof(s));
        t->which[p] = (uint8_t)at;
        for (uint32_t i = 0; i < 3; i++)
            t->offset[i][p] = offsets[i];
    }
}

/* a patch that sees padding alone has no slice */
static bool has_empty_part(const chain *c)
{
    for (uint32_t p = 0; p < c->plan.grid_rows * c->plan.grid_columns; p++)
        for (uint32_t t = 0; t <= c->plan.stages; t++)
            if (extent(part_of(c, true, p, t)->range) == 0 ||
                extent(part_of(c, false, p, t)->range) == 0)
                return true;
    return false;
}

/* ---- text ---- */

static bool is_zero(const uint32_t *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i])
            return false;
    return true;
}

static void print_offsets(const muc_mcu_step *step, const char *what, const uint32_t *offsets,
                          uint32_t count, muc_text *text)
{
    if (is_zero(offsets, count))
        return;
    muc_text_add(text, "static const uint32_t %s_%s[%" PRIu32 "] = {", step->name, what, count);
    for (uint32_t i = 0; i < count; i++)
        muc_text_add(text, "%s%" PRIu32 ",", i % 10 ? " " : "\n    ", offsets[i]);
    muc_text_add(text, "\n};\n");
}

static const char *const places[3] = { "in", "in2", "out" };

static void print_slice(const chain *c, const muc_mcu_layer *layer, const slice *s, muc_text *text)
{
    switch (layer->kind) {
    case MUC_MCU_LAYER_CONV:
        muc_mcu_print_conv(text, &s->as.conv, c->program->values[layer->packed].name);
        return;
    case MUC_MCU_LAYER_POOL:
        muc_mcu_print_pool(text, &s->as.pool);
        return;
    case MUC_MCU_LAYER_ADD:
        muc_text_add(text, "\n    .layer = {");
        muc_mcu_print_add(text, &s->as.add);
        muc_text_add(text, "\n    },");
        muc_mcu_print_field(text, "rows", s->rows);
        muc_mcu_print_field(text, "a_pitch", s->pitch[0]);
        muc_mcu_print_field(text, "b_pitch", s->pitch[1]);
        muc_mcu_print_field(text, "y_pitch", s->pitch[2]);
        return;
    }
}

static void print_tables(const chain *c, const muc_mcu_step *step, const stage_tables *t,
                         muc_text *text)
{
    static const char *const types[] = {
        [MUC_MCU_LAYER_CONV] = "mur_conv_s8",
        [MUC_MCU_LAYER_POOL] = "mur_pool_s8",
        [MUC_MCU_LAYER_ADD] =
            "struct {\n    mur_add_s8 layer;\n    int32_t rows, a_pitch, b_pitch, y_pitch;\n}",
    };

    muc_text_add(text, "static const %s %s_slices[%" PRIu32 "] = {", types[step->layer->kind],
                 step->name, t->slice_count);
    for (uint32_t i = 0; i < t->slice_count; i++) {
        muc_text_add(text, "%s{", i ? ", " : " ");
        print_slice(c, step->layer, &t->slices[i], text);
        muc_text_add(text, "\n}");
    }
    muc_text_add(text, " };\nstatic const uint8_t %s_which[%" PRIu32 "] = {", step->name,
                 t->patches);
    for (uint32_t p = 0; p < t->patches; p++)
        muc_text_add(text, "%s%u,", p % 16 ? " " : "\n    ", t->which[p]);
    muc_text_add(text, "\n};\n");
    for (uint32_t i = 0; i < 3; i++)
        print_offsets(step, places[i], t->offset[i], t->patches, text);
    if (step->layer->kind == MUC_MCU_LAYER_ADD)
        muc_text_add(text,
                     "static void %s(uint32_t slice, const int8_t *a, const int8_t *b, int8_t *y)\n"
                     "{\n"
                     "    for (int32_t row = 0; row < %s_slices[slice].rows; row++)\n"
                     "        %s(&%s_slices[slice].layer, a + row * %s_slices[slice].a_pitch,\n"
                     "            b + row * %s_slices[slice].b_pitch,\n"
                     "            y + row * %s_slices[slice].y_pitch);\n"
                     "}\n",
                     step->name, step->name, step->function, step->name, step->name, step->name,
                     step->name);
    muc_text_add(text, "\n");
}

/* ---- steps ---- */

static muc_status set_arguments(chain *c, uint32_t stage, const stage_tables *t)
{
    muc_mcu_program *program = c->program;
    muc_mcu_step *step = &program->steps[c->first + stage];
    muc_mcu_argument *arguments;
    uint32_t reads = 0;

    MUC_TRY(MUC_ARENA_NEW(c->ctx, &program->arena, step->argument_count, &arguments));
    memcpy(arguments, step->arguments, step->argument_count * sizeof(*arguments));
    step->arguments = arguments;
    step->argument_capacity = step->argument_count;
    MUC_TRY(muc_arena_format(c->ctx, &program->arena, &arguments[0].text,
                             step->layer->kind == MUC_MCU_LAYER_ADD ? "%s_which[patch]"
                                                                    : "&%s_slices[%s_which[patch]]",
                             step->name, step->name));
    for (uint32_t i = 1; i < step->argument_count; i++) {
        uint32_t place = 2;

        if (arguments[i].kind == MUC_MCU_READ)
            place = reads++;
        else if (arguments[i].kind != MUC_MCU_WRITE)
            continue;
        if (!is_zero(t->offset[place], t->patches))
            MUC_TRY(muc_arena_format(c->ctx, &program->arena, &arguments[i].text, "%s_%s[patch]",
                                     step->name, places[place]));
    }
    return MUC_OK;
}

/* the scratch argument is a convolution's last */
static muc_status set_scratch(chain *c, muc_mcu_step *step, uint64_t bytes)
{
    muc_mcu_argument *argument = &step->arguments[step->argument_count - 1];
    muc_mcu_value value = { .kind = MUC_MCU_SCRATCH, .view_of = MUC_NO_ID, .bytes = bytes };

    if (argument->kind == MUC_MCU_WORKING) {
        c->program->values[argument->value].bytes = bytes; /* 0 takes no room */
        return MUC_OK;
    }
    if (bytes == 0)
        return MUC_OK;
    value.used = true;
    MUC_TRY(muc_arena_format(c->ctx, &c->program->arena, &value.name, "%s_scratch", step->name));
    *argument = (muc_mcu_argument){ .kind = MUC_MCU_WORKING, .dtype = MUC_U8 };
    return muc_mcu_add_value(c->ctx, c->program, &value, &argument->value);
}

/* A kernel that can do all slices, and weights as it wants them. */
static muc_status set_kernel(chain *c, muc_mcu_step *step, const stage_tables *t, bool *overwrites,
                             int64_t *lead)
{
    const muc_mcu_layer *layer = step->layer;
    muc_mcu_value *packed = &c->program->values[layer->packed];
    mur_conv_s8 slices[MOST_PATCHES];
    const muc_mcu_kernel *kernel;
    uint64_t scratch = 0;
    uint8_t *data;

    for (uint32_t i = 0; i < t->slice_count; i++)
        slices[i] = t->slices[i].as.conv;
    kernel = muc_mcu_find_conv(muc_mcu_core_get(c->program->machine->core)->isa, slices,
                               t->slice_count, &layer->plain);
    *overwrites = true;
    *lead = INT32_MIN;
    for (uint32_t i = 0; i < t->slice_count; i++) {
        uint64_t bytes = kernel->scratch_bytes(&slices[i]);
        int32_t behind;

        scratch = bytes > scratch ? bytes : scratch;
        *overwrites = muc_mcu_conv_lead(kernel, &slices[i].shape, &behind) && *overwrites;
        *lead = behind > *lead ? behind : *lead;
    }
    if (strcmp(kernel->function, step->function) != 0) {
        packed->bytes = step->packed_bytes = kernel->packed_bytes(slices);
        MUC_TRY(
            muc_arena_new(c->ctx, &c->program->arena, (size_t)packed->bytes, 1, (void **)&data));
        kernel->pack(slices, &layer->plain, data);
        packed->data = data;
        step->function = kernel->function;
        MUC_TRY(muc_mcu_need_function(c->ctx, c->program, kernel->function));
    }
    return set_scratch(c, step, scratch);
}

/* an addition may write over a side whose rows lie as its result's */
static bool side_matches(const stage_tables *t, uint32_t i)
{
    for (uint32_t s = 0; s < t->slice_count; s++)
        if (t->slices[s].pitch[i] != t->slices[s].pitch[2])
            return false;
    return is_zero(t->offset[i], t->patches);
}

/* of the overlaps those that hold between patches; never with a tensor that is there as a whole */
static void set_overlaps(const chain *c, uint32_t stage, const stage_tables *t, bool overwrites,
                         int64_t lead)
{
    muc_mcu_step *step = &c->program->steps[c->first + stage];
    uint32_t kept = 0;

    for (uint32_t i = 0; i < step->overlap_count; i++) {
        muc_mcu_overlap overlap = step->overlaps[i];
        bool is_add = step->layer->kind == MUC_MCU_LAYER_ADD;
        uint32_t at = value_of(step, MUC_MCU_READ, 0) == overlap.in ? 0 : 1;

        if (overlap.in == c->tensor[0] || stage + 1 == c->plan.stages || !overwrites ||
            (is_add ? !side_matches(t, at) : !is_zero(t->offset[0], t->patches)))
            continue;
        overlap.lead = is_add ? 0 : lead;
        step->overlaps[kept++] = overlap;
    }
    step->overlap_count = kept;
}

static uint64_t patched_macs(const chain *c, uint32_t stage)
{
    uint64_t units = 0;

    for (uint32_t p = 0; p < c->plan.grid_rows * c->plan.grid_columns; p++)
        units += (uint64_t)extent(part_of(c, true, p, stage + 1)->range) *
                 extent(part_of(c, false, p, stage + 1)->range);
    return units * c->stages[stage].unit_macs;
}

/* a value between shrinks to its largest patch */
static void shrink(chain *c, uint32_t t)
{
    uint64_t most = 0;

    for (uint32_t p = 0; p < c->plan.grid_rows * c->plan.grid_columns; p++) {
        uint64_t bytes = (uint64_t)extent(part_of(c, true, p, t)->range) *
                         extent(part_of(c, false, p, t)->range) * c->stages[t - 1].out_unit_bytes;

        most = bytes > most ? bytes : most;
    }
    c->program->values[c->tensor[t]].bytes = most;
}

static muc_status change_stage(chain *c, uint32_t stage, stage_tables *t, muc_text *text)
{
    muc_mcu_step *step = &c->program->steps[c->first + stage];
    bool overwrites = true;
    int64_t lead = 0;

    make_tables(c, stage, t);
    MUC_TRY(set_arguments(c, stage, t));
    if (step->layer->kind == MUC_MCU_LAYER_CONV)
        MUC_TRY(set_kernel(c, step, t, &overwrites, &lead));
    set_overlaps(c, stage, t, overwrites, lead);
    text->size = 0;
    print_tables(c, step, t, text);
    MUC_TRY(muc_text_status(c->ctx, text));
    MUC_TRY(muc_arena_string(c->ctx, &c->program->arena, text->data, text->size, &step->text));
    if (step->layer->kind == MUC_MCU_LAYER_ADD)
        step->function = step->name;
    step->macs = patched_macs(c, stage);
    return MUC_OK;
}

static muc_status change_steps(chain *c)
{
    muc_text text = { 0 };
    stage_tables *tables = muc_calloc(1, sizeof(*tables));
    muc_status status = tables ? MUC_OK : muc_fail_nomem(c->ctx, "patches", sizeof(*tables));

    for (uint32_t i = 0; i < c->plan.stages && status == MUC_OK; i++)
        status = change_stage(c, i, tables, &text);
    for (uint32_t t = 1; t < c->plan.stages; t++)
        shrink(c, t);
    c->program->loop = (muc_mcu_loop){
        .first = c->first,
        .end = c->first + c->plan.stages,
        .turns = c->plan.grid_rows * c->plan.grid_columns,
        .grid_rows = c->plan.grid_rows,
        .grid_columns = c->plan.grid_columns,
        .plain_peak = c->program->plan.peak,
        .more_macs = (int64_t)c->plan.macs - (int64_t)c->plan.plain_macs,
    };
    free(tables);
    muc_text_free(&text);
    return status;
}

/* ---- the decision ---- */

/* the program's lists again, so that what was there stays as it is */
static muc_status copy_lists(muc_context *ctx, muc_mcu_program *program)
{
    muc_mcu_value *values = program->values;
    muc_mcu_step *steps = program->steps;
    const char **sources = program->sources;

    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->value_count, &program->values));
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->step_count, &program->steps));
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->source_count, &program->sources));
    memcpy(program->values, values, program->value_count * sizeof(*values));
    memcpy(program->steps, steps, program->step_count * sizeof(*steps));
    memcpy(program->sources, sources, program->source_count * sizeof(*sources));
    program->value_capacity = program->value_count;
    program->step_capacity = program->step_count;
    program->source_capacity = program->source_count;
    return MUC_OK;
}

static void restore(muc_mcu_program *program, const muc_mcu_program *before)
{
    muc_arena arena = program->arena;

    *program = *before;
    program->arena = arena;
}

static muc_status try_patches(muc_context *ctx, muc_mcu_program *program, uint32_t trade)
{
    const muc_mcu_program before = *program;
    chain c = { .ctx = ctx, .program = program };

    if (!find_chain(&c))
        return MUC_OK;
    MUC_TRY(find_split(&c, trade));
    if (c.plan.stages == 0 || c.plan.grid_rows * c.plan.grid_columns < 2 || has_empty_part(&c))
        return MUC_OK;
    MUC_TRY(copy_lists(ctx, program));
    MUC_TRY(change_steps(&c));
    MUC_TRY(muc_mcu_plan_memory(ctx, program));
    if (program->plan.peak >= before.plan.peak ||
        muc_patch_cost(&c.plan, program->plan.peak, trade) >= (double)before.plan.peak)
        restore(program, &before);
    return MUC_OK;
}

muc_status muc_mcu_patch(muc_context *ctx, muc_mcu_program *program, muc_mcu_patches patches)
{
    const muc_mcu_program before = *program;

    if (patches == MUC_MCU_PATCHES_OFF)
        return MUC_OK;
    MUC_TRY(try_patches(ctx, program, patches == MUC_MCU_PATCHES_AUTO ? MUC_MCU_PATCH_TRADE : 0));
    if (patches == MUC_MCU_PATCHES_LEAST || program->plan.peak <= program->plan.capacity)
        return MUC_OK;
    restore(program, &before);
    return try_patches(ctx, program, 0);
}
