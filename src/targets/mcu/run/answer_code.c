/* answer_code.c - whether generated C fits, how fast it is, and what would help, in words. */
#include "targets/mcu/run/answer_code.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "report/answers.h"
#include "report/figures.h"
#include "report/report_builder.h"
#include "targets/mcu/compile/build_mcu.h"
#include "targets/mcu/run/layer_rates.h"

/* shares that are worth a sentence */
static const double worth_saying = 0.1, nearly_full = 0.8;

static const char *const known_machines[] = {
#define MUC_MCU_MACHINE(id, name, meaning) name,
#include "targets/mcu/machines/mcu_machines.def"
#undef MUC_MCU_MACHINE
};

typedef struct answering {
    muc_context *ctx;
    muc_arena *arena;
    const json_t *json, *steps;
    muc_report *report;
} answering;

static double number_of(const answering *a, const char *path)
{
    double value;

    return muc_report_number(a->report, path, &value) ? value : 0;
}

static bool speaks(const answering *a)
{
    return json_object_get(a->json, "language_model") != NULL;
}

static uint64_t macs_of(const json_t *steps)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(steps); i++)
        sum += muc_member_count(json_array_get(steps, i), "macs");
    return sum;
}

/* products of steps whose results have the type, such as "i8 " */
static uint64_t macs_of_type(const json_t *steps, const char *type)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);

        if (strncmp(muc_member_text(step, "shape"), type, strlen(type)) == 0)
            sum += muc_member_count(step, "macs");
    }
    return sum;
}

static bool find_core(const answering *a, muc_mcu_core *out)
{
    return muc_mcu_core_find(muc_member_text(a->json, "core"), out);
}

/* ---- speed ---- */

static muc_status answer_modelled(answering *a, double ms)
{
    const char *answer, *detail;

    if (speaks(a))
        MUC_TRY(muc_arena_format(a->ctx, a->arena, &answer, "%.3g tokens/s", 1e3 / ms));
    else
        MUC_TRY(muc_arena_format(a->ctx, a->arena, &answer, "%.4g ms a run", ms));
    MUC_TRY(muc_arena_format(
        a->ctx, a->arena, &detail,
        "Modelled for %s at %" PRIu64 " MHz: %.4g million cycles, %.4g million "
        "instructions.",
        muc_member_text(a->json, "machine"), muc_member_count(a->json, "clock_mhz"),
        number_of(a, "modelled_cycles") / 1e6, number_of(a, "instructions") / 1e6));
    muc_report_answer_speed(a->report, answer, detail);
    return MUC_OK;
}

/* the type that all products have, of int8 and floats, in a network whose time can be guessed */
static bool find_type(const answering *a, muc_dtype *type)
{
    static const struct {
        const char *shape;
        muc_dtype type;
    } types[] = { { "i8 ", MUC_I8 }, { "f32 ", MUC_F32 } };
    uint64_t macs = macs_of(a->steps);

    for (size_t i = 0; i < MUC_COUNT(types) && macs; i++)
        if (macs == macs_of_type(a->steps, types[i].shape)) {
            *type = types[i].type;
            return !speaks(a) && !json_object_get(a->json, "tile_memory");
        }
    return false;
}

/* before a board has counted anything: by the cycles of other networks on the core */
static muc_status answer_guessed(answering *a)
{
    uint64_t macs = macs_of(a->steps), clock = muc_member_count(a->json, "clock_mhz");
    double least = 0, most = 0;
    const char *answer, *detail;
    muc_mcu_core core;
    muc_dtype type;

    if (find_type(a, &type) && clock && find_core(a, &core))
        muc_mcu_guess_ms(core, type, (double)macs, (double)clock, &least, &most);
    if (!(most > 0)) {
        muc_report_answer_speed(a->report, "",
                                "--qemu BOARD counts instructions, and --cycles models the time.");
        return MUC_OK;
    }
    MUC_TRY(muc_arena_format(a->ctx, a->arena, &answer, "%.3g to %.3g ms a run", least, most));
    MUC_TRY(muc_arena_format(a->ctx, a->arena, &detail,
                             "By the cycles that %s networks take on this core; --qemu BOARD "
                             "--cycles models this one's.",
                             type == MUC_I8 ? "int8" : "float"));
    muc_report_answer_speed(a->report, answer, detail);
    return MUC_OK;
}

static muc_status answer_speed(answering *a)
{
    double ms = number_of(a, "modelled_ms"), instructions = number_of(a, "instructions");
    const char *answer;

    if (ms > 0)
        return answer_modelled(a, ms);
    if (!(instructions > 0))
        return answer_guessed(a);
    MUC_TRY(muc_arena_format(a->ctx, a->arena, &answer, "%.4g million instructions a %s",
                             instructions / 1e6, speaks(a) ? "token" : "run"));
    muc_report_answer_speed(a->report, answer, "--cycles models their time, too.");
    return MUC_OK;
}

