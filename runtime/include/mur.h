/* mur.h - the device runtime of µCompiler: load a program, verify it, run it.
 *
 * Freestanding C99; memory is the caller's; nothing here allocates, recurses or keeps a global.
 * A program (.utp, src/targets/uthinker/SPEC.md section 7) executes in place, from flash, on a
 * little-endian machine:
 *
 *     mur_open -> mur_check (once, when it is flashed) -> mur_verify -> mur_start, mur_run, ..
 */
#ifndef MUR_H
#define MUR_H

#include <stddef.h>
#include <stdint.h>

#include "mur_status.h"

enum mur_engine { MUR_DMA, MUR_ACC, MUR_CPU, MUR_ENGINES };
enum mur_region { MUR_WGTS, MUR_PARM, MUR_KV, MUR_IO, MUR_REGIONS };
enum mur_buffer { MUR_I0, MUR_I1, MUR_W0, MUR_W1, MUR_GB, MUR_BUFFERS };
enum { MUR_MAX_WORDS = 8, MUR_SLOTS = 64, MUR_TOKENS = 16, MUR_MAX_NESTING = 6 };
/* the slots of an entry's inputs; end = pos + m, logits is 1 if the call ends with the head, else 0
 */
enum { MUR_SLOT_POS, MUR_SLOT_M, MUR_SLOT_END, MUR_SLOT_LOGITS, MUR_INPUTS };

/* ---- the board ---- */

struct mur_run_state;

/* What the runtime asks of a board. words: one resolved instruction (SPEC.md section 4), valid only
 * during the call. dma and accel queue it and return MUR_OK, or MUR_YIELD when their queue is full
 * (nothing was queued), or MUR_E_FAULT. host executes it before returning. completed gives the
 * number of instructions that MUR_DMA or MUR_ACC has completed, modulo 2^32, from any start; the
 * engines are idle when a run begins. A driver that has these numbers in memory points `counts` at
 * them, [MUR_CPU], and `completed` is not called; else it is NULL.
 *
 * Two things that hardware may do are for whoever builds the runtime to say:
 *
 * MUR_HARDWARE_TOKENS: the engines' queues wait for tokens (SPEC.md section 2), so dma and accel
 * are called without waiting. The mask in words[0] stands for the latest instructions that
 * signalled its tokens before the call. mur_verify must not be one of MUR_BASE_ISA.
 *
 * MUR_SEQUENCER: streamed loops (section 5) are handed to `stream`; a HAL that has none is NULL
 * there, and the CPU repeats them. item: a FOR in CODE, of `count` rounds, 1 or more. The sequencer
 * issues what mur_run would, with the slots of run. stream returns MUR_YIELD while it is at it, and
 * is called again; MUR_OK when it has issued all: it has then counted in run->issued, as
 * `completed` counts, what each engine got, brought run->token up to date and set the bits of the
 * tokens signalled in run->pending; MUR_E_FAULT if an engine failed. Without MUR_SEQUENCER nothing
 * calls it. */
typedef struct mur_hal {
    void *arg;
    mur_status (*dma)(void *arg, const uint32_t *words);
    mur_status (*accel)(void *arg, const uint32_t *words);
    mur_status (*host)(void *arg, const uint32_t *words);
    uint32_t (*completed)(void *arg, enum mur_engine engine);
    const volatile uint32_t *counts;
    mur_status (*stream)(void *arg, struct mur_run_state *run, const uint32_t *item,
                         uint32_t count);
} mur_hal;

/* ---- the program file ---- */

enum mur_section {
#define MUR_SECTION(name, need, meaning) MUR_SECTION_##name,
#include "mur_sections.def"
    MUR_SECTIONS
};

enum mur_entry_kind {
#define MUR_ENTRY(name, kind, meaning) MUR_ENTRY_##name = kind,
#include "mur_sections.def"
    MUR_ENTRY_KINDS
};

/* Sections of words, as mur_sections.def lists them. */
typedef struct mur_mach {
#define MUR_MACH(name, min, max, meaning) uint32_t name;
#include "mur_sections.def"
} mur_mach;

/* The array, in the word isa of MACH: bits 8..15 the rows of a tile in units of 32, 16..23 its
 * columns, 24..31 the tokens of an attention step in units of 32. 0 stands for the paper's 64, 8
 * and 64, and nothing else does. */
enum { MUR_ISA_VERSION = 1, MUR_MOST_TILE_ROWS = 128 };

static inline uint32_t mur_tile_rows(uint32_t isa)
{
    return (isa >> 8 & 255) != 0 ? (isa >> 8 & 255) * 32 : 64;
}

