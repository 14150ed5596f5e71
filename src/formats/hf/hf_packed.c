/* hf_packed.c - unpacks the codes, zeros and scales of other projects' quantized matrices. */
#include "formats/hf/hf_packed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/threads.h"

enum {
    TILE = 32,
    PART_ROWS = 64,
    WORD_BITS = 32,
    Q4_0_BYTES = 18,
    Q8_0_BYTES = 34,
    MOST_LEVEL = 127
};

/* AWQ: where in its word the code of column i of eight lies */
static const uint8_t awq_places[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };

typedef struct matrix {
    muc_context *ctx;
    muc_checkpoint *checkpoint;
    const struct muc_hf_packed *how;
    muc_tensor_view *codes; /* becomes what it stands for */
    size_t base;            /* of its name, without the last part */
    bool is_packed;         /* of compressed-tensors: in words, not in bytes */
    const muc_tensor_view *zeros, *scales, *order, *shape; /* or NULL */
    uint32_t bits, per;                                    /* codes of a word */
    uint64_t rows, columns, groups;
    uint64_t row_step, group_step; /* of what follows: at row * row_step + group * group_step */
    float *scale;
    int16_t *zero;
    uint32_t *group_of; /* [columns] */
    int least, most;    /* level: a code less its zero */
    int16_t *ranges;    /* [parts][2] of them */
    bool is_steady;     /* each tile lies in one group */
    muc_dtype out_type;
    uint8_t *out;
} matrix;

#define MALFORMED(m, ...) \
    muc_fail((m)->ctx, MUC_MALFORMED, (m)->codes->file, (m)->codes->offset, __VA_ARGS__)

/* ---- what belongs together ---- */

/* the tensor BASE.suffix; NULL if there is none */
static muc_status beside(const matrix *m, const char *suffix, const muc_tensor_view **out)
{
    const char *name;

    MUC_TRY(muc_arena_format(m->ctx, &m->checkpoint->arena, &name, "%.*s%s", (int)m->base,
                             m->codes->name, suffix));
    *out = muc_checkpoint_find(m->checkpoint, name);
    return MUC_OK;
}

static bool ends_in(const char *name, const char *suffix, size_t *base)
{
    size_t length = strlen(name), tail = strlen(suffix);

    if (length <= tail || strcmp(name + length - tail, suffix) != 0)
        return false;
    *base = length - tail;
    return true;
}

/* Fills in the tensors of a matrix whose codes these are; *found is false if they are none. */
static muc_status gather(matrix *m, bool *found)
{
    const char *name = m->codes->name;

    *found = true;
    if (m->how->packing == MUC_HF_GPTQ || m->how->packing == MUC_HF_AWQ) {
        if (!ends_in(name, ".qweight", &m->base))
            return *found = false, MUC_OK;
        MUC_TRY(beside(m, ".qzeros", &m->zeros));
        MUC_TRY(beside(m, ".scales", &m->scales));
        return beside(m, ".g_idx", &m->order);
    }
    m->is_packed =
        m->how->packing == MUC_HF_COMPRESSED && ends_in(name, ".weight_packed", &m->base);
    if (!m->is_packed && !(ends_in(name, ".weight", &m->base) && m->codes->rank == 2))
        return *found = false, MUC_OK;
    MUC_TRY(beside(m, ".weight_scale", &m->scales));
    if (!m->is_packed && !m->scales)
        return *found = false, MUC_OK;
    if (m->how->packing == MUC_HF_BITNET)
        return MUC_OK;
    MUC_TRY(beside(m, ".weight_zero_point", &m->zeros));
    MUC_TRY(beside(m, ".weight_g_idx", &m->order));
    return m->is_packed ? beside(m, ".weight_shape", &m->shape) : MUC_OK;
}

