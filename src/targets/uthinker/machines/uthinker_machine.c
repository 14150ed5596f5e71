/* uthinker_machine.c - reads machine descriptions. */
#include "targets/uthinker/machines/uthinker_machine.h"

#include <string.h>

#include "base/choice.h"
#include "base/file.h"
#include "base/ini.h"
#include "targets/target.h"

#include <uthinker_machines.h> /* made by the build from machines/: machine_uthinker[], ... */

enum { NAME_CHARACTERS = 64 };

/* What [machine] says beside the name: the words of MACH in their order, then what bounds a program
 * without changing it, so that no fingerprint depends on it. */
enum {
    KEY_ISA,
    KEY_FIRST_BUFFER,
    KEY_ROWS = KEY_FIRST_BUFFER + MUR_BUFFERS,
    KEY_FLASH,
    KEY_DRAM,
    /* may be left out: the paper's array */
    KEY_TILE_K,
    KEY_TILE_N,
    KEY_TOKENS
};

enum { TILE_K = 64, TILE_N = 8, TOKENS = 64, BLOCK = 32 };

typedef struct key_row {
    const char *name;
    uint32_t min, max;
    bool optional;
} key_row;

static const key_row machine_keys[] = {
#define MUR_MACH(name, min, max, meaning) { NULL, min, max, false },
#include "mur_sections.def"
    { "flash", 0, UINT32_MAX, false },
    { "dram", 0, UINT32_MAX, false },
    { "tile_k", 32, MUR_MOST_TILE_ROWS, true },
    { "tile_n", 1, 64, true },
    { "tokens", 32, 64, true },
};

static const char *const mach_names[] = { "isa", "ibuf0", "ibuf1", "wbuf0", "wbuf1", "gb", "rows" };
_Static_assert(MUC_COUNT(mach_names) == KEY_FLASH, "a key for every word of MACH");

static const key_row time_keys[] = {
#define MUC_MACHINE_TIME(name, min, max, meaning) { #name, min, max, false },
#define MUC_MACHINE_OPTION(name, min, max, meaning) { #name, min, max, true },
#include "targets/uthinker/machines/machine_keys.def"
};

static const key_row energy_keys[] = {
#define MUC_MACHINE_ENERGY(name, min, max, meaning) { #name, min, max, false },
#include "targets/uthinker/machines/machine_keys.def"
};

typedef enum section_id { MACHINE, TIME, ENERGY, SECTIONS } section_id;

static const struct {
    const char *name;
    const key_row *keys;
    uint32_t count;
} sections[SECTIONS] = {
    { "machine", machine_keys, MUC_COUNT(machine_keys) },
    { "time", time_keys, MUC_COUNT(time_keys) },
    { "energy", energy_keys, MUC_COUNT(energy_keys) },
};

enum { MOST_KEYS = MUC_COUNT(time_keys) };
_Static_assert(MUC_COUNT(machine_keys) <= MOST_KEYS && MUC_COUNT(energy_keys) <= MOST_KEYS,
               "the longest section");

static const struct {
    const char *name, *text;
} built_in[] = {
#define MUC_UTHINKER_MACHINE(id, name, meaning) { name, machine_##id },
#include "targets/uthinker/machines/uthinker_machines.def"
#undef MUC_UTHINKER_MACHINE
};

static const char *const names[] = {
/* or the path of a file */
#define MUC_UTHINKER_MACHINE(id, name, meaning) name,
#include "targets/uthinker/machines/uthinker_machines.def"
#undef MUC_UTHINKER_MACHINE
};

static const char *key_name(section_id section, uint32_t key)
{
    return section == MACHINE && key < KEY_FLASH ? mach_names[key]
                                                 : sections[section].keys[key].name;
}

const char *muc_uthinker_machine_key(enum mur_buffer buffer)
{
    return mach_names[KEY_FIRST_BUFFER + (uint32_t)buffer];
}

typedef struct parser {
    muc_ini ini;
    muc_arena *arena;
    section_id section;
    bool begun[SECTIONS], seen[SECTIONS][MOST_KEYS];
    uint32_t values[SECTIONS][MOST_KEYS];
    const char *name;
} parser;

muc_bytes muc_uthinker_default_machine(void)
{
    muc_bytes text = { (const uint8_t *)machine_uthinker, sizeof(machine_uthinker) - 1,
                       "uthinker.ini" };

    return text;
}

