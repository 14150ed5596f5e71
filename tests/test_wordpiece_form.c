/* test_wordpiece_form.c - compiled forms of WordPiece, whole and damaged. */
#include "mur_wordpiece.h"
#include "vocabulary_files.h"

static const char file[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true},{\"id\":1,\"content\":"
    "\"[SEP]\",\"special\":true}],\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":"
    "{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":"
    "[\"[SEP]\",1],\"sep\":[\"[SEP]\",1]},\"decoder\":{\"type\":\"WordPiece\"},\"model\":{\"type\":"
    "\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"vocab\":{"
    "\"[UNK]\":0,\"[SEP]\":1,\"hel\":2,\"##lo\":3,\"h\":4,\"##e\":5,\"!\":6,\"\xe1\x84\x80\":7,"
    "\"##\xe1\x85\xa1\":8,\"\xe0\xa7\x87\":9,\"##\xe0\xa6\xbe\":10}}}";

static void a_form_is_opened_by_what_can_run_it(void **state)
{
    loaded t = load_bytes(ctx, "tokenizer.json", file, sizeof(file) - 1);
    mur_tokenizer opened;

    (void)state;
    /* U+AC00 and U+09CB have two parts each */
    CHECK_IDS(ctx, &t, "H\xc3\x89llo HELLO!\xea\xb0\x80 \xe0\xa7\x8b",
              MUR_ENCODE_BOS | MUR_ENCODE_EOS, 1, 2, 3, 2, 3, 6, 7, 8, 9, 10, 1);
    CHECK_IDS(ctx, &t, "helo[SEP]h", MUR_ENCODE_SPECIAL, 0, 1, 4);
    CHECK_EQ(mur_tokenizer_open(&opened, t.form, t.bytes, NULL), MUR_E_UNSUPPORTED);
    CHECK_EQ(mur_wordpiece_open(&opened, t.form, t.bytes, NULL), MUR_OK);
    for (size_t size = 0; size < t.bytes; size += 4)
        CHECK(mur_wordpiece_open(&opened, t.form, size, NULL) != MUR_OK);
    unload(&t);
}

static void damaged_forms_stay_within_bounds(void **state)
{
    static const char text[] = "hello \xea\xb0\x80\xea\xb0\x81 h!\xe0\xa7\x8b\xe4\xb8\xad";
    loaded t = load_bytes(ctx, "tokenizer.json", file, sizeof(file) - 1);

    (void)state;
    check_damaged_forms(&t, mur_wordpiece_open, text, MUR_ENCODE_SPECIAL);
    unload(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_context, free_context)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_form_is_opened_by_what_can_run_it),
        TEST(damaged_forms_stay_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
