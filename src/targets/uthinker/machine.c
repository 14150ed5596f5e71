/* machine.c - reads machine descriptions. */
#include "targets/uthinker/machine.h"

#include <string.h>

#include "base/ini.h"

#include <machine_text.h> /* made by the build from machines/uthinker.ini */

enum { NAME_CHARACTERS = 64 };

/* What a description says: the words of MACH in their order, then what bounds a program without
 * changing it, so that no fingerprint depends on it. */
static const char *const keys[] = { "isa", "ibuf0", "ibuf1", "wbuf0", "wbuf1",
                                    "gb",  "rows",  "flash", "dram" };

static const struct {
    uint32_t min, max;
} limits[MUC_COUNT(keys)] = {
#define MUR_MACH(name, min, max, meaning) { min, max },
#include "mur_sections.def"
    { 0, UINT32_MAX },
    { 0, UINT32_MAX },
};

enum {
    KEY_ISA,
    KEY_FIRST_BUFFER,
    KEY_ROWS = KEY_FIRST_BUFFER + MUR_BUFFERS,
    KEY_FLASH,
    KEY_DRAM,
    KEYS
};
_Static_assert(KEYS == MUC_COUNT(keys), "a key for every word of MACH and every bound");

const char *muc_uthinker_machine_key(enum mur_buffer buffer)
{
    return keys[KEY_FIRST_BUFFER + (uint32_t)buffer];
}

typedef struct parser {
    muc_ini ini;
    muc_arena *arena;
    bool seen[KEYS];
    uint32_t values[KEYS];
    const char *name;
} parser;

muc_bytes muc_uthinker_default_machine(void)
{
    muc_bytes text = { (const uint8_t *)machine_text, sizeof(machine_text) - 1, "uthinker.ini" };

    return text;
}

static muc_status read_number(parser *p, uint32_t key)
{
    bool is_buffer = key >= KEY_FIRST_BUFFER && key < KEY_ROWS;
    const char *at = p->ini.value.data;
    uint32_t value;

    MUC_TRY(muc_ini_number(&p->ini, &value));
    if (key == KEY_ISA && value != limits[key].max)
        return muc_fail(p->ini.ctx, MUC_UNSUPPORTED, p->ini.text.name,
                        (uint64_t)(at - (const char *)p->ini.text.data),
                        "line %u: isa %u, this compiler knows %u", p->ini.line, value,
                        limits[key].max);
    if (value < limits[key].min || value > limits[key].max)
        return muc_ini_fail(&p->ini, at, "'%s' is %u, expected %u..%u", keys[key], value,
                            limits[key].min, limits[key].max);
    if (is_buffer && value % MUC_UTHINKER_BUFFER_MULTIPLE)
        return muc_ini_fail(&p->ini, at, "not a multiple of 64 bytes");
    p->values[key] = value;
    return MUC_OK;
}

static muc_status read_name(parser *p)
{
    muc_string_view value = p->ini.value;

    if (p->name)
        return muc_ini_fail(&p->ini, p->ini.key.data, "'name' is there twice");
    if (value.size == 0 || value.size > NAME_CHARACTERS)
        return muc_ini_fail(&p->ini, value.data, "a name has 1 to 64 characters");
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~')
            return muc_ini_fail(&p->ini, value.data + i, "not a character of a name");
    return muc_arena_string(p->ini.ctx, p->arena, value.data, value.size, &p->name);
}

static muc_status read_line(parser *p, bool *in_section)
{
    muc_choice choice;
    size_t key = 0;

    if (p->ini.key.size == 0) {
        if (!muc_view_is(p->ini.section, "machine") || *in_section)
            return muc_ini_fail(&p->ini, p->ini.section.data - 1,
                                "expected one section, [machine]");
        *in_section = true;
        return MUC_OK;
    }
    if (!*in_section)
        return muc_ini_fail(&p->ini, p->ini.key.data, "expected [machine] before the first key");
    if (muc_view_is(p->ini.key, "name"))
        return read_name(p);
    while (key < KEYS && !muc_view_is(p->ini.key, keys[key]))
        key++;
    if (key == KEYS) {
        muc_choice_begin(&choice, p->ini.key.data, p->ini.key.size);
        for (key = 0; key < KEYS; key++)
            muc_choice_add(&choice, keys[key]);
        return muc_ini_refuse(&p->ini, p->ini.key.data, &choice, "key");
    }
    if (p->seen[key])
        return muc_ini_fail(&p->ini, p->ini.key.data, "this key is there twice");
    p->seen[key] = true;
    return read_number(p, (uint32_t)key);
}

muc_status muc_uthinker_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                     muc_uthinker_machine *out)
{
    parser p = { .ini = muc_ini_of(ctx, text), .arena = arena };
    bool in_section = false;
    muc_status status;

    while (muc_ini_next(&p.ini, &status)) {
        MUC_TRY(status);
        MUC_TRY(read_line(&p, &in_section));
    }
    for (uint32_t i = 0; i < KEYS; i++)
        if (!p.seen[i])
            return muc_fail(ctx, MUC_MALFORMED, text.name, text.size, "the key '%s' is missing",
                            keys[i]);
    if (!p.name)
        return muc_fail(ctx, MUC_MALFORMED, text.name, text.size, "the key 'name' is missing");
    out->name = p.name;
    memcpy(out->buffer_bytes, &p.values[KEY_FIRST_BUFFER], sizeof(out->buffer_bytes));
    out->rows = p.values[KEY_ROWS];
    out->flash_bytes = p.values[KEY_FLASH];
    out->dram_bytes = p.values[KEY_DRAM];
    return MUC_OK;
}
