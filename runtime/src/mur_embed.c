/* mur_embed.c - the CPU's own instructions: columns of a BlockDialect sequence, decoded for the
 * tokens in IO, and the greatest of the logits there.
 *
 * EMBED: a sequence is docs/SPEC-blockdialect.md section 5. A token's column is one of a few in
 * each of its tiles; the columns before it there are stepped over by their blocks' size bytes.
 */
#include "mur_embed.h"
#include "mur_block.h"
#include "mur_code.h"
#include "mur_sampler.h"

#include <string.h>

enum {
#define MUR_INSN(name, opcode, words, engine, meaning) OPCODE_##name = opcode,
#define MUR_FIELD(insn, name, word, shift, width, unit) \
    WORD_##insn##_##name = word, SHIFT_##insn##_##name = shift, WIDTH_##insn##_##name = width,
#include "mur_isa.def"
    FIELDS_END
};

#define FIELD(words, insn, name) \
    mur_bits((words)[WORD_##insn##_##name], SHIFT_##insn##_##name, WIDTH_##insn##_##name)

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The blocks of column `column` of a tile of rows rows; bytes: from tile to the sequence's end. */
static mur_status embed_tile(const uint8_t *tile, uint32_t bytes, uint32_t column, uint32_t rows,
                             float *out)
{
    uint32_t skip = column * ((rows + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS);
    uint32_t header = MUR_BLOCK_NO_HEADER;

    for (; skip != 0; skip--) {
        uint32_t size;

        if (bytes == 0)
            return MUR_E_FAULT;
        size = 1 + (*tile & (MUR_BLOCK_SHARED - 1u));
        if (size > bytes)
            return MUR_E_FAULT;
        tile += size;
        bytes -= size;
    }
    for (uint32_t row = 0; row < rows; row += MUR_BLOCK_ELEMS) {
        uint32_t n = rows - row < MUR_BLOCK_ELEMS ? rows - row : MUR_BLOCK_ELEMS;
        uint32_t size = (uint32_t)mur_block_decode(tile, bytes, n, &header, out + row);

        if (size == 0)
            return MUR_E_FAULT;
        tile += size;
        bytes -= size;
    }
    return MUR_OK;
}

/* One token's column of a matrix with k rows. */
static mur_status embed_token(const uint8_t *sequence, uint32_t bytes, uint32_t isa, uint32_t token,
                              uint32_t k, float *out)
{
    uint32_t tile_rows = mur_tile_rows(isa), columns = mur_tile_columns(isa);
    uint32_t down = (k + tile_rows - 1) / tile_rows;
    uint64_t tile = (uint64_t)(token / columns) * down;

    for (uint32_t row = 0; row < k; row += tile_rows, tile++) {
        uint32_t rows = k - row < tile_rows ? k - row : tile_rows, at;
        mur_status status;

        if (bytes < 4 || tile > (bytes - 4) / 4)
            return MUR_E_FAULT;
        at = load_u32(sequence + 4 * (uint32_t)tile);
        if (at > bytes)
            return MUR_E_FAULT;
        status = embed_tile(sequence + at, bytes - at, token % columns, rows, out + row);
        if (status != MUR_OK)
            return status;
    }
    return MUR_OK;
}

static mur_status embed(const mur_program *program, void *io, const uint32_t *words)
{
    uint32_t seq = FIELD(words, EMBED, seq), k = FIELD(words, EMBED, k);
    uint32_t rows = FIELD(words, EMBED, rows), dst = FIELD(words, EMBED, dst);
    uint32_t size = program->region_bytes[MUR_IO];
    uint32_t weights = program->region_bytes[MUR_WGTS];
    const uint32_t *tokens = io;

    /* products below 2^30 */
    if (weights < 4 || seq > weights - 4 || dst % 4 != 0 || 4 * rows > size ||
        (rows != 0 && (dst > size || 4 * k * rows > size - dst)))
        return MUR_E_FAULT;
    for (uint32_t i = 0; i < rows; i++) {
        float *out = (float *)io + dst / 4 + i * k;
        mur_status status = MUR_E_FAULT;

        if (tokens[i] < FIELD(words, EMBED, cols))
            status = embed_token(program->section[MUR_SECTION_WGTS] + seq, weights - seq,
                                 program->mach->isa, tokens[i], k, out);
        if (status != MUR_OK)
            return status;
    }
    return MUR_OK;
}

static mur_status greatest(const mur_program *program, void *io, const uint32_t *words)
{
    uint32_t at = FIELD(words, AMAX, saddr), k = FIELD(words, AMAX, k), size;
    uint32_t dst = FIELD(words, AMAX, dst), found, *state = (uint32_t *)io + dst;

    size = program->region_bytes[MUR_IO] / 4;
    if (at > size || k > size - at || dst > size || size - dst < 2)
        return MUR_E_FAULT;
    if (FIELD(words, AMAX, first)) {
        state[0] = at;
        state[1] = MUR_LOWEST_LOGIT;
    }
    found = mur_sampler_greater((const float *)io + at, k, &state[1]);
    if (found < k)
        state[0] = at + found;
    return MUR_OK;
}

mur_status mur_embed(const mur_program *program, void *io, const uint32_t *words)
{
    if (mur_bits(words[0], 0, 8) == OPCODE_AMAX)
        return greatest(program, io, words);
    return embed(program, io, words);
}