static inline uint32_t mur_tile_columns(uint32_t isa)
{
    return (isa >> 16 & 255) != 0 ? isa >> 16 & 255 : 8;
}

static inline uint32_t mur_tile_tokens(uint32_t isa)
{
    return isa >> 24 != 0 ? (isa >> 24) * 32 : 64;
}

typedef struct mur_meta {
#define MUR_META(name, min, max, meaning) uint32_t name;
#include "mur_sections.def"
} mur_meta;

typedef struct mur_entr {
#define MUR_ENTR(name, min, max, meaning) uint32_t name;
#include "mur_sections.def"
} mur_entr;

typedef struct mur_gold {
#define MUR_GOLD(name, meaning) uint32_t name;
#include "mur_sections.def"
} mur_gold;

typedef struct mur_layr {
#define MUR_LAYR(name, min, max, meaning) uint32_t name;
#include "mur_sections.def"
} mur_layr;

typedef struct mur_header {
#define MUR_HEADER(name, meaning) uint32_t name;
#include "mur_sections.def"
} mur_header;

typedef struct mur_place {
#define MUR_PLACE(name, meaning) uint32_t name;
#include "mur_sections.def"
} mur_place;

enum {
    MUR_MAGIC = 0x31505455, /* "UTP1" */
    MUR_VERSION_MAJOR = 3,
    MUR_VERSION_MINOR = 0,
    MUR_ALIGNMENT = 16 /* of the image and of its sections */
};

/* Borrows the image. A section that is absent is NULL with 0 bytes. */
typedef struct mur_program {
    const mur_header *header;
    const uint8_t *section[MUR_SECTIONS];
    uint32_t section_bytes[MUR_SECTIONS];
    const mur_mach *mach;
    const mur_meta *meta;
    const mur_entr *entries;
    uint32_t entry_count;
    const uint32_t *code; /* section_bytes[MUR_SECTION_CODE] / 4 words */
    const uint32_t *tables;
    uint32_t region_bytes[MUR_REGIONS];
    uint32_t steps; /* worst case of any entry, mur_verdict's; 0 until mur_verify accepts */
} mur_program;

/* Opens the image of `bytes` bytes, at least the file's own size, at a 16-byte-aligned address.
 * Checks header, section table, MACH, META, ENTR and TABL: every member of *program is then within
 * bounds, and so are the starts of tables. CODE and the tables' words are mur_verify's.
 * Returns MUR_E_MALFORMED, or MUR_E_UNSUPPORTED for another version. */
mur_status mur_open(mur_program *program, const void *image, size_t bytes);

/* Compares every section's CRC-32 and the zero bytes between sections: reads the whole image.
 * Returns MUR_E_MALFORMED; *section (NULL if not wanted) is then the first that differs. */
mur_status mur_check(const mur_program *program, enum mur_section *section);
/* The same by another way to compute mur_crc32. */
typedef uint32_t mur_checksum(uint32_t crc, const void *data, size_t bytes);
mur_status mur_check_by(const mur_program *program, mur_checksum *crc32, enum mur_section *section);

/* MUR_E_MACHINE unless the program is made for this board. */
mur_status mur_fits(const mur_program *program, const mur_mach *board);

/* The first entry of this kind that takes m tokens, or entry_count. */
uint32_t mur_find_entry(const mur_program *program, enum mur_entry_kind kind, uint32_t m);

/* CRC-32 (IEEE 802.3), continuing from crc; start with 0. */
uint32_t mur_crc32(uint32_t crc, const void *data, size_t bytes);

/* ---- the verifier ---- */

enum mur_reason {
#define MUR_REASON(name, operand, sentence) MUR_REASON_##name,
#include "mur_reasons.def"
#undef MUR_REASON
    MUR_REASONS
};

/* What operand of an instruction a refusal is about; names and order of mur_isa.def. */
enum mur_operand {
#define MUR_CONSTANT(name, value) MUR_OPERAND_##name,
#define MUR_DERIVED(name, meaning) MUR_OPERAND_##name,
#define MUR_OPERAND(name) MUR_OPERAND_##name,
#include "mur_isa.def"
    MUR_OPERANDS
};

typedef struct mur_verdict {
    enum mur_reason reason; /* MUR_REASON_NONE: accepted */
    uint32_t entry;         /* where: the entry, */
    uint32_t word;          /* and in CODE the first word of the item at fault */
    uint32_t operand;       /* what the reason's row says, which says also if these two are set: */
    uint64_t value;         /* what was found, */
    uint32_t limit;         /* and the most allowed */
    uint32_t steps;         /* if accepted: most items that any entry executes, for any input */
} mur_verdict;

/* A slot's possible values. */
typedef struct mur_range {
    uint32_t lo, hi;
} mur_range;

