/* test_operators_move.c - operators that move, choose, sample and quantize elements. */
#include "operators.h"

#define M "tensor x = const f32 [2, 3] values 1, 2, 3, 4, 5, 6\n"

static void elements_move_with_their_dimensions(void **state)
{
    (void)state;
    CHECK_GIVES(M "node y f32 [3, 2] = transpose x perm=[1, 0]\n", 1, 4, 2, 5, 3, 6);
    CHECK_GIVES("tensor x = const i16 [1, 2, 3] values 1, 2, 3, 4, 5, 6\n"
                "node y i16 [3, 1, 2] = transpose x perm=[2, 0, 1]\n",
                1, 4, 2, 5, 3, 6);
    CHECK_GIVES(M "node y f32 [2, 2] = slice x axes=[1] starts=[2] sizes=[2] steps=[-2]\n", 3, 1, 6,
                4);
    CHECK_GIVES(M "node y f32 [1, 2] = slice x axes=[0, 1] starts=[1, 0] sizes=[1, 2]\n", 4, 5);
    CHECK_GIVES(M "tensor z = const f32 [2, 1] values 7, 8\n"
                  "node y f32 [2, 5] = concat x, z, z axis=1\n",
                1, 2, 3, 7, 7, 4, 5, 6, 8, 8);
    CHECK_GIVES(M "node a f32 [2, 1], y f32 [2, 2] = split x axis=1 sizes=[1, 2]\n", 2, 3, 5, 6);
    CHECK_GIVES("tensor x = const u8 [2, 1] values 1, 2\n"
                "node y u8 [2, 2, 3] = expand x shape=[2, 2, 3]\n",
                1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
    CHECK_GIVES("tensor x = const u8 [1, 2] values 1, 2\n"
                "node y u8 [2, 4] = tile x repeats=[2, 2]\n",
                1, 2, 1, 2, 1, 2, 1, 2);
    CHECK_GIVES(M "node y f32 [2, 3] = trilu x upper=1\n", 1, 2, 3, 0, 5, 6);
    CHECK_GIVES(M "node y f32 [2, 3] = trilu x upper=0 diagonal=1\n", 1, 2, 0, 4, 5, 6);
    CHECK_GIVES(M "node y f32 [2, 3] = trilu x upper=1 diagonal=-9223372036854775808\n", 1, 2, 3, 4,
                5, 6);
}

#define V "tensor x = const i8 [3] values 1, 2, 3\n"

static void pads_repeat_reflect_and_crop(void **state)
{
    (void)state;
    CHECK_GIVES(V "node y i8 [6] = pad x pads=[2, 1]\n", 0, 0, 1, 2, 3, 0);
    CHECK_GIVES(V "tensor v = const i8 [] values 9\n"
                  "node y i8 [4] = pad x, v pads=[2, -1]\n",
                9, 9, 1, 2);
    CHECK_GIVES(V "node y i8 [7] = pad x pads=[2, 2] mode=reflect\n", 3, 2, 1, 2, 3, 2, 1);
    CHECK_GIVES(V "node y i8 [5] = pad x pads=[1, 1] mode=edge\n", 1, 1, 2, 3, 3);
    CHECK_GIVES(V "node y i8 [6] = pad x pads=[2, 1] mode=wrap\n", 2, 3, 1, 2, 3, 1);
    /* zero is where quantization has it */
    CHECK_GIVES("tensor x = const i8 [1] scale 0.5 zero -7 values 1\n"
                "node y i8 [3] scale 0.5 zero -7 = pad x pads=[1, 1]\n",
                -7, 1, -7);
}

static void blocks_of_channels_and_pixels(void **state)
{
    (void)state;
#define B "tensor x = const u8 [1, 8, 1, 1] values 0, 1, 2, 3, 4, 5, 6, 7\n"
    CHECK_GIVES(B "node y u8 [1, 2, 2, 2] = depth_to_space x block=2\n", 0, 2, 4, 6, 1, 3, 5, 7);
    CHECK_GIVES(B "node y u8 [1, 2, 2, 2] = depth_to_space x block=2 mode=crd\n", 0, 1, 2, 3, 4, 5,
                6, 7);
    CHECK_GIVES("tensor x = const u8 [1, 1, 1, 8] values 0, 1, 2, 3, 4, 5, 6, 7\n"
                "node y u8 [1, 2, 2, 2] = depth_to_space x block=2 channels_last=1\n",
                0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_GIVES(B "node z u8 [1, 2, 2, 2] = depth_to_space x block=2\n"
                  "node y u8 [1, 8, 1, 1] = space_to_depth z block=2\n",
                0, 1, 2, 3, 4, 5, 6, 7);
}

static void indices_choose_and_scatter(void **state)
{
    (void)state;
    CHECK_GIVES(M "tensor i = const i64 [2] values 2, -3\n"
                  "node y f32 [2, 2] = gather x, i axis=1\n",
                3, 1, 6, 4);
    CHECK_GIVES(M "tensor i = const i32 [2, 1] values 2, 0\n"
                  "node y f32 [2, 1] = gather x, i axis=1 batch_dims=1\n",
                3, 4);
    CHECK_GIVES(M "tensor i = const i64 [1, 2] values 1, 0\n"
                  "node y f32 [1, 2] = gather_elements x, i axis=0\n",
                4, 2);
    CHECK_GIVES(M "tensor i = const i64 [2, 2] values 0, 1, 1, -1\n"
                  "node y f32 [2] = gather_nd x, i\n",
                2, 6);
    CHECK_GIVES(M "tensor i = const i64 [2, 1] values 1, 0\n"
                  "node y f32 [2] = gather_nd x, i batch_dims=1\n",
                2, 4);
    CHECK_GIVES(M "tensor i = const i64 [1, 2] values 1, 1\n"
                  "tensor u = const f32 [1, 2] values 10, 20\n"
                  "node y f32 [2, 3] = scatter_elements x, i, u axis=0 reduction=add\n",
                1, 2, 3, 14, 25, 6);
    CHECK_GIVES(M "tensor i = const i64 [1, 1] values 0\n"
                  "tensor u = const f32 [1, 3] values 0, 7, 0\n"
                  "node y f32 [2, 3] = scatter_nd x, i, u reduction=max\n",
                1, 7, 3, 4, 5, 6);
    CHECK_GIVES(M "tensor n = const i64 [2] values 2, 3\n"
                  "node y f32 [2, 3] = reverse_sequence x, n batch_axis=0 time_axis=1\n",
                2, 1, 3, 6, 5, 4);
}

/* a network that runs, or (message) is refused */
static void check_bound(const char *text, const char *message)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, text);
    const uint32_t bindings[1] = { 0 };
    muc_ref *ref;

    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    if (message)
        CHECK_FAILS(ctx, MUC_MALFORMED, message, muc_ref_run(ref, bindings, NULL, 0));
    else
        CHECK_OK(ctx, muc_ref_run(ref, bindings, NULL, 0));
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* the least and the greatest that an operator takes, and their neighbours outside */
static void integers_outside_their_bounds_are_refused(void **state)
{
#define HEAD "graph test\n" M "tensor w = const f32 [1, 1, 3] values 1, 2, 3\n"
#define I64 "tensor i = const i64 "
#define GATHER "node y f32 [2, 2] = gather x, i axis=1\n"
#define TUPLES "node y f32 [1] = gather_nd x, i\n"
#define REVERSE "node y f32 [2, 3] = reverse_sequence x, i batch_axis=0 time_axis=1\n"
#define EMBED "node y f32 [2, 3] = embed i, x\n"
#define RNN \
    "tensor s = const f32 [2, 1, 3] values 1, 2, 3, 4, 5, 6\n" \
    "tensor r = const f32 [1, 1, 1] values 1\n" \
    "node y f32 [2, 1, 1, 1] = rnn s, w, r, *, i\n"
#define SOFTMAX \
    "tensor b = const i8 [2] values 1, 2\n" \
    "node y u8 [2] = integer_softmax b, i levels=256\n"
#define GELU "tensor b = const i8 [2] values 1, 2\nnode y i32 [2] = integer_gelu b, i\n"
    static const struct {
        const char *text, *message;
    } cases[] = {
        { HEAD I64 "[2] values -3, 2\n" GATHER, NULL },
        { HEAD I64 "[2] values 0, 3\n" GATHER, "node 'y': 'i' holds 3 at 1, expected -3..2" },
        { HEAD I64 "[2] values -4, 0\n" GATHER, "'i' holds -4 at 0, expected -3..2" },
        { HEAD I64 "[1, 2] values -2, 2\n" TUPLES, NULL },
        { HEAD I64 "[1, 2] values 2, 2\n" TUPLES, "'i' holds 2 at 0, expected -2..1" },
        { HEAD I64 "[1, 2] values 1, -4\n" TUPLES, "'i' holds -4 at 1, expected -3..2" },
        { HEAD I64 "[2] values 0, 3\n" REVERSE, NULL },
        { HEAD I64 "[2] values -1, 3\n" REVERSE, "'i' holds -1 at 0, expected 0..3" },
        { HEAD I64 "[2] values 0, 4\n" REVERSE, "'i' holds 4 at 1, expected 0..3" },
        { HEAD "tensor i = const i32 [2] values 0, 1\n" EMBED, NULL },
        { HEAD "tensor i = const i32 [2] values -1, 1\n" EMBED,
          "'i' holds -1 at 0, expected 0..1" },
        { HEAD "tensor i = const i32 [2] values 0, 2\n" EMBED, "'i' holds 2 at 1, expected 0..1" },
        { HEAD "tensor i = const i32 [1] values 2\n" RNN, NULL },
        { HEAD "tensor i = const i32 [1] values 3\n" RNN, "'i' holds 3 at 0, expected 0..2" },
        { HEAD "tensor i = const i32 [3] values -32768, 0, 32768\n" SOFTMAX, NULL },
        { HEAD "tensor i = const i32 [3] values 32769, 0, 1\n" SOFTMAX, "'i' holds 32769 at 0" },
        { HEAD "tensor i = const i32 [3] values 0, -1, 1\n" SOFTMAX,
          "'i' holds -1 at 1, expected 0..1073741823" },
        { HEAD "tensor i = const i32 [3] values 0, 0, 0\n" SOFTMAX, "expected 1..32768" },
        { HEAD "tensor i = const i32 [2] values -32768, 1073741823\n" GELU, NULL },
        { HEAD "tensor i = const i32 [2] values 1, 5\n" GELU, "expected -32768..0" },
        { HEAD "tensor i = const i32 [2] values 0, 1073741824\n" GELU,
          "expected -1073741823..1073741823" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++)
        check_bound(cases[i].text, cases[i].message);
}

static void tensors_are_made_of_few_numbers(void **state)
{
    (void)state;
    CHECK_GIVES("tensor i = const i64 [3] values 1, -1, 5\n"
                "tensor v = const i8 [2] values -1, 1\n"
                "node y i8 [3, 3] = one_hot i, v axis=1 size=3\n",
                -1, 1, -1, -1, -1, 1, -1, -1, -1);
    CHECK_GIVES("tensor s = const f32 [] values 10\n"
                "tensor d = const f32 [] values -2.5\n"
                "node y f32 [3] = range s, d size=3\n",
                10, 7.5, 5);
    CHECK_GIVES("input pos 0..3\n"
                "node y i64 [2] = expressions values=[pos + 4, 7] to=i64\n",
                4, 7);
}

static void images_are_sampled(void **state)
{
    (void)state;
#define I "tensor x = const f32 [1, 1, 1, 2] values 1, 3\n"
    CHECK_GIVES(I "node y f32 [1, 1, 1, 4] = resize x sizes=[1, 1, 1, 4] mode=nearest "
                  "coordinates=asymmetric rounding=floor\n",
                1, 1, 3, 3);
    CHECK_GIVES(I "node y f32 [1, 1, 1, 4] = resize x sizes=[1, 1, 1, 4] mode=linear\n", 1, 1.5,
                2.5, 3);
    CHECK_GIVES(I "node y f32 [1, 1, 1, 3] = resize x sizes=[1, 1, 1, 3] mode=linear "
                  "coordinates=align_corners\n",
                1, 2, 3);
    /* at a quarter on either side: cubic weights are -0.03515625, 0.26171875, 0.87890625,
     * -0.10546875 of elements that repeat at the edges */
    CHECK_GIVES(I "node y f32 [1, 1, 1, 4] = resize x sizes=[1, 1, 1, 4] mode=cubic\n",
                1 - 2 * 0.10546875, 1 + 2 * (0.26171875 - 0.03515625),
                3 - 2 * (0.26171875 - 0.03515625), 3 + 2 * 0.10546875);
    CHECK_GIVES(I "node y f32 [1, 1, 1, 3] = resize x sizes=[1, 1, 1, 3] mode=linear "
                  "coordinates=tf_crop_and_resize roi=[0, 0, 0, 0, 1, 1, 1, 2] extrapolation=-1\n",
                1, 3, -1);
    CHECK_GIVES("tensor x = const f32 [4] values 1, 2, 3, 6\n"
                "node y f32 [1] = resize x sizes=[1] mode=linear antialias=1\n",
                (1 * 1.125 + 2 * 0.875 + 3 * 0.875 + 6 * 1.125) / 4);
}

/* the numbers of ONNX's node tests of these names, as its authors published them */
static void images_are_read_where_a_grid_says(void **state)
{
    (void)state;
#define G "tensor x = const f32 [1, 1, 3, 2] values 0, 1, 2, 3, 4, 5\n"
#define FAR \
    G "tensor g = const f32 [1, 2, 4, 2] values -10, -10, -5, -5, -0.2, -0.2, 10, 10, 10, 10, " \
      "-0.2, -0.2, 5, 5, 10, 10\n"
#define NEAR \
    G "tensor g = const f32 [1, 2, 4, 2] values -1, -0.8, -0.6, -0.5, -0.1, -0.2, 0.7, 0, 0, " \
      "0.4, 0.2, -0.2, -0.3, 0.5, -1, 1\n"
#define SAMPLE "node y f32 [1, 1, 2, 4] = grid_sample x, g "
    CHECK_NEAR(FAR SAMPLE "\n", 1e-6, 0, 0, 1.7, 0, 0, 1.7, 0, 0);
    CHECK_NEAR(FAR SAMPLE "padding=border\n", 1e-6, 0, 0, 1.7, 5, 5, 1.7, 5, 5);
    CHECK_NEAR(FAR SAMPLE "padding=reflection\n", 1e-6, 2.5, 0, 1.7, 2.5, 2.5, 1.7, 5, 2.5);
    CHECK_NEAR(NEAR SAMPLE "mode=nearest\n", 0, 0, 0, 2, 3, 4, 3, 4, 4);
    CHECK_NEAR(NEAR SAMPLE "mode=nearest align_corners=1\n", 0, 0, 0, 2, 3, 2, 3, 4, 4);
    CHECK_NEAR(NEAR SAMPLE "mode=bilinear align_corners=1\n", 1e-6, 0.4, 1.2, 2.05, 2.85, 3.3, 2.2,
               3.35, 4);
    CHECK_NEAR(NEAR SAMPLE "mode=cubic\n", 1e-5, -0.173250, 0.284265, 1.923106, 2.568, 5.170375,
               2.284414, 4.744844, 1.046875);
    CHECK_NEAR(NEAR SAMPLE "mode=bicubic align_corners=1\n", 1e-5, 0.304001, 1.12875, 2.26627,
               3.144844, 4.5315, 2.45536, 4.599819, 4);
}

#define VOLUME "tensor x = const f32 [1, 1, 3, 2, 2] values 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\n"
#define PLACES \
    VOLUME "tensor g = const f32 [1, 2, 4, 2, 3] values -1, -1, -1, -1, -0.5, 0.3, -0.5, -0.5, " \
           "-0.5, 1, -0.6, -1, -0.2, -0.2, -0.2, 0.4, 0.2, 0.6, 0, 0, 0, -1, 0, 0, 0, 0, 0, -1, " \
           "1, 0, -0.2, -0.2, -0.2, 1, 0.4, -0.2, 0.5, 0.5, 0.5, -1, -0.8, 0.8, 1, 1, 1, 0.4, " \
           "0.6, -0.3\n"
#define WIDE \
    PLACES "tensor two = const f32 [] values 2.5\nnode far f32 [1, 2, 4, 2, 3] = mul g, two\n"
#define OF "node y f32 [1, 1, 2, 4, 2] = grid_sample x, "

static void volumes_are_read_where_a_grid_says(void **state)
{
    (void)state;
    CHECK_NEAR(PLACES OF "g mode=nearest\n", 0, 0, 0, 1, 0, 5, 12, 8, 0, 8, 0, 5, 0, 12, 0, 0, 8);
    CHECK_NEAR(PLACES OF "g mode=nearest align_corners=1\n", 0, 1, 5, 5, 2, 5, 12, 8, 7, 8, 7, 5, 8,
               12, 9, 12, 8);
    CHECK_NEAR(PLACES OF "g\n", 1e-6, 0.125, 3.4, 2, 0.45, 4.7, 10.9, 6.5, 3, 6.5, 1.75, 4.7, 3.3,
               11, 2.52, 1.5, 5.49);
    CHECK_NEAR(PLACES OF "g align_corners=1\n", 1e-6, 1, 6.7, 3.75, 2.4, 5.4, 9.3, 6.5, 6, 6.5, 7,
               5.4, 6.6, 9.25, 8.4, 12, 6.1);
    CHECK_NEAR(WIDE OF "far mode=nearest padding=border\n", 0, 1, 9, 1, 2, 1, 12, 8, 7, 8, 7, 1, 4,
               12, 9, 12, 4);
    CHECK_NEAR(WIDE OF "far mode=nearest padding=reflection\n", 0, 12, 10, 1, 9, 1, 12, 8, 8, 8, 6,
               1, 3, 12, 8, 1, 4);
}

static void transposed_convolutions_add_up(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const f32 [1, 1, 2] values 1, 2\n"
                "tensor w = const f32 [1, 1, 3] values 1, 10, 100\n"
                "node y f32 [1, 1, 4] = conv_transpose x, w\n",
                1, 12, 120, 200);
    CHECK_GIVES("tensor x = const f32 [1, 1, 2] values 1, 2\n"
                "tensor w = const f32 [1, 2, 3] values 1, 10, 100, -1, 0, 1\n"
                "tensor b = const f32 [2] values 0, 5\n"
                "node y f32 [1, 2, 5] = conv_transpose x, w, b strides=[2] pads=[1, 0] "
                "output_padding=[1]\n",
                10, 102, 20, 200, 0, 5, 4, 5, 7, 5);
    CHECK_GIVES("tensor x = const f32 [1, 1, 2, 1] values 1, 2\n"
                "tensor w = const f32 [2, 1, 2, 1] values 1, 10, -1, 1\n"
                "node y f32 [1, 1, 3, 2] = conv_transpose x, w channels_last=1\n",
                1, -1, 12, -1, 20, 2);
}

static void numbers_become_integers_and_back(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const f32 [5] values 0, 2.5, 3.5, 1000, -254\n"
                "tensor s = const f32 [] values 1\n"
                "tensor z = const u8 [] values 128\n"
                "node y u8 [5] = quantize_linear x, s, z\n",
                128, 130, 132, 255, 0);
    CHECK_GIVES("tensor x = const i8 [2, 2] values 1, 2, 3, 4\n"
                "tensor s = const f32 [2] values 0.5, 2\n"
                "tensor z = const i8 [2] values 1, 2\n"
                "node y f32 [2, 2] = dequantize_linear x, s, z axis=1\n",
                0, 0, 1, 4);
    CHECK_GIVES("tensor x = const f32 [6] values 0, 2, -3, -2.5, 1.34, 0.5\n"
                "node y u8 [6], s f32 [], z u8 [] = dynamic_quantize_linear x\n",
                153, 255, 0, 26, 221, 179);
}

