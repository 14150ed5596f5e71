/* loop_resize.c - resizing by tables of neighbours and their weights, one table a dimension that
 * changes.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "graph/sampling.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

enum { MOST_TAPS = 64 };

/* A resize at work. */
typedef struct resize {
    muc_mcu_lowering *l;
    const muc_tensor *x, *y;
    const muc_node *node;
    muc_sampling dims[MUC_GRAPH_MAX_RANK];
    size_t taps[MUC_GRAPH_MAX_RANK]; /* 0: the dimension stays as it is */
    ptrdiff_t first[MUC_GRAPH_MAX_RANK];
} resize;

static resize resize_of(const muc_mcu_lowering *l, const muc_node *node)
{
    resize r = { .x = muc_mcu_input(l, node, 0), .y = muc_mcu_output(l, node, 0), .node = node };

    for (uint32_t d = 0; d < r.x->rank; d++) {
        r.dims[d] =
            muc_sampling_of(node, r.x->rank, d, muc_mcu_dim(l, r.x, d), muc_mcu_dim(l, r.y, d));
        if (!muc_sampling_is_kept(&r.dims[d]))
            r.taps[d] = muc_sampling_neighbours(&r.dims[d], &r.first[d]);
    }
    return r;
}

static bool crops(const muc_node *node)
{
    return muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL) ==
           MUC_WORD_TF_CROP_AND_RESIZE;
}

static bool is_nearest(const muc_node *node)
{
    return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) == MUC_WORD_NEAREST;
}

bool muc_mcu_takes_resize_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    resize r;

    if (!muc_mcu_is_static(l, x) || !muc_mcu_is_static(l, y) || muc_mcu_most_elements(l, x) == 0 ||
        (x->dtype != MUC_F32 && !is_nearest(node)) || (x->quantization && crops(node)))
        return false;
    r = resize_of(l, node);
    for (uint32_t d = 0; d < x->rank; d++)
        if (muc_sampling_widening(&r.dims[d]) < 1e-6 || r.taps[d] > MOST_TAPS)
            return false;
    return true;
}

static void print_weights(resize *r, uint32_t d)
{
    double weights[MOST_TAPS];
    muc_text *text = &r->l->text;

    muc_text_add(text, "    static const float by%" PRIu32 "[%zu][%zu] = {\n", d, r->dims[d].out,
                 r->taps[d]);
    for (size_t i = 0; i < r->dims[d].out; i++) {
        ptrdiff_t first = r->first[d];

        muc_sampling_weigh(&r->dims[d], i, r->taps[d], weights, &first);
        muc_text_add(text, "        {");
        for (size_t k = 0; k < r->taps[d]; k++) {
            muc_text_add(text, k ? ", " : " ");
            muc_mcu_print_real(text, weights[k], false);
        }
        muc_text_add(text, " },\n");
    }
    muc_text_add(text, "    };\n");
}

/* where neighbours lie, in elements of x; the last index, one that is none, marks what a crop finds
 * outside of x */
static void print_places(resize *r, uint32_t d)
{
    double weights[MOST_TAPS];
    muc_text *text = &r->l->text;
    uint64_t stride = muc_mcu_elements(r->l, r->x, d + 1, r->x->rank);

    muc_text_add(text, "    static const uint32_t at%" PRIu32 "[%zu][%zu] = {\n", d, r->dims[d].out,
                 r->taps[d]);
    for (size_t i = 0; i < r->dims[d].out; i++) {
        double x = muc_sampling_coordinate(&r->dims[d], i);
        ptrdiff_t first = r->first[d], last = (ptrdiff_t)r->dims[d].in - 1;
        bool outside = crops(r->node) && !(x >= 0 && x <= (double)last);

        muc_sampling_weigh(&r->dims[d], i, r->taps[d], weights, &first);
        muc_text_add(text, "        {");
        for (size_t k = 0; k < r->taps[d]; k++) {
            ptrdiff_t place = first + (ptrdiff_t)k;

            place = place < 0 ? 0 : place > last ? last : place;
            muc_text_add(text, "%s%" PRIu64 "u", k ? ", " : " ",
                         outside ? UINT32_MAX : (uint64_t)place * stride);
        }
        muc_text_add(text, " },\n");
    }
    muc_text_add(text, "    };\n");
}