/* ---- what to change: memory ---- */

/* the buffers of a step, the largest first, as many as a sentence has room for */
static void add_fullest(const answering *a, uint32_t step, muc_text *text)
{
    const json_t *buffers = json_object_get(a->json, "buffers");
    uint64_t below = UINT64_MAX;

    for (unsigned shown = 0; shown < 3; shown++) {
        const json_t *largest = NULL;

        for (size_t i = 0; i < json_array_size(buffers); i++) {
            const json_t *item = json_array_get(buffers, i);
            uint64_t bytes = muc_member_count(item, "bytes");
            bool lives =
                json_is_true(json_object_get(item, "persistent")) ||
                (muc_member_count(item, "first") <= step && muc_member_count(item, "last") >= step);

            if (lives && bytes && bytes < below &&
                (!largest || bytes > muc_member_count(largest, "bytes")))
                largest = item;
        }
        if (!largest)
            return;
        below = muc_member_count(largest, "bytes");
        muc_text_add(text, "%s'%s' with %" PRIu64, shown ? ", " : "",
                     *muc_member_text(largest, "tensor") ? muc_member_text(largest, "tensor")
                                                         : muc_member_text(largest, "name"),
                     below);
    }
}

static uint32_t fullest_step(const json_t *steps)
{
    uint32_t fullest = 0;

    for (size_t i = 0; i < json_array_size(steps); i++)
        if (muc_member_count(json_array_get(steps, i), "arena") >
            muc_member_count(json_array_get(steps, fullest), "arena"))
            fullest = (uint32_t)i;
    return fullest;
}

static void advise_arena(answering *a, const json_t *memory)
{
    uint64_t bytes = muc_member_count(memory, "bytes"), limit = muc_member_count(memory, "limit");
    uint64_t bound = muc_member_count(a->json, "arena_bound");
    uint32_t step = fullest_step(a->steps);
    muc_text largest = { 0 };

    if (!json_array_size(a->steps) || (double)bytes < nearly_full * (double)limit || limit == 0)
        return;
    add_fullest(a, step, &largest);
    muc_report_advise(a->report,
                      "The arena is fullest in step '%s'; the largest of it are %s. %s%s",
                      muc_member_text(json_array_get(a->steps, step), "name"),
                      largest.data ? largest.data : "nothing",
                      bytes > bound ? "Another plan may need less, but no less than its bound. "
                                    : "No plan of these steps needs less. ",
                      speaks(a) ? "A smaller --ctx-size has smaller caches."
                      : json_object_get(a->json, "patches") ? ""
                                                            : "--patch least runs the first steps "
                                                              "patch by patch.");
    muc_text_free(&largest);
}

/* constants and, if a board's image was measured, code */
static uint64_t flash_of(const answering *a)
{
    uint64_t constants = muc_member_count(a->json, "constant_bytes");
    double image_bytes = number_of(a, "flash_bytes");
    uint64_t image = image_bytes < 1e18 ? (uint64_t)image_bytes : 0;

    return image > constants ? image : constants;
}

static bool has_room(const answering *a, const muc_mcu_machine *machine)
{
    return muc_mcu_memory_for(machine, MUC_MCU_WEIGHTS)->bytes >= flash_of(a) &&
           muc_mcu_memory_for(machine, MUC_MCU_ARENA)->bytes >=
               muc_member_count(a->json, "arena_bytes");
}

/* the known machine with the least flash of those that have room; NULL: none has */
static muc_status find_larger(answering *a, const char **out)
{
    uint32_t least = UINT32_MAX;

    *out = NULL;
    for (size_t i = 0; i < MUC_COUNT(known_machines); i++) {
        muc_mcu_machine machine;
        uint32_t flash;

        MUC_TRY(muc_mcu_find_machine(a->ctx, a->arena, known_machines[i], &machine));
        flash = muc_mcu_memory_for(&machine, MUC_MCU_WEIGHTS)->bytes;
        if (flash < least && has_room(a, &machine)) {
            least = flash;
            *out = known_machines[i];
        }
    }
    return MUC_OK;
}

/* code and constants, which only a board's image tells */
static muc_status advise_flash(answering *a, const json_t *memory)
{
    uint64_t limit = muc_member_count(memory, "limit"),
             constants = muc_member_count(memory, "bytes");
    uint64_t flash = flash_of(a);
    const char *larger;

    if (limit == 0 || flash <= limit)
        return MUC_OK;
    MUC_TRY(find_larger(a, &larger));
    muc_report_advise(
        a->report,
        "%s lacks %" PRIu64 " bytes: %" PRIu64 " are constants, %" PRIu64 " code. %s%s%s",
        muc_member_text(memory, "memory"), flash - limit, constants, flash - constants,
        speaks(a) ? "Fewer --bits of weights, or a larger machine: "
                  : "--quant int8, if it is float32, or a larger machine: ",
        larger ? larger : "none that muc knows has as much",
        larger ? " has room (muc fit tells all)." : ".");
    return MUC_OK;
}

