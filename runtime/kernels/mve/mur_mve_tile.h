/* mur_mve_tile.h - outputs of four pixels at a time, whose inputs are gathered side by side.
 *
 * A tile is int8 [inputs / 16, rounded up][4 pixels][16], zeros behind the last input: so one
 * pointer walks it, and weights, four channels at a time, are read once for four pixels. */
#ifndef MUR_MVE_TILE_H
#define MUR_MVE_TILE_H

#include "mur_mve_narrow.h"

enum { MUR_MVE_BLOCK = MUR_MVE_PIXELS * MUR_MVE_BYTES }; /* of a tile: 16 inputs of all pixels */

static inline int32_t mur_mve_tile_bytes(int32_t inputs)
{
    return MUR_MVE_PIXELS * mur_mve_padded(inputs);
}

/* where input k of the first pixel lies in a tile */
static inline int32_t mur_mve_tile_at(int32_t k)
{
    return MUR_MVE_PIXELS * (k & ~(MUR_MVE_BYTES - 1)) + (k & (MUR_MVE_BYTES - 1));
}

/* Outputs, with weights of `inputs` each, at most a vector, from w on, of `count` pixels whose
 * inputs lie `step` apart from `from` on. */
static MUR_MVE_OPTIMIZED void mur_mve_run_narrow(const mur_conv_s8 *layer, const int8_t *from,
                                                 int32_t step, int32_t inputs,
                                                 const mur_mve_four *fours, const int8_t *w,
                                                 int32_t outputs, int8_t *out, int32_t count)
{
    mur_mve_run_few(layer, from, step, inputs, NULL, fours, w, outputs, out, count);
}

#if MUR_HAVE_MVE

/* `count` inputs of the pixel whose first lies at x, from its input k on */
static inline void mur_mve_put(int8_t *x, int32_t k, const int8_t *from, int32_t count)
{
    int32_t behind = k & (MUR_MVE_BYTES - 1);

    x += mur_mve_tile_at(k);
    if (behind > 0) {
        int32_t first = MUR_MVE_BYTES - behind < count ? MUR_MVE_BYTES - behind : count;
        mve_pred16_t some = vctp8q((uint32_t)first);

        vstrbq_p_s8(x, vldrbq_z_s8(from, some), some);
        x += MUR_MVE_BLOCK - behind, from += first, count -= first;
    }
    __asm__ volatile("wlstp.8 lr, %2, 2f\n"
                     "1: vldrb.8 q0, [%1], #16\n"
                     "vstrb.8 q0, [%0], #64\n"
                     "letp lr, 1b\n"
                     "2:"
                     : "+r"(x), "+r"(from)
                     : "r"(count)
                     : "lr", "q0", "memory");
}

/* `count` runs of `bytes` bytes, at most MUR_MVE_BYTES of them, from_step and to_step apart */
static inline void mur_mve_copy_runs(int8_t *to, int32_t to_step, const int8_t *from,
                                     int32_t from_step, int32_t count, int32_t bytes)
{
    __asm__ volatile("dls lr, %2\n"
                     "1: vpstt\n"
                     "vldrbt.8 q0, [%1]\n"
                     "vstrbt.8 q0, [%0]\n"
                     "add %1, %1, %3\n"
                     "add %0, %0, %4\n"
                     "le lr, 1b\n"
                     : "+l"(to), "+l"(from)
                     : "r"(count), "r"(from_step), "r"(to_step), "Up"(vctp8q((uint32_t)bytes))
                     : "lr", "q0", "memory");
}

/* all inputs of a pixel */
static inline void mur_mve_put_value(int8_t *x, int8_t value, int32_t count)
{
    int8x16_t values = vdupq_n_s8(value);

    for (; count > 0; count -= MUR_MVE_BYTES, x += MUR_MVE_BLOCK)
        vstrbq_p_s8(x, values, vctp8q((uint32_t)count));
}

/* what asm reads and, of pointers, writes: by these offsets */
typedef struct mur_mve_run {
    const int8_t *tile;
    const int8_t *w, *w2; /* weights of the next channel and of the one behind */
    int32_t blocks;       /* of the tile */
    const mur_mve_four *four;
    int32_t next; /* bytes from behind a channel's weights to those of the next but one */
    int32_t zero, min, max;
} mur_mve_run;

/* clang-format off */
/* Products of a block with channels at r5 and at r9: r0, r2, r8, r10 and r4, r6, r12, lr have the
 * sums of the four pixels. */
