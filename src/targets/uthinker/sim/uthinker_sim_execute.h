/* uthinker_sim_execute.h - what each instruction of µThinker does, for uthinker_sim.c, which says
 * when. */
#ifndef MUR_SIM_EXECUTE_H
#define MUR_SIM_EXECUTE_H

#include "uthinker_sim.h"

typedef struct mur_sim_instruction {
    /* returns why the machine stops, or NULL; run is NULL where there is no such instruction */
    const char *(*run)(mur_sim *sim, const uint32_t *words);
    uint8_t engine, words;
} mur_sim_instruction;

/* by opcode */
extern const mur_sim_instruction mur_sim_instructions[MUR_SIM_OPCODES];

extern const char mur_sim_malformed_block[];

/* Can products be kept while this one runs? */
int mur_sim_can_wait(const uint32_t *words);

/* Does an instruction read and write nothing that a product behind it, of the same left operand as
 * MM mm, reads? Its results may be in GB alone. */
int mur_sim_can_follow(const uint32_t *words, const uint32_t *mm);

/* Does an instruction that was put off. Returns 0 if the machine stopped. */
int mur_sim_run_now(mur_sim *sim, enum mur_engine engine, const uint32_t *words);

/* Copies what lies elsewhere of the bytes at addr of a buffer to where it belongs, with all that
 * was loaded with it, or ends there: a product may read on from that to those. No product is kept.
 */
void mur_sim_copy_views(mur_sim *sim, uint32_t buffer, uint32_t addr, uint32_t len);

/* The same of bytes that were written where a view ends or begins, if there are any. */
void mur_sim_copy_beside(mur_sim *sim, uint32_t buffer);

/* Puts the product into op->out, as MM does. Returns 0 if a block is malformed. */
int mur_sim_multiply(mur_sim *sim, const mur_sim_product *op);

/* Bytes of a row of k elements in fixed slots: B(k, terms) of SPEC.md. */
uint32_t mur_sim_slots_bytes(uint32_t k, uint32_t terms);

/* Writes k numbers as fixed slots; returns their end. */
uint8_t *mur_sim_write_slots(const mur_sim *sim, const float *x, uint32_t k, uint32_t terms,
                             uint8_t *out);

/* Bytes that a QPACK writes, and those of columns first..past-1, to `out` and on. */
uint32_t mur_sim_packed_bytes(const mur_sim_packing *of);
void mur_sim_pack(const mur_sim *sim, const mur_sim_packing *of, uint32_t first, uint32_t past,
                  uint8_t *out);

/* The steps of a row of SMAX, whose scores s[w..v-1] are seen: scales them, and returns their
 * maximum, that of `max` too unless it is the first; makes them probabilities, and returns their
 * sum; scales what the values gave so far, or zeroes it. */
float mur_sim_smax_scale(float *s, uint32_t w, uint32_t v, float scale, int first, float max);
float mur_sim_smax_weigh(const mur_sim *sim, float *s, uint32_t w, uint32_t v, float max);
void mur_sim_smax_rescale(float *o, uint32_t k, int first, float factor);

/* A row of SMAX: s[0..v-1] are the scores, and become the probabilities; those before s[w] are
 * hidden. */
void mur_sim_smax_row(const mur_sim *sim, float *s, uint32_t w, uint32_t v, float scale, int first,
                      float *state, float *o, uint32_t k);

/* Binary32 patterns of SPEC.md section 3: exp's coefficients, the constant first, and log2(e). */
extern const uint32_t mur_sim_exp_bits[7], mur_sim_log2e_bits;

#endif