enum {
    MUR_PLACES = (int)MUR_BUFFERS + (int)MUR_REGIONS,
    MUR_FLIGHT = (int)MUR_CPU * 33,
    MUR_FACTS = 250,     /* INST and FOR of an entry that are taken apart only once */
    MUR_EFFORT = 1 << 24 /* items and words of TABL that the verifier visits at most */
};

typedef struct mur_verifier_loop {
    uint32_t body, end, variable, steps, *fact;
    mur_range count;
    uint32_t flight[MUR_FLIGHT]; /* at the body's start, of all rounds seen */
} mur_verifier_loop;

/* The verifier's memory, under 4 KB, not to be moved; `verdict` is for callers. */
typedef struct mur_verifier {
    mur_verdict verdict;
    const mur_program *program;
    uint32_t at, end;        /* words of CODE; end is 0 once END was seen */
    uint32_t effort;         /* what may still be visited */
    uint32_t depth;          /* twice the loops around */
    uint32_t steps;          /* executed at most since the innermost FOR */
    uint32_t settled;        /* the entry's items before this word have been taken apart */
    uint32_t *fact;          /* the item's among `facts` */
    mur_verifier_loop *loop; /* the next one's among `loops` */
    mur_range slot[MUR_SLOTS];
    uint8_t scope[MUR_SLOTS];        /* 0: unwritten; see mur_verify.c */
    mur_range operand[MUR_OPERANDS]; /* of the instruction at hand */
    uint32_t flight[MUR_FLIGHT];     /* accesses in flight, of each engine; see mur_verify.c */
    mur_verifier_loop loops[MUR_MAX_NESTING];
    uint32_t facts[MUR_FACTS + 1]; /* the last one is any item's that finds no room */
} mur_verifier;

/* Proves what SPEC.md section 6 lists, for all entries and all inputs in range, and then sets
 * program->steps. Time is bounded by MUR_EFFORT, in practice a few visits to each word of CODE.
 * Returns MUR_E_VERIFY; scratch->verdict says where and why. */
mur_status mur_verify(mur_program *program, mur_verifier *scratch);

/* ---- the interpreter ---- */

typedef struct mur_run_loop {
    const uint32_t *body;
    uint32_t variable, count;
} mur_run_loop;

typedef struct mur_run_token {
    uint32_t engine, count; /* complete when the engine has completed so many instructions */
} mur_run_token;

/* A run in progress, under 544 bytes, not to be moved. Callers may read `done` and `at`. */
typedef struct mur_run_state {
    uint32_t slot[MUR_SLOTS]; /* first: a core then adds nothing to reach them */
    const mur_program *program;
    const mur_hal *hal;
    const uint32_t *tables; /* the program's */
    uint32_t at;            /* the next item's word in CODE */
    uint32_t done;          /* 1: finished, all engines at rest */
    uint32_t fuel;
    uint32_t issued[MUR_CPU];            /* the count that `completed` reaches when all is done */
    uint32_t pending;                    /* bit t + 1: token t is not known to be complete */
    uint32_t patched[MUR_MAX_WORDS];     /* the instruction at hand, with the slots' values */
    mur_run_token token[1 + MUR_TOKENS]; /* of token t at t + 1, as `sig` counts */
    mur_run_loop loop[MUR_MAX_NESTING];
    mur_run_loop *free_loop; /* the loops before this one are running */
} mur_run_state;

/* Makes ready to run an entry on m tokens, the first of them at position pos; IO holds the tokens.
 * The program has been accepted by mur_verify. Both pointers are borrowed until the run is done.
 * Returns MUR_E_VERIFY for a program not verified, MUR_E_INPUT for an entry, pos or m out of range.
 */
mur_status mur_start(mur_run_state *run, const mur_program *program, const mur_hal *hal,
                     uint32_t entry, uint32_t pos, uint32_t m);

/* After mur_start: the run computes no logits, for more tokens follow; all else it does. */
static inline void mur_skip_logits(mur_run_state *run)
{
    run->slot[MUR_SLOT_LOGITS] = 0;
}

/* Executes one item. MUR_OK: done or not, run->done tells; MUR_YIELD: it must wait for an engine,
 * call again; MUR_E_FAULT: an engine failed, or an access would leave its region. */
mur_status mur_step(mur_run_state *run);

/* Executes `most` items at most, as mur_step would one after another, or until the run is done or a
 * step says anything but MUR_OK. */
mur_status mur_run_some(mur_run_state *run, uint32_t most);

/* Steps until the run is done (MUR_OK) or a step says anything else. */
mur_status mur_run(mur_run_state *run);

#endif
