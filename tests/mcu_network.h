/* mcu_network.h - graphs as the C code that muc makes of them: compiled in one go, loaded, and run
 * on random inputs beside ref.
 */
#ifndef TEST_MCU_NETWORK_H
#define TEST_MCU_NETWORK_H

#include "check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>

#include "base/base.h"
#include "base/text.h"
#include "ref/ref.h"
#include "targets/mcu/compile/build_mcu.h"
#include "targets/mcu/plan/plan_arena.h"

#define MCU_WARNINGS "-Wall -Wextra -Wconversion -Wno-unused-function -Werror"

enum { MCU_MOST_PORTS = 32, MCU_GUARD = 64 };

typedef struct mcu_network {
    muc_graph *graph;
    muc_mcu_build *build;
} mcu_network;

typedef struct mcu_batch {
    muc_context *ctx;
    char root[64];
    void *library;
    mcu_network *networks;
    size_t count;
    uint64_t seed;
    muc_mcu_choices choices; /* of networks added from now on */
} mcu_batch;

static inline mcu_batch mcu_batch_new(void)
{
    mcu_batch batch = { .ctx = muc_context_new(1), .root = "/tmp/muc_mcu_XXXXXX", .seed = 1 };

    CHECK(mkdtemp(batch.root) != NULL);
    return batch;
}

/* Compiles a graph, which the batch owns from then on. */
static inline muc_status mcu_batch_try(mcu_batch *batch, muc_context *ctx, muc_graph *graph,
                                       const char *machine)
{
    muc_mcu_build *build;
    char name[32];

    snprintf(name, sizeof(name), "n%zu", batch->count);
    MUC_TRY(muc_mcu_compile_as(ctx, graph, name, machine, &batch->choices, &build));
    batch->networks = realloc(batch->networks, (batch->count + 1) * sizeof(*batch->networks));
    batch->networks[batch->count++] = (mcu_network){ graph, build };
    return MUC_OK;
}

/* The same, which must succeed. */
static inline void mcu_batch_add(mcu_batch *batch, muc_graph *graph, const char *machine)
{
    CHECK_OK(batch->ctx, mcu_batch_try(batch, batch->ctx, graph, machine));
}

/* Does a step call a function, or its text contain this? */
static inline bool mcu_calls(const mcu_batch *batch, size_t network, const char *what)
{
    const muc_mcu_program *program = &batch->networks[network].build->program;

    for (uint32_t i = 0; i < program->step_count; i++)
        if (strstr(program->steps[i].text, what) || strstr(program->steps[i].function, what))
            return true;
    return false;
}

/* Every network in a folder of its own. */
static inline void mcu_batch_write(mcu_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/n%zu", batch->root, i);
        CHECK_OK(batch->ctx,
                 muc_mcu_write_folder(batch->ctx, batch->networks[i].build, path, NULL));
    }
}

/* Every source once, one library. */
static inline void mcu_batch_build(mcu_batch *batch, const char *compiler)
{
    const char *sources[256];
    size_t source_count = 0;
    muc_text command = { 0 };
    char path[128];

    mcu_batch_write(batch);
    muc_text_add(&command,
                 "%s -std=c99 -O1 -ffp-contract=off -fPIC -shared " MCU_WARNINGS " -o %s/all.so",
                 compiler, batch->root);
    for (size_t i = 0; i < batch->count; i++) {
        const muc_mcu_program *program = &batch->networks[i].build->program;

        snprintf(path, sizeof(path), "%s/n%zu", batch->root, i);
        muc_text_add(&command, " -I%s -I%s/include %s/n%zu.c", path, path, path, i);
        for (uint32_t s = 0; s < program->source_count; s++) {
            size_t known = 0;

            while (known < source_count && strcmp(sources[known], program->sources[s]) != 0)
                known++;
            if (known < source_count)
                continue;
            sources[source_count++] = program->sources[s];
            muc_text_add(&command, " %s/%s", path, program->sources[s]);
        }
    }
    if (system(command.data) != 0)
        fail_msg("the code in %s does not compile", batch->root);
    muc_text_free(&command);
    snprintf(path, sizeof(path), "%s/all.so", batch->root);
    batch->library = dlopen(path, RTLD_NOW);
    if (!batch->library)
        fail_msg("%s", dlerror());
}

/* Every network's source and one example, after mcu_batch_write, without a warning by another
 * compiler. */
static inline void mcu_batch_check(mcu_batch *batch, const char *compiler)
{
    muc_text command = { 0 };

    CHECK(batch->count > 0);
    muc_text_add(&command, "%s -std=c99 -O2 -fsyntax-only " MCU_WARNINGS, compiler);
    muc_text_add(&command, " -I%s/n0/include %s/n0/main.c", batch->root, batch->root);
    for (size_t i = 0; i < batch->count; i++)
        muc_text_add(&command, " -I%s/n%zu -I%s/n%zu/include %s/n%zu/n%zu.c", batch->root, i,
                     batch->root, i, batch->root, i, i);
    if (system(command.data) != 0)
        fail_msg("%s warns of code in %s", compiler, batch->root);
    muc_text_free(&command);
}

static inline void *mcu_symbol(mcu_batch *batch, size_t i, const char *suffix)
{
    char name[64];
    void *symbol;

    snprintf(name, sizeof(name), "n%zu_%s", i, suffix);
    symbol = dlsym(batch->library, name);
    CHECK(symbol != NULL);
    return symbol;
}

static inline uint32_t mcu_random(mcu_batch *batch)
{
    batch->seed = batch->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(batch->seed >> 33);
}

