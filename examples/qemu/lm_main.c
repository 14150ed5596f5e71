/* lm_main.c - a language model's generated code on an emulated board: continues a prompt, the
 * likeliest token each time, as `muc run` does.
 *
 * The program file is the most tokens to make, u32, 0: no bound, then the prompt in its frame.
 * Standard output gets the text, then three u32: tokens of the prompt, tokens made, and why it
 * ended, of enum end. Each run, the prompt's first, and the choice of a token after it are a region
 * for bench/instructions/count.
 *
 * LM_HEADER is the model's NAME_lm.h, LM(x) is NAME_x, LM_SIZE(x) NAME_x of its enumerations.
 */
#include LM_HEADER

#include <string.h>

#include "markers.h"
#include "semihosting.h"

extern const uint8_t program_file[], program_file_end[];

enum { MOST_BYTES = 2048 }; /* of a prompt in its frame */
enum end { END_OF_TEXT, END_LENGTH, END_CONTEXT };

static uint8_t arena[LM_SIZE(ARENA_BYTES)] __attribute__((aligned(LM_SIZE(ARENA_ALIGNMENT))));
static uint32_t scratch[5 * MOST_BYTES], ids[2 * MOST_BYTES + 2]; /* of the tokenizer */

static int refuse(const char *why)
{
    host_print(HOST_STDERR, why);
    return 1;
}

int main(void);

int main(void)
{
    const uint8_t *prompt = program_file + sizeof(uint32_t), *bytes;
    size_t size = (size_t)(program_file_end - prompt), count;
    uint32_t most, pos = 0, given, token, previous, made = 0;
    mur_sampler sampler = { 0, 1, 0, 0, 0 }; /* the likeliest token */
    uint32_t *tokens = ids, told[3];
    mur_tokenizer tokenizer;
    enum end end = END_OF_TEXT;

    host_open();
    memcpy(&most, program_file, sizeof(most));
    if (size > MOST_BYTES)
        return refuse("boards take prompts of at most 2048 bytes\n");
    if (LM(open)(&tokenizer) != MUR_OK ||
        mur_tokenizer_encode(&tokenizer, prompt, size, MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, scratch,
                             sizeof(scratch), ids, sizeof(ids) / sizeof(*ids), &count) != MUR_OK)
        return refuse("the tokenizer refuses the prompt\n");
    if (count == 0 || count >= LM_SIZE(CONTEXT))
        return refuse("the prompt is empty, or fills the model's context\n");
    given = (uint32_t)count;
    previous = ids[count - 1];
    for (;;) {
        const float *logits;

        COUNT_BEGIN();
        logits = LM(feed)(arena, pos, tokens, (uint32_t)count);
        token = logits ? mur_sampler_next(&sampler, logits, LM_SIZE(VOCABULARY), NULL) : 0;
        COUNT_END();
        if (!logits)
            return refuse("the model refuses a token\n");
        if (LM(ends)(token))
            break;
        size = mur_tokenizer_decode(&tokenizer, token, previous, &bytes);
        host_write(HOST_STDOUT, bytes, size);
        pos += (uint32_t)count;
        if (++made == most || pos == LM_SIZE(CONTEXT)) {
            end = made == most ? END_LENGTH : END_CONTEXT;
            break;
        }
        previous = token;
        tokens = &previous;
        count = 1;
    }
    told[0] = given;
    told[1] = made;
    told[2] = end;
    host_write(HOST_STDOUT, (const uint8_t *)told, sizeof(told));
    return 0;
}
