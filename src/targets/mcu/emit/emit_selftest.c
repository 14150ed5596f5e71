/* emit_selftest.c - NAME_selftest.c and the checksum that it expects. The numbers are those of
 * run/random_inputs.c, whose generator it has too. */
#include "targets/mcu/emit/emit_selftest.h"

#include <inttypes.h>
#include <math.h>

#include "run/network_run.h"
#include "run/random_inputs.h"
#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/lower/run_checks.h"

/* What an element of a type is, of the generator's next number; NULL: a type without a self test.
 */
static const char *const elements[MUC_DTYPE_COUNT] = {
    [MUC_F32] = "(float)(int32_t)draw(&state) / 2147483648.0f",
    [MUC_I8] = "(int8_t)(uint8_t)(draw(&state) >> 24)",
    [MUC_U8] = "(uint8_t)(draw(&state) >> 24)",
    [MUC_BOOL] = "(uint8_t)(draw(&state) >> 31)",
    [MUC_I16] = "(int8_t)(uint8_t)(draw(&state) >> 24)",
    [MUC_U16] = "(uint8_t)(draw(&state) >> 24)",
    [MUC_I32] = "(int32_t)(draw(&state) >> 31)",
    [MUC_U32] = "draw(&state) >> 31",
    [MUC_I64] = "draw(&state) >> 31",
    [MUC_U64] = "draw(&state) >> 31",
};

static const muc_mcu_value *value_of(const muc_mcu_program *program, const muc_mcu_ports *ports,
                                     uint32_t i)
{
    return &program->values[ports->values[i]];
}

/* of an index that must be 0 */
static const char zero[] = "0 * draw(&state)";

static bool is_plain(const muc_mcu_value *value)
{
    return !value->layout && elements[value->tensor->dtype];
}

/* Are the program's inputs and outputs the graph's, in its order, of types that a self test takes?
 * An int8 tensor may stand for the float one that the graph has. */
static bool has_plain_ports(const muc_mcu_program *program)
{
    const muc_graph *graph = program->graph;
    uint32_t inputs = 0;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].kind != MUC_TENSOR_INPUT)
            continue;
        if (inputs == program->inputs.count ||
            value_of(program, &program->inputs, inputs)->tensor != &graph->tensors[i] ||
            !is_plain(value_of(program, &program->inputs, inputs++)))
            return false;
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (i >= program->outputs.count ||
            value_of(program, &program->outputs, i)->tensor != &graph->tensors[graph->outputs[i]] ||
            !is_plain(value_of(program, &program->outputs, i)))
            return false;
    return inputs == program->inputs.count && graph->output_count == program->outputs.count;
}

/* What may differ of an f32 result whose sums have another order: as muc verify has it. */
static const float tolerance = 1e-4f;

/* false if a number is not finite */
static bool take_samples(const muc_tensor_view *view, muc_mcu_samples *out)
{
    float greatest = 0;

    if (view->elements == 0 || view->elements > UINT32_MAX)
        return false;
    out->stride = (uint32_t)((view->elements + MUC_MCU_SAMPLES - 1) / MUC_MCU_SAMPLES);
    for (uint64_t i = 0; i < view->elements; i++) {
        float value = (float)muc_array_element(view, i);

        if (!isfinite(value))
            return false;
        if (i % out->stride == 0)
            out->values[out->count++] = value;
        greatest = fmaxf(greatest, fabsf(value));
    }
    out->tolerance = greatest * tolerance;
    return true;
}

static void add_to_checksum(const muc_tensor_view *view, uint32_t *checksum)
{
    for (uint64_t i = 0; i < view->bytes; i++)
        *checksum = (*checksum ^ view->data[i]) * 16777619u;
}

static bool is_index(muc_dtype dtype)
{
    return muc_dtype_get(dtype)->block_bytes > 2 && dtype != MUC_F32;
}

/* where a sum of another order may lead to another integer */
static bool uses_floats(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].tensor && program->values[i].tensor->dtype == MUC_F32)
            return true;
    return false;
}

static bool is_zero(const muc_tensor_view *view)
{
    for (uint64_t i = 0; i < view->bytes; i++)
        if (view->data[i])
            return false;
    return true;
}

static muc_status run(muc_context *ctx, const muc_mcu_program *program, muc_graph *graph,
                      muc_arena *arena, muc_mcu_golden *out)
{
    muc_tensor_view *inputs, *outputs;
    muc_mcu_samples *samples;
    size_t count;

    MUC_TRY(muc_made_arrays(ctx, graph, NULL, 0, arena, &inputs, &count));
    for (size_t i = 0; i < count; i++)
        if (is_index(inputs[i].dtype))
            out->zero_indices = is_zero(&inputs[i]);
    MUC_TRY(muc_network_run(ctx, graph, inputs, count, arena, &outputs));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, graph->output_count, &samples));
    out->checksum = 2166136261u;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (outputs[i].dtype != MUC_F32)
            add_to_checksum(&outputs[i], &out->checksum);
        if (outputs[i].dtype == MUC_F32 ? !take_samples(&outputs[i], &samples[i])
                                        : uses_floats(program))
            return MUC_OK;
    }
    out->samples = samples;
    return MUC_OK;
}