static inline void mcu_fill(mcu_batch *batch, muc_dtype dtype, void *data, size_t bytes)
{
    uint8_t *at = data;

    if (dtype == MUC_F32)
        for (size_t i = 0; i < bytes / 4; i++)
            ((float *)data)[i] = ((float)(mcu_random(batch) % 2001) - 1000) / 512;
    else
        for (size_t i = 0; i < bytes; i++)
            at[i] = dtype == MUC_BOOL ? mcu_random(batch) & 1 : (uint8_t)mcu_random(batch);
    /* integers of more bytes stay small, so that sums of products do not leave their type */
    if (dtype == MUC_I32)
        for (size_t i = 0; i < bytes / 4; i++)
            ((int32_t *)data)[i] %= 1000;
    if (dtype == MUC_I64)
        for (size_t i = 0; i < bytes / 8; i++)
            ((int64_t *)data)[i] %= 1000;
}

static inline void mcu_compare(size_t network, const char *name, muc_dtype dtype,
                               const void *expected, const void *found, size_t bytes,
                               double tolerance)
{
    const float *e = expected, *f = found;

    if (dtype != MUC_F32) {
        for (size_t i = 0; i < bytes; i++)
            if (((const uint8_t *)expected)[i] != ((const uint8_t *)found)[i])
                fail_msg("network %zu: byte %zu of '%s' is %d, expected %d", network, i, name,
                         ((const int8_t *)found)[i], ((const int8_t *)expected)[i]);
        return;
    }
    for (size_t i = 0; i < bytes / 4; i++)
        if (!(fabs((double)f[i] - (double)e[i]) <= tolerance * fmax(1, fabs((double)e[i]))) &&
            !(e[i] == f[i]) && !(isnan(e[i]) && isnan(f[i])))
            fail_msg("network %zu: '%s'[%zu] is %.9g, expected %.9g", network, name, i,
                     (double)f[i], (double)e[i]);
}

/* The arena of a network, with bytes around it that must not change. */
typedef struct mcu_arena {
    uint8_t *memory, *arena;
    size_t bytes;
    void *in[MCU_MOST_PORTS], *out[MCU_MOST_PORTS];
    void (*run)(void *arena);
} mcu_arena;

static inline mcu_arena mcu_arena_new(mcu_batch *batch, size_t i)
{
    mcu_arena a = { .bytes = (size_t)batch->networks[i].build->program.plan.peak };
    void (*init)(void *, void **, void **);

    a.memory = aligned_alloc(MCU_GUARD, (a.bytes + 3 * MCU_GUARD) / MCU_GUARD * MCU_GUARD);
    a.arena = a.memory + MCU_GUARD;
    memset(a.memory, 0xa5, a.bytes + 2 * MCU_GUARD);
    *(void **)&init = mcu_symbol(batch, i, "init");
    *(void **)&a.run = mcu_symbol(batch, i, "run");
    init(a.arena, a.in, a.out);
    return a;
}

static inline void mcu_arena_free(mcu_arena *a)
{
    for (size_t g = 0; g < MCU_GUARD; g++)
        CHECK(a->memory[g] == 0xa5 && a->arena[a->bytes + g] == 0xa5);
    free(a->memory);
}

/* One run of a network of fixed shapes on random inputs, compared with ref. */
static inline void mcu_run(mcu_batch *batch, size_t i, double tolerance)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    const mcu_network *network = &batch->networks[i];
    const muc_mcu_program *program = &network->build->program;
    muc_ref_input inputs[MCU_MOST_PORTS];
    mcu_arena arena;
    muc_ref *ref;

    CHECK_OK(batch->ctx, muc_ref_open(batch->ctx, network->graph, &ref));
    arena = mcu_arena_new(batch, i);
    for (uint32_t p = 0; p < program->inputs.count; p++) {
        const muc_mcu_value *value = &program->values[program->inputs.values[p]];
        void *copy = malloc(value->bytes + 1);

        mcu_fill(batch, value->tensor->dtype, arena.in[p], value->bytes);
        memcpy(copy, arena.in[p], value->bytes);
        inputs[p] = (muc_ref_input){ value->tensor->name, copy, value->bytes };
    }
    arena.run(arena.arena);
    CHECK_OK(batch->ctx, muc_ref_run(ref, bindings, inputs, program->inputs.count));
    for (uint32_t p = 0; p < program->inputs.count; p++)
        free((void *)(uintptr_t)inputs[p].data);
    for (uint32_t p = 0; p < program->outputs.count; p++) {
        const muc_mcu_value *value = &program->values[program->outputs.values[p]];
        muc_ref_view view;

        CHECK(muc_ref_get(ref, (uint32_t)(value->tensor - network->graph->tensors), &view));
        mcu_compare(i, value->tensor->name, value->tensor->dtype, view.data, arena.out[p],
                    value->bytes, tolerance);
    }
    muc_ref_close(ref);
    mcu_arena_free(&arena);
}

static inline void mcu_batch_free(mcu_batch *batch)
{
    char command[96];

    if (batch->library)
        dlclose(batch->library);
    for (size_t i = 0; i < batch->count; i++) {
        muc_mcu_build_free(batch->networks[i].build);
        muc_graph_free(batch->networks[i].graph);
    }
    free(batch->networks);
    snprintf(command, sizeof(command), "rm -r %s", batch->root);
    CHECK_EQ(system(command), 0);
    muc_context_free(batch->ctx);
}

/* Builds all with checks of undefined behaviour, runs each so many times beside ref, frees. */
static inline void mcu_batch_run(mcu_batch *batch, unsigned runs, double tolerance)
{
    mcu_batch_build(batch, "cc -fsanitize=undefined -fno-sanitize-recover=undefined");
    for (size_t i = 0; i < batch->count; i++)
        for (unsigned run = 0; run < runs; run++)
            mcu_run(batch, i, tolerance);
    mcu_batch_free(batch);
}

#endif