#define MUR_MVE_BLOCK_SUMS(mla) \
    "vldrb.8 q0, [r5], #16\n" \
    "vldrb.8 q2, [r1], #16\n" \
    mla " r0, q2, q0\n" \
    "vldrb.8 q1, [r9], #16\n" \
    mla " r4, q2, q1\n" \
    "vldrb.8 q3, [r1], #16\n" \
    mla " r2, q3, q0\n" \
    "vldrb.8 q2, [r1], #16\n" \
    mla " r6, q3, q1\n" \
    "vldrb.8 q3, [r1], #16\n" \
    mla " r8, q2, q0\n" \
    mla " r12, q2, q1\n" \
    mla " r10, q3, q0\n" \
    "subs r11, r11, #1\n" \
    mla " lr, q3, q1\n"

/* Sums of two channels with the four pixels. */
#define MUR_MVE_PAIR \
    MUR_MVE_BLOCK_SUMS("vmladav.s8") \
    "beq 2f\n" \
    "1:\n" \
    MUR_MVE_BLOCK_SUMS("vmladava.s8") \
    "bne 1b\n" \
    "2:\n"

/* Outputs [4 pixels][4 channels] of the next four channels: each sum as MUR_REQUANT_Q31 scales it, where
 * x - 1 of negative x rounded halves up is x rounded halves away from zero. The order is one that
 * llvm-mca's model of Cortex-M55 finds short. Of the core's registers r3 and r7 are left to the
 * compiler. */
static inline __attribute__((always_inline)) int8x16_t mur_mve_run_four(mur_mve_run *run)
{
    int8x16_t y, b;

    __asm__ volatile(
        "ldm %2, {r1, r5, r9, r11}\n"
        MUR_MVE_PAIR
        "vmov %q1[2], %q1[0], r4, r12\n"
        "vmov %q1[3], %q1[1], r6, lr\n"
        "vmov %q0[2], %q0[0], r0, r8\n"
        "ldr r1, [%2, #16]\n"
        "vmov %q0[3], %q0[1], r2, r10\n"
        "ldm r1!, {r0, r2, r4, r6, r8}\n"
        "asr r10, r0, #8\n"
        "str r1, [%2, #16]\n"
        "vadd.i32 %q0, %q0, r2\n"
        "ubfx lr, r10, #7, #1\n"
        "ubfx r12, r0, #7, #1\n"
        "vqrdmulh.s32 %q0, %q0, r4\n"
        "vadd.i32 %q1, %q1, r6\n"
        "vqrdmulh.s32 %q1, %q1, r8\n"
        "ldr r11, [%2, #12]\n"
        "vqdmlah.s32 %q0, %q0, r12\n"
        "ldr r1, [%2]\n"
        "vrshl.s32 %q0, r0\n"
        "ldr r0, [%2, #20]\n"
        "vqdmlah.s32 %q1, %q1, lr\n"
        "add r9, r9, r0\n"
        "vrshl.s32 %q1, r10\n"
        "add r5, r5, r0\n"
        MUR_MVE_PAIR
        "vmov q1[2], q1[0], r4, r12\n"
        "vmov q1[3], q1[1], r6, lr\n"
        "ldr r1, [%2, #16]\n"
        "vmov q0[2], q0[0], r0, r8\n"
        "vmov q0[3], q0[1], r2, r10\n"
        "ldm r1!, {r2, r4, r6, r8}\n"
        "vadd.i32 q0, q0, r2\n"
        "vqrdmulh.s32 q0, q0, r4\n"
        "vadd.i32 q1, q1, r6\n"
        "ldrsb r10, [r1, #-33]\n"
        "ldrsb r0, [r1, #-34]\n"
        "vqrdmulh.s32 q1, q1, r8\n"
        "lsr r12, r0, #31\n"
        "lsr lr, r10, #31\n"
        "vqdmlah.s32 q0, q0, r12\n"
        "vqmovnb.s32 %q1, %q1\n"
        "vqdmlah.s32 q1, q1, lr\n"
        "vrshl.s32 q0, r0\n"
        "ldrd r0, r2, [%2, #20]\n"
        "vqmovnb.s32 %q0, %q0\n"
        "ldrd r4, r6, [%2, #28]\n"
        "vrshl.s32 q1, r10\n"
        "add r5, r5, r0\n"
        "vqmovnt.s32 %q0, q0\n"
        "vdup.8 q2, r4\n"
        "vqadd.s16 %q0, %q0, r2\n"
        "str r1, [%2, #16]\n"
        "vqmovnt.s32 %q1, q1\n"
        "vqmovnb.s16 %q0, %q0\n"
        "vqadd.s16 %q1, %q1, r2\n"
        "vqmovnt.s16 %q0, %q1\n"
        "vdup.8 q3, r6\n"
        "add r9, r9, r0\n"
        "vmax.s8 %q0, %q0, q2\n"
        "strd r5, r9, [%2, #4]\n"
        "vmin.s8 %q0, %q0, q3\n"
        : "=&w"(y), "=&w"(b)
        : "r"(run)
        : "r0", "r1", "r2", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1",
          "q2", "q3", "cc", "memory");
    return y;
}