/* a tensor of this type and shape; dimension 1 may be 0: a vector */
static muc_status expect(const matrix *m, const muc_tensor_view *view, const char *what,
                         muc_dtype dtype, uint64_t rows, uint64_t columns)
{
    uint32_t rank = columns ? 2 : 1;

    if (!view)
        return MALFORMED(m, "'%s' has no %s beside it", m->codes->name, what);
    if (view->dtype != dtype || view->rank != rank || view->dims[0] != rows ||
        (columns && view->dims[1] != columns))
        return MALFORMED(
            m, "'%s' has type %s and dimensions %llu, %llu; expected %s and %llu, %llu", view->name,
            muc_dtype_get(view->dtype)->name,
            (unsigned long long)(view->rank > 0 ? view->dims[0] : 0),
            (unsigned long long)(view->rank > 1 ? view->dims[1] : 0), muc_dtype_get(dtype)->name,
            (unsigned long long)rows, (unsigned long long)columns);
    return MUC_OK;
}

static uint64_t words_of(uint64_t codes, uint32_t per)
{
    return (codes + per - 1) / per;
}

/* the least number of bits that the configuration names and the shape has */
static muc_status find_bits(matrix *m)
{
    for (uint32_t bits = 2; bits <= 8; bits *= 2)
        if ((m->how->bits & 1u << bits) &&
            words_of(m->columns, WORD_BITS / bits) == m->codes->dims[1]) {
            m->bits = bits;
            m->per = WORD_BITS / bits;
            return MUC_OK;
        }
    return MALFORMED(m, "'%s' has %llu words a row of %llu columns", m->codes->name,
                     (unsigned long long)m->codes->dims[1], (unsigned long long)m->columns);
}

static muc_status measure_words(matrix *m)
{
    bool by_columns = m->how->packing == MUC_HF_GPTQ;

    for (m->bits = 2; !(m->how->bits & 1u << m->bits);)
        m->bits *= 2;
    m->per = WORD_BITS / m->bits;
    MUC_TRY(expect(m, m->codes, "codes", MUC_I32, m->codes->dims[0],
                   m->codes->rank == 2 ? m->codes->dims[1] : 1));
    m->rows = m->codes->dims[1] * (by_columns ? 1 : m->per);
    m->columns = m->codes->dims[0] * (by_columns ? m->per : 1);
    m->groups = m->scales && m->scales->rank == 2 ? m->scales->dims[0] : 0;
    m->row_step = 1;
    m->group_step = m->rows;
    MUC_TRY(
        expect(m, m->scales, "scales", m->scales ? m->scales->dtype : MUC_F16, m->groups, m->rows));
    return expect(m, m->zeros, "zeros", MUC_I32, m->groups, words_of(m->rows, m->per));
}

/* Scales of compressed-tensors: [1], [rows], [rows, 1] or [rows, groups]. */
static muc_status measure_scales(matrix *m)
{
    const muc_tensor_view *s = m->scales;

    if (!s)
        return MALFORMED(m, "'%s' has no scales beside it", m->codes->name);
    m->groups = s->rank == 2 ? s->dims[1] : 1;
    m->row_step = s->elements == 1 ? 0 : m->groups;
    m->group_step = 1;
    if (s->elements == 1 && m->groups == 1)
        return MUC_OK;
    return expect(m, s, "scales", s->dtype, m->rows, s->rank == 2 ? m->groups : 0);
}

static muc_status measure_packed(matrix *m)
{
    MUC_TRY(expect(m, m->shape, "weight_shape", m->shape ? m->shape->dtype : MUC_I64, 2, 0));
    if (m->shape->dtype != MUC_I64 && m->shape->dtype != MUC_I32)
        return MALFORMED(m, "'%s' has no whole numbers", m->shape->name);
    m->rows =
        m->shape->dtype == MUC_I64 ? muc_load_u64(m->shape->data) : muc_load_u32(m->shape->data);
    m->columns = m->shape->dtype == MUC_I64 ? muc_load_u64(m->shape->data + 8)
                                            : muc_load_u32(m->shape->data + 4);
    if (m->codes->rank != 2 || m->columns > UINT32_MAX)
        return MALFORMED(m, "'%s' is not a matrix", m->codes->name);
    MUC_TRY(find_bits(m));
    MUC_TRY(expect(m, m->codes, "codes", MUC_I32, m->rows, words_of(m->columns, m->per)));
    MUC_TRY(measure_scales(m));
    return m->zeros ? expect(m, m->zeros, "zeros", MUC_I32, words_of(m->rows, m->per), m->groups)
                    : MUC_OK;
}

