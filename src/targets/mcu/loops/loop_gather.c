/* loop_gather.c - operators whose indices are data: gathering and scattering of slices, the
 * greatest in order, sequences turned round. Indices that no tensor has, which the run refuses
 * (run_checks.h), are brought into it. */
#include <inttypes.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

static uint32_t attribute_of(const muc_node *node, muc_attribute_key key)
{
    return (uint32_t)muc_node_integer_or(node, key, 0);
}

static bool all_static(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!muc_mcu_is_static(l, muc_mcu_input(l, node, i)))
            return false;
    return true;
}

/* ---- slices at tuples of indices ---- */

/* "at = " the place of tuple t of input 1 in dimensions of x from `first` on */
static void print_tuple(muc_mcu_lowering *l, const muc_node *node, uint32_t first)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *index = muc_mcu_input(l, node, 1);
    uint32_t length = muc_mcu_dim(l, index, index->rank - 1);

    muc_text_add(&l->text, "        const uint32_t at = 0");
    for (uint32_t i = 0; i < length; i++)
        muc_text_add(&l->text,
                     " +\n            mur_place((int64_t)b[t * %" PRIu32 "u + %" PRIu32
                     "u], %" PRIu32 ") * %" PRIu64 "u",
                     length, i, muc_mcu_dim(l, x, first + i),
                     muc_mcu_elements(l, x, first + i + 1, x->rank));
    muc_text_add(&l->text, ";\n\n");
}

bool muc_mcu_takes_gather_nd(const muc_mcu_lowering *l, const muc_node *node)
{
    return all_static(l, node);
}

muc_status muc_mcu_write_gather_nd(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *index = muc_mcu_input(l, node, 1);
    uint32_t first = attribute_of(node, MUC_KEY_BATCH_DIMS);
    uint32_t after = first + muc_mcu_dim(l, index, index->rank - 1);
    uint64_t each = muc_mcu_elements(l, index, first, index->rank - 1);
    uint64_t tuples = muc_mcu_elements(l, index, 0, index->rank - 1);
    uint64_t run = muc_mcu_elements(l, x, after, x->rank);

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text, "    for (uint32_t t = 0; t < %" PRIu64 "u; t++) {\n", tuples);
    print_tuple(l, node, first);
    muc_text_add(&l->text,
                 "        for (uint32_t i = 0; i < %" PRIu64 "u; i++)\n"
                 "            y[t * %" PRIu64 "u + i] = a[t / %" PRIu64 "u * %" PRIu64
                 "u + at + i];\n    }\n",
                 run, run, each, muc_mcu_elements(l, x, first, x->rank));
    return muc_mcu_end_function(l, 0, 0);
}

/* "y[PLACE] = " the element there with the update "c[FROM]" */
static void print_update(muc_mcu_lowering *l, const muc_node *node, const char *place,
                         const char *from)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const char *type = muc_mcu_c_type(x->dtype);
    bool is_real = x->dtype == MUC_F32;

    muc_text_add(&l->text, "y[%s] = ", place);
    switch ((unsigned)muc_node_word_or(node, MUC_KEY_REDUCTION, MUC_WORD_NONE)) {
    case MUC_WORD_ADD:
        muc_text_add(&l->text, "(%s)(y[%s] + c[%s]);\n", type, place, from);
        break;
    case MUC_WORD_MUL:
        muc_text_add(&l->text, "(%s)(y[%s] * c[%s]);\n", type, place, from);
        break;
    case MUC_WORD_MIN:
    case MUC_WORD_MAX: {
        bool is_max = muc_node_word_or(node, MUC_KEY_REDUCTION, MUC_WORD_NONE) == MUC_WORD_MAX;

        if (is_real)
            muc_text_add(&l->text, "mur_%s(c[%s], y[%s]);\n", is_max ? "max" : "min", from, place);
        else
            muc_text_add(&l->text, "c[%s] %s y[%s] ? c[%s] : y[%s];\n", from, is_max ? ">" : "<",
                         place, from, place);
        break;
    }
    default:
        muc_text_add(&l->text, "c[%s];\n", from);
    }
}

static void print_copy(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text_add(&l->text,
                 "    for (uint32_t i = 0; i < %" PRIu64 "u; i++)\n"
                 "        y[i] = a[i];\n",
                 muc_mcu_most_elements(l, muc_mcu_input(l, node, 0)));
}

/* what combines numbers is written for those that C computes with */
static bool can_combine(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return muc_node_word_or(node, MUC_KEY_REDUCTION, MUC_WORD_NONE) == MUC_WORD_NONE ||
           x->dtype == MUC_F32 ||
           (muc_dtype_get(x->dtype)->kind == MUC_DTYPE_INTEGER && !x->quantization);
}

bool muc_mcu_takes_scatter_nd(const muc_mcu_lowering *l, const muc_node *node)
{
    return all_static(l, node) && can_combine(l, node);
}

