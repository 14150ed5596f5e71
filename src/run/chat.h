/* chat.h - how models that answer were trained to see a conversation (chat.def). */
#ifndef MUC_RUN_CHAT_H
#define MUC_RUN_CHAT_H

#include "base/text.h"
#include "run/opened_model.h"

/* A row of chat.def. */
typedef struct muc_chat {
    const char *name, *marks;
    bool trims, joins;
    const char *system_before, *system_after, *again, *user_before, *user_after;
    const char *answer_before, *answer_end, *answer_after;
} muc_chat;

/* The row that a model's own template means, or NULL: it is none of the table. */
const muc_chat *muc_chat_of_template(const char *jinja);
/* The row of this name or, with "auto", the one that the model's own template means. Fails with
 * MUC_USAGE for an unknown name, naming the table's, and MUC_UNSUPPORTED for a model without a
 * template, or with one that the table does not have, telling what to do. */
muc_status muc_chat_find(muc_context *ctx, const muc_model *model, const char *name,
                         const muc_chat **out);

/* Adds a conversation's beginning; system may be NULL. */
void muc_chat_begin(const muc_chat *chat, const char *system, const char *message, muc_text *out);
/* Adds what follows an answer: ended tells that the model wrote its end itself. */
void muc_chat_again(const muc_chat *chat, bool ended, const char *message, muc_text *out);

#endif
