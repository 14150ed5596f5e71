/* fast_product_tile.h - the loops of fast_product.c, once for each instruction set: it sets TARGET,
 * NAMED and DOT before it includes this file. */

/* 32 nibbles as values plus BIAS, those of even index first */
TARGET static inline __m256i NAMED(values)(const uint8_t *nibbles, const uint8_t *table)
{
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    __m256i packed = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)nibbles));
    __m256i of = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    __m256i index = _mm256_and_si256(_mm256_srlv_epi32(packed, shifts), _mm256_set1_epi8(15));

    return _mm256_shuffle_epi8(of, index);
}

/* the same of the n nibbles of a term, the others 0 */
TARGET static inline __m256i NAMED(term_values)(const muc_fast_product *product,
                                                const uint8_t *term, uint32_t n)
{
    const uint8_t *table = product->table[load_u16(term) >> 12];
    uint8_t room[HALF] = { 0 };

    if (n == MUR_BLOCK_ELEMS)
        return NAMED(values)(term + 2, table);
    memcpy(room, term + 2, (n + 1) / 2);
    return NAMED(values)(room, table);
}

TARGET static inline void NAMED(put_left)(const muc_fast_product *product, const uint8_t *term,
                                          uint32_t n, left_block *out, uint32_t t)
{
    __m256i v = NAMED(term_values)(product, term, n);
    __m256i sums = _mm256_sad_epu8(v, _mm256_setzero_si256());
    int32_t sum = _mm256_extract_epi32(sums, 0) + _mm256_extract_epi32(sums, 2) +
                  _mm256_extract_epi32(sums, 4) + _mm256_extract_epi32(sums, 6);

    _mm256_storeu_si256((__m256i *)(void *)out->m[t], _mm256_sub_epi8(v, _mm256_set1_epi8(BIAS)));
    out->start[t] = -BIAS * (sum - BIAS * MUR_BLOCK_ELEMS);
    out->scale[t] = scale_of(load_u16(term) >> 7 & 31u);
}

/* A row of the left operand; false if a block is malformed. */
TARGET static bool NAMED(read_left)(const muc_fast_product *product, const uint8_t *slot,
                                    uint32_t k, uint32_t terms, left_block *out)
{
    for (uint32_t at = 0, n; at < k; at += n, out++) {
        uint32_t size, term_bytes;

        n = k - at < MUR_BLOCK_ELEMS ? k - at : MUR_BLOCK_ELEMS;
        size = mur_block_slot_bytes(n, terms);
        term_bytes = (size - 1) / terms;
        if (slot[0] != size - 1 || !is_term(slot + 1, n, terms == 2 ? MUR_BLOCK_R : MUR_BLOCK_B4) ||
            (terms == 2 && !is_term(slot + 1 + term_bytes, n, MUR_BLOCK_B4)))
            return false;
        for (uint32_t t = 0; t < terms; t++)
            NAMED(put_left)(product, slot + 1 + t * term_bytes, n, out, t);
        slot += size;
    }
    return true;
}

/* A block that read_usual does not take, n elements. Kind R, which keys and values have, is read
 * here. Returns its end, NULL if it is malformed. */
TARGET static inline const uint8_t *NAMED(read_unusual)(const muc_fast_product *product, group *out,
                                                        const uint8_t *p, uint32_t n,
                                                        uint32_t *header, uint32_t b, uint32_t c)
{
    const uint32_t term_bytes = 2 + (n + 1) / 2;

    if (p[0] != 2 * term_bytes || !is_term(p + 1, n, MUR_BLOCK_R) ||
        !is_term(p + 1 + term_bytes, n, MUR_BLOCK_B4))
        return read_any_block(out, p, n, header, b, c);
    two_terms(out, b);
    for (uint32_t t = 0; t < 2; t++) {
        const uint8_t *term = p + 1 + t * term_bytes;

        _mm256_store_si256((__m256i *)(void *)out->m[b][t][c],
                           NAMED(term_values)(product, term, n));
        out->header[b][t][c] = load_u16(term);
    }
    *header = load_u16(p + 1);
    return p + 1 + 2 * term_bytes;
}

/* A block of kind B4 or B5 without a branch, whose first byte is `size`; `header` is its own or the
 * one above. Returns other than 0 if it is malformed. */
