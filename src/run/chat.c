/* chat.c - finds a model's chat template in the table and writes messages by it. */
#include "run/chat.h"

#include <string.h>

#include "base/choice.h"
#include "run/text_passages.h"

static const muc_chat chats[] = {
#define MUC_CHAT(...) { __VA_ARGS__ },
#include "run/chat.def"
};

static bool has_marks(const char *text, const char *marks)
{
    for (;;) {
        size_t size = strcspn(marks, "\t");

        if (!muc_find_part(text, strlen(text), marks, size))
            return false;
        if (marks[size] == '\0')
            return true;
        marks += size + 1;
    }
}

const muc_chat *muc_chat_of_template(const char *jinja)
{
    for (size_t i = 0; i < MUC_COUNT(chats); i++) {
        if (has_marks(jinja, chats[i].marks))
            return &chats[i];
    }
    return NULL;
}

static muc_status of_model(muc_context *ctx, const muc_model *model, const muc_chat **out)
{
    muc_arena arena = { 0 };
    const char *jinja = NULL;
    muc_status status = MUC_OK;

    *out = NULL;
    if (model->kind == MUC_MODEL_CHECKPOINT)
        status = muc_checkpoint_chat_template(ctx, &model->checkpoint, &arena, &jinja);
    if (status == MUC_OK && jinja)
        *out = muc_chat_of_template(jinja);
    if (status == MUC_OK && !*out)
        status = muc_fail(ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                          "%s; say which one the model was trained with: --chat-template NAME, "
                          "such as chatml or llama3",
                          jinja ? "its chat template is one that muc does not know"
                                : "it carries no chat template");
    muc_arena_free(&arena);
    return status;
}

muc_status muc_chat_find(muc_context *ctx, const muc_model *model, const char *name,
                         const muc_chat **out)
{
    muc_choice choice;

    if (strcmp(name, "auto") == 0)
        return of_model(ctx, model, out);
    for (size_t i = 0; i < MUC_COUNT(chats); i++) {
        if (strcmp(name, chats[i].name) == 0) {
            *out = &chats[i];
            return MUC_OK;
        }
    }
    muc_choice_begin(&choice, name, strlen(name));
    for (size_t i = 0; i < MUC_COUNT(chats); i++)
        muc_choice_add(&choice, chats[i].name);
    return muc_choice_refuse(ctx, &choice, MUC_USAGE, "--chat-template", "chat template");
}

static void add_message(const muc_chat *chat, const char *message, muc_text *out)
{
    muc_passage p = { message, strlen(message) };

    if (chat->trims)
        p = muc_strip(p);
    muc_text_add_bytes(out, p.text, p.size);
}

static void add_system(const muc_chat *chat, const char *system, muc_text *out)
{
    muc_text_add(out, "%s", chat->system_before);
    add_message(chat, system, out);
    muc_text_add(out, "%s", chat->system_after);
}

/* from the message on to where the model answers */
static void add_question(const muc_chat *chat, const char *message, muc_text *out)
{
    add_message(chat, message, out);
    muc_text_add(out, "%s%s", chat->user_after, chat->answer_before);
}

void muc_chat_begin(const muc_chat *chat, const char *system, const char *message, muc_text *out)
{
    if (system && !chat->joins)
        add_system(chat, system, out);
    muc_text_add(out, "%s", chat->user_before);
    if (system && chat->joins)
        add_system(chat, system, out);
    add_question(chat, message, out);
}

void muc_chat_again(const muc_chat *chat, bool ended, const char *message, muc_text *out)
{
    muc_text_add(out, "%s%s%s%s", ended ? "" : chat->answer_end, chat->answer_after, chat->again,
                 chat->user_before);
    add_question(chat, message, out);
}
