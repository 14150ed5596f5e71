/* main.c - a robot's firmware in miniature: a program in flash, verified, tested, made to speak.
 *
 * The accelerator is the simulator that muc itself runs programs on, behind the HAL that a driver
 * of the real one would fill in. Arguments: the number of tokens to make, then the prompt.
 */
#include <string.h>

#include "firmware.h"
#include "mur_lm.h"
#include "mur_unigram.h"
#include "targets/uthinker/sim/uthinker_sim.h"

extern const uint8_t program_file[], program_file_end[];

/* MOST_STEPS: items of a call that this board has time for; CALL_STEPS: those after which it looks
 * after something else */
enum { ARGUMENTS = 2048, TOKENS = 2048, MOST_STEPS = 1 << 20, CALL_STEPS = 1000 };

static mur_program program;
static mur_tokenizer tokenizer;
static mur_sim sim;
static mur_hal hal;
static mur_lm lm;

static void tell(const char *before, uint32_t number, const char *after)
{
    host_print(HOST_STDERR, before);
    host_print_number(HOST_STDERR, number);
    host_print(HOST_STDERR, after);
}

/* ---- a machine that is broken, to see what the self test says of it ---- */

#ifdef BREAK_INSN /* the instruction and the field that addresses what becomes wrong in GB */
enum {
#define MUR_INSN(name, opcode, words, engine, meaning) OPCODE_##name = opcode,
#define MUR_FIELD(insn, name, word, shift, width, unit) WORD_##insn##_##name = word,
#include "mur_isa.def"
    ADDRESS = 0x3ffff
};
#define JOIN(a, b) a##b
#define OPCODE_OF(insn) JOIN(OPCODE_, insn)
#define JOIN_FIELD(insn, name) WORD_##insn##_##name
#define WORD_OF(insn, name) JOIN_FIELD(insn, name)

static void spoil(void *arg, mur_sim *machine, enum mur_engine engine, const uint32_t *words)
{
    uint32_t *gb = (uint32_t *)(void *)machine->memory.gb;

    (void)arg, (void)engine;
    if ((words[0] & 0xff) == OPCODE_OF(BREAK_INSN))
        gb[words[WORD_OF(BREAK_INSN, BREAK_FIELD)] & ADDRESS] ^= 1;
}
#endif

/* ---- the steps to a model that speaks ---- */

static void load_program(void)
{
    mur_verifier *scratch = (mur_verifier *)(void *)heap; /* taken by nobody yet */
    mur_status status;

    status = mur_open(&program, program_file, (size_t)(program_file_end - program_file));
    if (status != MUR_OK)
        stop("program", status);
    status = mur_check(&program, NULL);
    if (status != MUR_OK)
        stop("checksums", status);
    status = mur_verify(&program, scratch);
    if (status != MUR_OK) {
        tell("word ", scratch->verdict.word, ", ");
        tell("reason ", scratch->verdict.reason, "\n");
        stop("verifier", status);
    }
    tell("verified: at most ", program.steps, " steps a call\n");
    if (program.steps > MOST_STEPS)
        stop("steps", MUR_E_NOFIT);
}

static void start_machine(void)
{
    const uint32_t sizes[MUR_BUFFERS] = { program.mach->i0, program.mach->i1, program.mach->w0,
                                          program.mach->w1, program.mach->gb };
    mur_sim_memory memory;

    for (uint32_t i = 0; i < MUR_GB; i++)
        memory.buffer[i] = take(sizes[i]);
    memory.gb = take(sizes[MUR_GB]);
    memcpy(memory.buffer_bytes, sizes, sizeof(sizes));
    memory.isa = program.mach->isa;
    memory.wgts = program.section[MUR_SECTION_WGTS];
    memory.parm = program.section[MUR_SECTION_PARM];
    memory.kv = take(program.region_bytes[MUR_KV]);
    memory.io = take(program.region_bytes[MUR_IO]);
    memcpy(memory.region_bytes, program.region_bytes, sizeof(memory.region_bytes));
    mur_sim_init(&sim, &memory, MUR_SIM_RANDOM, 1); /* engines as unpredictable as real ones */
#ifdef BREAK_INSN
    sim.probe = spoil;
#endif
    hal = mur_sim_hal(&sim);
}

