/* differ.h - one network, as text: what its generated code computes beside the reference. */
#ifndef FUZZ_DIFFER_H
#define FUZZ_DIFFER_H

#include "maker.h"
#include "formats/format.h"
#include "targets/mcu/compile/build_mcu.h"

/* --quant: of a network int8; of a decoder int8, or the numbers of BlockDialect. */
typedef enum fuzz_quant {
    FUZZ_QUANT_NONE,
    FUZZ_QUANT_INT8,
    FUZZ_QUANT_HYBRID,
    FUZZ_QUANT_BLOCKS
} fuzz_quant;

/* How a network is compiled and on what it runs. */
typedef struct fuzz_how {
    const char *machine; /* of a microcontroller */
    muc_mcu_choices choices;
    fuzz_quant quant;
    const char *chip; /* of these processing elements instead, or NULL */
    uint32_t element; /* of the chip: a number of chip_isa.def */
    uint64_t seed;    /* of the arrays */
} fuzz_how;

/* What came of it: FUZZ_VERDICT(id, "name", a failure, "meaning") */
#define FUZZ_VERDICTS(X) \
    X(SAME, "same", false, "the code's results are the reference's") \
    X(UNSTABLE, "unstable", false, "different, as rounding alone makes the reference different") \
    X(BOTH, "both refuse", false, "the reference refuses a run, and so does the code") \
    X(INVALID, "invalid", false, "the reference refuses the network") \
    X(REFUSED, "refused", false, "the compiler refuses what the reference runs") \
    X(WRONG, "wrong", true, "the code's results are others than the reference's") \
    X(PASSES, "passes", true, "what passes made of the network computes something else") \
    X(ANSWERED, "answered", true, "the reference refuses a run that the code answers") \
    X(STOPPED, "stopped", true, "the code refuses a run that the reference answers") \
    X(BROKEN, "broken", true, "the code does not compile, or writes beyond its arena") \
    X(CRASHED, "crashed", true, "the process died") \
    X(SLOW, "slow", true, "it took too long")

typedef enum fuzz_verdict {
#define FUZZ_VERDICT_ENUM(id, name, fails, meaning) FUZZ_##id,
    FUZZ_VERDICTS(FUZZ_VERDICT_ENUM)
#undef FUZZ_VERDICT_ENUM
        FUZZ_VERDICT_COUNT
} fuzz_verdict;

enum { FUZZ_MESSAGE = 256 };

/* Opens, compiles, runs and compares. message: why it is not the same. */
fuzz_verdict fuzz_check(const char *text, const fuzz_how *how, char message[FUZZ_MESSAGE]);
/* The same in a process of its own, which may die or take too long. */
fuzz_verdict fuzz_check_apart(const char *text, const fuzz_how *how, char message[FUZZ_MESSAGE]);
/* What is left of a text when all is taken out without which the verdict stays: to be freed. */
char *fuzz_reduce(const char *text, const fuzz_how *how, fuzz_verdict verdict);

/* ---- generated code, compiled and loaded in memory ---- */

typedef struct fuzz_code fuzz_code;

/* NULL and a message if the compiler does not take it. */
fuzz_code *fuzz_code_new(const muc_mcu_build *build, char message[FUZZ_MESSAGE]);
void fuzz_code_free(fuzz_code *code);
/* Where input or output i is, in the arena. */
void *fuzz_code_input(const fuzz_code *code, uint32_t i);
const void *fuzz_code_output(const fuzz_code *code, uint32_t i);
void fuzz_code_reset(fuzz_code *code); /* states */
/* The code's own status; bindings of all the graph's inputs. */
int fuzz_code_run(fuzz_code *code, const uint32_t *bindings);
/* Whether nothing was written before or behind the arena. */
bool fuzz_code_is_whole(const fuzz_code *code);

#endif
