/* mcu_graphs.h - small networks, one operator or a few each, for tests of generated code. */
#ifndef TEST_MCU_GRAPHS_H
#define TEST_MCU_GRAPHS_H

/* inputs a, b, c are random */
static const char *const mcu_graphs[] = {
    /* elementwise, broadcast */
    "tensor a = input f32 [2, 3, 4]\ntensor b = input f32 [3, 1]\nnode y f32 [2, 3, 4] = add a, "
    "b\noutput y\n",
    "tensor a = input f32 [2, 3]\nnode y f32 [2, 3] = relu a\noutput y\n",
    "tensor a = input f32 [2, 3]\nnode t f32 [2, 3] = sigmoid a\nnode y f32 [2, 3] = mul t, "
    "a\noutput y\n",
    "tensor a = input f32 [7]\nnode y f32 [7] = gelu a\noutput y\n",
    "tensor a = input i32 [5]\ntensor b = input i32 [1]\nnode y i32 [5] = sub a, b\noutput y\n",
    "tensor a = input i8 [5]\nnode y i8 [5] = mul a, a\noutput y\n",
    "tensor a = input f32 [2, 3]\ntensor b = input f32 [2, 3]\nnode c bool [2, 3] = less a, b\n"
    "node y f32 [2, 3] = where c, b, a\noutput y\n",
    "tensor a = input f32 [2, 3]\nnode y i8 [2, 3] = cast a to=i8\noutput y\n",
    "tensor a = input f32 [9]\ntensor lo = const f32 [] values -0.5\ntensor hi = const f32 [] "
    "values 1\n"
    "node y f32 [9] = clip a, lo, hi\noutput y\n",
    /* moves */
    "tensor a = input f32 [2, 3, 4]\nnode y f32 [4, 2, 3] = transpose a perm=[2, 0, 1]\noutput y\n",
    "tensor a = input i8 [1, 3, 4]\nnode t i8 [12] = reshape a shape=[12]\nnode y i8 [12] = add t, "
    "t\noutput y\n",
    "tensor a = input f32 [4, 6]\nnode y f32 [2, 3] = slice a axes=[0, 1] starts=[1, 5] sizes=[2, "
    "3] steps=[2, -2]\noutput y\n",
    "tensor a = input f32 [2, 3]\ntensor b = input f32 [2, 4]\nnode y f32 [2, 7] = concat a, b "
    "axis=1\noutput y\n",
    "tensor a = input f32 [2, 3]\nnode y f32 [4, 9] = tile a repeats=[2, 3]\noutput y\n",
    "tensor a = input f32 [2, 1, 3]\nnode y f32 [2, 5, 3] = expand a shape=[2, 5, 3]\noutput y\n",
    "tensor a = input f32 [2, 3]\nnode y f32 [4, 6] = pad a pads=[1, 2, 1, 1]\noutput y\n",
    "tensor a = input i8 [4, 5]\nnode y i8 [3, 6] = pad a pads=[-1, 2, 0, -1]\noutput y\n",
    "tensor a = input f32 [2, 5]\nnode y f32 [2, 3] = pad a pads=[0, 3, 0, -5]\noutput y\n",
    "tensor a = input f32 [2, 4]\nnode y f32 [4, 7] = pad a pads=[1, 2, 1, 1] mode=reflect\noutput "
    "y\n",
    "tensor a = input f32 [5, 3]\ntensor i = const i32 [2, 2] values 0, -1, 3, 2\n"
    "node y f32 [2, 2, 3] = gather a, i axis=0\noutput y\n",
    /* products and windows */
    "tensor a = input f32 [2, 3, 4]\ntensor b = input f32 [4, 5]\nnode y f32 [2, 3, 5] = matmul a, "
    "b\noutput y\n",
    "tensor a = input f32 [3, 4]\ntensor b = input f32 [5, 4]\ntensor c = input f32 [5]\n"
    "node y f32 [3, 5] = linear a, b, c\noutput y\n",
    "tensor a = input f32 [4, 3]\ntensor b = input f32 [4, 5]\ntensor c = input f32 [5]\n"
    "node y f32 [3, 5] = gemm a, b, c alpha=0.5 beta=2 transpose_a=1\noutput y\n",
    "tensor a = input f32 [1, 4, 7, 6]\ntensor b = input f32 [6, 2, 3, 3]\ntensor c = input f32 "
    "[6]\n"
    "node y f32 [1, 6, 4, 3] = conv a, b, c groups=2 strides=[2, 2] pads=[1, 1, 1, 0]\noutput y\n",
    "tensor a = input f32 [1, 7, 6, 4]\ntensor b = input f32 [5, 3, 3, 4]\n"
    "node y f32 [1, 5, 4, 5] = conv a, b channels_last=1\noutput y\n",
    "tensor a = input f32 [1, 2, 5, 5]\nnode y f32 [1, 2, 3, 3] = max_pool a kernel=[3, 3] "
    "strides=[2, 2] pads=[1, 1, 1, 1]\noutput y\n",
    "tensor a = input f32 [1, 2, 5, 5]\nnode y f32 [1, 2, 3, 3] = average_pool a kernel=[3, 3] "
    "strides=[2, 2] pads=[1, 1, 1, 1]\noutput y\n",
    "tensor a = input f32 [1, 2, 5, 5]\nnode y f32 [1, 2, 3, 3] = average_pool a kernel=[3, 3] "
    "strides=[2, 2] pads=[1, 1, 1, 1] count_include_pad=1\noutput y\n",
    "tensor a = input f32 [1, 5, 4, 2]\ntensor w = const f32 [3, 2, 2, 2] values 1, -2, 3, 0.5, 1, "
    "0, -1, 2, "
    "3, 1, 0, 2, -1, 1, 1, 0.25, 2, 2, -3, 1, 0, 1, 2, -1\ntensor c = const f32 [3] values 1, -1, "
    "0.5\n"
    "node y f32 [1, 3, 2, 3] = conv a, w, c channels_last=1 strides=[2, 2] pads=[1, 0, 0, "
    "0]\noutput y\n",
    "tensor a = input f32 [1, 5, 4, 2]\ntensor w = const f32 [2, 2, 2, 1] values 1, -2, 3, 0.5, 1, "
    "0, -1, 2\n"
    "node y f32 [1, 5, 4, 2] = conv a, w channels_last=1 groups=2 pads=[1, 0, 0, 1]\noutput y\n",
    "tensor a = input f32 [3, 4]\ntensor w = const f32 [2, 4] values 1, -2, 3, 0.5, 1, 0, -1, 2\n"
    "node y f32 [3, 2] = linear a, w\noutput y\n",
    /* along dimensions */
    "tensor a = input f32 [2, 3, 4]\nnode y f32 [2, 1, 4] = reduce_mean a axes=[1]\noutput y\n",
    "tensor a = input f32 [2, 3, 4]\nnode y f32 [3] = reduce_max a axes=[0, 2] keep_dims=0\noutput "
    "y\n",
    "tensor a = input i32 [2, 3, 4]\nnode y i32 [2, 4] = reduce_l1 a axes=[1] keep_dims=0\noutput "
    "y\n",
    "tensor a = input i8 [2, 3, 4]\nnode y i8 [3] = reduce_prod a axes=[0, 2] keep_dims=0\noutput "
    "y\n",
    "tensor a = input f32 [2, 3, 4]\nnode y f32 [2, 3, 4] = softmax a axis=1\noutput y\n",
    "tensor a = input f32 [2, 8]\ntensor g = input f32 [8]\ntensor b = input f32 [8]\n"
    "node y f32 [2, 8] = layer_norm a, g, b axis=1 epsilon=1e-5\noutput y\n",
    "tensor a = input f32 [2, 8]\ntensor g = input f32 [8]\nnode y f32 [2, 8] = rmsnorm a, g "
    "epsilon=1e-5\noutput y\n",
    /* QuantLib's integers */
    "tensor a = input i32 [2, 3, 4]\ntensor m = const i32 [3, 1] values 700, -30000, 65536\n"
    "tensor n = const i32 [] values -7\nnode y i8 [2, 3, 4] = requant_shift a, m, n shift=12 "
    "clamp_min=-128 clamp_max=127 to=i8\noutput y\n",
    "tensor a = input u8 [9]\ntensor m = input i32 [1]\ntensor n = const i32 [] values 5\n"
    "node y i32 [9] = requant_shift a, m, n shift=0 clamp_min=-2147483648 clamp_max=2147483647 "
    "to=i32\noutput y\n",
    "tensor a = input i8 [3, 16]\ntensor w = const i32 [1] values 300000\n"
    "node y i8 [3, 16] = integer_rmsnorm a, w shift=12\noutput y\n",
    "tensor a = input i16 [3, 5]\ntensor w = const i32 [5] values 300000, 2000000000, 5, -70000, "
    "1\nnode y i8 [3, 5] = integer_rmsnorm a, w shift=13\noutput y\n",
    "tensor a = input i8 [2, 2, 8]\ntensor w = input i32 [8]\ntensor b = input i32 [8]\n"
    "node y i8 [2, 2, 8] = integer_layer_norm a, w, b shift=3\noutput y\n",
    "tensor a = input i8 [4, 9]\ntensor c = const i32 [3] values 84, 3735, 62\n"
    "node y u8 [4, 9] = integer_softmax a, c levels=256\noutput y\n",
    "tensor a = input u8 [4, 9]\nnode y u8 [4, 9] = ita_max a levels=256\noutput y\n",
    "tensor a = input i8 [40]\ntensor c = const i32 [3] values 42, 122, 245\n"
    "node y i32 [40] = integer_hard_swish a, c\noutput y\n",
    "tensor a = input i16 [40]\ntensor c = const i32 [2] values -40, 1743\n"
    "node y i32 [40] = integer_gelu a, c\noutput y\n",
    "tensor a = input i32 [2, 4]\ntensor b = input i8 [4]\n"
    "node y i32 [2, 4] = integer_div a, b delta=7 eta=3 eps=1\noutput y\n",
    "tensor a = input u8 [2, 3, 4]\ntensor b = input i8 [4, 5]\n"
    "node y i32 [2, 3, 5] = matmul_integer a, b\noutput y\n",
    "tensor a = input i16 [1, 4, 5, 5]\ntensor b = input i8 [4, 2, 3, 3]\n"
    "node y i32 [1, 4, 3, 3] = conv_integer a, b groups=2 strides=[2, 2] pads=[1, 1, 1, 1]\noutput "
    "y\n",
    /* sums that are requantized where they are made */
    "tensor a = input i8 [1, 6, 5, 3]\ntensor w = const i8 [4, 1, 2, 3] values 1, -2, 3, 4, -5, 6, "
    "7, -128, 9, 10, 11, 127, 13, 14, -15, 16, 17, 18, 19, -20, 21, 22, 23, 24\n"
    "tensor m = const i32 [4] values 700, -30000, 65536, 1\ntensor n = const i32 [4] values -7, "
    "90000, 0, 5\ntensor z = const i8 [] values -128\n"
    "node y i8 [1, 6, 3, 4] = requant_conv a, w, m, n, z channels_last=1 strides=[1, 2] pads=[0, "
    "1, 0, 1] shift=17 clamp_min=-100 clamp_max=127 to=i8\noutput y\n",
    "tensor a = input i16 [1, 4, 5, 5]\ntensor b = input i8 [4, 2, 3, 3]\ntensor m = input i32 "
    "[4]\ntensor n = const i32 [] values 4097\n"
    "node y u8 [1, 4, 3, 3] = requant_conv a, b, m, n groups=2 strides=[2, 2] pads=[1, 1, 1, 1] "
    "shift=20 clamp_min=0 clamp_max=255 to=u8\noutput y\n",
    "tensor a = input u8 [1, 6, 6, 5]\ntensor b = input i8 [6, 1, 3, 3]\ntensor m = const i32 [1] "
    "values 70\ntensor z = const u8 [] values 99\n"
    "node y i8 [1, 6, 3, 3] = requant_conv a, b, m, m, z groups=6 strides=[2, 2] pads=[1, 1, 1, 1] "
    "shift=12 clamp_min=-128 clamp_max=127 to=i8\noutput y\n",
    "tensor a = input i8 [3, 5]\ntensor w = const i8 [2, 5] values 1, -2, 3, 4, -5, 6, 7, -128, 9, "
    "10\ntensor m = const i32 [2] values 700, -3000\ntensor n = const i32 [] values -7\n"
    "node y i8 [3, 2] = requant_linear a, w, m, n shift=13 clamp_min=-128 clamp_max=127 "
    "to=i8\noutput y\n",
    "tensor a = input u8 [3, 200]\ntensor w = input i8 [7, 200]\ntensor m = input i32 [7]\ntensor "
    "n = const i32 [] values -7\ntensor z = const u8 [] values 128\n"
    "node y u8 [3, 7] = requant_linear a, w, m, n, z shift=17 clamp_min=0 clamp_max=200 "
    "to=u8\noutput y\n",
    "tensor a = input u8 [2, 3, 4]\ntensor b = input i8 [4, 5]\ntensor m = const i32 [5] values "
    "700, -3000, 5, 6, 7\ntensor n = const i32 [1] values 8\n"
    "node y i8 [2, 3, 5] = requant_matmul a, b, m, n shift=12 clamp_min=-128 clamp_max=127 "
    "to=i8\noutput y\n",
    "tensor a = input u8 [2, 33, 40]\ntensor b = input i8 [33, 1]\ntensor m = const i32 [] values "
    "700\ntensor n = const i32 [1] values 8\n"
    "node y i8 [2, 33, 40] = requant_add a, b, m, n shift=10 clamp_min=-128 clamp_max=127 "
    "to=i8\noutput y\n",
    "tensor a = input i16 [2, 3, 4]\ntensor b = input i8 [3, 1]\ntensor m = const i32 [] values "
    "700\ntensor n = const i32 [1] values 8\n"
    "node y i8 [2, 3, 4] = requant_mul a, b, m, n shift=20 clamp_min=-128 clamp_max=127 "
    "to=i8\noutput y\n",
    "tensor a = input u8 [2, 3, 40]\ntensor t = input i8 [256]\nnode y i8 [2, 3, 40] = lookup a, "
    "t\noutput y\n",
    /* layers with a state */
    "tensor x = input f32 [5, 2, 3]\ntensor w = input f32 [2, 4, 3]\ntensor r = input f32 [2, 4, "
    "4]\ntensor b = input f32 [2, 8]\ntensor n = const i32 [2] values 5, 3\n"
    "node y f32 [5, 2, 2, 4], h f32 [2, 2, 4] = rnn x, w, r, b, n direction=bidirectional "
    "mode=relu\noutput y\noutput h\n",
    "tensor x = input f32 [2, 5, 3]\ntensor w = input f32 [1, 12, 3]\ntensor r = input f32 [1, 12, "
    "4]\ntensor b = input f32 [1, 24]\ntensor n = const i32 [2] values 0, 4\ntensor s = input f32 "
    "[2, 1, 4]\n"
    "node y f32 [2, 5, 1, 4], h f32 [2, 1, 4] = gru x, w, r, b, n, s direction=reverse "
    "batch_first=1 linear_before_reset=1\noutput y\noutput h\n",
    "tensor x = input f32 [4, 1, 3]\ntensor w = input f32 [1, 12, 3]\ntensor r = input f32 [1, 12, "
    "4]\nnode y f32 [4, 1, 1, 4] = gru x, w, r\noutput y\n",
    "tensor x = input f32 [5, 2, 3]\ntensor w = input f32 [2, 24, 3]\ntensor r = input f32 [2, 24, "
    "6]\ntensor b = input f32 [2, 48]\ntensor n = const i32 [2] values 4, 5\ntensor s = input f32 "
    "[2, 2, 6]\ntensor p = input f32 [2, 18]\n"
    "node y f32 [5, 2, 2, 6], h f32 [2, 2, 6], c f32 [2, 2, 6] = lstm x, w, r, b, n, s, s, p "
    "direction=bidirectional\noutput y\noutput h\noutput c\n",
    /* windows, norms and indices of other kinds */
    "tensor a = input f32 [1, 4, 3, 3]\ntensor b = input f32 [4, 2, 3, 3]\ntensor c = input f32 "
    "[4]\n"
    "node y f32 [1, 4, 6, 5] = conv_transpose a, b, c groups=2 strides=[2, 2] pads=[1, 1, 0, "
    "1]\noutput y\n",
    "tensor a = input f32 [1, 4, 3, 2]\ntensor s = const f32 [4] values 1, 2, 3, 4\n"
    "tensor v = const f32 [4] values 0.5, 2, 3, 4\nnode y f32 [1, 4, 3, 2] = batch_norm a, s, s, "
    "s, v epsilon=1e-3\noutput y\n",
    "tensor a = input f32 [2, 4, 3, 2]\ntensor s = input f32 [4]\n"
    "node y f32 [2, 4, 3, 2] = group_norm a, s, s epsilon=1e-3 groups=2\noutput y\n",
    "tensor a = input f32 [2, 3, 2, 4]\ntensor s = input f32 [4]\n"
    "node y f32 [2, 3, 2, 4] = group_norm a, s, s epsilon=1e-3 groups=2 channels_last=1\noutput "
    "y\n",
    "tensor a = input f32 [1, 5, 3]\nnode y f32 [1, 5, 3] = lrn a alpha=0.5 beta=0.75 bias=1 "
    "window=3\noutput y\n",
    "tensor a = input f32 [3, 5, 2]\nnode y i64 [3, 2] = arg_max a axis=1 keep_dims=0\noutput y\n",
    "tensor a = input f32 [3, 5]\nnode y f32 [3, 5] = trilu a upper=0 diagonal=1\noutput y\n",
    "tensor a = input f32 [3, 5]\nnode y f32 [3, 5] = cum_sum a axis=1 exclusive=1 "
    "reverse=1\noutput y\n",
    "tensor i = const i64 [3] values 0, 2, -1\ntensor v = input f32 [2]\n"
    "node y f32 [3, 4] = one_hot i, v axis=1 size=4\noutput y\n",
    "tensor a = input f32 [2, 3]\ntensor i = const i64 [2, 2] values 0, 2, -1, 1\n"
    "node y f32 [2, 2] = gather_elements a, i axis=1\noutput y\n",
    "tensor a = input f32 [2, 3, 4, 5]\ntensor b = input f32 [2, 3, 2, 2]\n"
    "node y f32 [2, 3, 3, 2] = grid_sample a, b padding=border align_corners=1\noutput y\n",
    "tensor a = input f32 [1, 2, 4, 5]\ntensor b = input f32 [1, 7, 6, 2]\n"
    "node y f32 [1, 2, 7, 6] = grid_sample a, b mode=cubic padding=reflection\noutput y\n",
    "tensor a = input f32 [1, 2, 3, 4, 2]\ntensor b = input f32 [1, 4, 3, 2, 3]\n"
    "node y f32 [1, 2, 4, 3, 2] = grid_sample a, b mode=cubic padding=reflection "
    "align_corners=1\noutput y\n",
    "tensor a = input f32 [1, 1, 3, 4, 2]\ntensor b = input f32 [1, 4, 3, 2, 3]\n"
    "node y f32 [1, 1, 4, 3, 2] = grid_sample a, b mode=nearest\noutput y\n",
    "tensor a = input f32 [6]\nnode y f32 [6] = hard_sigmoid a alpha=0.2 beta=0.5\noutput y\n",
    /* TensorFlow Lite's arithmetic in loops */
    "tensor a = input i8 [2, 3, 4] scale 0.1 zero 3\ntensor b = input i8 [3, 1] scale 0.2 zero -5\n"
    "node y i8 [2, 3, 4] scale 0.25 zero 1 = add a, b\noutput y\n",
    "tensor a = input u8 [2, 3] scale 0.1 zero 130\ntensor b = input u8 [2, 3] scale 0.2 zero 120\n"
    "node y u8 [2, 3] scale 0.25 zero 128 = mul a, b\noutput y\n",
    "tensor a = input i16 [7] scale 0.01 zero 0\nnode y i16 [7] scale 0.005 zero 0 = relu "
    "a\noutput y\n",
    "tensor a = input i8 [7] scale 0.1 zero 3\nnode y i8 [7] scale 0.05 zero -9 = leaky_relu a "
    "alpha=0.1\noutput y\n",
    "tensor a = input i8 [2, 3, 4] scale 0.1 zero 3\ntensor b = input i8 [4, 5] scale 0.2 zero -5\n"
    "node y i8 [2, 3, 5] scale 2.5 zero 1 = matmul a, b\noutput y\n",
    "tensor a = input i8 [3, 2, 5] scale 0.1 zero 3\ntensor b = const f32 [2, 5] values 1, -0.5, "
    "2, 0.1, 0, "
    "3, 1, 1, 0.7, -2\ntensor c = const f32 [2, 5] values 0.5, 1, -1, 0, 2, 0, 0, 0.1, -0.3, 4\n"
    "node y i8 [3, 2, 5] scale 0.04 zero -7 = layer_norm a, b, c axis=1 epsilon=0.01\noutput y\n",
    "tensor a = input i8 [40, 30] scale 0.1 zero 3\n"
    "node y i8 [40, 30] scale 0.23 zero -7 = quantize a to=i8\noutput y\n",
    "tensor a = input i8 [40, 30] scale 0.1 zero 3\n"
    "node y i8 [40, 30] scale 0.00390625 zero -128 = softmax a axis=1\noutput y\n",
    "tensor a = input i8 [3, 2, 5] scale 0.1 zero 3\n"
    "node y i8 [3, 2, 5] scale 0.06 zero 127 = log_softmax a axis=2\noutput y\n",
    "tensor a = input i8 [2, 3, 4] scale 0.1 zero 3\ntensor b = input i8 [3, 1] scale 0.2 zero -5\n"
    "node y i8 [2, 3, 4] scale 0.25 zero 1 = div a, b\noutput y\n",
    "tensor a = input i8 [4, 7] scale 0.05 zero -20\ntensor b = const f32 [7] values 1, -0.5, 2, "
    "0.1, 0, 3, 1\n"
    "node y i8 [4, 7] scale 0.02 zero 5 = rmsnorm a, b epsilon=0.001\noutput y\n",
    "tensor a = input u8 [7] scale 0.1 zero 3\nnode t f32 [7] = dequantize a\nnode y f32 [7] = "
    "relu t\noutput y\n",
    "tensor a = input i8 [2, 3, 4] scale 0.1 zero 3\n"
    "node y i8 [2, 1, 4] scale 0.1 zero 1 = reduce_mean a axes=[1]\noutput y\n",
    "tensor a = input i8 [2, 3, 4, 5] scale 0.1 zero 3\n"
    "node y i8 [2, 7, 6, 5] scale 0.1 zero 3 = resize a sizes=[2, 7, 6, 5] mode=linear "
    "coordinates=half_pixel\noutput y\n",
    "tensor a = input u8 [1, 2, 3, 4] scale 0.1 zero 3\n"
    "node y u8 [1, 2, 9, 2] scale 0.1 zero 3 = resize a sizes=[1, 2, 9, 2] mode=nearest "
    "coordinates=asymmetric\noutput y\n",
    "tensor a = input f32 [4, 9]\nnode y f32 [4, 3], p i64 [4, 3] = top_k a axis=1 k=3\noutput "
    "y\noutput p\n",
    "tensor a = input i8 [4, 6]\nnode y i8 [2, 6], p i64 [2, 6] = top_k a axis=0 k=2 "
    "largest=0\noutput y\noutput p\n",
    /* padding that is wider than the window; channels first, all or each its own */
    "tensor a = input i8 [1, 6, 5, 2]\ntensor b = input i8 [4, 3, 3, 2]\n"
    "node y i32 [1, 5, 4, 4] = conv_integer a, b channels_last=1 strides=[2, 2] pads=[3, 2, 3, 2]\n"
    "output y\n",
    "tensor a = input i8 [1, 3, 6, 5]\ntensor b = input i8 [4, 3, 3, 3]\n"
    "node y i32 [1, 4, 3, 3] = conv_integer a, b strides=[2, 2] pads=[1, 1, 1, 1]\noutput y\n",
    "tensor a = input i8 [1, 6, 6, 5]\ntensor b = input i8 [6, 1, 3, 3]\n"
    "node y i32 [1, 6, 3, 3] = conv_integer a, b groups=6 strides=[2, 2] pads=[1, 1, 1, "
    "1]\noutput y\n",
    "tensor a = input f32 [1, 3, 6, 2]\n"
    "node y f32 [1, 3, 3, 1] = average_pool a kernel=[2, 2] strides=[2, 2]\noutput y\n",
    /* long sums, which tiles of a small memory cut */
    "tensor a = input f32 [3, 101]\ntensor b = input f32 [101, 5]\n"
    "node y f32 [3, 5] = matmul a, b\noutput y\n",
    "tensor a = input f32 [101]\ntensor b = input f32 [101, 5]\n"
    "node y f32 [5] = matmul a, b\noutput y\n",
    "tensor a = input f32 [2, 90]\ntensor w = input f32 [7, 90]\ntensor b = input f32 [7]\n"
    "node y f32 [2, 7] = linear a, w, b\noutput y\n",
    "tensor a = input i8 [1, 300]\ntensor b = input i8 [300, 9]\n"
    "node y i32 [1, 9] = matmul_integer a, b\noutput y\n",
    "tensor a = input f32 [4, 70]\ntensor b = input f32 [70, 3]\ntensor c = input f32 [3]\n"
    "node y f32 [4, 3] = gemm a, b, c alpha=0.5 beta=2\noutput y\n",
    "tensor a = input i8 [300] scale 0.05 zero 3\n"
    "node y i8 [300] scale 0.03 zero -100 = hard_swish a\noutput y\n",
    "tensor a = input i8 [300] scale 0.05 zero 3\n"
    "node y i8 [300] scale 0.03 zero -100 = silu a\noutput y\n",
    "tensor a = input u8 [300] scale 0.05 zero 130\n"
    "node y u8 [300] scale 0.00390625 zero 0 = sigmoid a\noutput y\n",
    "tensor a = input u8 [300] scale 0.05 zero 130\n"
    "node y u8 [300] scale 0.03 zero 20 = hard_swish a\noutput y\n",
    "tensor a = input i8 [2, 3, 4] scale 0.1 zero 3\n"
    "node y i8 [2, 3] scale 0.1 zero 3 = reduce_max a axes=[2] keep_dims=0\noutput y\n",
    "tensor a = input u8 [2, 5, 4, 2] scale 0.1 zero 130\n"
    "tensor w = const u8 [3, 2, 2, 2] scale 0.02 zero 120 values 1, 200, 3, 5, 130, 0, 255, 2, 3, "
    "100, 0, 2, 11, 120, 121, 25, 2, 2, 30, 10, 0, 1, 2, 99\ntensor c = const i32 [3] values 100, "
    "-100, 5\n"
    "node y u8 [2, 3, 2, 3] scale 0.4 zero 120 = conv a, w, c channels_last=1 strides=[2, 2] "
    "pads=[1, 0, 0, 0]\noutput y\n",
    "tensor a = input i8 [2, 4, 4, 2] scale 0.1 zero 3\n"
    "tensor w = const i8 [2, 2, 2, 1] scale 0.02 zero 0 values 1, -2, 3, 5, 13, 0, -1, 2\n"
    "node t i8 [2, 4, 4, 2] scale 0.1 zero 2 = conv a, w channels_last=1 groups=2 pads=[1, 0, 0, "
    "1]\n"
    "node y i8 [2, 2, 2, 2] scale 0.1 zero 2 = average_pool t kernel=[3, 3] strides=[2, 2] "
    "pads=[1, 1, 0, 0] channels_last=1\noutput y\n",
    "tensor a = input u8 [3, 4] scale 0.1 zero 130\n"
    "tensor w = const u8 [2, 4] scale 0.02 zero 120 values 1, 200, 3, 5, 130, 0, 255, 2\n"
    "node y u8 [3, 2] scale 0.3 zero 100 = linear a, w\noutput y\n",
    "tensor a = input u8 [1, 2, 5, 5] scale 0.1 zero 3\n"
    "node y u8 [1, 2, 3, 3] scale 0.1 zero 3 = max_pool a kernel=[3, 3] strides=[2, 2] pads=[1, "
    "1, 1, 1]\noutput y\n",
    /* a residual whose buffers are shared */
    "tensor a = input f32 [4, 8]\ntensor w = input f32 [8, 8]\nnode t f32 [4, 8] = linear a, w\n"
    "node u f32 [4, 8] = relu t\nnode v f32 [4, 8] = linear u, w\nnode y f32 [4, 8] = add v, "
    "a\noutput y\n",
};

#endif