static muc_status measure_bytes(matrix *m)
{
    bool is_bitnet = m->how->packing == MUC_HF_BITNET;

    m->bits = is_bitnet ? 2 : 8;
    m->per = is_bitnet ? 4 : 1;
    m->rows = m->codes->dims[0] * m->per;
    m->columns = m->codes->dims[1];
    MUC_TRY(
        expect(m, m->codes, "codes", is_bitnet ? MUC_U8 : MUC_I8, m->codes->dims[0], m->columns));
    MUC_TRY(measure_scales(m));
    return m->zeros ? expect(m, m->zeros, "zeros", MUC_I8, m->scales->dims[0],
                             m->scales->rank == 2 ? m->groups : 0)
                    : MUC_OK;
}

static muc_status measure(matrix *m)
{
    if (m->how->packing == MUC_HF_GPTQ || m->how->packing == MUC_HF_AWQ)
        MUC_TRY(measure_words(m));
    else
        MUC_TRY(m->is_packed ? measure_packed(m) : measure_bytes(m));
    if (m->rows == 0 || m->columns == 0 || m->groups == 0 || m->groups > m->columns ||
        m->rows > UINT32_MAX || m->columns > UINT32_MAX)
        return MALFORMED(m, "'%s' has %llu rows and %llu columns in %llu groups", m->codes->name,
                         (unsigned long long)m->rows, (unsigned long long)m->columns,
                         (unsigned long long)m->groups);
    return MUC_OK;
}

/* ---- zeros, scales, groups ---- */

static uint32_t word_at(const muc_tensor_view *view, uint64_t i)
{
    return muc_load_u32(view->data + 4 * i);
}

static uint32_t code_in(uint32_t word, uint32_t place, uint32_t bits)
{
    return word >> place * bits & ((1u << bits) - 1);
}

static int zero_at(const matrix *m, uint64_t row, uint64_t group)
{
    uint64_t word = row / m->per;
    uint32_t place = (uint32_t)(row % m->per), code;

    switch (m->how->packing) {
    case MUC_HF_GPTQ:
        code = code_in(word_at(m->zeros, group * m->zeros->dims[1] + word), place, m->bits);
        return (int)(m->how->zeros_less_one ? (code + 1) & ((1u << m->bits) - 1) : code);
    case MUC_HF_AWQ:
        return (int)code_in(word_at(m->zeros, group * m->zeros->dims[1] + word), awq_places[place],
                            m->bits);
    case MUC_HF_BITNET:
        return 1;
    case MUC_HF_COMPRESSED:
    default:
        break;
    }
    if (!m->is_packed)
        return m->zeros ? (int8_t)m->zeros->data[row * m->row_step + group] : 0;
    return m->zeros ? (int)code_in(word_at(m->zeros, word * m->groups + group), place, m->bits)
                    : 1 << (m->bits - 1);
}

static muc_status read_scales(matrix *m)
{
    uint64_t count = m->scales->elements;
    uint64_t rows = m->row_step ? m->rows : 1;

    MUC_TRY(MUC_ARENA_NEW(m->ctx, &m->checkpoint->arena, (size_t)count, &m->scale));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, &m->checkpoint->arena, (size_t)count, &m->zero));
    MUC_TRY(muc_tensor_to_f32(m->ctx, m->scales, 0, count, m->scale));
    for (uint64_t i = 0; m->how->inverse_scales && i < count; i++) {
        m->scale[i] = 1 / m->scale[i];
        if (!isfinite(m->scale[i]))
            return MALFORMED(m, "'%s': element %llu has no inverse", m->scales->name,
                             (unsigned long long)i);
    }
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t group = 0; group < m->groups; group++)
            m->zero[row * m->row_step + group * m->group_step] = (int16_t)zero_at(m, row, group);
    return MUC_OK;
}