/* What a number of the array must be beside being in range. */
static muc_status check_array_key(const parser *p, uint32_t key, uint32_t value)
{
    const char *at = p->ini.value.data;

    if ((key == KEY_TILE_K || key == KEY_TOKENS) && value % BLOCK)
        return muc_ini_fail(&p->ini, at,
                            "'%s' is %u, expected a multiple of 32: a BlockDialect block has 32 "
                            "elements of a column, and no block straddles tiles",
                            key_name(MACHINE, key), value);
    if (key == KEY_TILE_N && (value & (value - 1)))
        return muc_ini_fail(&p->ini, at, "'tile_n' is %u, expected a power of two", value);
    return MUC_OK;
}

static muc_status read_number(parser *p, uint32_t key)
{
    const key_row *row = &sections[p->section].keys[key];
    bool is_machine = p->section == MACHINE;
    bool is_buffer = is_machine && key >= KEY_FIRST_BUFFER && key < KEY_ROWS;
    const char *at = p->ini.value.data;
    uint32_t value;

    MUC_TRY(muc_ini_number(&p->ini, &value));
    if (is_machine && key == KEY_ISA && value != MUR_ISA_VERSION)
        return muc_fail(p->ini.ctx, MUC_UNSUPPORTED, p->ini.text.name,
                        (uint64_t)(at - (const char *)p->ini.text.data),
                        "line %u: isa %u, this compiler knows %u", p->ini.line, value,
                        MUR_ISA_VERSION);
    if (value < row->min || value > row->max)
        return muc_ini_fail(&p->ini, at, "'%s' is %u, expected %u..%u", key_name(p->section, key),
                            value, row->min, row->max);
    if (is_buffer && value % MUC_UTHINKER_BUFFER_MULTIPLE)
        return muc_ini_fail(&p->ini, at, "not a multiple of 64 bytes");
    p->values[p->section][key] = value;
    return is_machine ? check_array_key(p, key, value) : MUC_OK;
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

static muc_status begin_section(parser *p)
{
    uint32_t id = 0;

    while (id < SECTIONS && !muc_view_is(p->ini.section, sections[id].name))
        id++;
    if (id == SECTIONS || p->begun[id])
        return muc_ini_fail(&p->ini, p->ini.section.data - 1,
                            "expected one section [machine], and at most one [time] and one "
                            "[energy]");
    p->section = (section_id)id;
    p->begun[id] = true;
    return MUC_OK;
}

static muc_status refuse_key(parser *p)
{
    muc_choice choice;

    muc_choice_begin(&choice, p->ini.key.data, p->ini.key.size);
    for (uint32_t key = 0; key < sections[p->section].count; key++)
        muc_choice_add(&choice, key_name(p->section, key));
    return muc_ini_refuse(&p->ini, p->ini.key.data, &choice, "key");
}

static muc_status read_line(parser *p)
{
    uint32_t key = 0;

    if (p->ini.key.size == 0)
        return begin_section(p);
    if (p->ini.section.size == 0)
        return muc_ini_fail(&p->ini, p->ini.key.data, "expected [machine] before the first key");
    if (p->section == MACHINE && muc_view_is(p->ini.key, "name"))
        return read_name(p);
    while (key < sections[p->section].count && !muc_view_is(p->ini.key, key_name(p->section, key)))
        key++;
    if (key == sections[p->section].count)
        return refuse_key(p);
    if (p->seen[p->section][key])
        return muc_ini_fail(&p->ini, p->ini.key.data, "this key is there twice");
    p->seen[p->section][key] = true;
    return read_number(p, key);
}

/* What the array's numbers must be beside each other. */
static muc_status check_array(const parser *p)
{
    const uint32_t *value = p->values[MACHINE];
    const muc_bytes *text = &p->ini.text;

    if (value[KEY_TOKENS] > value[KEY_TILE_K])
        return muc_fail(p->ini.ctx, MUC_MALFORMED, text->name, text->size,
                        "tokens is %u and tile_k %u: the values of a step of attention are one "
                        "tile high, so tokens is at most tile_k",
                        value[KEY_TOKENS], value[KEY_TILE_K]);
    if (value[KEY_ROWS] > value[KEY_TOKENS])
        return muc_fail(p->ini.ctx, MUC_MALFORMED, text->name, text->size,
                        "rows is %u and tokens %u: a call has at most as many tokens as a step of "
                        "attention",
                        value[KEY_ROWS], value[KEY_TOKENS]);
    return MUC_OK;
}

static muc_status check_whole(const parser *p)
{
    const muc_bytes *text = &p->ini.text;

    if (!p->begun[MACHINE])
        return muc_fail(p->ini.ctx, MUC_MALFORMED, text->name, text->size,
                        "the section [machine] is missing");
    for (uint32_t id = 0; id < SECTIONS; id++)
        for (uint32_t key = 0; p->begun[id] && key < sections[id].count; key++)
            if (!p->seen[id][key] && !sections[id].keys[key].optional)
                return muc_fail(p->ini.ctx, MUC_MALFORMED, text->name, text->size,
                                "the key '%s' is missing in [%s]", key_name((section_id)id, key),
                                sections[id].name);
    if (!p->name)
        return muc_fail(p->ini.ctx, MUC_MALFORMED, text->name, text->size,
                        "the key 'name' is missing");
    return check_array(p);
}

muc_status muc_uthinker_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                     muc_uthinker_machine *out)
{
    parser p = { .ini = muc_ini_of(ctx, text), .arena = arena };
    uint32_t *array = &p.values[MACHINE][KEY_TILE_K];
    muc_status status;

    array[0] = TILE_K;
    array[KEY_TILE_N - KEY_TILE_K] = TILE_N;
    array[KEY_TOKENS - KEY_TILE_K] = TOKENS;
    while (muc_ini_next(&p.ini, &status)) {
        MUC_TRY(status);
        MUC_TRY(read_line(&p));
    }
    MUC_TRY(check_whole(&p));
    *out = (muc_uthinker_machine){
        .name = p.name,
        .tile_k = p.values[MACHINE][KEY_TILE_K],
        .tile_n = p.values[MACHINE][KEY_TILE_N],
        .tokens = p.values[MACHINE][KEY_TOKENS],
        .rows = p.values[MACHINE][KEY_ROWS],
        .flash_bytes = p.values[MACHINE][KEY_FLASH],
        .dram_bytes = p.values[MACHINE][KEY_DRAM],
        .costs = { .has_time = p.begun[TIME], .has_energy = p.begun[ENERGY] },
    };
    memcpy(out->buffer_bytes, &p.values[MACHINE][KEY_FIRST_BUFFER], sizeof(out->buffer_bytes));
    memcpy(&out->costs.time, p.values[TIME], sizeof(out->costs.time));
    memcpy(&out->costs.energy, p.values[ENERGY], sizeof(out->costs.energy));
    return MUC_OK;
}

