/* Networks as C for microcontrollers: what the generated code computes is what ref computes. */
#include "mcu_network.h"
#include "chance.h"
#include "mcu_graphs.h"
#include "operators.h"
#include "targets/mcu/emit/emit_program.h"

static void add_all(mcu_batch *batch)
{
    for (size_t i = 0; i < MUC_COUNT(mcu_graphs); i++) {
        char text[2048];

        snprintf(text, sizeof(text), "graph test\n%s", mcu_graphs[i]);
        mcu_batch_add(batch, graph_of(batch->ctx, text), "host");
    }
}

static void generated_code_computes_what_ref_computes(void **state)
{
    mcu_batch batch = mcu_batch_new();

    (void)state;
    add_all(&batch);
    mcu_batch_run(&batch, 1, 1e-5);
}

static void add_function(mcu_batch *batch, const char *dtype, const char *function)
{
    char text[512];

    snprintf(text, sizeof(text),
             "graph test\ntensor a = input f32 [40, 50]\ntensor b = input f32 [40, 50]\n"
             "node y %s [40, 50] = %s\noutput y\n",
             dtype, function);
    mcu_batch_add(batch, graph_of(batch->ctx, text), "host");
}

/* an operator of elementwise.def with the attributes that it needs */
static void add_elementwise(mcu_batch *batch, muc_op op, bool to_bool)
{
    const muc_op_info *info = muc_op_get(op);
    muc_text function = { 0 };
    bool required;

    muc_text_add(&function, "%s a%s", info->name, info->most_inputs > 1 ? ", b" : "");
    for (muc_attribute_key key = 0; key < MUC_KEY_COUNT; key++)
        if (muc_op_takes(op, key, &required) && (required || key == MUC_KEY_FMOD))
            muc_text_add(&function, " %s=%s", muc_attribute_get(key)->name,
                         key == MUC_KEY_FMOD ? "1" : "0.5");
    add_function(batch, to_bool ? "bool" : "f32", function.data);
    muc_text_free(&function);
}

/* functions of real numbers: ref and generated code share runtime/include/mur_real.h */
static void real_functions_have_the_bits_of_ref(void **state)
{
    static const muc_op elementwise[] = {
#define MUC_OP(...)
#define MUC_FORMULA_ROW(op) MUC_OP_##op,
#include "graph/ops.def"
    };
    static const bool to_bool[MUC_OP_COUNT] = {
#define MUC_OP(...)
#define MUC_FORMULA_TEST(op, formula) [MUC_OP_##op] = true,
#define MUC_FORMULA_TRUTH MUC_FORMULA_TEST
#include "graph/ops.def"
#undef MUC_FORMULA_TEST
    };
    static const char *const others[] = {
        "gelu a mode=tanh", "selu a alpha=2 gamma=3",
        "softmax a axis=1", "log_softmax a axis=0",
        "pow a, a",         "hard_sigmoid a alpha=0.3 beta=0.4",
        "silu a alpha=1.5",
    };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(elementwise); i++)
        if (muc_op_get(elementwise[i])->flags & MUC_OP_FLOAT)
            add_elementwise(&batch, elementwise[i], to_bool[elementwise[i]]);
    for (size_t i = 0; i < MUC_COUNT(others); i++)
        add_function(&batch, "f32", others[i]);
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < batch.count; i++)
        mcu_run(&batch, i, 0);
    mcu_batch_free(&batch);
}

static void outputs_stand_in_the_graphs_order(void **state)
{
    mcu_batch batch = mcu_batch_new();
    static const char *const places[] = { "\"outputs\"", "#define BOARD_WRITE" };
    const muc_mcu_program *program;
    muc_text text = { 0 };

    (void)state;
    mcu_batch_add(&batch,
                  graph_of(batch.ctx, "graph test\ntensor a = input f32 [3]\n"
                                      "node early f32 [3] = relu a\nnode late f32 [3] = neg early\n"
                                      "output late\noutput early\n"),
                  "host");
    program = &batch.networks[0].build->program;
    muc_mcu_emit_json(program, &text);
    muc_mcu_emit_main(program, &text);
    for (size_t i = 0; i < MUC_COUNT(places); i++) {
        const char *at = strstr(text.data, places[i]), *first, *second;

        CHECK(at != NULL);
        first = strstr(at, "late");
        second = strstr(at, "early");
        CHECK(first && second && first < second);
    }
    muc_text_free(&text);
    mcu_batch_build(&batch, "cc");
    mcu_run(&batch, 0, 0);
    mcu_batch_free(&batch);
}