static muc_status read_groups(matrix *m)
{
    uint64_t size = m->how->group ? m->how->group : (m->columns + m->groups - 1) / m->groups;

    if (m->order)
        MUC_TRY(expect(m, m->order, "g_idx", MUC_I32, m->columns, 0));
    else if (words_of(m->columns, (uint32_t)size) != m->groups)
        return MALFORMED(m, "'%s' has %llu columns in %llu groups, expected groups of %llu",
                         m->codes->name, (unsigned long long)m->columns,
                         (unsigned long long)m->groups, (unsigned long long)size);
    MUC_TRY(MUC_ARENA_NEW(m->ctx, &m->checkpoint->arena, (size_t)m->columns, &m->group_of));
    m->is_steady = true;
    for (uint64_t c = 0; c < m->columns; c++) {
        m->group_of[c] = m->order ? word_at(m->order, c) : (uint32_t)(c / size);
        if (m->group_of[c] >= m->groups)
            return MALFORMED(m, "'%s': column %llu is of group %d, expected 0 to %llu",
                             m->order->name, (unsigned long long)c, (int)m->group_of[c],
                             (unsigned long long)m->groups - 1);
        m->is_steady = m->is_steady && (c % TILE == 0 || m->group_of[c] == m->group_of[c - 1]);
    }
    return MUC_OK;
}

/* ---- levels ---- */

/* those of a word that are next to each other in a row, from the low bits on */
static void split_word(uint32_t word, uint32_t bits, uint64_t count, int16_t *out)
{
    for (uint64_t i = 0; i < count; i++, word >>= bits)
        out[i] = (int16_t)(word & ((1u << bits) - 1));
}

/* the codes of some columns of a row, the first of them the first of a word */
static void read_codes(const matrix *m, uint64_t row, uint64_t first, uint64_t count, int16_t *out)
{
    const uint8_t *data = m->codes->data;
    uint64_t step = m->codes->dims[1], quarter = m->codes->dims[0]; /* of BitNet's rows */
    uint32_t place = awq_places[row % 8];
    bool is_gptq = m->how->packing == MUC_HF_GPTQ;

    if (is_gptq || m->is_packed)
        for (uint64_t i = 0, word = first / m->per; i < count; i += m->per, word++)
            split_word(word_at(m->codes, is_gptq ? word * step + row : row * step + word), m->bits,
                       count - i < m->per ? count - i : m->per, out + i);
    else if (m->how->packing == MUC_HF_AWQ)
        for (uint64_t i = 0; i < count; i++)
            out[i] =
                (int16_t)code_in(word_at(m->codes, (first + i) * step + row / 8), place, m->bits);
    else if (m->how->packing == MUC_HF_BITNET)
        for (uint64_t i = 0; i < count; i++)
            out[i] = (int16_t)(data[row % quarter * step + first + i] >> row / quarter * 2 & 3);
    else
        for (uint64_t i = 0; i < count; i++)
            out[i] = (int8_t)data[row * step + first + i];
}

/* Levels of a tile; what is behind the last column is not touched. */
static uint64_t read_tile(const matrix *m, uint64_t row, uint64_t first, int16_t *levels)
{
    uint64_t count = m->columns - first < TILE ? m->columns - first : TILE;
    const int16_t *zero = m->zero + row * m->row_step;

    read_codes(m, row, first, count, levels);
    for (uint64_t i = 0; i < count; i++)
        levels[i] = (int16_t)(levels[i] - zero[m->group_of[first + i] * m->group_step]);
    return count;
}

/* calls one for each tile, many rows of the first columns before the next columns, on all threads
 */
typedef void tile_body(matrix *m, uint64_t part, uint64_t row, uint64_t first,
                       const int16_t *levels, uint64_t count);

