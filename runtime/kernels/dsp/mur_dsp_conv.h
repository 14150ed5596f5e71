/* mur_dsp_conv.h - in which order mur_dsp_conv_few_s8, mur_dsp_conv_s8, mur_single_conv_s8 and
 * mur_dsp_conv_wide_s8 take a window's inputs. */
#ifndef MUR_DSP_CONV_H
#define MUR_DSP_CONV_H

#include "mur_nn.h"

/* Runs of neighbouring bytes. First the words of all runs in order, then what is left of each.
 * Where that takes no more words, nothing is left: a run's last word is read whole, and what lies
 * behind the run there meets weights of 0. Bytes that are left become words of two inputs. */
typedef struct mur_dsp_runs {
    int32_t a_row;       /* runs in a row of the kernel: 1, or one per tap */
    int32_t bytes;       /* of a run */
    int32_t run_words;   /* of a run */
    int32_t rest;        /* bytes of a run behind its words: 0 to 3 */
    int32_t whole_words; /* of all runs */
    int32_t words;       /* with the rest */
} mur_dsp_runs;

static inline mur_dsp_runs mur_dsp_runs_of(const mur_conv_s8 *layer)
{
    int32_t whole = layer->shape.groups == 1 && layer->shape.dilation_w == 1, depth, runs;
    mur_dsp_runs r;

    depth = layer->shape.in_c / layer->shape.groups;
    r.a_row = whole ? 1 : layer->shape.kernel_w;
    r.bytes = whole ? layer->shape.kernel_w * depth : depth;
    runs = layer->shape.kernel_h * r.a_row;
    r.run_words = r.bytes >> 2;
    r.rest = r.bytes & 3;
    r.words = runs * r.run_words + ((runs * r.rest + 3) >> 2);
    if (r.rest != 2 && r.words == runs * ((r.bytes + 3) >> 2)) {
        r.run_words = (r.bytes + 3) >> 2;
        r.rest = 0;
    }
    r.whole_words = runs * r.run_words;
    return r;
}

/* A single vector has no border beside it. */
static inline int mur_dsp_is_vector(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;

    return s->in_h == 1 && s->out_h == 1 && s->out_w == 1 && s->kernel_h == 1 && s->kernel_w == 1 &&
           s->pad_top == 0 && s->pad_left == 0;
}

/* The rows of the image that a row of outputs reads, with what stands for 0 around them, as an
 * image of its own. */
static inline mur_conv_shape mur_dsp_padded(const mur_conv_shape *s)
{
    mur_conv_shape padded = *s;

    padded.in_h = s->kernel_h;
    padded.in_w = (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w + 1;
    padded.in_pitch = padded.in_w * s->in_c;
    padded.dilation_h = 1;
    padded.pad_top = padded.pad_left = 0;
    return padded;
}

/* its bytes, and memory for three more pixels' windows and their last word */
static inline size_t mur_dsp_padded_bytes(const mur_conv_shape *s)
{
    const mur_conv_shape padded = mur_dsp_padded(s);
    int32_t bytes = padded.in_h * padded.in_pitch + 3 * s->stride_w * s->in_c + 4;

    return ((size_t)bytes + 15) & ~(size_t)15;
}

/* How many fours of pixels are widened at once: of a window that is one run of few inputs some, as
 * long as 256 bytes hold them. A kernel that takes a pixel alone takes one four. */
static inline int32_t mur_dsp_fours(const mur_conv_s8 *layer, const mur_dsp_runs *runs, int alone)
{
    int32_t fours = 8 / runs->words;

    if (alone || fours < 1 || layer->shape.groups > 1 || runs->words != runs->run_words)
        return 1;
    return fours;
}

/* bytes of the widened inputs of that many pixels, of one group; of one pixel if a row has fewer
 * than four and a pixel may be alone */
static inline size_t mur_dsp_widened_bytes(const mur_conv_s8 *layer, const mur_dsp_runs *runs,
                                           int alone, int32_t fours)
{
    return (size_t)(runs->words * (alone && layer->shape.out_w < 4 ? 8 : 32 * fours));
}

/* words of two channels' weights, with biases, multipliers and shifts */
static inline int32_t mur_dsp_pair_words(const mur_dsp_runs *runs)
{
    return 2 + 2 * runs->words + 3;
}

/* The same of four channels, for mur_single_conv_s8. If channels of a group are no fours, the last
 * four ends with the last channel, and has some of those before again. */
static inline int32_t mur_dsp_quad_words(int32_t words)
{
    return 9 + 4 * words;
}

/* outputs side by side to the layer's range, where it is not int8's */
static inline __attribute__((always_inline)) void mur_dsp_clamp_bytes(const mur_output_s8 *to,
                                                                      int32_t count, int8_t *out)
{
    const int8_t least = to->min, most = to->max, *const end = out + count;

    if (least == INT8_MIN && most == INT8_MAX)
        return;
    for (; out != end; out++)
        *out = *out < least ? least : *out > most ? most : *out;
}

/* words of two inputs that mur_dsp_conv_few_s8 takes without a loop */
enum { MUR_DSP_FEW_PAIRS = 10 };

/* How many it takes: without a loop no last one in which there is no input. */
static inline int32_t mur_dsp_few_pairs(const mur_conv_s8 *layer, const mur_dsp_runs *runs)
{
    int32_t last =
        (runs->rest ? layer->shape.kernel_h * runs->a_row * runs->rest : runs->bytes) & 3;
    int32_t pairs = 2 * runs->words - (last == 1 || last == 2);

    return pairs <= MUR_DSP_FEW_PAIRS ? pairs : 2 * runs->words;
}

/* words of four channels for mur_dsp_conv_few_s8 */
static inline int32_t mur_dsp_few_words(int32_t pairs)
{
    return 4 + 4 * pairs + 4 * 3 + 1;
}

/* mur_dsp_conv_wide_s8: these for all channels, then for each pair a word for two inputs: bytes 0
 * and 2 weights of the first channel, 1 and 3 of the second. */
typedef struct mur_dsp_wide_channel {
    int32_t bias, mul,
        shift; /* as in mur_conv_plain; bias with -in_zero * the sum of the weights */
} mur_dsp_wide_channel;

#endif
