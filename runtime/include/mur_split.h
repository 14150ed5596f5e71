/* mur_split.h - how text is cut into segments before merging, as tables; no merge crosses a cut.
 *
 * Stages cut one after the other, each what the one before it left whole. A stage is an automaton
 * over classes of characters: from its start it reads as long as it can, and cuts after the last
 * match. Where nothing matches, it cuts before the next place where something does.
 *
 * The tables: little-endian words.
 *
 *   stages, runs, classes
 *   run      [runs]    ascending. bits 0..7 the class, 8..31 the first of a run of characters
 *   stage    [stages]  a word, the number of states; then, padded with 0 to a word, 16 bits for
 *                      [state][class]. bits 0..14 the next state, bit 15: a match ends before the
 *                      character. The last class is the end of the text. State 0 is failure, 1 the
 *                      start.
 */
#ifndef MUR_SPLIT_H
#define MUR_SPLIT_H

#include <stddef.h>
#include <stdint.h>

enum { MUR_SPLIT_STAGES = 8, MUR_SPLIT_MATCH = 0x8000 };

/* Borrows the tables; for mur_split.c. */
typedef struct mur_splitter {
    const uint32_t *runs;
    uint32_t run_count, columns, stage_count;
    const uint16_t *stages[MUR_SPLIT_STAGES];
} mur_splitter;

/* Checks the tables, so that every use ends and stays within them; 0 if they are damaged. No words
 * at all are a splitter that cuts nowhere. */
int mur_split_open(mur_splitter *splitter, const uint32_t *words, size_t count);

/* Where each stage's piece ends; all-zero at the start of a text. */
typedef struct mur_cuts {
    size_t ends[MUR_SPLIT_STAGES];
} mur_cuts;

/* Where the segment that begins at `at` ends; at < size, and is 0 or what the last call returned.
 */
size_t mur_split_next(const mur_splitter *splitter, mur_cuts *cuts, const uint8_t *text,
                      size_t size, size_t at);

#endif