#undef MUR_MVE_PAIR
#undef MUR_MVE_BLOCK_SUMS

/* clang-format on */

/* Sums of four channels, without their biases, over the blocks of one pixel at x. */
static inline __attribute__((always_inline)) int32x4_t
mur_mve_sum_four(const int8_t *x, int32_t blocks, const int8_t *w, int32_t inputs)
{
    int32x4_t sums;

    __asm__ volatile("add r9, %2, %3\n"
                     "mov r0, #0\n"
                     "add r11, r9, %3\n"
                     "mov r8, #0\n"
                     "mov r10, #0\n"
                     "add r1, r11, %3\n"
                     "mov r12, #0\n"
                     "dls lr, %4\n"
                     "1: vldrb.8 q0, [%1], #64\n"
                     "vldrb.8 q1, [%2], #16\n"
                     "vmladava.s8 r0, q0, q1\n"
                     "vldrb.8 q2, [r9], #16\n"
                     "vmladava.s8 r8, q0, q2\n"
                     "vldrb.8 q1, [r11], #16\n"
                     "vmladava.s8 r10, q0, q1\n"
                     "vldrb.8 q2, [r1], #16\n"
                     "vmladava.s8 r12, q0, q2\n"
                     "le lr, 1b\n"
                     "vmov %q0[2], %q0[0], r0, r10\n"
                     "vmov %q0[3], %q0[1], r8, r12\n"
                     : "=w"(sums), "+r"(x), "+r"(w)
                     : "r"(inputs), "r"(blocks)
                     : "r0", "r1", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", "q2",
                       "memory");
    return sums;
}

/* `channels` outputs of the pixel of a tile that begins at x, with weights of `inputs` each from w
 * on */
static MUR_MVE_OPTIMIZED void mur_mve_run_pixel(const mur_conv_s8 *layer, const int8_t *x,
                                                int32_t inputs, const mur_mve_four *four,
                                                const int8_t *w, int32_t channels, int8_t *out)
{
    mur_mve_clamp clamp = mur_mve_clamp_of(&layer->output);
    int32_t blocks = mur_mve_padded(inputs) / MUR_MVE_BYTES;
    uint32x4_t at = vidupq_n_u32(0, sizeof(mur_mve_channel));

    for (; channels > 0; channels -= 4, four++, w += 4 * inputs, out += 4) {
        int32x4_t y = mur_mve_sum_four(x, blocks, w, inputs);

        y = vaddq_s32(y, vldrwq_gather_offset_s32(&four->channel->bias, at));
        y = mur_mve_scale(y, vldrwq_gather_offset_s32(&four->channel->mul, at),
                          vldrbq_s32(four->shift));
        y = vminq_s32(vmaxq_s32(vaddq_n_s32(y, clamp.zero), clamp.min), clamp.max);
        vstrbq_p_s32(out, y, vctp32q((uint32_t)channels));
    }
}

/* `channels` outputs, with weights of `inputs` each from w on, of the first `pixels` of a tile; r7
 * is not a frame pointer even without optimization */
static MUR_MVE_OPTIMIZED void mur_mve_run_tile(const mur_conv_s8 *layer, const int8_t *tile,
                                               int32_t inputs, const mur_mve_four *four,
                                               const int8_t *w, int32_t channels, int8_t *out,
                                               int32_t pixels)
{
    int32_t padded = mur_mve_padded(inputs), depth = layer->shape.out_c;
    mur_mve_run run = { tile,
                        w,
                        w + inputs,
                        padded / MUR_MVE_BYTES,
                        four,
                        2 * inputs - padded,
                        layer->output.zero,
                        layer->output.min,
                        layer->output.max };
    mur_mve_places to;

    mur_mve_set_places(&to, out, depth, channels);
    mur_mve_set_pixels(&to, pixels);
    if (inputs <= MUR_MVE_BYTES && pixels > 1) {
        mur_mve_run_narrow(layer, tile, MUR_MVE_BYTES, inputs, four, w, channels, out, pixels);
        return;
    }
    if (pixels <= 2) {
        for (; pixels > 0; pixels--, tile += MUR_MVE_BYTES, out += depth)
            mur_mve_run_pixel(layer, tile, inputs, four, w, channels, out);
        return;
    }
    for (const int8_t *end = out + channels; out < end; out += 4)
        mur_mve_store(&to, out, mur_mve_run_four(&run), end, 0);
}

#else

static inline void mur_mve_put(int8_t *x, int32_t k, const int8_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        x[mur_mve_tile_at(k + i)] = from[i];
}

