/* Products of two computed tensors, and layers of several images, as C by kernels of every
 * instruction set: what ref computes. */
#include "mcu_network.h"
#include "operators.h"
#include "targets/mcu/emit/emit_program.h"

static const char *const machines[] = { "host", "stm32h743", "mps3-an547", "rv32" };

/* inputs a, b, c are random */
static const char *const graphs[] = {
    /* rows of all batches at once; tails of every kind; zero points on both sides */
    "tensor a = input i8 [2, 9, 23] scale 0.1 zero 3\ntensor b = input i8 [23, 21] scale 0.2 zero "
    "-5\nnode y i8 [2, 9, 21] scale 2.5 zero 1 = matmul a, b\noutput y\n",
    "tensor a = input u8 [2, 1, 7, 33] scale 0.1 zero 120\ntensor b = input u8 [3, 33, 6] scale "
    "0.2 zero 130\nnode y u8 [2, 3, 7, 6] scale 2.5 zero 128 = matmul a, b\noutput y\n",
    "tensor a = input i8 [4, 1, 64] scale 0.1 zero -128\ntensor b = input i8 [4, 64, 17] scale 0.2 "
    "zero 0\nnode y i8 [4, 1, 17] scale 2.5 zero 1 = matmul a, b\noutput y\n",
    /* heads, transposed where they are read, rows of b or columns of it side by side */
    "tensor a = input i8 [1, 9, 36] scale 0.1 zero 3\ntensor b = input i8 [1, 11, 36] scale 0.2 "
    "zero -5\n"
    "node s i8 [1, 9, 3, 12] scale 0.1 zero 3 = reshape a shape=[1, 9, 3, 12]\n"
    "node t i8 [1, 11, 3, 12] scale 0.2 zero -5 = reshape b shape=[1, 11, 3, 12]\n"
    "node q i8 [1, 3, 9, 12] scale 0.1 zero 3 = transpose s perm=[0, 2, 1, 3]\n"
    "node k i8 [1, 3, 12, 11] scale 0.2 zero -5 = transpose t perm=[0, 2, 3, 1]\n"
    "node p i8 [1, 3, 9, 11] scale 1.5 zero 2 = matmul q, k\n"
    "node v i8 [1, 3, 11, 12] scale 0.2 zero -5 = transpose t perm=[0, 2, 1, 3]\n"
    "node y i8 [1, 3, 9, 12] scale 9 zero 7 = matmul p, v\noutput y\n",
    /* a transpose that others read too, and one of both sides */
    "tensor a = input i8 [14, 14] scale 0.1 zero 3\n"
    "node t i8 [14, 14] scale 0.1 zero 3 = transpose a perm=[1, 0]\n"
    "node p i8 [14, 14] scale 0.3 zero 2 = matmul t, t\n"
    "node y i8 [14, 14] scale 0.3 zero 2 = add p, t\noutput y\n",
    /* one column: the kernels get it as their only row */
    "tensor a = input i8 [2, 23, 23] scale 0.1 zero 3\ntensor b = input i8 [23, 1] scale 0.2 zero "
    "-5\nnode y i8 [2, 23, 1] scale 2.5 zero 1 = matmul a, b\noutput y\n",
    "tensor a = input i8 [1, 47, 36] scale 0.1 zero 3\ntensor b = input i8 [1, 1, 36] scale 0.2 "
    "zero -5\n"
    "node s i8 [1, 47, 3, 12] scale 0.1 zero 3 = reshape a shape=[1, 47, 3, 12]\n"
    "node t i8 [1, 1, 3, 12] scale 0.2 zero -5 = reshape b shape=[1, 1, 3, 12]\n"
    "node q i8 [1, 3, 47, 12] scale 0.1 zero 3 = transpose s perm=[0, 2, 1, 3]\n"
    "node k i8 [1, 3, 12, 1] scale 0.2 zero -5 = transpose t perm=[0, 2, 3, 1]\n"
    "node y i8 [1, 3, 47, 1] scale 1.5 zero 2 = matmul q, k\noutput y\n",
    "tensor a = input u8 [2, 17, 34] \ntensor b = input i8 [2, 34, 1]\ntensor m = input i32 [1]\n"
    "tensor n = input i32 []\nnode y u8 [2, 17, 1] = requant_matmul a, b, m, n shift=9 "
    "clamp_min=3 clamp_max=250 to=u8\noutput y\n",
    /* QuantLib's, factors that are data */
    "tensor a = input u8 [2, 9, 16] \ntensor b = input i8 [2, 16, 13]\ntensor m = input i32 [1]\n"
    "tensor n = input i32 []\nnode y u8 [2, 9, 13] = requant_matmul a, b, m, n shift=9 clamp_min=3 "
    "clamp_max=250 to=u8\noutput y\n",
    "tensor a = input i8 [9, 16] \ntensor b = input u8 [16, 13]\ntensor m = const i32 [1] values "
    "77\ntensor n = const i32 [] values 2147483647\n"
    "node y i8 [9, 13] = requant_matmul a, b, m, n shift=30 clamp_min=-128 clamp_max=127 "
    "to=i8\noutput y\n",
};