typedef struct walk {
    matrix *m;
    tile_body *body;
} walk;

static muc_status walk_part(void *arg, size_t part)
{
    const walk *w = arg;
    uint64_t begin = (uint64_t)part * PART_ROWS, left = w->m->rows - begin;
    uint64_t end = begin + (left < PART_ROWS ? left : PART_ROWS);
    int16_t levels[TILE];

    for (uint64_t first = 0; first < w->m->columns; first += TILE)
        for (uint64_t row = begin; row < end; row++) {
            uint64_t count = read_tile(w->m, row, first, levels);

            w->body(w->m, part, row, first, levels, count);
        }
    return MUC_OK;
}

static muc_status walk_tiles(matrix *m, tile_body *body)
{
    walk w = { m, body };

    return muc_parallel_for(m->ctx, (size_t)words_of(m->rows, PART_ROWS), walk_part, &w);
}

static void widen_range(matrix *m, uint64_t part, uint64_t row, uint64_t first,
                        const int16_t *levels, uint64_t count)
{
    int16_t *range = m->ranges + 2 * part;

    (void)row;
    (void)first;
    for (uint64_t i = 0; i < count; i++) {
        range[0] = levels[i] < range[0] ? levels[i] : range[0];
        range[1] = levels[i] > range[1] ? levels[i] : range[1];
    }
}

/* What levels can be. Of 8 bits, where that is too much for a form by one, and of BitNet, where one
 * code stands for nothing, what they are. */
static muc_status find_range(matrix *m)
{
    uint64_t parts = words_of(m->rows, PART_ROWS), zeros = m->scales->elements;

    if (m->bits < 8 && m->how->packing != MUC_HF_BITNET) {
        m->least = -m->zero[0];
        m->most = -m->zero[0];
        for (uint64_t i = 0; i < zeros; i++) {
            m->least = -m->zero[i] < m->least ? -m->zero[i] : m->least;
            m->most = -m->zero[i] > m->most ? -m->zero[i] : m->most;
        }
        m->most += (1 << m->bits) - 1;
        return MUC_OK;
    }
    MUC_TRY(MUC_ARENA_NEW(m->ctx, &m->checkpoint->arena, (size_t)(2 * parts), &m->ranges));
    MUC_TRY(walk_tiles(m, widen_range));
    for (uint64_t i = 0; i < parts; i++) {
        m->least = m->ranges[2 * i] < m->least ? m->ranges[2 * i] : m->least;
        m->most = m->ranges[2 * i + 1] > m->most ? m->ranges[2 * i + 1] : m->most;
    }
    return MUC_OK;
}

/* ---- what becomes of them ---- */

static bool scales_are(const matrix *m, bool halves)
{
    for (uint64_t i = 0; i < m->scales->elements; i++)
        if (halves ? muc_f32_bits(muc_f32_of_f16(muc_f16_of_f32(m->scale[i]))) !=
                         muc_f32_bits(m->scale[i])
                   : !(m->scale[i] >= 0))
            return false;
    return true;
}

static muc_dtype type_of(const matrix *m)
{
    if (m->groups == 1 && m->least >= -MOST_LEVEL && m->most <= MOST_LEVEL && scales_are(m, false))
        return MUC_I8;
    if (m->columns % TILE != 0 || !m->is_steady || m->least < -128 || m->most > 127 ||
        !scales_are(m, true))
        return MUC_F32;
    return m->least >= -8 && m->most <= 7 ? MUC_Q4_0 : MUC_Q8_0;
}

static void store_block(muc_dtype dtype, float scale, const int16_t *levels, uint8_t *out)
{
    muc_store_u16(out, muc_f16_of_f32(scale));
    for (unsigned i = 0; dtype == MUC_Q4_0 && i < TILE / 2; i++)
        out[2 + i] = (uint8_t)((levels[i] + 8) | (levels[i + TILE / 2] + 8) << 4);
    for (unsigned i = 0; dtype == MUC_Q8_0 && i < TILE; i++)
        out[2 + i] = (uint8_t)levels[i];
}

