/* emit_front_end.c - prints an audio front end as C99. */
#include "targets/mcu/emit/emit_front_end.h"

#include <inttypes.h>

#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/program/c_text.h"

/* ---- arrays ---- */

typedef enum element { ELEMENT_F32, ELEMENT_I16, ELEMENT_U16, ELEMENT_I32 } element;

static const struct {
    const char *type;
    unsigned bytes, on_a_line;
} elements[] = {
    { "float", 4, 6 },
    { "int16_t", 2, 14 },
    { "uint16_t", 2, 14 },
    { "int32_t", 4, 8 },
};

static void print_element(const void *values, element kind, size_t i, muc_text *text)
{
    switch (kind) {
    case ELEMENT_F32:
        muc_mcu_print_real(text, (double)((const float *)values)[i], false);
        break;
    case ELEMENT_I16:
        muc_text_add(text, "%d", ((const int16_t *)values)[i]);
        break;
    case ELEMENT_U16:
        muc_text_add(text, "%u", ((const uint16_t *)values)[i]);
        break;
    case ELEMENT_I32:
        muc_text_add(text, "%" PRId32, ((const int32_t *)values)[i]);
        break;
    }
}

/* nothing of no values */
static void print_array(const char *name, const void *values, size_t count, element kind,
                        muc_text *text)
{
    if (!count)
        return;
    muc_text_add(text, "static const %s %s[%zu] = {", elements[kind].type, name, count);
    for (size_t i = 0; i < count; i++) {
        muc_text_add(text, i % elements[kind].on_a_line ? ", " : i ? ",\n    " : "\n    ");
        print_element(values, kind, i, text);
    }
    muc_text_add(text, "\n};\n");
}

/* ---- tables ---- */

/* elements of the cosine transform */
static size_t cosine_count(const muc_front_end *front)
{
    return (size_t)front->cepstra * front->bands;
}

uint64_t muc_mcu_front_bytes(const muc_mcu_front_end *front_end, bool is_float)
{
    const muc_front_end *front = front_end->front;
    uint64_t narrow = front->window + front_end->tables->weight_count + cosine_count(front);

    return 4 * ((uint64_t)front->bands + front->fft / 4 + 1) + narrow * (is_float ? 4 : 2);
}

static void begin_source(const muc_mcu_program *program, const char *what, muc_text *text)
{
    muc_text_add(text, "/* %s - made by muc; not to be edited. */\n#include \"%s.h\"\n\n", what,
                 program->name);
}

void muc_mcu_front_shared(const muc_mcu_program *program, muc_text *text)
{
    const mur_front_end_shape *shape = &program->front_end->tables->f32.shape;

    begin_source(program, "where bands lie in a spectrum", text);
    muc_text_add(text, "const uint16_t %s_first[%u] = {", program->name, shape->bands);
    for (uint32_t b = 0; b < shape->bands; b++)
        muc_text_add(text, "%s%u", b ? ", " : "\n    ", shape->first[b]);
    muc_text_add(text, "\n};\nconst uint16_t %s_bins[%u] = {", program->name, shape->bands);
    for (uint32_t b = 0; b < shape->bands; b++)
        muc_text_add(text, "%s%u", b ? ", " : "\n    ", shape->bins[b]);
    muc_text_add(text, "\n};\n");
}

static void print_shape(const muc_mcu_program *program, const char *type, muc_text *text)
{
    const mur_front_end_shape *shape = &program->front_end->tables->f32.shape;

    muc_text_add(
        text,
        "\nconst mur_front_end_%s %s_%s = {\n    { %u, %u, %u, %u, %u, %u, %u, %u, %u, %s_first, "
        "%s_bins },\n    window, sines, weights, ",
        type, program->name, type, shape->window, shape->hop, shape->fft, shape->bands,
        shape->features, shape->begin, shape->end, shape->power, shape->is_floor, program->name,
        program->name);
}

/* one arithmetic's: window, sines, weights and cosine */
static void print_tables(const muc_mcu_program *program, const char *what, const char *type,
                         const void *const tables[4], const element kinds[4], muc_text *text)
{
    static const char *const names[] = { "window", "sines", "weights", "cosine" };
    const muc_front_end *front = program->front_end->front;
    const size_t counts[] = { front->window, front->fft / 4 + 1,
                              program->front_end->tables->weight_count, cosine_count(front) };

    begin_source(program, what, text);
    for (size_t i = 0; i < MUC_COUNT(names); i++)
        print_array(names[i], tables[i], counts[i], kinds[i], text);
    print_shape(program, type, text);
}

void muc_mcu_front_float(const muc_mcu_program *program, muc_text *text)
{
    static const element kinds[] = { ELEMENT_F32, ELEMENT_F32, ELEMENT_F32, ELEMENT_F32 };
    const muc_front_end *front = program->front_end->front;
    const mur_front_end_f32 *f32 = &program->front_end->tables->f32;

    print_tables(program, "the front end's tables of floats", "f32",
                 (const void *[]){ f32->window, f32->sines, f32->weights, f32->cosine }, kinds,
                 text);
    muc_mcu_print_real(text, (double)f32->least, false);
    muc_text_add(text, ", ");
    muc_mcu_print_real(text, (double)f32->log_factor, false);
    muc_text_add(text, ", %s\n};\n", front->cepstra ? "cosine" : "0");
}

