/* A program's code: what the verifier accepts must run without a violation on the watching board.
 *
 * Input: bytes min_m, max_m, context, table words; the table; the words of one entry's code.
 */
#include <stdlib.h>
#include <string.h>

#include "../tests/program_file.h"
#include "../tests/program_machine.h"
#include "fuzz.h"

enum { HEAD = 4 };

/* false if it is not even a file */
static int lay_out(hand_program *f, const uint8_t *data, size_t size)
{
    uint32_t table[256], table_words = data[3], words;

    fixture_init(f);
    f->meta.context = data[2];
    f->wgts_bytes = 4800; /* the seeds are the programs of tests/test_mutants.c */
    if (size < HEAD + 4 * table_words)
        return 0;
    memcpy(table, data + HEAD, 4 * table_words);
    if (table_words != 0)
        fixture_table(f, table_words, table);
    words = (uint32_t)(size - HEAD) / 4 - table_words;
    if (words > FIXTURE_WORDS)
        return 0;
    memcpy(f->code, data + HEAD + 4 * table_words, 4 * (size_t)words);
    f->words = words;
    f->entries[f->entry_count++] = (mur_entr){ MUR_ENTRY_PREFILL, 0, words, data[0], data[1] };
    return fixture_build(f) == MUR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hand_program f;
    static machine board;
    uint64_t chance = 1;

    if (size >= HEAD && lay_out(&f, data, size) && mur_verify(&f.program, &f.verifier) == MUR_OK &&
        machine_try(&board, &f.program, &chance, 500) != NULL)
        abort();
    return 0;
}