static muc_status advise_memories(answering *a)
{
    const json_t *memories = json_object_get(a->json, "memories");

    for (size_t i = 0; i < json_array_size(memories); i++) {
        const json_t *memory = json_array_get(memories, i);

        if (strcmp(muc_member_text(memory, "use"), "arena") == 0)
            advise_arena(a, memory);
        else if (strcmp(muc_member_text(memory, "use"), "constants") == 0)
            MUC_TRY(advise_flash(a, memory));
    }
    return MUC_OK;
}

/* ---- what to change: time ---- */

static void advise_floats(answering *a)
{
    uint64_t macs = macs_of(a->steps), floats = macs_of_type(a->steps, "f32 ");

    if (!speaks(a) && macs && (double)floats >= worth_saying * (double)macs)
        muc_report_advise(a->report,
                          "%.0f %% of the products are those of float32: with --quant int8 "
                          "constants take a quarter of the bytes, and products are integers.",
                          100 * (double)floats / (double)macs);
}

static void advise_touches(answering *a)
{
    double cycles = number_of(a, "modelled_cycles"), touch = number_of(a, "touch_cycles");

    if (touch > worth_saying * cycles)
        muc_report_advise(a->report,
                          "Waiting for code and constants that are read for the first time takes "
                          "%.0f %% of the time; memory that answers at once would save it.",
                          100 * touch / cycles);
}

/* int8 products by plain C, though the core has an instruction set for them */
static void advise_kernels(answering *a)
{
    uint64_t macs = macs_of(a->steps);
    muc_mcu_core core;

    if (!find_core(a, &core) || muc_mcu_core_get(core)->isa == MUC_MCU_ISA_NONE)
        return;
    for (size_t i = 0; i < json_array_size(a->steps); i++) {
        const json_t *step = json_array_get(a->steps, i);
        double share = macs ? (double)muc_member_count(step, "macs") / (double)macs : 0;

        if (share >= worth_saying &&
            strncmp(muc_member_text(step, "function"), "mur_ref_", 8) == 0 &&
            strncmp(muc_member_text(step, "shape"), "i8 ", 3) == 0)
            muc_report_advise(a->report,
                              "'%s' has %.0f %% of the products, and no kernel of %s takes it: it "
                              "runs as plain C.",
                              muc_member_text(step, "name"), 100 * share,
                              muc_member_text(a->json, "core"));
    }
}

/* Layers that take more cycles for a product than the network does on average, by what they would
 * save if they took no more. */
static void advise_slow_layers(answering *a, const uint64_t *cycles)
{
    double mean = number_of(a, "cycles_per_mac"), all = number_of(a, "modelled_cycles");

    for (size_t i = 0; cycles && mean > 0 && i < json_array_size(a->steps); i++) {
        const json_t *step = json_array_get(a->steps, i);
        double macs = (double)muc_member_count(step, "macs"),
               saved = (double)cycles[i] - macs * mean;

        if (saved < worth_saying / 2 * all)
            continue;
        if (macs > 0)
            muc_report_advise(a->report,
                              "'%s' takes %.3g cycles for a product, the network %.3g: at that "
                              "rate %.0f %% of the time would be saved.",
                              muc_member_text(step, "name"), (double)cycles[i] / macs, mean,
                              100 * saved / all);
        else
            muc_report_advise(a->report, "'%s' takes %.0f %% of the time and has no products.",
                              muc_member_text(step, "name"), 100 * saved / all);
    }
}

/* the known machine with room that is surest to be faster than this one */
static muc_status advise_machine(answering *a)
{
    double macs = (double)macs_of(a->steps), fastest = number_of(a, "modelled_ms"), least, most;
    double fastest_least = 0;
    const char *name = NULL;
    muc_mcu_core core;
    muc_dtype type;

    if (!find_type(a, &type) || !find_core(a, &core) || muc_member_count(a->json, "clock_mhz") == 0)
        return MUC_OK;
    if (!(fastest > 0))
        muc_mcu_guess_ms(core, type, macs, (double)muc_member_count(a->json, "clock_mhz"), &fastest,
                         &most);
    for (size_t i = 0; i < MUC_COUNT(known_machines); i++) {
        muc_mcu_machine machine;

        MUC_TRY(muc_mcu_find_machine(a->ctx, a->arena, known_machines[i], &machine));
        if (machine.clock_mhz == 0 || machine.has_dma || !has_room(a, &machine))
            continue;
        muc_mcu_guess_ms(machine.core, type, macs, machine.clock_mhz, &least, &most);
        if (!(most > 0) || most >= fastest)
            continue;
        fastest = most;
        fastest_least = least;
        name = known_machines[i];
    }
    if (name)
        muc_report_advise(a->report,
                          "Of the machines that muc knows and that have room, %s is the fastest: "
                          "about %.3g to %.3g ms a run (muc fit tells all).",
                          name, fastest_least, fastest);
    return MUC_OK;
}