TARGET static inline uint32_t NAMED(read_usual)(const muc_fast_product *product, const uint8_t *p,
                                                uint32_t size, uint32_t header, uint8_t *m)
{
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0,
                                            0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const uint32_t b5 = size >> 2 & 1u, row = header >> 12 | b5 << 4;
    const uint8_t *plane = p + 3 - (size >> 6 & 2u);
    int32_t bits;
    __m256i v = NAMED(values)(plane + B5_PLANE * b5, product->table[row]);

    memcpy(&bits, plane, sizeof(bits));
    v = NEGATE(v, _mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread),
               _mm256_loadu_si256((const __m256i *)(const void *)plane_bits[b5]));
    _mm256_store_si256((__m256i *)(void *)m, v);
    return ((header & 0x7fu) ^ (b5 << 4)) | (row > B5_TABLE);
}

/* The first `columns` columns of a group, k elements each; MOST_GROUP_BYTES and a few more may be
 * read. Returns their end, NULL if a block is malformed. */
TARGET static ALWAYS_INLINE const uint8_t *NAMED(read_group)(const muc_fast_product *product,
                                                             group *out, const uint8_t *p,
                                                             uint32_t columns, uint32_t k)
{
    const uint32_t blocks = blocks_of(k);
    uint32_t bad = 0;

    for (uint32_t b = 0; b < blocks; b++)
        out->terms[b] = 1;
    for (uint32_t c = 0; c < columns; c++) {
        uint32_t header = MUR_BLOCK_NO_HEADER;

        for (uint32_t b = 0; b < blocks; b++) {
            const uint32_t size = p[0], left = k - b * MUR_BLOCK_ELEMS;
            uint32_t own = (size >> 7) - 1; /* all ones if it has a header of its own */
            size_t taken = size & 127u;

            if (__builtin_expect(!product->usual[size] || left < MUR_BLOCK_ELEMS, 0)) {
                p = NAMED(read_unusual)(product, out, p,
                                        left < MUR_BLOCK_ELEMS ? left : MUR_BLOCK_ELEMS, &header, b,
                                        c);
                if (!p)
                    return NULL;
                continue;
            }
            NO_BRANCH(own);
            NO_BRANCH(taken);
            header = (load_u16(p + 1) & own) | (header & ~own);
            bad |= NAMED(read_usual)(product, p, size, header, out->m[b][0][c]);
            out->header[b][0][c] = header;
            p += 1 + taken;
        }
    }
    return bad ? NULL : p;
}

/* Eight columns of 32 bytes to eight registers that hold the same four bytes of each column. */
TARGET static inline void NAMED(transpose)(const uint8_t m[COLUMNS][MUR_BLOCK_ELEMS], __m256i *w)
{
    __m256i a[COLUMNS], d[COLUMNS];

    for (uint32_t i = 0; i < COLUMNS; i++)
        a[i] = _mm256_load_si256((const __m256i *)(const void *)m[i]);
    for (uint32_t i = 0; i < COLUMNS; i += 4) {
        __m256i ab = _mm256_unpacklo_epi32(a[i], a[i + 1]);
        __m256i cd = _mm256_unpacklo_epi32(a[i + 2], a[i + 3]);

        d[i] = _mm256_unpacklo_epi64(ab, cd);
        d[i + 1] = _mm256_unpackhi_epi64(ab, cd);
        ab = _mm256_unpackhi_epi32(a[i], a[i + 1]);
        cd = _mm256_unpackhi_epi32(a[i + 2], a[i + 3]);
        d[i + 2] = _mm256_unpacklo_epi64(ab, cd);
        d[i + 3] = _mm256_unpackhi_epi64(ab, cd);
    }
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = _mm256_permute2x128_si256(d[i], d[i + 4], 0x20);
        w[i + 4] = _mm256_permute2x128_si256(d[i], d[i + 4], 0x31);
    }
}

/* 2^(exponent - 16) of eight headers */
TARGET static inline __m256 NAMED(scales)(const uint32_t *headers)
{
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)headers), e;

    e = _mm256_and_si256(_mm256_srli_epi32(h, 7), _mm256_set1_epi32(31));
    e = _mm256_add_epi32(e, _mm256_set1_epi32(127 - MUR_BLOCK_EXPONENT_BIAS));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(e, 23),
                                               _mm256_and_si256(h, _mm256_set1_epi32(INT32_MIN))));
}