static void print_condition(resize *r, unsigned depth)
{
    muc_text *text = &r->l->text;
    const char *before = "if (";

    for (uint32_t d = 0; d < r->x->rank; d++) {
        if (!r->taps[d])
            continue;
        if (*before == 'i')
            muc_mcu_indent(text, depth);
        muc_text_add(text, "%sat%" PRIu32 "[i%" PRIu32 "][0] == UINT32_MAX", before, d, d);
        before = " || ";
    }
    if (*before == 'i')
        return;
    muc_text_add(text, ") {\n");
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "*y++ = ");
    muc_mcu_print_real(text, muc_node_real_or(r->node, MUC_KEY_EXTRAPOLATION, 0), false);
    muc_text_add(text, ";\n");
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "continue;\n");
    muc_mcu_indent(text, depth);
    muc_text_add(text, "}\n");
}

/* "a[0 + at0[i0][k0] + i1 * 4u]" */
static void print_element(resize *r)
{
    muc_text *text = &r->l->text;

    muc_text_add(text, "a[0");
    for (uint32_t d = 0; d < r->x->rank; d++) {
        if (r->taps[d] > 1)
            muc_text_add(text, " + at%" PRIu32 "[i%" PRIu32 "][k%" PRIu32 "]", d, d, d);
        else if (r->taps[d] == 1)
            muc_text_add(text, " + at%" PRIu32 "[i%" PRIu32 "][0]", d, d);
        else
            muc_text_add(text, " + i%" PRIu32 " * %" PRIu64 "u", d,
                         muc_mcu_elements(r->l, r->x, d + 1, r->x->rank));
    }
    muc_text_add(text, "]");
}

static void open_loop(resize *r, unsigned depth, const char *counter, uint32_t d, uint64_t extent)
{
    muc_mcu_indent(&r->l->text, depth);
    muc_text_add(&r->l->text,
                 "for (uint32_t %s%" PRIu32 " = 0; %s%" PRIu32 " < %" PRIu64 "u; %s%" PRIu32
                 "++) {\n",
                 counter, d, counter, d, extent, counter, d);
}

static void close_loops(resize *r, unsigned depth, unsigned until)
{
    while (depth-- > until) {
        muc_mcu_indent(&r->l->text, depth);
        muc_text_add(&r->l->text, "}\n");
    }
}

static void print_sum(resize *r, unsigned depth)
{
    muc_text *text = &r->l->text;
    unsigned inner = depth;

    muc_mcu_indent(text, depth);
    muc_text_add(text, "float sum = 0.0f;\n\n");
    for (uint32_t d = 0; d < r->x->rank; d++)
        if (r->taps[d] > 1)
            open_loop(r, inner++, "k", d, r->taps[d]);
    muc_mcu_indent(text, inner);
    muc_text_add(text, "sum += ");
    for (uint32_t d = 0; d < r->x->rank; d++)
        if (r->taps[d] > 1)
            muc_text_add(text, "by%" PRIu32 "[i%" PRIu32 "][k%" PRIu32 "] * ", d, d, d);
    print_element(r);
    muc_text_add(text, ";\n");
    close_loops(r, inner, depth);
    muc_mcu_indent(text, depth);
    muc_text_add(text, "*y++ = sum;\n");
}

muc_status muc_mcu_write_resize_loops(muc_mcu_lowering *l, const muc_node *node)
{
    resize r = resize_of(l, node);
    muc_text *text = &l->text;
    uint32_t rank = r.x->rank;

    r.l = l;
    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t d = 0; d < rank; d++) {
        if (r.taps[d])
            print_places(&r, d);
        if (r.taps[d] > 1)
            print_weights(&r, d);
    }
    muc_text_add(text, "\n");
    for (uint32_t d = 0; d < rank; d++)
        open_loop(&r, 1 + d, "i", d, r.dims[d].out);
    if (crops(node))
        print_condition(&r, 1 + rank);
    if (is_nearest(node)) {
        muc_mcu_indent(text, 1 + rank);
        muc_text_add(text, "*y++ = ");
        print_element(&r);
        muc_text_add(text, ";\n");
    } else {
        print_sum(&r, 1 + rank);
    }
    close_loops(&r, 1 + rank, 1);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- TensorFlow Lite's, of two dimensions ---- */