muc_status muc_code_answer(muc_context *ctx, muc_arena *arena, const muc_code_folder *folder,
                           const uint64_t *cycles, const char *const *slow, muc_report *report)
{
    answering a = { ctx, arena, folder->json, json_object_get(folder->json, "steps"), report };

    muc_report_begin_answers(report);
    muc_report_answer_fit(report);
    MUC_TRY(answer_speed(&a));
    muc_report_answer_costs(report);
    muc_report_end(report);
    muc_report_begin_advice(report);
    MUC_TRY(advise_memories(&a));
    advise_floats(&a);
    advise_touches(&a);
    advise_kernels(&a);
    for (size_t i = 0; i < json_array_size(a.steps); i++)
        if (slow[i])
            muc_report_advise(report, "'%s' takes %s.",
                              muc_member_text(json_array_get(a.steps, i), "name"), slow[i]);
    if (number_of(&a, "instructions") > 0 && !speaks(&a) && !muc_code_has_rates(a.json))
        muc_report_advise(report,
                          "What a product takes on %s was not counted: no layer is marked as slow.",
                          muc_member_text(a.json, "core"));
    advise_slow_layers(&a, cycles);
    MUC_TRY(advise_machine(&a));
    muc_report_end(report);
    return MUC_OK;
}

/* ---- roofline ---- */

/* int8 products that one core makes in a cycle at most: SMLAD makes two (Armv7E-M ARM), a VMLADAV
 * of 16 bytes takes two cycles on Cortex-M55 and M85 (their TRMs), a product and its sum are two
 * instructions elsewhere; 0: not known */
static double peak_macs(muc_mcu_isa isa)
{
    switch (isa) {
    case MUC_MCU_ISA_DSP:
    case MUC_MCU_ISA_SINGLE:
        return 2;
    case MUC_MCU_ISA_MVE:
        return 8;
    case MUC_MCU_ISA_NONE:
    case MUC_MCU_ISA_RV:
        return 0.5;
    case MUC_MCU_ISA_RVV: /* as long as its registers, which the core's name does not tell */
    case MUC_MCU_ISA_HOST:
    case MUC_MCU_ISA_COUNT:
        break;
    }
    return 0;
}

/* bytes a cycle of the faster of the memories */
static double peak_bytes(const json_t *memories)
{
    double most = 0;

    for (size_t i = 0; i < json_array_size(memories); i++) {
        uint64_t cycles = muc_member_count(json_array_get(memories, i), "cycles_per_kb");

        if (cycles && 1024.0 / (double)cycles > most)
            most = 1024.0 / (double)cycles;
    }
    return most;
}

muc_status muc_code_draw_roofline(muc_context *ctx, muc_arena *arena, const muc_code_folder *folder,
                                  const uint64_t *cycles, muc_report *report)
{
    answering a = { ctx, arena, folder->json, json_object_get(folder->json, "steps"), report };
    muc_roofline_figure figure = { .x_name = "MACs for each byte that a layer reads or writes",
                                   .y_name = "MACs/cycle",
                                   .roof_name = "roofs: memory, then products",
                                   .layer_name = "layers",
                                   .whole = { .name = "the whole network" },
                                   .count = json_array_size(a.steps),
                                   .peak_bytes = peak_bytes(json_object_get(a.json, "memories")) };
    muc_roof_point *points;
    muc_mcu_core core;

    if (macs_of(a.steps) != macs_of_type(a.steps, "i8 ") || !find_core(&a, &core))
        return MUC_OK;
    figure.peak_macs = peak_macs(muc_mcu_core_get(core)->isa);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, figure.count + 1, &points));
    for (size_t i = 0; i < figure.count; i++) {
        const json_t *step = json_array_get(a.steps, i);

        points[i] =
            (muc_roof_point){ muc_member_text(step, "name"), (double)muc_member_count(step, "macs"),
                              (double)muc_member_count(step, "constants") +
                                  (double)muc_member_count(step, "read") +
                                  (double)muc_member_count(step, "written"),
                              (double)cycles[i] };
        figure.whole.macs += points[i].macs;
        figure.whole.bytes += points[i].bytes;
        figure.whole.time += points[i].time;
    }
    figure.layers = points;
    muc_report_add_roofline(report, &figure);
    return MUC_OK;
}