/* acc plus the products of a block's term `t` in eight columns and a term of the left operand */
TARGET static inline __m256 NAMED(add_product)(__m256 acc, const __m256i *w, __m256 scale,
                                               const left_block *left, uint32_t t)
{
    __m256i sum = DOT_BEGIN(left->start[t]);

    for (uint32_t i = 0; i < COLUMNS; i++) {
        int32_t four;

        memcpy(&four, left->m[t] + 4 * i, sizeof(four));
        sum = DOT(sum, w[i], _mm256_set1_epi32(four));
    }
    sum = DOT_END(sum, left->start[t]);
    return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_cvtepi32_ps(sum),
                                            _mm256_mul_ps(scale, _mm256_set1_ps(left->scale[t]))));
}

TARGET static inline void NAMED(multiply_group)(const muc_fast_product *product,
                                                const mur_sim_product *op, uint32_t first_block,
                                                uint32_t blocks, float *out, uint32_t columns)
{
    const group *in = &product->group;
    const uint32_t pitch = blocks_of(op->k);

    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t t = 0; t < in->terms[b]; t++) {
            __m256 scale = NAMED(scales)(in->header[b][t]);
            const left_block *left = product->left + first_block + b;
            __m256i w[COLUMNS];
            float *at = out;

            NAMED(transpose)(in->m[b][t], w);
            for (uint32_t row = 0; row < op->rows; row++, left += pitch, at += op->out_pitch) {
                float some[COLUMNS] = { 0 };
                __m256 acc;

                if (columns < COLUMNS)
                    memcpy(some, at, columns * sizeof(float));
                acc = _mm256_loadu_ps(columns < COLUMNS ? some : at);
                acc = NAMED(add_product)(acc, w, scale, left, 0);
                if (op->terms == 2)
                    acc = NAMED(add_product)(acc, w, scale, left, 1);
                _mm256_storeu_ps(columns < COLUMNS ? some : at, acc);
                if (columns < COLUMNS)
                    memcpy(at, some, columns * sizeof(float));
            }
        }
}

/* Reads the next group, of k elements a column; NULL if a block is malformed. */
TARGET static inline const uint8_t *NAMED(next_group)(muc_fast_product *product, const uint8_t *p,
                                                      const uint8_t *end, uint32_t columns,
                                                      uint32_t k)
{
    const size_t left = (size_t)(end - p);
    const uint8_t *next, *from = p;

    for (uint32_t b = 0; b < blocks_of(k) && columns < COLUMNS; b++)
        for (uint32_t c = columns; c < COLUMNS; c++)
            absent(&product->group, b, 0, c);
    if (left < sizeof(product->tail)) {
        memcpy(product->tail, p, left);
        from = product->tail;
    }
    if (columns == COLUMNS && k == 2 * MUR_BLOCK_ELEMS) /* the paper's tile */
        next = NAMED(read_group)(product, &product->group, from, COLUMNS, 2 * MUR_BLOCK_ELEMS);
    else
        next = NAMED(read_group)(product, &product->group, from, columns, k);
    return next && (size_t)(next - from) <= left ? p + (next - from) : NULL;
}

TARGET static enum mur_sim_product_result NAMED(multiply)(muc_fast_product *product,
                                                          const mur_sim_product *op)
{
    const uint8_t *right = op->right;

    for (uint32_t row = 0; row < op->rows; row++)
        if (!NAMED(read_left)(product, op->left + row * op->left_pitch, op->k, op->terms,
                              product->left + row * blocks_of(op->k)))
            return MUR_SIM_PRODUCT_MALFORMED;
    for (uint32_t column = 0; column < op->cols; column += op->tile_columns) {
        uint32_t past = op->cols - column < op->tile_columns ? op->cols : column + op->tile_columns;

        for (uint32_t at = 0; at < op->k; at += op->tile_rows) {
            uint32_t k = op->k - at < op->tile_rows ? op->k - at : op->tile_rows;

            for (uint32_t c = column; c < past; c += COLUMNS) {
                uint32_t columns = past - c < COLUMNS ? past - c : COLUMNS;

                right = NAMED(next_group)(product, right, op->right_end, columns, k);
                if (!right)
                    return MUR_SIM_PRODUCT_MALFORMED;
                NAMED(multiply_group)
                (product, op, at / MUR_BLOCK_ELEMS, blocks_of(k), op->out + c, columns);
            }
        }
    }
    return MUR_SIM_PRODUCT_DONE;
}