static void store_tile(matrix *m, uint64_t part, uint64_t row, uint64_t first,
                       const int16_t *levels, uint64_t count)
{
    const float *scale = m->scale + row * m->row_step;
    uint64_t at = row * m->columns + first;
    muc_dtype dtype = m->out_type;
    uint8_t *out = m->out;

    (void)part;
    if (dtype == MUC_Q4_0 || dtype == MUC_Q8_0) {
        store_block(dtype, scale[m->group_of[first] * m->group_step], levels,
                    out + at / TILE * (dtype == MUC_Q4_0 ? Q4_0_BYTES : Q8_0_BYTES));
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        float factor = scale[m->group_of[first + i] * m->group_step];

        if (dtype == MUC_I8)
            out[at + i] = (uint8_t)(factor > 0 ? levels[i] : 0);
        else
            ((float *)(void *)out)[at + i] = (float)levels[i] * factor;
    }
}

/* a scale of 0 is of a row of zeros; none of ours is 0 */
static muc_status row_scales(const matrix *m, const float **out)
{
    float *scales;

    MUC_TRY(MUC_ARENA_NEW(m->ctx, &m->checkpoint->arena, (size_t)m->rows, &scales));
    for (uint64_t row = 0; row < m->rows; row++) {
        scales[row] = m->scale[row * m->row_step];
        scales[row] = scales[row] > 0 ? scales[row] : 1;
    }
    *out = scales;
    return MUC_OK;
}

static muc_status unpack(matrix *m)
{
    muc_tensor_view view = *m->codes;

    MUC_TRY(measure(m));
    MUC_TRY(read_groups(m));
    MUC_TRY(read_scales(m));
    MUC_TRY(find_range(m));
    if (m->how->packing == MUC_HF_BITNET && m->most > 1)
        return MALFORMED(m, "'%s' holds code 3, expected 0 to 2", m->codes->name);
    view.dtype = m->out_type = type_of(m);
    view.rank = 2;
    view.dims[0] = m->rows;
    view.dims[1] = m->columns;
    MUC_TRY(muc_tensor_measure(m->ctx, &view));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, &m->checkpoint->arena, (size_t)view.bytes, &m->out));
    MUC_TRY(walk_tiles(m, store_tile));
    if (view.dtype == MUC_I8)
        MUC_TRY(row_scales(m, &view.scales));
    view.stored_bytes = m->codes->bytes + m->scales->bytes + (m->zeros ? m->zeros->bytes : 0) +
                        (m->order ? m->order->bytes : 0);
    view.data = m->out;
    MUC_TRY(muc_arena_format(m->ctx, &m->checkpoint->arena, &view.name, "%.*s.weight", (int)m->base,
                             m->codes->name));
    *m->codes = view;
    return MUC_OK;
}

/* ---- all of a checkpoint ---- */

/* the tensor of llama_tensors.def of this name, "model.layers.7.mlp.up_proj.bias", or the count */
static unsigned row_of_name(const muc_model_config *config, const char *name)
{
    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++) {
        const char *pattern = muc_llama_tensor_of(config, id).hf, *number = strstr(pattern, "%u");
        size_t at = number ? (size_t)(number - pattern) : 0;

        if (number && strncmp(name, pattern, at) == 0 &&
            strcmp(name + at + strspn(name + at, "0123456789"), number + 2) == 0)
            return id;
    }
    return MUC_LLAMA_TENSOR_COUNT;
}

/* AutoGPTQ writes a bias of zeros where a model has none. */
static bool is_idle_bias(const muc_model_config *config, const muc_tensor_view *view)
{
    const unsigned id = row_of_name(config, view->name);
    size_t base;

    if (id == MUC_LLAMA_TENSOR_COUNT || muc_llama_tensor_of(config, id).present ||
        !ends_in(view->name, ".bias", &base))
        return false;
    for (uint64_t i = 0; i < view->bytes; i++)
        if (view->data[i])
            return false;
    return true;
}

