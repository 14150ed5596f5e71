/* layer_rates.c - which layers take more instructions than their kind should on a core, and why. */
#include "targets/mcu/run/layer_rates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/report_builder.h"
#include "targets/mcu/compile/build_mcu.h"

enum { CONVOLUTION, DEPTHWISE, LINEAR, KIND_COUNT };

static const char *const kind_names[KIND_COUNT] = { "a convolution", "a depthwise layer",
                                                    "a linear layer" };

/* hundredths of an instruction, of a product; 0: not known */
static const double rates[MUC_MCU_CORE_COUNT][KIND_COUNT] = {
#define MUC_MCU_LAYER_RATES(core, convolution, depthwise, linear) \
    [MUC_MCU_CORE_##core] = { convolution, depthwise, linear },
#include "targets/mcu/machines/layer_rates.def"
#undef MUC_MCU_LAYER_RATES
};

static const double slow_from = 2; /* times the rate */

/* of the first result, "i8 [1, 28, 1, 40]": elements, and the last dimension */
static void read_shape(const char *shape, uint64_t *elements, uint64_t *channels)
{
    *elements = *channels = 1;
    for (const char *at = strchr(shape, '['); at && *at != ']'; at = strpbrk(at + 1, ",]")) {
        *channels = strtoull(at + 1, NULL, 10);
        if (*channels == 0 || *elements > UINT32_MAX)
            return;
        *elements *= *channels;
    }
}

static int kind_of(const json_t *step)
{
    const char *function = muc_member_text(step, "function");

    if (strcmp(muc_member_text(step, "operator"), "linear") == 0)
        return LINEAR;
    return strstr(function, "_depthwise_") || strstr(function, "_apart_") ? DEPTHWISE : CONVOLUTION;
}

/* What about a step is to change: the first thing that is the matter with it. */
static muc_status find_cause(muc_context *ctx, muc_arena *arena, const muc_mcu_core_info *core,
                             const json_t *step, const char **out)
{
    const char *function = muc_member_text(step, "function");
    uint64_t macs = muc_member_count(step, "macs"), elements, channels, each;

    read_shape(muc_member_text(step, "shape"), &elements, &channels);
    each = elements ? macs / elements : 0;
    if (strncmp(function, "mur_", 4) != 0)
        return muc_arena_format(ctx, arena, out, "no kernel takes it, it is a loop of its own");
    if (strncmp(function, "mur_ref_", 8) == 0 && core->isa != MUC_MCU_ISA_NONE)
        return muc_arena_format(
            ctx, arena, out, "no kernel of %s takes it, it is plain C%s", core->name,
            kind_of(step) == DEPTHWISE && core->isa == MUC_MCU_ISA_DSP
                ? "; with as many outputs as inputs and three of them there is one"
                : "");
    if (strstr(function, "_wide_") || strstr(function, "_any_"))
        return muc_arena_format(
            ctx, arena, out, "its scales, weights or groups need the kernel for all, %s", function);
    if (core->isa == MUC_MCU_ISA_RVV && channels < 16)
        return muc_arena_format(
            ctx, arena, out, "its %" PRIu64 " output channels are too few for vectors", channels);
    if (channels % 4 && kind_of(step) != DEPTHWISE && core->isa != MUC_MCU_ISA_RVV)
        return muc_arena_format(
            ctx, arena, out, "its %" PRIu64 " output channels are not a multiple of 4", channels);
    if (each < 16 && elements > channels)
        return muc_arena_format(ctx, arena, out,
                                "an output has %" PRIu64
                                " products only, so that rounding and storing it take the most",
                                each);
    return muc_arena_format(
        ctx, arena, out, "its %" PRIu64 " outputs are too few, or its borders too wide, for blocks",
        elements);
}

bool muc_code_has_rates(const json_t *json)
{
    muc_mcu_core core;

    return muc_mcu_core_find(muc_member_text(json, "core"), &core) &&
           rates[muc_mcu_core_get(core)->as][CONVOLUTION] > 0;
}

muc_status muc_code_judge_layer(muc_context *ctx, muc_arena *arena, const json_t *json,
                                const json_t *step, uint64_t instructions, const char **out)
{
    const char *name = muc_member_text(step, "operator"), *cause;
    double macs = (double)muc_member_count(step, "macs"), usual, times;
    const muc_mcu_core_info *info;
    muc_mcu_core core;

    *out = NULL;
    if (!muc_mcu_core_find(muc_member_text(json, "core"), &core) || macs <= 0 ||
        json_is_object(json_object_get(step, "tiles")) ||
        strncmp(muc_member_text(step, "shape"), "i8 ", 3) != 0 ||
        (strncmp(name, "conv", 4) != 0 && strcmp(name, "linear") != 0))
        return MUC_OK;
    info = muc_mcu_core_get(core);
    usual = rates[info->as][kind_of(step)] / 100;
    times = usual > 0 ? (double)instructions / macs / usual : 0;
    if (times < slow_from)
        return MUC_OK;
    MUC_TRY(find_cause(ctx, arena, info, step, &cause));
    return muc_arena_format(ctx, arena, out,
                            "%.2g times the instructions of %s (%.3g a product): %s", times,
                            kind_names[kind_of(step)], usual, cause);
}