muc_status muc_mcu_write_scatter_nd(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *index = muc_mcu_input(l, node, 1);
    uint64_t run = muc_mcu_elements(l, x, muc_mcu_dim(l, index, index->rank - 1), x->rank);
    muc_text from = { 0 };

    MUC_TRY(muc_mcu_begin_function(l, node));
    print_copy(l, node);
    muc_text_add(&l->text, "    for (uint32_t t = 0; t < %" PRIu64 "u; t++) {\n",
                 muc_mcu_elements(l, index, 0, index->rank - 1));
    print_tuple(l, node, 0);
    muc_text_add(&l->text, "        for (uint32_t i = 0; i < %" PRIu64 "u; i++)\n            ",
                 run);
    muc_text_add(&from, "t * %" PRIu64 "u + i", run);
    print_update(l, node, "at + i", from.data ? from.data : "");
    l->text.failed |= from.failed;
    muc_text_free(&from);
    muc_text_add(&l->text, "    }\n");
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

bool muc_mcu_takes_scatter_elements(const muc_mcu_lowering *l, const muc_node *node)
{
    return all_static(l, node) && can_combine(l, node);
}

/* element i of the updates: its own place but along axis */
muc_status muc_mcu_write_scatter_elements(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *index = muc_mcu_input(l, node, 1);
    uint32_t axis = attribute_of(node, MUC_KEY_AXIS);

    MUC_TRY(muc_mcu_begin_function(l, node));
    print_copy(l, node);
    muc_text_add(&l->text,
                 "    for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n"
                 "        const uint32_t at = mur_place((int64_t)b[i], %" PRIu32 ") * %" PRIu64 "u",
                 muc_mcu_most_elements(l, index), muc_mcu_dim(l, x, axis),
                 muc_mcu_elements(l, x, axis + 1, x->rank));
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != axis)
            muc_text_add(&l->text,
                         " +\n            i / %" PRIu64 "u %% %" PRIu32 "u * %" PRIu64 "u",
                         muc_mcu_elements(l, index, d + 1, index->rank), muc_mcu_dim(l, index, d),
                         muc_mcu_elements(l, x, d + 1, x->rank));
    muc_text_add(&l->text, ";\n\n        ");
    print_update(l, node, "at", "i");
    muc_text_add(&l->text, "    }\n");
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

/* ---- sequences ---- */

bool muc_mcu_takes_reverse_sequence(const muc_mcu_lowering *l, const muc_node *node)
{
    return all_static(l, node);
}

muc_status muc_mcu_write_reverse_sequence(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint32_t batch = attribute_of(node, MUC_KEY_BATCH_AXIS);
    uint32_t time = attribute_of(node, MUC_KEY_TIME_AXIS), steps = muc_mcu_dim(l, x, time);
    uint64_t inner = muc_mcu_elements(l, x, time + 1, x->rank);

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(
        &l->text,
        "    for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n"
        "        const uint32_t step = i / %" PRIu64 "u %% %" PRIu32 "u;\n"
        "        const uint32_t length = (uint32_t)b[i / %" PRIu64 "u %% %" PRIu32 "u];\n\n"
        "        y[i] = a[step < length ? i + (length - 1 - 2 * step) * %" PRIu64 "u : i];\n"
        "    }\n",
        muc_mcu_most_elements(l, x), inner, steps, muc_mcu_elements(l, x, batch + 1, x->rank),
        muc_mcu_dim(l, x, batch), inner);
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- the greatest in order ---- */

bool muc_mcu_takes_top_k(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return all_static(l, node) && muc_mcu_is_static(l, muc_mcu_output(l, node, 0)) &&
           (x->dtype == MUC_F32 || muc_dtype_get(x->dtype)->kind == MUC_DTYPE_INTEGER);
}

/* each is the greatest of those that come after the one before it */
muc_status muc_mcu_write_top_k(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    uint32_t axis = attribute_of(node, MUC_KEY_AXIS), extent = muc_mcu_dim(l, x, axis);
    uint32_t count = muc_mcu_dim(l, y, axis);
    uint64_t inner = muc_mcu_elements(l, x, axis + 1, x->rank);
    const char *sign = muc_node_integer_or(node, MUC_KEY_LARGEST, 1) == 1 ? "" : "-";
    const char *order = x->dtype == MUC_F32 ? "mur_order(p, q)" : "((p > q) - (p < q))";
    const char *type = muc_mcu_c_type(x->dtype);
    muc_text *text = &l->text;

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(text,
                 "    for (uint32_t o = 0; o < %" PRIu64 "u; o++)\n"
                 "        for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n"
                 "            const %s *x = a + o * %" PRIu64 "u + i;\n"
                 "            uint32_t last = 0;\n\n"
                 "            for (uint32_t r = 0; r < %" PRIu32 "u; r++) {\n"
                 "                uint32_t best = %" PRIu32 "u;\n\n",
                 muc_mcu_elements(l, x, 0, axis), inner, type, extent * inner, count, extent);
    muc_text_add(text,
                 "                for (uint32_t k = 0; k < %" PRIu32 "u; k++) {\n"
                 "                    const %s p = x[k * %" PRIu64 "u];\n\n"
                 "                    if (r > 0) {\n"
                 "                        const %s q = x[last * %" PRIu64 "u];\n"
                 "                        const int above = %s%s;\n\n"
                 "                        if (above > 0 || (above == 0 && k <= last))\n"
                 "                            continue;\n"
                 "                    }\n",
                 extent, type, inner, type, inner, sign, order);
    muc_text_add(text,
                 "                    if (best < %" PRIu32 "u) {\n"
                 "                        const %s q = x[best * %" PRIu64 "u];\n\n"
                 "                        if (%s%s <= 0)\n"
                 "                            continue;\n"
                 "                    }\n"
                 "                    best = k;\n"
                 "                }\n",
                 extent, type, inner, sign, order);
    muc_text_add(text,
                 "                y[(o * %" PRIu32 "u + r) * %" PRIu64 "u + i] = x[best * %" PRIu64
                 "u];\n"
                 "                y1[(o * %" PRIu32 "u + r) * %" PRIu64 "u + i] = best;\n"
                 "                last = best;\n            }\n        }\n",
                 count, inner, inner, count, inner);
    return muc_mcu_end_function(l, 0, 0);
}
