/* llama2c.c - reads the three checkpoint versions of llama2.c.
 *
 *   0  seven int32 (dim, hidden_dim, layers, heads, kv_heads, vocabulary, context), no magic; a
 *      negative vocabulary means a head of its own. Then float32: embedding; of all layers in
 *      turn input norm, q, k, v, o, ffn norm, w1, w2, w3; final norm; two tables of RoPE; head.
 *   1  "ak42", version, the seven, a byte "shared head", zeros to 256 bytes. Then float32: input
 *      norms, ffn norms, final norm; embedding; q, k, v, o, w1, w2, w3 of all layers; head.
 *   2  as 1 with int32 group size after that byte. The norms are float32; each further tensor is
 *      int8 for every element, then a float32 scale for every group of them. They are expanded
 *      to float32 in the arena: value = scale * int8.
 *
 * Epsilon, theta, BOS and EOS are constants of llama2.c. q and k are for adjacent pairs.
 */
#include <string.h>

#include "base/half.h"
#include "formats/format.h"

enum { MAGIC = 0x616b3432, HEADER_BYTES = 256, OLD_HEADER_BYTES = 28, SIZES = 7 };

/* marks in an order of tensors */
enum { ROPE_TABLES = MUC_LLAMA_TENSOR_COUNT, END };

typedef struct reader {
    muc_reader in;
    muc_checkpoint *checkpoint;
    uint32_t version, group; /* group 0: float32 */
} reader;

static const uint8_t order_0[] = {
    MUC_LLAMA_EMBED,      MUC_LLAMA_INPUT_NORM,
    MUC_LLAMA_Q,          MUC_LLAMA_K,
    MUC_LLAMA_V,          MUC_LLAMA_O,
    MUC_LLAMA_FFN_NORM,   MUC_LLAMA_GATE,
    MUC_LLAMA_DOWN,       MUC_LLAMA_UP,
    MUC_LLAMA_FINAL_NORM, ROPE_TABLES,
    MUC_LLAMA_HEAD,       END,
};
static const uint8_t order_1[] = {
    MUC_LLAMA_INPUT_NORM,
    MUC_LLAMA_FFN_NORM,
    MUC_LLAMA_FINAL_NORM,
    MUC_LLAMA_EMBED,
    MUC_LLAMA_Q,
    MUC_LLAMA_K,
    MUC_LLAMA_V,
    MUC_LLAMA_O,
    MUC_LLAMA_GATE,
    MUC_LLAMA_DOWN,
    MUC_LLAMA_UP,
    MUC_LLAMA_HEAD,
    END,
};

/* The seven sizes at p, if a model could have them; the vocabulary's sign tells about the head. */
static bool read_sizes(const uint8_t *p, muc_model_config *config)
{
    uint32_t *const fields[SIZES] = { &config->dim,    &config->ffn_dim,  &config->layers,
                                      &config->heads,  &config->kv_heads, &config->vocabulary,
                                      &config->context };

    for (size_t i = 0; i < SIZES; i++) {
        uint32_t value = muc_load_u32(p + 4 * i);

        if (fields[i] == &config->vocabulary && value > INT32_MAX) {
            config->tied = false;
            value = 0 - value;
        }
        if (value == 0 || value > 1 << 24)
            return false;
        *fields[i] = value;
    }
    config->head_dim = config->dim / config->heads;
    return config->dim % config->heads == 0;
}

bool muc_llama2c_probe(const muc_source *source)
{
    muc_model_config config;

    if (source->bytes.size < OLD_HEADER_BYTES)
        return false;
    return muc_load_u32(source->bytes.data) == MAGIC || read_sizes(source->bytes.data, &config);
}

static muc_status read_header(reader *r)
{
    muc_model_config *config = &r->checkpoint->config;
    const uint8_t *header;
    uint8_t shared;

    config->tied = true;
    if (muc_load_u32(r->in.bytes.data) != MAGIC) {
        MUC_TRY(muc_read_span(&r->in, OLD_HEADER_BYTES, "the header", &header));
        read_sizes(header, config);
        return MUC_OK;
    }
    MUC_TRY(muc_read_span(&r->in, HEADER_BYTES, "the header", &header));
    r->version = muc_load_u32(header + 4);
    if (r->version != 1 && r->version != 2)
        return muc_fail(r->in.ctx, MUC_UNSUPPORTED, r->in.bytes.name, 4,
                        "llama2.c checkpoint of version %u, expected 1 or 2", r->version);
    if (!read_sizes(header + 8, config) || !config->tied)
        return muc_fail(r->in.ctx, MUC_MALFORMED, r->in.bytes.name, 8,
                        "the seven sizes are those of no model");
    shared = header[8 + 4 * SIZES];
    if (shared > 1)
        return muc_fail(r->in.ctx, MUC_MALFORMED, r->in.bytes.name, 8 + 4 * SIZES,
                        "the shared-head byte is %u, expected 0 or 1", shared);
    config->tied = shared;
    r->group = r->version == 2 ? muc_load_u32(header + 9 + 4 * SIZES) : 0;
    if (r->version == 2 && (r->group == 0 || r->group > 1 << 20))
        return muc_fail(r->in.ctx, MUC_MALFORMED, r->in.bytes.name, 9 + 4 * SIZES,
                        "groups of %u elements", r->group);
    return MUC_OK;
}