static void integer_products_subtract_their_zeros(void **state)
{
    (void)state;
    CHECK_GIVES("tensor a = const u8 [2, 2] values 11, 7, 3, 10\n"
                "tensor b = const i8 [2, 2] values 1, 4, 2, -3\n"
                "tensor az = const u8 [2] values 12, 0\n"
                "tensor bz = const i8 [2] values 0, 1\n"
                "node y i32 [2, 2] = matmul_integer a, b, az, bz\n",
                -11, 17, 23, -31);
    CHECK_GIVES("tensor x = const u8 [1, 1, 2, 2] values 2, 3, 4, 5\n"
                "tensor w = const u8 [1, 1, 2, 2] values 1, 1, 1, 2\n"
                "tensor xz = const u8 [] values 1\n"
                "tensor wz = const u8 [1] values 1\n"
                "node y i32 [1, 1, 3, 3] = conv_integer x, w, xz, wz pads=[1, 1, 1, 1]\n",
                1, 2, 0, 3, 4, 0, 0, 0, 0);
    CHECK_GIVES("tensor x = const u8 [1, 1, 1, 2] values 10, 20\n"
                "tensor s = const f32 [] values 0.5\n"
                "tensor z = const u8 [] values 10\n"
                "tensor w = const i8 [2, 1, 1, 1] values 3, -2\n"
                "tensor ws = const f32 [2] values 1, 0.5\n"
                "tensor wz = const i8 [2] values 0, 0\n"
                "tensor ys = const f32 [] values 2\n"
                "tensor yz = const u8 [] values 100\n"
                "tensor b = const i32 [2] values 4, 100\n"
                "node y u8 [1, 2, 1, 2] = qlinear_conv x, s, z, w, ws, wz, ys, yz, b\n",
                101, 108, 112, 110);
    CHECK_GIVES("tensor a = const i8 [1, 2] values 10, 20\n"
                "tensor s = const f32 [] values 0.5\n"
                "tensor z = const i8 [] values 0\n"
                "tensor b = const i8 [2, 1] values 3, 5\n"
                "tensor ys = const f32 [] values 1\n"
                "node y i8 [1, 1] = qlinear_matmul a, s, z, b, s, z, ys, z\n",
                32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_move_with_their_dimensions),
        cmocka_unit_test(pads_repeat_reflect_and_crop),
        cmocka_unit_test(blocks_of_channels_and_pixels),
        cmocka_unit_test(indices_choose_and_scatter),
        cmocka_unit_test(integers_outside_their_bounds_are_refused),
        cmocka_unit_test(tensors_are_made_of_few_numbers),
        cmocka_unit_test(images_are_sampled),
        cmocka_unit_test(images_are_read_where_a_grid_says),
        cmocka_unit_test(volumes_are_read_where_a_grid_says),
        cmocka_unit_test(transposed_convolutions_add_up),
        cmocka_unit_test(numbers_become_integers_and_back),
        cmocka_unit_test(integer_products_subtract_their_zeros),
    };

    return cmocka_run_group_tests_name("operators_move", tests, NULL, NULL);
}