bool muc_mcu_takes_resize_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    uint32_t first;

    return x->quantization && x->quantization->count == 1 && muc_mcu_is_static(l, x) &&
           muc_mcu_is_static(l, y) && muc_mcu_most_elements(l, x) > 0 &&
           (x->dtype == MUC_I8 || x->dtype == MUC_U8 || x->dtype == MUC_I16) &&
           muc_resize_as_tflite(l->graph, node, &first);
}

/* where the lower and the upper neighbour lie, and the upper one's weight in 1024ths */
static void print_table_q(muc_mcu_lowering *l, const muc_sampling *s, uint32_t number,
                          uint64_t stride)
{
    muc_text *text = &l->text;

    muc_text_add(text, "    static const int32_t from%" PRIu32 "[%zu][3] = {\n", number, s->out);
    for (size_t i = 0; i < s->out; i++) {
        size_t lower = 0, upper = 0;
        int64_t weight = 0;

        if (s->mode == MUC_WORD_LINEAR)
            muc_sampling_neighbours_q(s, i, &lower, &upper, &weight);
        else
            lower = upper = muc_sampling_nearest_q(s, i);
        muc_text_add(text, "        { %" PRIu64 ", %" PRIu64 ", %" PRId64 " },\n", lower * stride,
                     upper * stride, weight);
    }
    muc_text_add(text, "    };\n");
}

/* the mean of four pixels, channel by channel; sums of bytes keep within 32 bits */
static void print_mean_q(muc_mcu_lowering *l, muc_dtype type, uint64_t channels)
{
    const char *sums = muc_dtype_get(type)->block_bytes > 1 ? "int64_t" : "int32_t";
    const char *element = muc_mcu_c_type(type);

    muc_text_add(
        &l->text,
        "                const %s *b = a + v[0] + h[0], *c = a + v[0] + h[1];\n"
        "                const %s *d = a + v[1] + h[0], *e = a + v[1] + h[1];\n"
        "                const int32_t right = h[2], left = 1024 - right;\n"
        "                const %s below = v[2], above = 1024 - below;\n\n"
        "                for (uint32_t k = 0; k < %" PRIu64 "u; k++) {\n"
        "                    const int32_t upper = left * b[k] + right * c[k];\n"
        "                    const int32_t lower = left * d[k] + right * e[k];\n"
        "                    const %s sum = above * upper + below * lower;\n\n"
        "                    y[k] = (%s)((sum + (sum > 0 ? 524288 : -524288)) / 1048576);\n"
        "                }\n",
        element, element, sums, channels, sums, element);
}

muc_status muc_mcu_write_resize_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_sampling s[2];
    uint32_t first = 1;
    uint64_t channels, planes;

    muc_resize_as_tflite(l->graph, node, &first);
    channels = first == 1 ? muc_mcu_dim(l, x, 3) : 1;
    planes = muc_mcu_elements(l, x, 0, first);
    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t d = 0; d < 2; d++) {
        s[d] = (muc_sampling){
            .mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST),
            .coordinates = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL),
            .in = muc_mcu_dim(l, x, first + d),
            .out = muc_mcu_dim(l, y, first + d),
        };
        print_table_q(l, &s[d], d, channels * (d ? 1 : muc_mcu_dim(l, x, first + 1)));
    }
    muc_text_add(&l->text,
                 "\n"
                 "    for (uint32_t p = 0; p < %" PRIu64 "u; p++, a += %" PRIu64 "u)\n"
                 "        for (uint32_t i = 0; i < %zuu; i++)\n"
                 "            for (uint32_t j = 0; j < %zuu; j++, y += %" PRIu64 "u) {\n"
                 "                const int32_t *v = from0[i], *h = from1[j];\n",
                 planes, s[0].in * s[1].in * channels, s[0].out, s[1].out, channels);
    if (s[0].mode == MUC_WORD_LINEAR)
        print_mean_q(l, y->dtype, channels);
    else if (channels == 1)
        muc_text_add(&l->text, "\n                y[0] = a[v[0] + h[0]];\n");
    else
        muc_text_add(&l->text,
                     "\n                memcpy(y, &a[v[0] + h[0]], %" PRIu64 "u * sizeof(*y));\n",
                     channels);
    muc_text_add(&l->text, "            }\n");
    return muc_mcu_end_function(l, 0, 0);
}
