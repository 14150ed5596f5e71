/* muc/train.h - trains a language model of the Llama family, or a GPT-2, on the processor. */
#ifndef MUC_TRAIN_H
#define MUC_TRAIN_H

#include "muc/report.h"

MUC_API_BEGIN

/* All-zero is the default but for data. Numbers that are 0 mean what stands in brackets. */
typedef struct muc_train_options {
    const char *data;      /* a text, its documents parted by "<|endoftext|>" */
    bool cases;            /* data and held_out are cases as muc_eval_task has them */
    const char *held_out;  /* of the same kind, to measure perplexity on; NULL: none */
    const char *tokenizer; /* a file; "bpe" or "bytes": made from data; NULL: the model's own */
    uint32_t vocabulary;   /* pieces of "bpe" [512] */
    uint32_t window;       /* most tokens of a piece of a document [the model's context] */
    uint64_t steps;        /* [1000] */
    uint64_t batch;        /* most tokens of a step [2048] */
    double rate;           /* greatest learning rate [0.002] */
    double least_rate;     /* share of it where the cosine ends; negative: [0.05] */
    uint64_t warm_up;      /* steps of the way up from 0 [100, at most a tenth of the steps] */
    double decay;          /* of weights, decoupled, matrices only; negative: [0.1] */
    double clip;           /* greatest norm of the gradients; negative: [1]; 0: any */
    double prompt_loss;    /* share of the cases whose prompt is predicted too */
    uint64_t every; /* steps between states saved, and measurements on held_out [a tenth of all] */
    uint64_t seed;  /* of the first weights and the order of the data */
    double prune;   /* share of heads and of neurons to remove, below 1; 0: none */
    bool resume;    /* go on with the run that out holds */
} muc_train_options;

/* Trains what path is: a config.json, from random weights, or a checkpoint, from its own. out
 * becomes a Hugging Face folder: config.json, model.safetensors (F32), the tokenizer, prompt.txt if
 * path has one beside it; and train.csv, a row a step. While the run lasts train.state is there,
 * written every minute and every `every` steps, with which a run that was cut off goes on bit for
 * bit (resume). The result depends on path, data and options alone, not on the number of threads;
 * another processor may round products otherwise.
 *
 * With prune, the heads and neurons that matter least are masked while the model trains, more and
 * more of them over the first four fifths of the steps, and removed at the end: the layers of the
 * result differ in size. Heads of queries go with their head of keys; a layer keeps one head and
 * eight neurons.
 *
 * Keys: folder, parameters, documents, steps, tokens (fed), seconds and tokens_per_second (of this
 * call), loss (mean of the last tenth of the steps), held_out_loss and held_out_perplexity, and the
 * tables "curve" (step, loss: mean since the row before) and "held_out" (step, loss); of a pruned
 * model also the table "layers" (layer, heads, kv_heads, neurons).
 *
 * Fails with MUC_USAGE if out holds an unfinished run and resume is not asked for, or the other way
 * round; MUC_MALFORMED if it began with other options; MUC_UNSUPPORTED in a build without
 * OpenBLAS. */
muc_status muc_train(muc_context *ctx, const char *path, const muc_train_options *options,
                     const char *out_path, muc_report **out);

MUC_API_END

#endif