static muc_status expand_groups(reader *r, muc_tensor_view *view)
{
    const uint8_t *values, *scales;
    uint8_t *out;

    if (view->elements % r->group != 0)
        return muc_read_fail(&r->in, "tensor '%s' of %llu elements is not whole groups of %u",
                             view->name, (unsigned long long)view->elements, r->group);
    MUC_TRY(muc_read_span(&r->in, view->elements, view->name, &values));
    MUC_TRY(muc_read_span(&r->in, view->elements / r->group * 4, view->name, &scales));
    MUC_TRY(MUC_ARENA_NEW(r->in.ctx, &r->checkpoint->arena, (size_t)view->bytes, &out));
    for (uint64_t i = 0; i < view->elements; i++) {
        float scale = muc_f32_of_bits(muc_load_u32(scales + i / r->group * 4));

        muc_store_u32(out + 4 * i, muc_f32_bits(scale * (float)(int8_t)values[i]));
    }
    view->data = out;
    return MUC_OK;
}

static muc_status read_tensor(reader *r, unsigned id, const muc_llama_tensor *tensor,
                              uint32_t layer)
{
    muc_tensor_view view = { .dtype = MUC_F32,
                             .rank = tensor->dims[1] ? 2 : 1,
                             .dims = { tensor->dims[0], tensor->dims[1] },
                             .file = r->in.bytes.name,
                             .offset = r->in.at };

    MUC_TRY(muc_llama_tensor_name(r->in.ctx, &r->checkpoint->arena, id, layer, &view.name));
    MUC_TRY(muc_tensor_measure(r->in.ctx, &view));
    if (r->group != 0 && view.rank == 2)
        MUC_TRY(expand_groups(r, &view));
    else
        MUC_TRY(muc_read_span(&r->in, view.bytes, view.name, &view.data));
    return muc_checkpoint_add(r->in.ctx, r->checkpoint, &view);
}

/* Two tables [context][head_dim / 2] that follow from theta. */
static muc_status skip_rope_tables(reader *r)
{
    const muc_model_config *config = &r->checkpoint->config;
    const uint8_t *tables;

    return muc_read_span(&r->in, (uint64_t)config->context * (config->head_dim / 2) * 2 * 4,
                         "the tables of RoPE", &tables);
}

static muc_status read_tensors(reader *r)
{
    const uint8_t *order = r->version == 0 ? order_0 : order_1;
    const muc_model_config *config = &r->checkpoint->config;

    for (; *order != END; order++) {
        muc_llama_tensor tensor;

        if (*order == ROPE_TABLES) {
            MUC_TRY(skip_rope_tables(r));
            continue;
        }
        tensor = muc_llama_tensor_of(config, *order);
        for (uint32_t layer = 0; tensor.present && layer < (tensor.per_layer ? config->layers : 1);
             layer++)
            MUC_TRY(read_tensor(r, *order, &tensor, layer));
    }
    if (muc_reader_left(&r->in) != 0)
        return muc_read_fail(&r->in, "the last tensor ends here, the file %zu bytes later",
                             muc_reader_left(&r->in));
    return MUC_OK;
}

muc_status muc_llama2c_read(muc_context *ctx, const muc_source *source, muc_checkpoint *checkpoint)
{
    reader r = { .in = muc_reader_of(ctx, source->bytes), .checkpoint = checkpoint };
    muc_model_config *config = &checkpoint->config;

    MUC_TRY(read_header(&r));
    config->architecture = "llama2.c";
    config->family = MUC_FAMILY_LLAMA;
    config->norm_epsilon = 1e-5;
    config->rope_theta = 10000;
    config->rope_interleaved = true;
    config->has_bos = true;
    config->bos = 1;
    config->eos_count = 1;
    config->eos[0] = 2;
    MUC_TRY(muc_checkpoint_check_config(ctx, checkpoint));
    return read_tensors(&r);
}