muc_status muc_mcu_find_golden(muc_context *ctx, muc_mcu_program *program, muc_graph *graph)
{
    muc_status status;

    if (program->lm || program->exports || program->arguments || muc_mcu_has_cache(program) ||
        !has_plain_ports(program))
        return MUC_OK;
    status = run(ctx, program, graph, &program->arena, &program->golden);
    if (status != MUC_MALFORMED && status != MUC_USAGE)
        return status;
    muc_error_clear(ctx); /* a node refuses these numbers */
    return MUC_OK;
}

static const char generator[] = "static uint32_t draw(uint32_t *state)\n"
                                "{\n"
                                "    *state ^= *state << 13;\n"
                                "    *state ^= *state >> 17;\n"
                                "    *state ^= *state << 5;\n"
                                "    return *state;\n"
                                "}\n\n";

static const char summation[] =
    "static uint32_t add(uint32_t sum, const void *data, size_t bytes)\n"
    "{\n"
    "    for (const uint8_t *at = data; bytes; bytes--)\n"
    "        sum = (sum ^ *at++) * 16777619u;\n"
    "    return sum;\n"
    "}\n\n";

static const char comparison[] =
    "static int differs(const float *found, const float *expected, size_t count, size_t stride,\n"
    "                   float tolerance)\n"
    "{\n"
    "    for (size_t i = 0; i < count; i++)\n"
    "        if (!(found[i * stride] - expected[i] <= tolerance &&\n"
    "              expected[i] - found[i * stride] <= tolerance))\n"
    "            return 1;\n"
    "    return 0;\n"
    "}\n\n";

static void emit_samples(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->outputs.count; i++) {
        const muc_mcu_samples *samples = &program->golden.samples[i];

        if (!samples->count)
            continue;
        muc_text_add(text, "static const float expected_%s[] = {\n",
                     value_of(program, &program->outputs, i)->name);
        for (uint32_t j = 0; j < samples->count; j++) {
            muc_text_add(text, j % 4 ? " " : "    ");
            muc_mcu_print_real(text, (double)samples->values[j], false);
            muc_text_add(text, j % 4 == 3 || j + 1 == samples->count ? ",\n" : ",");
        }
        muc_text_add(text, "};\n\n");
    }
}

static void emit_inputs(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->inputs.count; i++) {
        const muc_mcu_value *value = value_of(program, &program->inputs, i);
        muc_dtype dtype = value->tensor->dtype;

        muc_text_add(text, "    for (size_t i = 0; i < ");
        muc_mcu_print_prefix(program, value, text);
        muc_text_add(text, "ELEMENTS; i++)\n        inputs.%s[i] = %s;\n", value->name,
                     program->golden.zero_indices && is_index(dtype) ? zero : elements[dtype]);
    }
}

static void emit_outputs(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->outputs.count; i++) {
        const muc_mcu_value *value = value_of(program, &program->outputs, i);
        const muc_mcu_samples *samples = &program->golden.samples[i];

        if (samples->count) {
            muc_text_add(text,
                         "    wrong |= differs(outputs.%s, expected_%s, %" PRIu32 ", %" PRIu32 ", ",
                         value->name, value->name, samples->count, samples->stride);
            muc_mcu_print_real(text, (double)samples->tolerance, false);
            muc_text_add(text, ");\n");
        } else {
            muc_text_add(text, "    sum = add(sum, outputs.%s, ", value->name);
            muc_mcu_print_prefix(program, value, text);
            muc_text_add(text, "BYTES);\n");
        }
    }
}

static bool has_output(const muc_mcu_program *program, bool is_real)
{
    for (uint32_t i = 0; i < program->outputs.count; i++)
        if ((program->golden.samples[i].count != 0) == is_real)
            return true;
    return false;
}

void muc_mcu_emit_selftest(const muc_mcu_program *program, muc_text *text)
{
    const char *name = program->name,
               *reset = muc_mcu_has_state(program) ? "_reset(arena);\n" : NULL;
    bool sums = has_output(program, false), refuses = muc_mcu_may_refuse(program);

    muc_text_add(text,
                 "/* %s_selftest.c - runs the network on numbers from a generator and compares its "
                 "results with\n * those that muc's reference had. */\n#include \"%s.h\"\n\n",
                 name, name);
    muc_text_add(text, "%s%s%s", program->inputs.count ? generator : "", sums ? summation : "",
                 has_output(program, true) ? comparison : "");
    emit_samples(program, text);
    muc_text_add(
        text, "int %s_selftest(void *arena)\n{\n    %s_inputs inputs;\n    %s_outputs outputs;\n",
        name, name, name);
    if (program->inputs.count)
        muc_text_add(text, "    uint32_t state = 0x%08xu;\n", MUC_MADE_ARRAYS_SEED);
    if (sums)
        muc_text_add(text, "    uint32_t sum = 2166136261u;\n");
    muc_text_add(text, "    int wrong = 0;\n\n    %s_init(arena, &inputs, &outputs);\n", name);
    if (reset)
        muc_text_add(text, "    %s%s", name, reset);
    emit_inputs(program, text);
    muc_text_add(text, "    %s%s_run(arena);\n", refuses ? "wrong |= " : "", name);
    emit_outputs(program, text);
    if (reset)
        muc_text_add(text, "    %s%s", name, reset);
    if (sums)
        muc_text_add(text, "    wrong |= sum != 0x%08" PRIx32 "u;\n", program->golden.checksum);
    muc_text_add(text, "    return wrong != 0;\n}\n");
}
