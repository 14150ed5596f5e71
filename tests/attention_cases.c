#include "attention_cases.h"
#include "xorshift.h"

#include <string.h>

const attention_kernel attention_kernels[] = {
    { "dsp", mur_dsp_attention },
    { "mve", mur_mve_attention },
    { "plain", mur_plain_attention },
};
const uint32_t attention_kernels_count = sizeof(attention_kernels) / sizeof(*attention_kernels);

enum { HEADS = 5, WIDEST = 70, TOKENS = 3, LONGEST = 560, CACHE = 3 * 48 * WIDEST };

/* what a kernel leaves behind it from token to token */
typedef struct memory {
    uint32_t keys[CACHE / 4], values[CACHE / 4];
    uint32_t key_scales[LONGEST * 3 * 3 / 4], value_scales[LONGEST * 3 * 3 / 4];
    uint32_t scratch[(LONGEST * 8 + WIDEST * 12) / 4];
    float out[TOKENS * HEADS * WIDEST];
} memory;

static uint32_t state;

static uint32_t below(uint32_t n)
{
    return random_next32(&state) % n;
}

/* Tokens differ in size as much as `spread` says, by powers of two. */
static void fill(float *x, uint32_t count, uint32_t spread)
{
    float size = 1;

    for (uint32_t i = below(spread + 1); i != 0; i--)
        size *= i % 3 ? 4 : 0.125f;
    for (uint32_t i = 0; i < count; i++)
        x[i] = ((float)below(2001) / 1000 - 1) * size;
}

static mur_attention_q8 choose(uint32_t text)
{
    static const uint8_t widths[] = { 8, 8, 64, 16, 2, 6, 70, 20 };
    static const uint8_t heads[][2] = { { 2, 1 }, { 4, 2 }, { 3, 3 }, { 5, 1 }, { 1, 1 } };
    mur_attention_q8 op = { .width = widths[below(8)],
                            .context = 8 + 8 * below(6),
                            .scale = 0.35f };
    uint32_t kind = below(5);

    op.heads = heads[kind][0];
    op.kv_heads = heads[kind][1];
    if (text % 8 == 0) { /* more positions than one sum takes */
        op.width = 8;
        op.context = LONGEST;
        op.kv_heads = 1;
    }
    op.seen = below(3) ? 0 : 1 + below(op.context);
    op.cap = below(3) ? 0 : 1.5f;
    op.cap_scores = op.cap > 0 ? mur_cap_scores : NULL;
    return op;
}

/* a whole context in calls of up to TOKENS tokens */
static int is_right(attention *run, const mur_attention_q8 *op, uint32_t spread)
{
    static float q[TOKENS * HEADS * WIDEST], k[TOKENS * 3 * WIDEST], v[TOKENS * 3 * WIDEST];
    static memory expected, found;
    uint32_t q_count = op->heads * op->width, kv_count = op->kv_heads * op->width;

    memset(&expected, 0x7e, sizeof(expected));
    memset(&found, 0x81, sizeof(found));
    for (uint32_t pos = 0, rows; pos < op->context; pos += rows) {
        rows = 1 + below(TOKENS);
        rows = rows < op->context - pos ? rows : op->context - pos;
        for (uint32_t r = 0; r < rows; r++) {
            fill(q + r * q_count, q_count, spread);
            fill(k + r * kv_count, kv_count, spread);
            fill(v + r * kv_count, kv_count, spread);
        }
        mur_ref_attention(op, pos, rows, q, k, v, expected.keys, expected.values,
                          expected.key_scales, expected.value_scales, expected.out,
                          expected.scratch);
        run(op, pos, rows, q, k, v, found.keys, found.values, found.key_scales, found.value_scales,
            found.out, found.scratch);
        if (memcmp(expected.out, found.out, rows * q_count * sizeof(float)) != 0)
            return 0;
    }
    return 1;
}

uint32_t attention_check(attention *run, uint32_t texts, mur_attention_q8 *first)
{
    uint32_t wrong = 0;

    state = 2463534242u;
    for (uint32_t i = 0; i < texts; i++) {
        mur_attention_q8 op = choose(i);

        if (is_right(run, &op, i % 2 * 6))
            continue;
        *first = wrong ? *first : op;
        wrong++;
    }
    return wrong;
}
