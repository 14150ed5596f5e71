/* mur_stages.h - which of a model's stages an instruction completes, and what they came to.
 *
 * A stage's values lie in buffer GB when the instruction that reads or makes them is complete. A
 * watch stands between the interpreter and a machine's HAL and fetches them, by transfers of its
 * own, with nothing that a board does not have.
 */
#ifndef MUR_STAGES_H
#define MUR_STAGES_H

#include "mur.h"

enum mur_stage {
#define MUR_STAGE(name, words, node) MUR_STAGE_##name,
#include "mur_stages.def"
    MUR_STAGES
};

/* Values of a stage in GB: rows of `columns` words, `pitch` words apart. The first is of column
 * `column` of token `row` of the call. */
typedef struct mur_stage_values {
    enum mur_stage stage;
    uint32_t layer, row, column;
    uint32_t address, pitch, rows, columns;
} mur_stage_values;

/* How far a call has come. All-zero but for meta before the first. */
typedef struct mur_stages {
    const mur_meta *meta;
    uint32_t tokens;                         /* of the call */
    uint32_t norms, ropes, divisions, gates; /* instructions, of the call, layer or stage */
    uint32_t residual;                       /* its words in GB, once norms is not 0 */
} mur_stages;

enum { MUR_STAGE_MOST = 2 }; /* that one instruction completes */

/* words: a resolved instruction, in program order. Gives how many stages it adds values to, which
 * are in GB once it is complete and until another instruction of ACC begins; EMBED begins a call.
 * Logits are none of them: they are in IO. */
uint32_t mur_stages_add(mur_stages *stages, const uint32_t *words,
                        mur_stage_values out[MUR_STAGE_MOST]);

/* Where a stage's checksum stands in a row of section STAG; the words of a row. No LOGITS. */
static inline uint32_t mur_stage_index(enum mur_stage stage, uint32_t layer)
{
    return stage == MUR_STAGE_EMBEDDING
               ? 0
               : layer * (MUR_STAGE_LOGITS - MUR_STAGE_QUERIES) + (uint32_t)stage;
}

static inline uint32_t mur_stage_words(const mur_meta *meta)
{
    return mur_stage_index(MUR_STAGE_QUERIES, meta->layers);
}

/* Told of values as they are made: count words of them, the first being of column values->column of
 * token values->row; they are the callee's until it returns. */
typedef void mur_stage_see(void *arg, const mur_stage_values *values, const uint32_t *words,
                           uint32_t count);

typedef struct mur_stage_watch {
    mur_hal hal;            /* for the interpreter, in place of the machine's */
    const mur_hal *machine; /* borrowed */
    uint8_t *io;
    mur_stages stages;
    uint32_t issued[MUR_CPU];
    uint32_t own; /* transfers among them that the interpreter knows nothing of */
    mur_stage_see *see;
    void *arg;
} mur_stage_watch;

/* Makes watch->hal ready, while the engines are idle. Each stage that is seen waits for the engines
 * by asking again, and borrows the room of the logits in IO. */
void mur_stage_watch_begin(mur_stage_watch *watch, const mur_meta *meta, const mur_hal *machine,
                           void *io, mur_stage_see *see, void *arg);

#endif