/* those at hand */
static void no_compiler_warns_of_generated_code(void **state)
{
    static const struct {
        const char *name, *command;
    } compilers[] = {
        { "clang", "clang" },
        { "arm-none-eabi-gcc", "arm-none-eabi-gcc -mcpu=cortex-m7 -mthumb" },
        { "riscv64-unknown-elf-gcc",
          "riscv64-unknown-elf-gcc -march=rv32imc -mabi=ilp32 -ffreestanding -isystem "
          "runtime/freestanding "
          "-DBOARD_HEADER='\"network_board.h\"' -Iexamples/qemu -Ibench/instructions" },
    };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    add_all(&batch);
    mcu_batch_write(&batch);
    for (size_t i = 0; i < MUC_COUNT(compilers); i++) {
        char which[96];

        snprintf(which, sizeof(which), "command -v %s >/dev/null", compilers[i].name);
        if (system(which) == 0)
            mcu_batch_check(&batch, compilers[i].command);
        else
            print_message("%s is not at hand\n", compilers[i].name);
    }
    mcu_batch_free(&batch);
}

/* one network of several lengths: m rows at position pos of a cache */
static void one_program_serves_every_length(void **state)
{
    static const char text[] =
        "graph test\ninput pos 0..7\ninput m 1..8\nassume pos + m at most 8\n"
        "tensor x = input f32 [m, 3]\ntensor cache = state f32 [8, 3]\n"
        "node seen f32 [pos + m, 3] = append cache, x axis=0 position=pos\n"
        "node turned f32 [3, pos + m] = transpose seen perm=[1, 0]\n"
        "node scores f32 [m, pos + m] = matmul x, turned\n"
        "node y f32 [m, 3] = matmul scores, seen\noutput y\n";
    static const uint32_t calls[][2] = { { 0, 3 }, { 3, 1 }, { 4, 4 } };
    mcu_batch batch = mcu_batch_new();
    int (*run)(void *, uint32_t, uint32_t);
    void (*reset)(void *);
    mcu_arena arena;
    muc_ref *ref;

    (void)state;
    mcu_batch_add(&batch, graph_of(batch.ctx, text), "host");
    mcu_batch_build(&batch, "cc");
    arena = mcu_arena_new(&batch, 0);
    *(void **)&run = mcu_symbol(&batch, 0, "run");
    *(void **)&reset = mcu_symbol(&batch, 0, "reset");
    CHECK_OK(batch.ctx, muc_ref_open(batch.ctx, batch.networks[0].graph, &ref));
    reset(arena.arena);
    for (size_t i = 0; i < MUC_COUNT(calls); i++) {
        float x[8 * 3];
        const muc_ref_input input = { "x", x, calls[i][1] * 3 * sizeof(*x) };
        muc_ref_view view;

        mcu_fill(&batch, MUC_F32, x, sizeof(x));
        memcpy(arena.in[0], x, input.bytes);
        CHECK_OK(batch.ctx, muc_ref_run(ref, calls[i], &input, 1));
        CHECK_EQ(run(arena.arena, calls[i][0], calls[i][1]), 0);
        CHECK(muc_ref_get(ref, muc_graph_find(batch.networks[0].graph, "y"), &view));
        mcu_compare(0, "y", MUC_F32, view.data, arena.out[0], view.elements * sizeof(float), 1e-5);
    }
    CHECK_EQ(run(arena.arena, 8, 1), 1);
    CHECK_EQ(run(arena.arena, 0, 9), 2);
    CHECK_EQ(run(arena.arena, 7, 2), 3);
    muc_ref_close(ref);
    mcu_arena_free(&arena);
    mcu_batch_free(&batch);
}

