/* stop_texts.h - generated text passes on until one of some texts appears in it. */
#ifndef MUC_RUN_STOP_TEXTS_H
#define MUC_RUN_STOP_TEXTS_H

#include "base/text.h"
#include "muc/run.h"

/* Passes text on, but for what could still become a stop text, which is held until that is known.
 * texts, [count], none empty, are borrowed. All-zero but for next and arg passes everything on. */
typedef struct muc_stop_texts {
    const char *const *texts;
    size_t count;
    muc_text_fn *next; /* or NULL */
    void *arg;
    muc_text held;
    bool found; /* a stop text came; it and what followed were not passed on */
} muc_stop_texts;

/* A muc_text_fn; arg is a muc_stop_texts. False once a stop text was found, or if next says so. */
bool muc_stop_texts_take(void *arg, const char *text, size_t size);
/* The text ends: passes on what was held. Ready for another text then; false if next says so. */
bool muc_stop_texts_end(muc_stop_texts *stops);
void muc_stop_texts_free(muc_stop_texts *stops);

#endif
