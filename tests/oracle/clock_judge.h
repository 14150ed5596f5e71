/* clock_judge.h - how long a call takes, once more: written from section 9 of SPEC.md alone.
 *
 * Where the compiler's clock computes each instruction's times in program order, this one keeps a
 * time that moves on from event to event: CPU and engines look at it, and at each other's state,
 * and do what they can.
 */
#ifndef CLOCK_JUDGE_H
#define CLOCK_JUDGE_H

#include "judge_uthinker.h"

/* The keys of section [time]; what section 9 calls them. */
typedef struct clock_machine {
    uint64_t acc_khz, cpu_khz, dram_mbs, dram_burst, dma_bytes, dma_start, dma_latency, dma_queue,
        acc_queue, hardware_tokens, mm_start, vector_start, vector_width, vector_passes, cpu_cpk,
        cpu_start, cpu_inst, cpu_word, cpu_patch, cpu_wait, cpu_patched, cpu_eval, cpu_for,
        cpu_next, cpu_end, cpu_embed, cpu_logit, cpu_sample, cpu_sequencer, sequencer_start,
        sequencer_word;
    uint64_t tile_k, tile_n, tokens;
} clock_machine;

/* What a call takes, in picoseconds, and the sums that its roofs come from. */
typedef struct clock_verdict {
    uint64_t ps;
    uint64_t passes, burst_bytes, cpu_instructions;
} clock_verdict;

/* logits: those of which one is chosen at the end, by drawing or the likeliest; 0: none is. Only
 * for a program and inputs that judge_execute finds fine within `most` items; false for others, or
 * if memory is short. */
bool clock_judge(const judge_program *program, const clock_machine *machine, uint32_t pos,
                 uint32_t m, uint64_t most, uint64_t logits, bool drawn, clock_verdict *out);

#endif