static inline void mur_mve_put_value(int8_t *x, int8_t value, int32_t count)
{
    for (int32_t k = 0; k < count; k++)
        x[mur_mve_tile_at(k)] = value;
}

static inline void mur_mve_run_tile(const mur_conv_s8 *layer, const int8_t *tile, int32_t inputs,
                                    const mur_mve_four *fours, const int8_t *w, int32_t channels,
                                    int8_t *out, int32_t pixels)
{
    for (int32_t c = 0; c < channels; c++, w += inputs)
        for (int32_t p = 0; p < pixels; p++) {
            int32_t sum = 0;

            for (int32_t k = 0; k < inputs; k++)
                sum += tile[mur_mve_tile_at(k) + p * MUR_MVE_BYTES] * w[k];
            out[p * layer->shape.out_c + c] = mur_mve_scaled(fours, c, sum, &layer->output);
        }
}

#endif

/* zeros in the last blocks of all groups' tiles */
static inline void mur_mve_end_tiles(int32_t inputs, int32_t groups, int8_t *tile)
{
    int32_t bytes = mur_mve_tile_bytes(inputs);

    for (; groups > 0; groups--, tile += bytes)
        mur_mve_clear(tile + bytes - MUR_MVE_BLOCK, MUR_MVE_PIXELS);
}

/* what all tiles of a layer are multiplied by */
typedef struct mur_mve_groups {
    const int8_t *w;
    const mur_mve_four *fours;
    int32_t groups, inputs, outputs;    /* of a group */
    int32_t tile_bytes, w_bytes, count; /* fours of a group */
} mur_mve_groups;

static inline mur_mve_groups mur_mve_groups_of(const mur_conv_s8 *layer, int32_t groups)
{
    const mur_conv_shape *s = &layer->shape;
    mur_mve_groups all;

    all.groups = groups;
    all.inputs = s->kernel_h * s->kernel_w * s->in_c / groups;
    all.outputs = s->out_c / groups;
    all.count = mur_mve_count(all.outputs);
    all.tile_bytes = mur_mve_tile_bytes(all.inputs);
    all.w_bytes = MUR_MVE_FOUR * all.count * all.inputs;
    all.w = layer->packed;
    all.fours = (const void *)(all.w + groups * all.w_bytes);
    return all;
}

/* the first `pixels` of a tile that all groups have */
static inline void mur_mve_run_groups(const mur_conv_s8 *layer, const mur_mve_groups *all,
                                      const int8_t *tile, int8_t *out, int32_t pixels)
{
    const mur_mve_four *fours = all->fours;
    const int8_t *w = all->w;

    for (int32_t left = all->groups; left > 0; left--) {
        mur_mve_run_tile(layer, tile, all->inputs, fours, w, all->outputs, out, pixels);
        fours += all->count, w += all->w_bytes, out += all->outputs, tile += all->tile_bytes;
    }
}

/* the inputs of the pixel whose window begins at (top, left), and whether all of it is inside;
 * those of the first group from x on, those of others whole tiles behind */
typedef void (*mur_mve_gather)(const mur_conv_s8 *layer, const int8_t *in, int32_t top,
                               int32_t left, int32_t is_inside, int8_t *x);

/* All pixels of a layer of so many groups, in order; only where rows of outputs are not dense does
 * a tile end with its row. */
static inline __attribute__((always_inline)) void mur_mve_run_tiles(const mur_conv_s8 *layer,
                                                                    const int8_t *in, int8_t *out,
                                                                    int8_t *scratch, int32_t groups,
                                                                    mur_mve_gather gather)
{
    const mur_conv_shape *s = &layer->shape;
    const mur_mve_groups all = mur_mve_groups_of(layer, groups);
    int32_t lowest = s->in_h - (s->kernel_h - 1) * s->dilation_h - 1; /* window that is inside */
    int32_t rightmost = s->in_w - (s->kernel_w - 1) * s->dilation_w - 1;
    int32_t gap = s->out_pitch - s->out_w * s->out_c, left, top = -s->pad_top, pixels = 0;
    int8_t *to = scratch;

    for (int32_t y = s->out_h; y > 0; y--, top += s->stride_h, out += gap) {
        int32_t last = top >= 0 && top <= lowest ? rightmost : -1;

        left = -s->pad_left;
        for (int32_t x = s->out_w; x > 0; x--, left += s->stride_w) {
            gather(layer, in, top, left, left >= 0 && left <= last, to);
            to += MUR_MVE_BYTES;
            if (++pixels < MUR_MVE_PIXELS && (x > 1 || (gap == 0 && y > 1)))
                continue;
            mur_mve_run_groups(layer, &all, scratch, out, pixels);
            out += pixels * s->out_c;
            pixels = 0;
            to = scratch;
        }
    }
}

#endif
