/* layers.c - each layer of layers.def once, by the best kernel of one instruction set (ISA, a
 * string), with random weights, between markers. Prints "network,times,kernel,shape,products" for
 * each. */
#include "mur_nn.h"
#include "markers.h"
#include "semihosting.h"

enum { CONV, DEPTHWISE, FC, ADD, POOL };

typedef struct layer {
    const char *network;
    int32_t times, kind, in_h, in_w, in_c, out_h, out_w, out_c, kernel_h, kernel_w, stride, top,
        left;
} layer;

static const layer layers[] = {
#define LAYER(network, ...) { #network, __VA_ARGS__ },
#include "layers.def"
#undef LAYER
};

typedef struct kernel {
    const char *isa, *name;
    void (*run)(const mur_conv_s8 *, const int8_t *, int8_t *, void *);
    int (*fits)(const mur_conv_s8 *, const mur_conv_plain *);
    void (*pack)(const mur_conv_s8 *, const mur_conv_plain *, void *);
} kernel;

typedef struct other {
    const char *isa, *name;
    void (*add)(const mur_add_s8 *, const int8_t *, const int8_t *, int8_t *);
    void (*pool)(const mur_pool_s8 *, const int8_t *, int8_t *);
} other;

#define KERNEL_CONV(isa, name) \
    { #isa, #name, mur_##isa##_##name, mur_##isa##_##name##_fits, mur_##isa##_##name##_pack },
#define KERNEL_UNARY(isa, name)
#define KERNEL_BINARY(isa, name)
#define KERNEL_PRODUCT(isa, name)

static const kernel kernels[] = {
#define MUR_NN(isa, name, kind, descriptor) KERNEL_##kind(isa, name)
#include "mur_nn.def"
#undef MUR_NN
};

/* kernels without weights: the instruction set's own, or ref's */
static const other others[] = {
    { "dsp", "add_s8", mur_dsp_add_s8, 0 },
    { "dsp", "average_pool_s8", 0, mur_dsp_average_pool_s8 },
    { "ref", "add_s8", mur_ref_add_s8, 0 },
    { "ref", "average_pool_s8", 0, mur_ref_average_pool_s8 },
};

enum { DATA = 48 * 48 * 48, WEIGHTS = 128 * 1024, CHANNELS = 1024 };

static int8_t in[DATA], out[DATA], weights[WEIGHTS];
static int32_t bias[CHANNELS], mul[CHANNELS], shift[CHANNELS];
static _Alignas(16) uint8_t packed[WEIGHTS + 64 * 1024], scratch[32 * 1024];

int main(void);

static uint32_t draw(void)
{
    static uint32_t state = 1;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static int is_ours(const char *isa, int own)
{
    const char *wanted = own ? ISA : "ref";

    for (; *isa == *wanted && *isa != 0; isa++)
        wanted++;
    return *isa == *wanted;
}

static void tell(const layer *l, const char *isa, const char *name, int32_t products)
{
    const int32_t numbers[] = { l->in_h,  l->in_w,     l->in_c,     l->out_h, l->out_w,
                                l->out_c, l->kernel_h, l->kernel_w, l->stride };

    host_print(HOST_STDOUT, l->network);
    host_print(HOST_STDOUT, ",");
    host_print_number(HOST_STDOUT, (uint32_t)l->times);
    host_print(HOST_STDOUT, ",");
    host_print(HOST_STDOUT, isa);
    host_print(HOST_STDOUT, "_");
    host_print(HOST_STDOUT, name);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        static const char *const before[] = { ",", "x", "x", ">", "x", "x", " k", "x", " s" };

        host_print(HOST_STDOUT, before[i]);
        host_print_number(HOST_STDOUT, (uint32_t)numbers[i]);
    }
    host_print(HOST_STDOUT, ",");
    host_print_number(HOST_STDOUT, (uint32_t)products);
    host_print(HOST_STDOUT, "\n");
}

static void run_weights(const layer *l)
{
    const mur_conv_plain plain = { weights, bias, mul, shift };
    int32_t flat = l->kind == CONV && l->kernel_h * l->kernel_w * l->stride == 1;
    int32_t groups = l->kind == DEPTHWISE ? l->in_c : 1;
    int32_t count = l->kernel_h * l->kernel_w * l->in_c / groups * l->out_c;
    mur_conv_s8 conv = {
        .shape = {
            .in_h = flat ? 1 : l->in_h,
            .in_w = flat ? l->in_h * l->in_w : l->in_w,
            .in_c = l->in_c,
            .out_h = flat ? 1 : l->out_h,
            .out_w = flat ? l->out_h * l->out_w : l->out_w,
            .out_c = l->out_c,
            .kernel_h = (uint16_t)l->kernel_h,
            .kernel_w = (uint16_t)l->kernel_w,
            .stride_h = (uint16_t)l->stride,
            .stride_w = (uint16_t)l->stride,
            .dilation_h = 1,
            .dilation_w = 1,
            .pad_top = (uint16_t)l->top,
            .pad_left = (uint16_t)l->left,
            .groups = groups,
        },
        .in_zero = -128,
        .output = { MUR_REQUANT_Q31, 0, -128, -128, 127 },
        .packed = packed,
    };

    conv.shape.in_pitch = conv.shape.in_w * conv.shape.in_c;
    conv.shape.out_pitch = conv.shape.out_w * conv.shape.out_c;
    for (int32_t i = 0; i < count; i++)
        weights[i] = (int8_t)(draw() % 81 - 40);
    for (int32_t c = 0; c < l->out_c; c++) {
        bias[c] = (int32_t)(draw() % 20000) - 10000;
        mul[c] = l->kind == FC ? 1500000000 : (int32_t)(draw() >> 2 | 1u << 30);
        shift[c] = -8;
    }
    for (size_t i = 0; i < 2 * sizeof(kernels) / sizeof(*kernels); i++) {
        const kernel *k = &kernels[i % (sizeof(kernels) / sizeof(*kernels))];

        if (!is_ours(k->isa, i < sizeof(kernels) / sizeof(*kernels)) ||
            (l->kind == DEPTHWISE) != (k->name[0] == 'd') || !k->fits(&conv, &plain))
            continue;
        k->pack(&conv, &plain, packed);
        COUNT_BEGIN();
        k->run(&conv, in, out, scratch);
        COUNT_END();
        tell(l, k->isa, k->name, l->out_h * l->out_w * count);
        return;
    }
}

static void run_other(const layer *l)
{
    const mur_add_s8 add = { l->in_h * l->in_w * l->in_c,
                             l->in_h * l->in_w * l->in_c,
                             1 << 30,
                             0,
                             1500000000,
                             -1,
                             1400000000,
                             -18,
                             20,
                             0,
                             3,
                             -5,
                             7,
                             -128,
                             127 };
    const mur_pool_s8 pool = { l->in_h,
                               l->in_w,
                               l->in_c,
                               l->out_h,
                               l->out_w,
                               l->in_w * l->in_c,
                               l->out_w * l->out_c,
                               (uint16_t)l->kernel_h,
                               (uint16_t)l->kernel_w,
                               (uint16_t)l->stride,
                               (uint16_t)l->stride,
                               0,
                               0,
                               -128,
                               127 };

    for (size_t i = 0; i < 2 * sizeof(others) / sizeof(*others); i++) {
        const other *o = &others[i % (sizeof(others) / sizeof(*others))];

        if (!is_ours(o->isa, i < sizeof(others) / sizeof(*others)) ||
            (l->kind == ADD) != (o->add != NULL))
            continue;
        COUNT_BEGIN();
        if (l->kind == ADD)
            o->add(&add, in, in + sizeof(in) / 2, out);
        else
            o->pool(&pool, in, out);
        COUNT_END();
        tell(l, o->isa, o->name, l->in_h * l->in_w * l->in_c);
        return;
    }
}

int main(void)
{
    host_open();
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (int8_t)draw();
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        if (layers[i].kind == ADD || layers[i].kind == POOL)
            run_other(&layers[i]);
        else
            run_weights(&layers[i]);
    return 0;
}
