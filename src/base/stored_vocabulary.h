/* stored_vocabulary.h - a tokenizer as a model file stores it: found by the formats, compiled by
 * text. */
#ifndef MUC_BASE_VOCABULARY_H
#define MUC_BASE_VOCABULARY_H

#include "base/bytes.h"

/* GGUF's tokenizer.ggml.*. Ids are indices of tokens. What the file does not tell is told apart
 * from what it denies, for the model's kind implies the rest. */
typedef struct muc_stored_vocabulary {
    const char *model; /* "llama": SentencePiece; "gpt2": byte-level BPE; "bert": WordPiece */
    const char *pre;   /* name of the splitting rule, or NULL */
    const char *name;  /* what the file calls the whole, or NULL */
    size_t count;
    const muc_string_view *tokens; /* [count] */
    const float *scores;           /* [count], or NULL */
    const int32_t *types;          /* [count] in SentencePiece's numbers, or NULL */
    size_t merge_count;
    const muc_string_view *merges; /* [merge_count], "left right", best first, or NULL */
    int64_t bos, eos, unknown, cls, separator; /* below count; -1 if absent */
    int add_bos, add_eos, add_space_prefix;    /* 0, 1, or -1 if absent */
    int lowercase, strip_accents;              /* the same */
} muc_stored_vocabulary;

#endif
