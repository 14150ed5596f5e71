/* Chat templates against what llama.cpp and Jinja write, and stop texts that come in pieces. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "chance.h"
#include "run/chat.h"
#include "run/stop_texts.h"

static const struct chat_case {
    const char *name, *jinja, *with_system, *without, *again;
} cases[] = {
#define CHAT_CASE(...) { __VA_ARGS__ },
#include "chat_cases.def"
};

static void templates_are_recognised_by_their_marks(void **state)
{
    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        const muc_chat *chat = muc_chat_of_template(cases[i].jinja);

        assert_true(chat && strcmp(chat->name, cases[i].name) == 0);
    }
    assert_true(muc_chat_of_template("{{ message['content'] }}") == NULL);
    /* Apriel 1.5, whose messages end otherwise than Phi-3's */
    assert_true(muc_chat_of_template("{{- '<|user|>\\n' + message['content'] + '\\n<|end|>\\n' -}}"
                                     "{{- '<|assistant|>\\n' -}}") == NULL);
    assert_true(muc_chat_of_template("") == NULL);
}

static void conversations_are_those_of_llama_cpp_and_jinja(void **state)
{
    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        const muc_chat *chat = muc_chat_of_template(cases[i].jinja);
        muc_text text[4] = { { 0 } };

        muc_chat_begin(chat, "Be brief. ", " Hello?", &text[0]);
        muc_chat_begin(chat, NULL, " Hello?", &text[1]);
        muc_chat_again(chat, true, "Why?", &text[2]);
        muc_chat_again(chat, false, "Why?", &text[3]);
        assert_true(strcmp(text[0].data, cases[i].with_system) == 0);
        assert_true(strcmp(text[1].data, cases[i].without) == 0);
        assert_true(strcmp(text[2].data, cases[i].again) == 0);
        assert_true(strncmp(text[3].data, chat->answer_end, strlen(chat->answer_end)) == 0);
        assert_true(strcmp(text[3].data + strlen(chat->answer_end), cases[i].again) == 0);
        for (unsigned t = 0; t < 4; t++)
            muc_text_free(&text[t]);
    }
}

static bool collect(void *arg, const char *text, size_t size)
{
    muc_text_add_bytes(arg, text, size);
    return true;
}

/* where a stop text begins, of the shortest beginning of the text that ends with one */
static size_t first_of(const char *text, const char *const *stops, size_t count)
{
    for (size_t end = 1; end <= strlen(text); end++) {
        size_t longest = 0;

        for (size_t i = 0; i < count; i++) {
            size_t length = strlen(stops[i]);

            if (length <= end && length > longest &&
                memcmp(text + end - length, stops[i], length) == 0)
                longest = length;
        }
        if (longest)
            return end - longest;
    }
    return strlen(text);
}

static void a_text_ends_before_the_first_stop_text_however_it_is_cut(void **state)
{
    (void)state;
    static const char *const stops[] = { "aab", "ba", "abab" };
    for (unsigned round = 0; round < 5000; round++) {
        size_t count = random_u32() % 4, length = random_u32() % 16, at = 0, end;
        char text[17] = { 0 };
        muc_text got = { 0 };
        muc_stop_texts filter = { .texts = stops, .count = count, .next = collect, .arg = &got };

        for (size_t i = 0; i < length; i++)
            text[i] = "abc"[random_u32() % 3];
        end = first_of(text, stops, count);
        while (at < length) {
            size_t size = 1 + random_u32() % (length - at);

            if (!muc_stop_texts_take(&filter, text + at, size))
                break;
            at += size;
        }
        assert_true(filter.found == (end < length));
        assert_true(muc_stop_texts_end(&filter));
        assert_true(got.size == end && (end == 0 || memcmp(got.data, text, end) == 0));
        muc_stop_texts_free(&filter);
        muc_text_free(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_are_recognised_by_their_marks),
        cmocka_unit_test(conversations_are_those_of_llama_cpp_and_jinja),
        cmocka_unit_test(a_text_ends_before_the_first_stop_text_however_it_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
