/* train_state.c - "MUCTRAIN", a header of words, then weights, means and squares; little-endian.
 *
 *   0  magic   8  version   12  bytes of a number   16  elements   24  step   32  random state
 *   40 epoch   48 next piece   56  recipe CRC   60  CRC of what follows   64  arrays, extra bytes
 */
#include "train/train_state.h"

#include "base/file.h"

enum { VERSION = 1, HEADER_BYTES = 64 };

static const char magic[8] = "MUCTRAIN";

enum { PARTS = 4 };

typedef struct parts {
    void *at[PARTS];
    size_t bytes[PARTS], all_bytes;
} parts;

static parts parts_of(const muc_train_state *state)
{
    size_t each = state->elements * sizeof(muc_scalar);

    return (parts){ { state->weights, state->adam->means, state->adam->squares, state->extra },
                    { each, each, each, state->extra_bytes },
                    3 * each + state->extra_bytes };
}

muc_status muc_train_state_save(muc_context *ctx, const muc_train_state *state, const char *path)
{
    parts p = parts_of(state);
    uint8_t header[HEADER_BYTES];
    uint32_t crc = 0;
    muc_output *output;

    for (size_t i = 0; i < PARTS; i++)
        crc = muc_crc32(crc, p.at[i], p.bytes[i]);
    memcpy(header, magic, sizeof(magic));
    muc_store_u32(header + 8, VERSION);
    muc_store_u32(header + 12, sizeof(muc_scalar));
    muc_store_u64(header + 16, state->elements);
    muc_store_u64(header + 24, state->adam->step);
    muc_store_u64(header + 32, state->place->random.state);
    muc_store_u64(header + 40, state->place->epoch);
    muc_store_u64(header + 48, state->place->next);
    muc_store_u32(header + 56, state->recipe_crc32);
    muc_store_u32(header + 60, crc);
    MUC_TRY(muc_output_begin(ctx, path, &output));
    for (size_t i = 0; i < 1 + PARTS; i++) {
        const void *data = i ? p.at[i - 1] : header;
        muc_status status = muc_output_write(output, data, i ? p.bytes[i - 1] : HEADER_BYTES);

        if (status == MUC_OK)
            continue;
        muc_output_discard(output);
        return status;
    }
    return muc_output_commit(output);
}

static muc_status read(muc_context *ctx, muc_bytes bytes, const muc_train_state *state)
{
    parts p = parts_of(state);
    const uint8_t *header = bytes.data;
    uint32_t crc = 0;

    if (bytes.size < HEADER_BYTES || memcmp(header, magic, sizeof(magic)) != 0 ||
        muc_load_u32(header + 8) != VERSION)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 0, "no state of training of version %d",
                        VERSION);
    if (muc_load_u32(header + 12) != sizeof(muc_scalar) ||
        muc_load_u64(header + 16) != state->elements || bytes.size - HEADER_BYTES != p.all_bytes)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 12,
                        "%llu parameters in %zu bytes, expected %zu: another model's state",
                        (unsigned long long)muc_load_u64(header + 16), bytes.size, state->elements);
    if (muc_load_u32(header + 56) != state->recipe_crc32)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 56,
                        "the run began with other options or data");
    for (size_t i = 0, at = HEADER_BYTES; i < PARTS; at += p.bytes[i++]) {
        if (p.bytes[i])
            memcpy(p.at[i], header + at, p.bytes[i]);
        crc = muc_crc32(crc, p.at[i], p.bytes[i]);
    }
    if (crc != muc_load_u32(header + 60))
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 60, "the checksum does not match");
    state->adam->step = muc_load_u64(header + 24);
    state->place->random.state = muc_load_u64(header + 32);
    state->place->epoch = muc_load_u64(header + 40);
    state->place->next = muc_load_u64(header + 48);
    return MUC_OK;
}

muc_status muc_train_state_load(muc_context *ctx, const char *path, const muc_train_state *state)
{
    muc_file file;
    muc_status status;

    MUC_TRY(muc_file_open_own(ctx, path, &file));
    status = read(ctx, file.bytes, state);
    muc_file_close(&file);
    return status;
}