static const char *const float_graphs[] = {
    "tensor a = input f32 [2, 9, 23]\ntensor b = input f32 [23, 21]\n"
    "node y f32 [2, 9, 21] = matmul a, b\noutput y\n",
    "tensor a = input f32 [4, 1, 64]\ntensor b = input f32 [4, 64, 17]\n"
    "node y f32 [4, 1, 17] = matmul a, b\noutput y\n",
    "tensor a = input f32 [1, 9, 3, 12]\ntensor b = input f32 [1, 11, 3, 12]\n"
    "node q f32 [1, 3, 9, 12] = transpose a perm=[0, 2, 1, 3]\n"
    "node k f32 [1, 3, 12, 11] = transpose b perm=[0, 2, 3, 1]\n"
    "node p f32 [1, 3, 9, 11] = matmul q, k\n"
    "node v f32 [1, 3, 11, 12] = transpose b perm=[0, 2, 1, 3]\n"
    "node y f32 [1, 3, 9, 12] = matmul p, v\noutput y\n",
};

/* several images: convolutions, pointwise ones, depthwise ones, pools */
static const char *const image_graphs[] = {
    "tensor a = input i8 [3, 5, 4, 2] scale 0.1 zero 3\n"
    "tensor w = const i8 [3, 2, 2, 2] scale 0.05 zero 0 values 1, -2, 3, 5, 1, 0, -1, 2, 3, 1, 0, "
    "2, -1, 1, 1, 25, 2, 2, -3, 1, 0, 1, 2, -1\ntensor c = const i32 [3] values 1, -1, 5\n"
    "tensor p = const i8 [3, 1, 1, 3] scale 0.05 zero 0 values 11, -12, 13, 5, 31, 0, -81, 2, 30\n"
    "tensor d = const i8 [3, 3, 3, 1] scale 0.05 zero 0 values 1, 2, 3, 4, -5, 6, 7, 8, 9, 9, 8, "
    "7, -6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, -6, 7, 8, 9\n"
    "node t i8 [3, 5, 4, 3] scale 0.02 zero 1 = conv a, w, c channels_last=1 pads=[1, 0, 0, 1]\n"
    "node u i8 [3, 5, 4, 3] scale 0.04 zero 5 = conv t, p channels_last=1\n"
    "node v i8 [3, 5, 4, 3] scale 0.06 zero 5 = conv u, d channels_last=1 groups=3 pads=[1, 1, 1, "
    "1]\n"
    "node y i8 [3, 3, 2, 3] scale 0.06 zero 5 = max_pool v kernel=[2, 2] strides=[2, 2] pads=[0, "
    "0, 1, 0] channels_last=1\n"
    "node z i8 [3, 2, 1, 3] scale 0.06 zero 5 = average_pool y kernel=[2, 2] "
    "channels_last=1\noutput y\noutput z\n",
    "tensor a = input f32 [3, 5, 4, 2]\n"
    "tensor w = const f32 [3, 2, 2, 2] values 1, -2, 3, 5, 1, 0, -1, 2, 3, 1, 0, 2, -1, 1, 1, 25, "
    "2, 2, -3, 1, 0, 1, 2, -1\ntensor c = const f32 [3] values 1, -1, 5\n"
    "tensor p = const f32 [3, 1, 1, 3] values 11, -12, 13, 5, 31, 0, -81, 2, 30\n"
    "tensor d = const f32 [3, 3, 3, 1] values 1, 2, 3, 4, -5, 6, 7, 8, 9, 9, 8, 7, -6, 5, 4, 3, 2, "
    "1, 1, 2, 3, 4, 5, -6, 7, 8, 9\n"
    "node t f32 [3, 5, 4, 3] = conv a, w, c channels_last=1 pads=[1, 0, 0, 1]\n"
    "node r f32 [3, 5, 4, 3] = relu t\n"
    "node u f32 [3, 5, 4, 3] = conv r, p channels_last=1\n"
    "node y f32 [3, 5, 4, 3] = conv u, d channels_last=1 groups=3 pads=[1, 1, 1, 1]\noutput y\n",
    /* groups of several channels */
    "tensor a = input f32 [1, 3, 4, 4]\n"
    "tensor w = const f32 [6, 1, 2, 2] values 1, -2, 3, 5, 1, 0, -1, 2, 3, 1, 0, 2, -1, 1, 1, 25, "
    "2, 2, -3, 1, 0, 1, 2, -1\n"
    "node y f32 [1, 3, 3, 6] = conv a, w channels_last=1 groups=2\noutput y\n",
    "tensor a = input i8 [2, 4, 3, 2]\ntensor w = const i8 [2, 2, 1, 2] values 1, -2, 3, 5, 1, 0, "
    "-1, 2\ntensor m = const i32 [] values 77\ntensor n = const i32 [] values 2000\n"
    "node y i8 [2, 3, 3, 2] = requant_conv a, w, m, n channels_last=1 shift=9 clamp_min=-128 "
    "clamp_max=127 to=i8\noutput y\n",
};