static void what_does_not_fit_or_has_no_row_is_named(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, "graph big\ntensor a = input f32 [100000]\n"
                                     "node y f32 [100000] = relu a\noutput y\n");
    muc_mcu_build *build;

    (void)state;
    CHECK_FAILS(ctx, MUC_NOFIT, "sram",
                muc_mcu_compile(ctx, graph, "big", "stm32f746", MUC_MCU_PATCHES_AUTO, &build));
    muc_graph_free(graph);
    graph = graph_of(ctx, "graph odd\ntensor a = input f64 [10]\nnode y f64 [10] = relu a\n"
                          "output y\n");
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "node 'y': no kernel for relu of f64 [10]",
                muc_mcu_compile(ctx, graph, "odd", NULL, MUC_MCU_PATCHES_AUTO, &build));
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void steps_run_in_the_order_that_needs_the_least_memory(void **state)
{
    /* two wide tensors, each for one step only: they need not be there at once */
    static const char text[] =
        "graph order\ntensor a = input f32 [4, 8]\ntensor w = input f32 [1000, 8]\n"
        "node wide1 f32 [4, 1000] = linear a, w\nnode wide2 f32 [4, 1000] = linear a, w\n"
        "node y1 f32 [4] = reduce_max wide1 axes=[1] keep_dims=0\n"
        "node y2 f32 [4] = reduce_min wide2 axes=[1] keep_dims=0\n"
        "output y1\noutput y2\n";
    mcu_batch batch = mcu_batch_new();
    const muc_mcu_program *program;

    (void)state;
    mcu_batch_add(&batch, graph_of(batch.ctx, text), "host");
    program = &batch.networks[0].build->program;
    CHECK_EQ(program->step_count, 4);
    /* each is read by the very next step */
    for (uint32_t i = 0; i < 4; i += 2)
        assert_int_equal(program->steps[i].node->outputs[0], program->steps[i + 1].node->inputs[0]);
    /* the inputs, one wide tensor, results */
    assert_true(program->plan.peak < 128 + 32000 + 16000 + 512);
    mcu_batch_build(&batch, "cc");
    mcu_run(&batch, 0, 1e-5);
    mcu_batch_free(&batch);
}

/* A tensor of random bytes, as weights with a scale a channel, which are powers of 2^(1/roots), so
 * that there are as many multipliers at most, or all the same. */
static void write_weights(muc_text *text, const char *name, unsigned channels, unsigned inputs,
                          unsigned roots)
{
    muc_text_add(text, "tensor %s = const i8 [%u, %u] scale ", name, channels, inputs);
    for (unsigned c = 0; c < channels; c++)
        muc_text_add(text, "%s%.9g", c ? ", " : "",
                     0.01 * exp2((double)(random_u32() % 20) / roots * (roots > 1)));
    muc_text_add(text, " zero ");
    for (unsigned c = 0; c < channels; c++)
        muc_text_add(text, c ? ", 0" : "0");
    muc_text_add(text, " axis 0 values ");
    for (unsigned i = 0; i < channels * inputs; i++)
        muc_text_add(text, "%s%d", i ? ", " : "", (int)(random_u32() % 255) - 127);
    muc_text_add(text, "\n");
}

static void fully_connected_layers_take_their_inputs_and_outputs_alone(void **state)
{
    static const char *const machines[] = { "mps2-an386", "mps2-an500", "mps3-an547", "rv32" };
    mcu_batch batch = mcu_batch_new();
    muc_text text = { 0 };

    (void)state;
    muc_text_add(&text, "graph fc\ntensor x = input i8 [1, 640] scale 0.1 zero 3\n");
    write_weights(&text, "v", 16, 640, 8);
    write_weights(&text, "w", 30, 16, 1);
    write_weights(&text, "u", 600, 30, 32);
    muc_text_add(&text, "node t i8 [1, 16] scale 20 zero -8 = linear x, v\n"
                        "node s i8 [1, 30] scale 60 zero 5 = linear t, w\n"
                        "node y i8 [1, 600] scale 200 zero 7 = linear s, u\noutput y\n");
    for (size_t i = 0; i < MUC_COUNT(machines); i++) {
        const muc_mcu_program *program;

        mcu_batch_add(&batch, graph_of(batch.ctx, text.data), machines[i]);
        program = &batch.networks[i].build->program;
        if (i < 3) { /* a multiplier a channel, and no scratch */
            assert_non_null(strstr(program->steps[2].function, "_fc_each_s8"));
            CHECK_EQ(program->plan.peak, 640 + 16);
        }
        assert_non_null(strstr(program->steps[0].function, "_fc_coded_s8"));
        assert_non_null(strstr(program->steps[1].function, "_fc_s8"));
        /* one byte a channel beside its bias; one multiplier and shift for all */
        assert_true(program->steps[0].packed_bytes <= 16 * 640 + 8 * 4 + 16 * (4 + 1) + 16);
        assert_true(program->steps[1].packed_bytes <= 32 * 16 + 2 * 4 + 30 * 4 + 16);
    }
    muc_text_free(&text);
    mcu_batch_run(&batch, 5, 0);
}

