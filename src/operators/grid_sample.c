/* grid_sample.c - an image read at the places that a grid names, between its pixels too. */
#include "graph/shape.h"
#include "operators/nest.h"

static bool is_mode(const muc_node *node, muc_word word, muc_word old)
{
    muc_word mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_LINEAR);

    return mode == word || mode == old;
}

/* x [N, C, spatial..], grid [N, places.., spatial dimensions]: [N, C, places..] */
muc_status muc_shape_grid_sample(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *grid = muc_rule_input(r, 1);
    muc_expr spatial = muc_rule_dim(r, x->rank - 2u);

    MUC_TRY(muc_rule_expect_type(r, 1));
    if (x->rank < 3 || x->rank > 5)
        return muc_rule_unexpected(r, 0, "[N, C, 1 to 3 spatial dimensions]");
    if (grid->rank != x->rank || grid->dims[grid->rank - 1] != spatial)
        return muc_rule_unexpected(r, 1, "[N, places.., %u]", x->rank - 2u);
    MUC_TRY(muc_rule_require(r, "images", x->dims[0], true, grid->dims[0]));
    muc_rule_like(r, 0, x);
    for (uint32_t i = 2; i < x->rank; i++) {
        MUC_TRY(muc_rule_require(r, "pixels", muc_rule_dim(r, 1), false, x->dims[i]));
        r->outputs[0].dims[i] = grid->dims[i - 1];
    }
    return MUC_OK;
}

/* taps: pixels that a result is made of, along a dimension */
#define NUMBERS(X) \
    X(images) \
    X(channels) \
    X(places) \
    X(spatial) X(first) X(second) X(third) X(pixels) X(taps) X(corners) X(reflects) X(repeats)

typedef struct numbers {
    NUMBERS(MUC_NEST_FIELD)
} numbers;

static void measure(const muc_nest_node *n, void *out)
{
    const muc_nest_shape *x = &n->inputs[0], *grid = &n->inputs[1];
    muc_word padding = muc_node_word_or(n->node, MUC_KEY_PADDING, MUC_WORD_ZEROS);
    bool is_nearest = is_mode(n->node, MUC_WORD_NEAREST, MUC_WORD_NEAREST);

    *(numbers *)out = (numbers){
        .images = x->dims[0],
        .channels = x->dims[1],
        .places = muc_nest_elements(grid, 1, grid->rank - 1),
        .spatial = x->rank - 2,
        .first = x->dims[2],
        .second = x->rank > 3 ? x->dims[3] : 1,
        .third = x->rank > 4 ? x->dims[4] : 1,
        .pixels = muc_nest_elements(x, 2, x->rank),
        .taps = is_nearest                                           ? 1
                : is_mode(n->node, MUC_WORD_CUBIC, MUC_WORD_BICUBIC) ? 4
                                                                     : 2,
        .corners = muc_node_integer_or(n->node, MUC_KEY_ALIGN_CORNERS, 0) == 1,
        .reflects = padding == MUC_WORD_REFLECTION,
        .repeats = padding == MUC_WORD_BORDER,
    };
}

/* As ONNX's reference: x, a place in pixels, is rounded (nearest; halves to even, of three
 * dimensions away from 0), brought inside if the outermost pixels repeat, and so is each of the
 * pixels around it. Ends are the middles of the outermost pixels or, half a pixel on, their
 * borders. */
MUC_NEST_REAL(grid_sample, NUMBERS, measure, 0, {
    const INDEX extents[3] = { first, second, third };

    for (INDEX n = 0; n < images; n++) {
        for (INDEX p = 0; p < places; p++) {
            T weights[64];
            PLACE from[64];
            INDEX count = 1;

            weights[0] = 1;
            from[0] = 0;
            for (INDEX d = 0; d < spatial; d++) {
                const T at = b[(n * places + p) * spatial + spatial - 1 - d];
                const T size = (T)extents[d];
                const PLACE end = (PLACE)extents[d];
                const PLACE border = corners && end > 1 ? 0 : 1;
                const PLACE period = 2 * (end - 1 + border);
                const T low = (T)-0.5 * (T)border;
                T x = corners ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2;

                x = x > -1073741824 ? x : -1073741824;
                x = x < 1073741824 ? x : 1073741824;
                if (taps == 1) {
                    PLACE below = (PLACE)x;
                    below -= x < (T)below;
                    const T rest = x - (T)below;
                    const int up = spatial == 3 ? x > 0 : below % 2 != 0;
                    x = (T)(below + (rest > (T)0.5 || (rest == (T)0.5 && up)));
                }
                if (repeats) {
                    x = x < low ? 0 : x > size - 1 - low ? size - 1 : x;
                }
                PLACE begin = (PLACE)x;
                begin -= x < (T)begin;
                const T rest = x - (T)begin;
                begin -= taps == 4;
                for (INDEX j = count; j-- > 0;) {
                    const T weight = weights[j];
                    const PLACE row = from[j];

                    for (INDEX k = taps; k-- > 0;) {
                        T far = rest + (taps == 4) - (T)k;
                        PLACE place = begin + (PLACE)k;
                        T part = 1;

                        far = far < 0 ? -far : far;
                        if (taps == 2) {
                            part = 1 - far;
                        }
                        if (taps == 4) {
                            part = far < 1 ? ((T)1.25 * far - (T)2.25) * far * far + 1
                                           : (((T)3.75 - (T)0.75 * far) * far - 6) * far + 3;
                        }
                        if (repeats) {
                            place = place < 0 ? 0 : place < end ? place : end - 1;
                        }
                        if (reflects) {
                            place %= period;
                            place += place < 0 ? period : 0;
                            place = place < end ? place : period - border - place;
                        }
                        weights[j * taps + k] = weight * part;
                        from[j * taps + k] =
                            row < 0 || place < 0 || place >= end ? -1 : row * end + place;
                    }
                }
                count *= taps;
            }
            for (INDEX i = n * channels; i < (n + 1) * channels; i++) {
                T sum = 0;

                for (INDEX k = 0; k < count; k++) {
                    if (from[k] >= 0) {
                        sum += weights[k] * a[i * pixels + (INDEX)from[k]];
                    }
                }
                y[i * places + p] = sum;
            }
        }
    }
})