void muc_mcu_front_fixed(const muc_mcu_program *program, muc_text *text)
{
    static const element kinds[] = { ELEMENT_U16, ELEMENT_I32, ELEMENT_U16, ELEMENT_I16 };
    const muc_front_end *front = program->front_end->front;
    const mur_front_end_q16 *q16 = &program->front_end->tables->q16;

    print_tables(program, "the front end's tables of integers", "q16",
                 (const void *[]){ q16->window, q16->sines, q16->weights, q16->cosine }, kinds,
                 text);
    muc_text_add(text, "%d, %d, %" PRIu32 "u, %d, %" PRIu32 "u, %s\n};\n", q16->weight_shift,
                 q16->most_shift, q16->least, q16->least_shift, q16->log_factor,
                 front->cepstra ? "cosine" : "0");
}

/* ---- header, example ---- */

static void print_define(const muc_mcu_program *program, const char *name, uint32_t value,
                         muc_text *text)
{
    muc_text_add(text, "#define ");
    muc_mcu_print_upper(text, program->name);
    muc_text_add(text, "_%s %" PRIu32 "u\n", name, value);
}

void muc_mcu_front_header(const muc_mcu_program *program, muc_text *text)
{
    const muc_front_end *front = program->front_end->front;
    const char *name = program->name;

    muc_text_add(text, "/* %s.h - made by muc; not to be edited.\n *\n * --features ", name);
    muc_front_end_print(front, text);
    muc_text_add(text, "\n */\n#ifndef ");
    muc_mcu_print_upper(text, name);
    muc_text_add(text, "_H\n#define ");
    muc_mcu_print_upper(text, name);
    muc_text_add(text, "_H\n\n#include \"mur_front_end.h\"\n\n"
                       "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    print_define(program, "RATE", front->rate, text);
    print_define(program, "WINDOW", front->window, text);
    print_define(program, "HOP", front->hop, text);
    print_define(program, "BANDS", front->bands, text);
    print_define(program, "FEATURES", muc_front_end_features(front), text);
    print_define(program, "SCRATCH_BYTES", MUR_FRONT_END_SCRATCH_BYTES(front->fft, front->bands),
                 text);
    muc_text_add(text,
                 "\n/* For mur_front_end_f32_run and mur_front_end_q16_run. */\n"
                 "extern const mur_front_end_f32 %s_f32;\n"
                 "extern const mur_front_end_q16 %s_q16;\n\n"
                 "/* what both share */\n"
                 "extern const uint16_t %s_first[%u], %s_bins[%u];\n\n"
                 "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
                 name, name, name, front->bands, name, front->bands);
}

void muc_mcu_front_main(const muc_mcu_program *program, muc_text *text)
{
    const char *name = program->name;

    muc_text_add(text,
                 "/* main.c - features of samples: 16 bits each from standard input, a line for "
                 "each frame; with any\n * argument computed in integers. */\n"
                 "#include <stdio.h>\n#include <string.h>\n\n#include \"%s.h\"\n\n"
                 "enum { WINDOW = %u, HOP = %u, FEATURES = %u };\n\n"
                 "int main(int argc, char **argv)\n{\n"
                 "    static int16_t samples[WINDOW];\n",
                 name, program->front_end->front->window, program->front_end->front->hop,
                 muc_front_end_features(program->front_end->front));
    muc_text_add(text, "    static union { int64_t align; uint8_t bytes[");
    muc_mcu_print_upper(text, name);
    muc_text_add(text, "_SCRATCH_BYTES]; } scratch;\n"
                       "    static float real[FEATURES];\n"
                       "    static int32_t fixed[FEATURES];\n"
                       "    size_t kept = 0;\n\n"
                       "    (void)argv;\n");
    muc_text_add(
        text,
        "    while (fread(samples + kept, sizeof(*samples), WINDOW - kept, stdin) == WINDOW - "
        "kept) "
        "{\n"
        "        if (argc > 1)\n"
        "            mur_front_end_q16_run(&%s_q16, samples, &scratch, fixed);\n"
        "        else\n"
        "            mur_front_end_f32_run(&%s_f32, samples, &scratch, real);\n"
        "        for (int i = 0; i < FEATURES; i++)\n"
        "            printf(\"%%.6g%%c\", argc > 1 ? fixed[i] / 65536.0 : (double)real[i],\n"
        "                   i + 1 < FEATURES ? ' ' : '\\n');\n"
        "        kept = WINDOW - HOP;\n"
        "        memmove(samples, samples + HOP, kept * sizeof(*samples));\n"
        "    }\n"
        "    return 0;\n}\n",
        name, name);
}

void muc_mcu_front_readme(const muc_mcu_program *program, muc_text *text)
{
    const muc_mcu_front_end *front_end = program->front_end;
    const char *name = program->name, *code = program->package->code;

    muc_text_add(text,
                 "# %s\n\nAn audio front end, made by muc. Another one of the same:\n\n"
                 "    muc frontend --features ",
                 name);
    muc_front_end_print(front_end->front, text);
    muc_text_add(text,
                 " --name %s -o FOLDER\n\n`%s_f32` and `%s_q16` (`%s.h`) are for the functions of "
                 "`mur_front_end.h`, `main.c` is an example. Tables take %" PRIu64
                 " bytes for floats, %" PRIu64 " for integers;\nthose that nobody names are not "
                 "linked. Scratch takes %u bytes during a frame.\n\n"
                 "    cc -std=c99 -O2 -ffp-contract=off -I%s -I%s main.c %s%s.c",
                 name, name, name, name, muc_mcu_front_bytes(front_end, true),
                 muc_mcu_front_bytes(front_end, false),
                 MUR_FRONT_END_SCRATCH_BYTES(front_end->front->fft, front_end->front->bands),
                 *code ? code : ".", program->package->headers, code, name);
    for (uint32_t i = 0; i < program->source_count; i++)
        muc_text_add(text, " %s%s", code, program->sources[i]);
    muc_text_add(text, "\n");
}