/* Code of its own would be more than what it saves. Few inputs have it on Armv7E-M, as convolutions
 * take twice as long for them and more. */
static void small_layers_take_the_kernel_of_convolutions(void **state)
{
    static const char *const machines[] = { "mps2-an386", "mps2-an500", "mps3-an547", "rv32" };
    mcu_batch batch = mcu_batch_new();
    muc_text text = { 0 };

    (void)state;
    muc_text_add(&text, "graph g\ntensor x = input i8 [1, 4, 4, 8] scale 0.1 zero 3\n"
                        "tensor z = input i8 [1, 64] scale 0.1 zero 3\n"
                        "tensor r = input i8 [1, 16] scale 0.1 zero 3\n"
                        "tensor v = const i8 [8, 3, 3, 8] scale 0.01 zero 0 values ");
    for (unsigned i = 0; i < 576; i++)
        muc_text_add(&text, "%s%d", i ? ", " : "", (int)(random_u32() % 255) - 127);
    muc_text_add(&text, "\n");
    write_weights(&text, "w", 12, 64, 1);
    write_weights(&text, "q", 12, 16, 1);
    muc_text_add(&text, "node t i8 [1, 4, 4, 8] scale 2 zero -8 = conv x, v strides=[1, 1] "
                        "pads=[1, 1, 1, 1] dilations=[1, 1] groups=1 channels_last=1\n"
                        "node y i8 [1, 12] scale 4 zero -8 = linear z, w\n"
                        "node s i8 [1, 12] scale 2 zero -8 = linear r, q\n"
                        "output t\noutput y\noutput s\n");
    for (size_t i = 0; i < MUC_COUNT(machines); i++) {
        const muc_mcu_step *steps;
        unsigned convs = 0, few = 0;

        mcu_batch_add(&batch, graph_of(batch.ctx, text.data), machines[i]);
        steps = batch.networks[i].build->program.steps;
        for (unsigned j = 0; j < 3; j++) {
            convs += strstr(steps[j].function, "_conv_") != NULL;
            few += strcmp(steps[j].function, "mur_dsp_fc_few_s8") == 0;
        }
        CHECK_EQ(few, i < 2);
        CHECK_EQ(convs, 3 - few);
    }
    muc_text_free(&text);
    mcu_batch_run(&batch, 5, 0);
}

/* A depthwise layer as a graph: its image, its window, its output, and the rest of its node. */
static muc_graph *depthwise_graph(mcu_batch *batch, const unsigned *in, const unsigned *out,
                                  const unsigned *kernel, const char *rest)
{
    muc_text text = { 0 };
    muc_graph *graph;

    muc_text_add(&text, "graph g\ntensor x = input i8 [1, %u, %u, %u] scale 0.1 zero 3\n", in[0],
                 in[1], in[2]);
    muc_text_add(&text, "tensor w = const i8 [%u, %u, %u, 1] scale 0.01 zero 0 values ", out[2],
                 kernel[0], kernel[1]);
    for (unsigned i = 0; i < out[2] * kernel[0] * kernel[1]; i++)
        muc_text_add(&text, "%s%d", i ? ", " : "", (int)(random_u32() % 255) - 127);
    muc_text_add(&text, "\nnode y i8 [1, %u, %u, %u] scale 3 zero -5 = conv x, w ", out[0], out[1],
                 out[2]);
    muc_text_add(&text, "%s groups=%u channels_last=1\noutput y\n", rest, in[2]);
    graph = graph_of(batch->ctx, text.data);
    muc_text_free(&text);
    return graph;
}