/* BitNet's matrices as they were trained: -1, 0 or 1, to which an element is rounded after its
 * division by the mean magnitude of all */
static muc_status round_matrix(muc_context *ctx, muc_checkpoint *checkpoint, muc_tensor_view *view)
{
    double sum = 0, mean;
    float *row, *scales;
    int8_t *levels;

    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, (size_t)view->elements, &levels));
    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, (size_t)view->dims[0], &scales));
    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, (size_t)view->dims[1], &row));
    for (uint64_t r = 0; r < view->dims[0]; r++) {
        MUC_TRY(muc_tensor_to_f32(ctx, view, r * view->dims[1], view->dims[1], row));
        for (uint64_t c = 0; c < view->dims[1]; c++)
            sum += fabs((double)row[c]);
    }
    mean = sum / (double)view->elements;
    mean = mean > 1e-5 ? mean : 1e-5;
    for (uint64_t r = 0; r < view->dims[0]; r++) {
        MUC_TRY(muc_tensor_to_f32(ctx, view, r * view->dims[1], view->dims[1], row));
        for (uint64_t c = 0; c < view->dims[1]; c++) {
            double level = nearbyint((double)row[c] / mean);

            levels[r * view->dims[1] + c] = (int8_t)(level > 1 ? 1 : level < -1 ? -1 : level);
        }
        scales[r] = (float)mean;
    }
    view->stored_bytes = view->bytes;
    view->dtype = MUC_I8;
    view->data = (const uint8_t *)levels;
    view->scales = scales;
    return muc_tensor_measure(ctx, view);
}

static muc_status round_matrices(muc_context *ctx, muc_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        muc_tensor_view *view = &checkpoint->tensors[i];

        if (view->rank == 2 && view->elements > 0 &&
            row_of_name(&checkpoint->config, view->name) < MUC_LLAMA_TENSOR_COUNT)
            MUC_TRY(round_matrix(ctx, checkpoint, view));
    }
    return MUC_OK;
}

/* one of them, if these are its codes; marks what lies beside it */
static muc_status unpack_one(muc_context *ctx, muc_checkpoint *checkpoint, size_t i, bool *used)
{
    matrix m = { .ctx = ctx,
                 .checkpoint = checkpoint,
                 .how = checkpoint->packed,
                 .codes = &checkpoint->tensors[i] };
    const muc_tensor_view *parts[4];
    bool found;

    MUC_TRY(gather(&m, &found));
    if (!found)
        return MUC_OK;
    memcpy(parts, (const muc_tensor_view *[]){ m.zeros, m.scales, m.order, m.shape },
           sizeof(parts));
    for (size_t p = 0; p < MUC_COUNT(parts); p++)
        if (parts[p])
            used[parts[p] - checkpoint->tensors] = true;
    return unpack(&m);
}

muc_status muc_hf_unpack_others(muc_context *ctx, muc_checkpoint *checkpoint)
{
    size_t count = checkpoint->tensor_count, kept = 0;
    bool *used;

    if (checkpoint->config.family == MUC_FAMILY_GPT2)
        return muc_fail(
            ctx, MUC_UNSUPPORTED, checkpoint->path, MUC_NO_OFFSET,
            "a %s, whose matrices are stored as [in, out], in another project's packing",
            checkpoint->config.architecture);
    if (checkpoint->packed->rounded_by_users)
        return round_matrices(ctx, checkpoint);
    MUC_TRY(muc_checkpoint_sort(ctx, checkpoint));
    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, count, &used));
    for (size_t i = 0; i < count; i++)
        MUC_TRY(unpack_one(ctx, checkpoint, i, used));
    for (size_t i = 0; i < count; i++)
        if (!used[i] && !is_idle_bias(&checkpoint->config, &checkpoint->tensors[i]))
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
    checkpoint->tensor_count = kept;
    return MUC_OK;
}
