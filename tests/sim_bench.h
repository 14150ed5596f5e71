/* sim_bench.h - a µThinker for tests: its memory, and instructions packed by hand from mur_isa.def.
 */
#ifndef SIM_BENCH_H
#define SIM_BENCH_H

#include "check.h"
#include "mur_block.h"
#include "muc/muc.h"
#include "targets/uthinker/sim/fast_product.h"
#include "targets/uthinker/sim/uthinker_sim.h"
#include "xorshift.h"

/* ---- chance ---- */

static uint32_t random_state = 1;

static inline uint32_t random_u32(void)
{
    return random_next32(&random_state);
}

static inline uint32_t random_below(uint32_t n)
{
    return (random_u32() >> 8) % n;
}

static inline float random_float(float size)
{
    return ((float)random_below(20001) - 10000.0f) / 10000.0f * size;
}

/* ---- arithmetic ---- */

static inline uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* two binary32 operands, one rounding: a double holds enough for the second to be harmless */
static inline float add(float x, float y)
{
    return (float)((double)x + (double)y);
}

static inline float mul(float x, float y)
{
    return (float)((double)x * (double)y);
}

static inline float quotient(float x, float y)
{
    return (float)((double)x / (double)y);
}

static inline void same_floats(const float *found, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bits_of(found[i]) != bits_of(expected[i]))
            fail_msg("[%zu] is %.9g, expected %.9g", i, (double)found[i], (double)expected[i]);
}

/* ---- a machine ---- */

enum { I_BYTES = 8192, W_BYTES = 16384, GB_WORDS = 8192, REGION_BYTES = 16384 };

typedef struct bench {
    mur_sim sim;
    mur_hal hal;
    uint8_t i0[I_BYTES], i1[I_BYTES], w0[W_BYTES], w1[W_BYTES];
    float gb[GB_WORDS];
    uint8_t wgts[REGION_BYTES], parm[REGION_BYTES], kv[REGION_BYTES], io[REGION_BYTES];
} bench;

static bench b;

/* NULL: the simulator multiplies itself */
static muc_fast_product *fast;

static inline void start(enum mur_sim_policy policy, uint32_t seed)
{
    mur_sim_memory memory = { { b.i0, b.i1, b.w0, b.w1 },
                              b.gb,
                              { I_BYTES, I_BYTES, W_BYTES, W_BYTES, 4 * GB_WORDS },
                              b.wgts,
                              b.parm,
                              b.kv,
                              b.io,
                              { REGION_BYTES, REGION_BYTES, REGION_BYTES, REGION_BYTES },
                              0 };

    mur_sim_init(&b.sim, &memory, policy, seed);
    muc_fast_product_use(fast, &b.sim);
    b.hal = mur_sim_hal(&b.sim);
}

static inline int new_bench(void **state)
{
    (void)state;
    memset(&b, 0, sizeof(b));
    random_state = 1;
    start(MUR_SIM_EAGER, 1);
    return 0;
}

static inline int new_fast_bench(void **state)
{
    muc_context *ctx = muc_context_new(1);

    CHECK_EQ(muc_fast_product_open(ctx, &fast), MUC_OK);
    muc_context_free(ctx);
    return new_bench(state);
}

static inline int new_narrow_bench(void **state)
{
    new_fast_bench(state);
    muc_fast_product_narrow(fast);
    return new_bench(state);
}

static inline int close_fast_bench(void **state)
{
    (void)state;
    muc_fast_product_close(fast);
    fast = NULL;
    return 0;
}

#define SIM_TEST(name) cmocka_unit_test_setup(name, new_bench)

