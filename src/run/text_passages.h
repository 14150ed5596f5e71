/* text_passages.h - a text file as the passages between its marks. */
#ifndef MUC_RUN_PASSAGES_H
#define MUC_RUN_PASSAGES_H

#include "base/arena.h"
#include "base/bytes.h"

#define MUC_DOCUMENT_MARK "<|endoftext|>"

typedef struct muc_passage {
    const char *text; /* not terminated */
    size_t size;
} muc_passage;

bool muc_is_space(char c);               /* of ASCII, in any locale */
muc_passage muc_strip(muc_passage text); /* without white space at both ends */

/* What lies between the marks, stripped, without the empty ones, `limit` at most (0: all). The
 * array is arena-owned, the texts borrow bytes. Fails with MUC_MALFORMED if there is none. */
muc_status muc_split_passages(muc_context *ctx, muc_bytes bytes, const char *mark, uint32_t limit,
                              muc_arena *arena, muc_passage **out, size_t *count);

/* One case of a task: its last line is "LABEL: ANSWER". */
typedef struct muc_case {
    size_t prompt_bytes; /* of the passage, up to and including the last line's colon */
    muc_passage answer;  /* stripped */
} muc_case;

/* number: of the case, from 0, for the message of MUC_MALFORMED; name: of its file. */
muc_status muc_read_case(muc_context *ctx, const char *name, muc_passage passage, size_t number,
                         muc_case *out);

#endif