static void products_of_bytes_have_the_bits_of_ref(void **state)
{
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        for (size_t i = 0; i < MUC_COUNT(graphs); i++) {
            char text[2048];

            snprintf(text, sizeof(text), "graph test\n%s", graphs[i]);
            mcu_batch_add(&batch, graph_of(batch.ctx, text), machines[m]);
            CHECK(mcu_calls(&batch, batch.count - 1, "_matmul_s8("));
        }
    mcu_batch_run(&batch, 1, 0);
}

/* a depth of 4 is worth a call where the instruction set has a kernel of its own */
static void shallow_products_have_the_bits_of_ref(void **state)
{
    static const char *const boards[] = { "stm32f405", "mps3-an547", "rv32", "rp2040" };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(boards); m++) {
        mcu_batch_add(&batch,
                      graph_of(batch.ctx, "graph test\n"
                                          "tensor a = input i8 [14, 4] scale 0.1 zero 3\n"
                                          "tensor b = input i8 [4, 13] scale 0.2 zero -5\n"
                                          "node y i8 [14, 13] scale 0.4 zero 7 = matmul a, b\n"
                                          "output y\n"),
                      boards[m]);
        CHECK_EQ(mcu_calls(&batch, m, "_matmul_s8("), m < 3);
    }
    mcu_batch_run(&batch, 1, 0);
}

static void products_of_floats_are_those_of_ref(void **state)
{
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(float_graphs); i++) {
        char text[1024];

        snprintf(text, sizeof(text), "graph test\n%s", float_graphs[i]);
        mcu_batch_add(&batch, graph_of(batch.ctx, text), "host");
        CHECK(mcu_calls(&batch, i, "mur_matmul_f32_run("));
    }
    mcu_batch_run(&batch, 1, 1e-5);
}

static bool calls_only_kernels(const muc_mcu_program *program)
{
    for (uint32_t i = 0; i < program->step_count; i++)
        if (!strstr(program->steps[i].text, "mur_"))
            return false;
    return true;
}

static void images_are_computed_one_after_another(void **state)
{
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < 2; m++) /* plain C, SMLAD */
        for (size_t i = 0; i < MUC_COUNT(image_graphs); i++) {
            char text[2048];

            snprintf(text, sizeof(text), "graph test\n%s", image_graphs[i]);
            mcu_batch_add(&batch, graph_of(batch.ctx, text), machines[m]);
            CHECK(calls_only_kernels(&batch.networks[batch.count - 1].build->program));
        }
    mcu_batch_run(&batch, 1, 1e-5);
}

