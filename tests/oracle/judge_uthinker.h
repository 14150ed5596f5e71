/* judge_uthinker.h - runs a µThinker program for one input and watches what SPEC.md forbids.
 *
 * Written from src/targets/uthinker/SPEC.md alone, as a second opinion of the verifier: it includes
 * nothing of runtime/, knows no intervals, and looks at every row of every access in turn.
 */
#ifndef JUDGE_UTHINKER_H
#define JUDGE_UTHINKER_H

#include <stdbool.h>
#include <stdint.h>

enum { JUDGE_BUFFERS = 5, JUDGE_PLACES = 9, JUDGE_INSNS = 15, JUDGE_MOST_FIELDS = 16 };

/* A field of an instruction, and an instruction: word 0 is common to all. */
typedef struct judge_field {
    const char *name;
    uint8_t word, shift, width;
} judge_field;

typedef struct judge_insn {
    const char *name;
    uint8_t opcode, words;
    char engine; /* 'd'ma, 'a'ccelerator, 'c'pu */
    judge_field fields[JUDGE_MOST_FIELDS];
} judge_insn;

extern const judge_insn judge_insns[JUDGE_INSNS];

/* Told of each item that is executed, in order; of an INST also its resolved fields, in the order
 * of insn->fields. */
typedef void judge_watch(void *arg, const uint32_t *item, const judge_insn *insn,
                         const uint64_t *values);

/* One entry of a program. code and tables are borrowed. */
typedef struct judge_program {
    const uint32_t *code; /* the entry's words alone */
    uint32_t words;
    const uint32_t *tables;       /* section TABL, well-formed */
    uint64_t bytes[JUDGE_PLACES]; /* I0, I1, W0, W1, GB, WGTS, PARM, KV, IO */
    bool wide;                    /* accesses as section 6 takes them, not as they are */
    bool mute;                    /* executed without logits */
    judge_watch *watch;           /* or NULL */
    void *watch_arg;
} judge_program;

/* What a run found. */
typedef struct judge_run {
    uint64_t steps;              /* items executed */
    uint64_t ends[JUDGE_PLACES]; /* the furthest end of an access */
    bool cut;                    /* there was more to execute than was allowed */
} judge_run;

/* The rules of sections 5 and 6 on what is written, whatever the inputs: NULL, or what is wrong.
 * Also a sum of constant loops that has 2^31 items or more. */
const char *judge_form(const judge_program *program);

/* Executes the entry on (pos, m), at most `most` items: NULL, or the first thing forbidden. Only
 * for programs that judge_form accepts. */
const char *judge_execute(const judge_program *program, uint32_t pos, uint32_t m, uint64_t most,
                          judge_run *run);

#endif