static void depthwise_layers_take_their_inputs_and_outputs_alone(void **state)
{
    static const char *const machines[] = { "rp2040",     "mps2-an386", "mps2-an500",
                                            "mps3-an547", "rv32",       "rv32v" };
    static const struct {
        unsigned in[3], out[3], kernel[2];
        const char *rest;
    } layers[] = {
        { { 48, 48, 8 }, { 24, 24, 8 }, { 3, 3 }, "strides=[2, 2] pads=[0, 0, 1, 1]" },
        { { 23, 24, 3 }, { 12, 12, 3 }, { 3, 3 }, "strides=[2, 2] pads=[1, 0, 1, 1]" },
        { { 48, 47, 8 }, { 24, 24, 8 }, { 5, 5 }, "strides=[2, 2] pads=[1, 2, 2, 2]" },
        { { 49, 20, 8 }, { 25, 10, 8 }, { 7, 4 }, "strides=[2, 2] pads=[3, 1, 3, 1]" },
        { { 24, 24, 8 }, { 24, 24, 16 }, { 3, 3 }, "pads=[1, 1, 1, 1]" },
        { { 15, 9, 5 }, { 13, 7, 15 }, { 3, 3 }, "" },
        { { 20, 9, 6 }, { 20, 9, 12 }, { 3, 3 }, "dilations=[2, 2] pads=[2, 2, 2, 2]" },
        { { 24, 24, 2 }, { 24, 24, 2 }, { 3, 3 }, "pads=[1, 1, 1, 1]" },
    };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(layers) * MUC_COUNT(machines); i++) {
        const unsigned *in = layers[i / MUC_COUNT(machines)].in;
        const unsigned *out = layers[i / MUC_COUNT(machines)].out;

        mcu_batch_add(&batch,
                      depthwise_graph(&batch, in, out, layers[i / MUC_COUNT(machines)].kernel,
                                      layers[i / MUC_COUNT(machines)].rest),
                      machines[i % MUC_COUNT(machines)]);
        if (batch.networks[i].build->program.plan.peak >
            in[0] * in[1] * in[2] + out[0] * out[1] * out[2])
            fail_msg("%s: layer %zu takes %llu bytes", machines[i % MUC_COUNT(machines)],
                     i / MUC_COUNT(machines),
                     (unsigned long long)batch.networks[i].build->program.plan.peak);
    }
    mcu_batch_run(&batch, 3, 0);
}

static void every_failed_allocation_is_told(void **state)
{
    static const char text[] =
        "graph g\ntensor a = input f32 [4, 8]\ntensor w = input f32 [8, 8]\n"
        "node t f32 [4, 8] = linear a, w\nnode y f32 [4, 8] = relu t\noutput y\n";
    muc_status status = MUC_NOMEM;
    long k = 0;

    (void)state;
    for (; status == MUC_NOMEM; k++) {
        muc_context *ctx = muc_context_new(1);
        muc_graph *graph = graph_of(ctx, text);
        muc_mcu_build *build = NULL;

        muc_alloc_fail_after(k);
        status = muc_mcu_compile(ctx, graph, "g", NULL, MUC_MCU_PATCHES_AUTO, &build);
        muc_alloc_fail_after(-1);
        muc_mcu_build_free(build);
        muc_graph_free(graph);
        muc_context_free(ctx);
    }
    CHECK_EQ(status, MUC_OK);
    CHECK(k > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_code_computes_what_ref_computes),
        cmocka_unit_test(real_functions_have_the_bits_of_ref),
        cmocka_unit_test(outputs_stand_in_the_graphs_order),
        cmocka_unit_test(no_compiler_warns_of_generated_code),
        cmocka_unit_test(one_program_serves_every_length),
        cmocka_unit_test(what_does_not_fit_or_has_no_row_is_named),
        cmocka_unit_test(steps_run_in_the_order_that_needs_the_least_memory),
        cmocka_unit_test(fully_connected_layers_take_their_inputs_and_outputs_alone),
        cmocka_unit_test(small_layers_take_the_kernel_of_convolutions),
        cmocka_unit_test(depthwise_layers_take_their_inputs_and_outputs_alone),
        cmocka_unit_test(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