/* no step transposes what a product reads in its own way */
static void transposes_of_heads_are_no_steps(void **state)
{
    mcu_batch batch = mcu_batch_new();
    char text[2048];

    (void)state;
    snprintf(text, sizeof(text), "graph test\n%s", graphs[3]);
    mcu_batch_add(&batch, graph_of(batch.ctx, text), "host");
    CHECK_EQ(batch.networks[0].build->program.step_count, 2);
    mcu_batch_free(&batch);
}

/* rows at a position of a cache, which a product reads where they lie */
static void lengths_are_known_when_it_runs(void **state)
{
    static const char text[] =
        "graph test\ninput pos 0..7\ninput m 1..8\nassume pos + m at most 8\n"
        "tensor x = input i8 [m, 2, 16]\ntensor cache = state i8 [8, 2, 16]\n"
        "tensor f = const i32 [] values 77\ntensor g = const i32 [] values -900\n"
        "node seen i8 [pos + m, 2, 16] = append cache, x axis=0 position=pos\n"
        "node q i8 [2, m, 16] = transpose x perm=[1, 0, 2]\n"
        "node k i8 [2, 16, pos + m] = transpose seen perm=[1, 2, 0]\n"
        "node v i8 [2, pos + m, 16] = transpose seen perm=[1, 0, 2]\n"
        "node p i8 [2, m, pos + m] = requant_matmul q, k, f, g shift=15 clamp_min=-128 "
        "clamp_max=127 to=i8\n"
        "node y i8 [2, m, 16] = requant_matmul p, v, f, g shift=14 clamp_min=-100 clamp_max=127 "
        "to=i8\noutput y\n";
    static const uint32_t calls[][2] = { { 0, 3 }, { 3, 1 }, { 4, 4 } };
    mcu_batch batch = mcu_batch_new();

    (void)state;
    for (size_t m = 0; m < MUC_COUNT(machines); m++)
        mcu_batch_add(&batch, graph_of(batch.ctx, text), machines[m]);
    mcu_batch_build(&batch, "cc -fsanitize=undefined -fno-sanitize-recover=undefined");
    for (size_t n = 0; n < batch.count; n++) {
        mcu_arena arena = mcu_arena_new(&batch, n);
        int (*run)(void *, uint32_t, uint32_t);
        void (*reset)(void *);
        muc_ref *ref;

        CHECK(mcu_calls(&batch, n, "_matmul_s8("));
        *(void **)&run = mcu_symbol(&batch, n, "run");
        *(void **)&reset = mcu_symbol(&batch, n, "reset");
        CHECK_OK(batch.ctx, muc_ref_open(batch.ctx, batch.networks[n].graph, &ref));
        reset(arena.arena);
        for (size_t i = 0; i < MUC_COUNT(calls); i++) {
            int8_t x[8 * 32];
            const muc_ref_input input = { "x", x, calls[i][1] * 32 };
            muc_ref_view view;

            mcu_fill(&batch, MUC_I8, x, sizeof(x));
            memcpy(arena.in[0], x, input.bytes);
            CHECK_OK(batch.ctx, muc_ref_run(ref, calls[i], &input, 1));
            CHECK_EQ(run(arena.arena, calls[i][0], calls[i][1]), 0);
            CHECK(muc_ref_get(ref, muc_graph_find(batch.networks[n].graph, "y"), &view));
            mcu_compare(n, "y", MUC_I8, view.data, arena.out[0], view.elements, 0);
        }
        muc_ref_close(ref);
        mcu_arena_free(&arena);
    }
    mcu_batch_free(&batch);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_bytes_have_the_bits_of_ref),
        cmocka_unit_test(shallow_products_have_the_bits_of_ref),
        cmocka_unit_test(products_of_floats_are_those_of_ref),
        cmocka_unit_test(images_are_computed_one_after_another),
        cmocka_unit_test(transposes_of_heads_are_no_steps),
        cmocka_unit_test(lengths_are_known_when_it_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