/* the same test twice more, with what this processor has, and with AVX2 alone */
#define FAST_TEST(name) \
    { #name " (fast)", name, new_fast_bench, close_fast_bench, NULL }, \
    { \
#name " (AVX2)", name, new_narrow_bench, close_fast_bench, NULL \
    }

static inline void fill_gb(float size)
{
    for (uint32_t i = 0; i < GB_WORDS; i++)
        b.gb[i] = random_float(size);
}

typedef struct words {
    uint32_t w[MUR_MAX_WORDS];
} words;

static inline mur_status submit(words x)
{
    uint32_t opcode = x.w[0] & 255;

    return (opcode < 8 ? b.hal.dma : opcode < 16 ? b.hal.host : b.hal.accel)(b.hal.arg, x.w);
}

static inline void run(words x)
{
    if (submit(x) != MUR_OK)
        fail_msg("opcode %02x: %s", x.w[0] & 255, b.sim.fault.reason);
}

static inline void faults(const char *reason, words x)
{
    start(MUR_SIM_EAGER, 1);
    CHECK_EQ(submit(x), MUR_E_FAULT);
    assert_string_equal(b.sim.fault.reason, reason);
    CHECK_EQ(b.sim.fault.words[0], x.w[0]);
    CHECK_EQ(submit(x), MUR_E_FAULT); /* it stays so */
    start(MUR_SIM_EAGER, 1);
}

static const char outside_buffer[] = "access outside its buffer";
static const char outside_region[] = "access outside its region";
static const char malformed_block[] = "malformed block";
static const char bad_operand[] = "operand that the instruction does not take";

/* ---- instructions, packed by hand from mur_isa.def ---- */

enum { I0, I1, W0, W1, GB };
enum { WGTS, PARM, KV, IO };

static inline words ld(uint32_t buf, uint32_t addr, uint32_t region, uint32_t off, uint32_t len)
{
    return (words){ { 0x01, addr | buf << 20 | region << 23, off, len } };
}

static inline words st(uint32_t buf, uint32_t addr, uint32_t region, uint32_t off, uint32_t len)
{
    return (words){ { 0x02, addr | buf << 20 | region << 23, off, len } };
}

static inline words embed(uint32_t seq, uint32_t k, uint32_t rows, uint32_t cols, uint32_t dst)
{
    return (words){ { 0x08, seq, k | rows << 16, cols, dst } };
}

typedef struct mm {
    uint32_t src, saddr, spitch, rows, k, terms, wsrc, waddr, wlen, cols, daddr, dpitch, acc;
} mm;

static inline words mm_words(mm x)
{
    return (words){ { 0x10, x.saddr | x.rows << 20, x.waddr | x.cols << 20,
                      x.wlen | x.src << 20 | x.wsrc << 23 | x.acc << 26 | x.terms << 27, x.daddr,
                      x.spitch | x.dpitch << 16, x.k } };
}

typedef struct norm {
    uint32_t saddr, spitch, rows, k, gaddr, dst, daddr, terms;
    float epsilon;
} norm;

static inline words norm_words(norm x)
{
    return (words){ { 0x20, x.saddr | x.rows << 20, x.gaddr | x.dst << 20 | x.terms << 23, x.daddr,
                      x.k | x.spitch << 16, bits_of(x.epsilon) } };
}

typedef struct rope {
    uint32_t saddr, spitch, rows, heads, k, taddr;
} rope;

static inline words rope_words(rope x)
{
    return (
        words){ { 0x21, x.saddr | x.rows << 20, x.taddr | x.heads << 20, x.k | x.spitch << 16 } };
}

typedef struct quant {
    uint32_t saddr, spitch, rows, k, dst, daddr, dpitch, terms;
} quant;

static inline words quant_words(quant x)
{
    return (words){ { 0x22, x.saddr | x.rows << 20, x.daddr | x.dst << 20 | x.terms << 23,
                      x.k | x.spitch << 16, x.dpitch } };
}

typedef struct qpack {
    uint32_t saddr, spitch, rows, cols, dst, daddr, terms;
} qpack;

static inline words qpack_words(qpack x)
{
    return (words){ { 0x23, x.saddr | x.rows << 20, x.daddr | x.cols << 20,
                      x.dst | x.terms << 3 | x.spitch << 16 } };
}

typedef struct smax {
    uint32_t saddr, rows, group, skip, valid, first, taddr, oaddr, k, dst, daddr, dpitch, terms;
    uint32_t hide;
    float scale;
} smax;

static inline words smax_words(smax x)
{
    return (words){ { 0x24, x.saddr | x.rows << 20, x.taddr | x.group << 20, x.oaddr | x.skip << 20,
                      x.daddr | x.dst << 20 | x.terms << 23 | x.first << 25,
                      x.k | x.valid << 16 | x.hide << 23, bits_of(x.scale), x.dpitch } };
}

typedef struct divide {
    uint32_t saddr, rows, group, k, taddr, daddr, dpitch;
} divide;

static inline words div_words(divide x)
{
    return (words){ { 0x25, x.saddr | x.rows << 20, x.taddr | x.group << 20, x.daddr,
                      x.k | x.dpitch << 16 } };
}

typedef struct glu {
    uint32_t saddr, uaddr, rows, k, dst, daddr, dpitch, terms, gelu;
} glu;

static inline words glu_words(glu x)
{
    return (words){ { 0x26, x.saddr | x.rows << 20,
                      x.uaddr | x.dst << 20 | x.terms << 23 | x.gelu << 25, x.daddr,
                      x.k | x.dpitch << 16 } };
}

typedef struct scale {
    uint32_t saddr, spitch, rows, k, daddr, dpitch, acc;
    float factor;
} scale;

static inline words scale_words(scale x)
{
    return (words){ { 0x27, x.saddr | x.rows << 20, x.daddr | x.acc << 20, x.k | x.spitch << 16,
                      x.dpitch, bits_of(x.factor) } };
}

typedef struct rms {
    uint32_t saddr, spitch, rows, k, gaddr, daddr, dpitch, acc;
    float epsilon;
} rms;

static inline words rms_words(rms x)
{
    return (words){ { 0x28, x.saddr | x.rows << 20, x.gaddr | x.acc << 20, x.daddr,
                      x.k | x.spitch << 16, x.dpitch, bits_of(x.epsilon) } };
}

typedef struct cap {
    uint32_t saddr, spitch, rows, k;
    float factor, most;
} cap;

static inline words cap_words(cap x)
{
    return (words){ { 0x29, x.saddr | x.rows << 20, x.k | x.spitch << 16, bits_of(x.factor),
                      bits_of(x.most) } };
}

/* the slots of k values by the runtime's encoder, which has tests of its own */
static inline uint8_t *slots(const float *x, uint32_t k, uint32_t terms, uint8_t *out)
{
    for (uint32_t i = 0; i < k; i += 32)
        out += mur_block_encode(x + i, k - i < 32 ? k - i : 32, terms, out);
    return out;
}

static inline uint32_t slots_size(uint32_t k, uint32_t terms)
{
    uint32_t size = 0;

    for (uint32_t i = 0; i < k; i += 32)
        size += 1 + terms * (2 + ((k - i < 32 ? k - i : 32) + 1) / 2);
    return size;
}

#endif