/* The board computes what the compiler promised, or here is where it first did not. */
static void test_model(void)
{
    static const char *const stages[MUR_STAGES + 1] = {
#define MUR_STAGE(name, words, node) words,
#include "mur_stages.def"
        "none: an engine failed",
    };
    mur_lm_difference first;
    mur_status status = mur_lm_self_test(&lm, &first);

    if (status != MUR_OK) {
        tell("self test: position ", first.position, ", ");
        tell("layer ", first.layer, ", stage: ");
        host_print(HOST_STDERR, stages[first.stage]);
        host_print(HOST_STDERR, "\n");
        stop("self test", status);
    }
    tell("self test: ", first.position, " positions, every bit\n");
}

static void start_model(void)
{
    mur_status status = mur_lm_open(&lm, &program, &hal, sim.memory.io);

    if (status != MUR_OK)
        stop("model", status);
    lm.budget = CALL_STEPS;
    test_model();
    status = mur_unigram_open(&tokenizer, program.section[MUR_SECTION_TOKN],
                              program.section_bytes[MUR_SECTION_TOKN], mur_nfc);
    if (status != MUR_OK)
        stop("tokenizer", status);
}

/* ---- text ---- */

/* "N PROMPT"; returns where the prompt begins */
static const char *read_arguments(char *text, uint32_t *most)
{
    const char *p = text;

    if (!host_arguments(text, ARGUMENTS))
        stop("arguments", MUR_E_NOFIT);
    for (*most = 0; *p >= '0' && *p <= '9'; p++)
        *most = 10 * *most + (uint32_t)(*p - '0');
    return *p == ' ' ? p + 1 : p;
}

/* The prompt in the model's own frame: section PRMT, with the prompt in place of its mark. */
static size_t frame_prompt(const char *prompt, char *out)
{
    static const char mark[] = "{prompt}";
    const char *frame = (const char *)program.section[MUR_SECTION_PRMT];
    uint32_t left = program.section_bytes[MUR_SECTION_PRMT], length = sizeof(mark) - 1;
    size_t size = 0, prompt_size = 0;

    while (prompt[prompt_size] != 0)
        prompt_size++;
    if (prompt_size + left > ARGUMENTS)
        stop("prompt", MUR_E_NOFIT);
    if (!frame) {
        memcpy(out, prompt, prompt_size);
        return prompt_size;
    }
    while (left != 0) {
        if (left >= length && memcmp(frame, mark, length) == 0) {
            memcpy(out + size, prompt, prompt_size);
            size += prompt_size;
            frame += length;
            left -= length;
        } else {
            out[size++] = *frame++;
            left--;
        }
    }
    return size;
}

/* arg: a flag, 1 until the first letter: an answer does not begin with spaces */
static void write_out(void *arg, const uint8_t *bytes, size_t count)
{
    int *leading = arg;

    for (; *leading && count != 0 && (*bytes == ' ' || *bytes == '\n'); count--)
        bytes++;
    if (count != 0)
        *leading = 0;
    host_write(HOST_STDOUT, bytes, count);
}

static void speak(void)
{
    char *arguments = take(ARGUMENTS), *prompt = take(ARGUMENTS);
    uint32_t *ids = take(TOKENS * sizeof(*ids)), most;
    const char *words = read_arguments(arguments, &most);
    size_t size = frame_prompt(words, prompt), count;
    uint32_t scratch_bytes = (uint32_t)mur_tokenizer_scratch_bytes(&tokenizer, size);
    mur_sampler sampler = { 0, 1, 0, 0, 0 }; /* the likeliest token, always */
    int answers = program.section[MUR_SECTION_PRMT] != NULL, leading = answers;
    mur_lm_text text = {
        &lm, &tokenizer, &sampler, NULL, write_out, &leading, MUR_LM_GOING, 0, 0, 0
    };
    mur_status status;

    status = mur_tokenizer_encode(&tokenizer, (const uint8_t *)prompt, size,
                                  MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, take(scratch_bytes),
                                  scratch_bytes, ids, TOKENS, &count);
    if (status != MUR_OK)
        stop("prompt", status);
    status = mur_lm_begin(&text, ids, (uint32_t)count, most);
    if (status != MUR_OK)
        stop("prompt", status);
    if (!answers)
        host_print(HOST_STDOUT, words);
    while (text.end == MUR_LM_GOING) {
        status = mur_lm_step(&text); /* MUR_YIELD: a robot would look after its legs now */
        if (status != MUR_OK && status != MUR_YIELD)
            stop("model", status);
    }
    host_print(HOST_STDOUT, "\n");
    tell("", text.made, " tokens\n");
}

int main(void);

int main(void)
{
    heap = heap_start;
    host_open();
    load_program();
    start_machine();
    start_model();
    speak();
    return 0;
}