muc_status muc_uthinker_find_machine(muc_context *ctx, muc_arena *arena, const char *name,
                                     muc_uthinker_machine *out)
{
    muc_status status;
    unsigned found;
    muc_file file;

    if (!name)
        return muc_uthinker_read_machine(ctx, arena, muc_uthinker_default_machine(), out);
    for (unsigned i = 0; i < MUC_COUNT(built_in); i++) {
        const muc_bytes text = { (const uint8_t *)built_in[i].text, strlen(built_in[i].text),
                                 built_in[i].name };

        if (strcmp(built_in[i].name, name) == 0)
            return muc_uthinker_read_machine(ctx, arena, text, out);
    }
    if (!muc_path_exists(name))
        return muc_choose(ctx, "--machine", name, names, MUC_COUNT(names), &found);
    MUC_TRY(muc_file_open(ctx, name, &file));
    status = muc_uthinker_read_machine(ctx, arena, file.bytes, out);
    muc_file_close(&file);
    return status;
}

const muc_target_machine *muc_machine_at_uthinker(size_t i)
{
    static const muc_target_machine machines[] = {
#define MUC_UTHINKER_MACHINE(id, name, meaning) { name, meaning, machine_##id },
#include "targets/uthinker/machines/uthinker_machines.def"
#undef MUC_UTHINKER_MACHINE
    };

    return i < MUC_COUNT(machines) ? &machines[i] : NULL;
}

mur_mach muc_uthinker_mach(const muc_uthinker_machine *machine)
{
    mur_mach mach = { .isa = MUR_ISA_VERSION, .rows = machine->rows };

    if (machine->tile_k != TILE_K)
        mach.isa |= machine->tile_k / BLOCK << 8;
    if (machine->tile_n != TILE_N)
        mach.isa |= machine->tile_n << 16;
    if (machine->tokens != TOKENS)
        mach.isa |= machine->tokens / BLOCK << 24;
    memcpy(&mach.i0, machine->buffer_bytes, sizeof(machine->buffer_bytes));
    return mach;
}
