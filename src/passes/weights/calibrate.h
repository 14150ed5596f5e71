/* calibrate.h - what the inputs of every matrix look like, matrix by matrix as they are quantized.
 */
#ifndef MUC_CALIBRATE_H
#define MUC_CALIBRATE_H

#include "base/arena.h"
#include "graph/graph.h"
#include "passes/weights/feedback.h"

/* Texts to calibrate on: token sequences, each from position 0. Borrows everything. */
typedef struct muc_calibration {
    uint32_t count;
    const uint32_t *lengths; /* [count], at least 1, at most the graph's context */
    const int32_t *tokens;   /* one sequence behind the other */
} muc_calibration;

/* How a model's texts begin and end, and how much it is to write. */
typedef struct muc_calibration_marks {
    int32_t first;       /* the token that every text starts with */
    const int32_t *ends; /* [end_count], those that end one */
    uint32_t end_count;
    uint32_t tokens, longest; /* in all, in one text; 0: as below */
} muc_calibration_marks;

/* Texts that the model writes itself in float32: tokens drawn at temperature 1 from a fixed seed,
 * MUC_CALIBRATION_TOKENS in all, at most MUC_CALIBRATION_LENGTH in one unless marks say otherwise.
 * The same on every machine. In the arena. The graph is one of models/llama.h. */
enum { MUC_CALIBRATION_TOKENS = 6440, MUC_CALIBRATION_LENGTH = 161 };
muc_status muc_calibration_generate(muc_context *ctx, muc_graph *graph,
                                    const muc_calibration_marks *marks, muc_arena *arena,
                                    muc_calibration *out);

/* Quantizes one constant matrix and puts what stands for it from now on into values [n][k].
 * feedback is NULL for a matrix that no input is multiplied by. */
typedef muc_status muc_calibrate_matrix(void *arg, uint32_t tensor, const muc_feedback *feedback,
                                        float *values);

/* Calls quantize once for every constant matrix of a LINEAR or EMBED, in the order of the nodes
 * that use them, on inputs from the texts run through the graph as quantized so far, beside what
 * they are in float32. A table that is looked up before it is multiplied by (tied embeddings) is
 * taken on its float32 inputs. Every node runs once for each text and form of the model; held
 * in memory are the activations between two nodes, for all texts. */
muc_status muc_calibrate(muc_context *ctx, muc_graph *graph, const muc_calibration *texts,
                         muc_calibrate_matrix *quantize, void *arg);

#endif
