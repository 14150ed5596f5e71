/* mcu_machine.c - reads descriptions of microcontrollers. */
#include "targets/mcu/machines/mcu_machine.h"

#include <stddef.h>
#include <string.h>

#include "base/choice.h"
#include "base/file.h"
#include "base/ini.h"
#include "targets/target.h"

#include <mcu_machines.h> /* made by the build from machines/: machine_host[], ... */

enum { NAME_CHARACTERS = 64, COMMAND_CHARACTERS = 256, MOST_CORES = 64 };

static const muc_mcu_core_info cores[] = {
#define MUC_MCU_CORE(id, name, isa, as, flags, meaning) \
    { name, MUC_MCU_ISA_##isa, MUC_MCU_CORE_##as, flags },
#include "targets/mcu/machines/cores.def"
#undef MUC_MCU_CORE
};

static const struct {
    const char *name, *text;
} built_in[] = {
#define MUC_MCU_MACHINE(id, name, meaning) { name, machine_##id },
#include "targets/mcu/machines/mcu_machines.def"
#undef MUC_MCU_MACHINE
};

static const char *const names[] = {
/* or the path of a file */
#define MUC_MCU_MACHINE(id, name, meaning) name,
#include "targets/mcu/machines/mcu_machines.def"
#undef MUC_MCU_MACHINE
};

static const char *const boots[] = {
#define MUC_MCU_BOOT(name, meaning) name,
#include "targets/mcu/machines/boots.def"
#undef MUC_MCU_BOOT
};

static const char *const uses[MUC_MCU_USES] = { "weights", "arena", "state", "tiles", "code" };

typedef enum section { SECTION_NONE, SECTION_MACHINE, SECTION_MEMORY, SECTION_DMA } section;

typedef enum key_type { NAME, NUMBER, CORE, BOOT, HOLDS, COMMAND } key_type;

/* Every key: where it belongs, what it is, and of a number its place and bounds. */
#define OF_MACHINE(member) offsetof(muc_mcu_machine, member)
#define OF_MEMORY(member) offsetof(muc_mcu_memory, member)
static const struct {
    section section;
    const char *name;
    key_type type;
    bool required;
    size_t place; /* in the machine, or in the memory */
    uint32_t min, max;
} keys[] = {
    { SECTION_MACHINE, "name", NAME, true, OF_MACHINE(name), 0, 0 },
    { SECTION_MACHINE, "core", CORE, true, 0, 0, 0 },
    { SECTION_MACHINE, "clock_mhz", NUMBER, true, OF_MACHINE(clock_mhz), 1, 100000 },
    { SECTION_MACHINE, "milliwatts", NUMBER, false, OF_MACHINE(milliwatts), 1, 1000000 },
    { SECTION_MACHINE, "power_source", NAME, false, OF_MACHINE(power_source), 0, 0 },
    { SECTION_MACHINE, "boot", BOOT, false, OF_MACHINE(boot), 0, 0 },
    { SECTION_MACHINE, "kit", NAME, false, OF_MACHINE(kit), 0, 0 },
    { SECTION_MACHINE, "flash", COMMAND, false, 0, 0, 0 },
    { SECTION_MACHINE, "cores", NUMBER, false, OF_MACHINE(cores), 1, MOST_CORES },
    { SECTION_MEMORY, "name", NAME, true, OF_MEMORY(name), 0, 0 },
    { SECTION_MEMORY, "bytes", NUMBER, true, OF_MEMORY(bytes), 0, UINT32_MAX },
    { SECTION_MEMORY, "cycles_per_kb", NUMBER, true, OF_MEMORY(cycles_per_kb), 1, 1 << 20 },
    { SECTION_MEMORY, "line_bytes", NUMBER, false, OF_MEMORY(line_bytes), 1, 4096 },
    { SECTION_MEMORY, "line_cycles", NUMBER, false, OF_MEMORY(line_cycles), 1, 1 << 20 },
    { SECTION_MEMORY, "origin", NUMBER, false, OF_MEMORY(origin), 0, UINT32_MAX - 1 },
    { SECTION_MEMORY, "holds", HOLDS, true, 0, 0, 0 },
    { SECTION_DMA, "setup_cycles", NUMBER, true, OF_MACHINE(dma_setup_cycles), 0, 1 << 20 },
    { SECTION_DMA, "cycles_per_kb", NUMBER, true, OF_MACHINE(dma_cycles_per_kb), 1, 1 << 20 },
};
#undef OF_MACHINE
#undef OF_MEMORY

typedef struct parser {
    muc_ini ini;
    muc_arena *arena;
    muc_mcu_machine *out;
    section section;
    unsigned seen; /* bit k: keys[k] of the section at hand */
    bool has_machine;
} parser;

const muc_mcu_core_info *muc_mcu_core_get(muc_mcu_core core)
{
    return &cores[core];
}

bool muc_mcu_core_find(const char *name, muc_mcu_core *out)
{
    for (unsigned i = 0; i < MUC_COUNT(cores); i++)
        if (strcmp(cores[i].name, name) == 0) {
            *out = (muc_mcu_core)i;
            return true;
        }
    return false;
}

int muc_mcu_isa_suits(muc_mcu_isa machine, muc_mcu_isa kernel)
{
    if (kernel == machine)
        return 2;
    /* it has those instructions, too */
    if ((kernel == MUC_MCU_ISA_DSP &&
         (machine == MUC_MCU_ISA_SINGLE || machine == MUC_MCU_ISA_MVE)) ||
        (kernel == MUC_MCU_ISA_RV && machine == MUC_MCU_ISA_RVV))
        return 1;
    return kernel == MUC_MCU_ISA_NONE ? 0 : -1;
}

static muc_status read_text(parser *p, const char *what, size_t most, const char **out)
{
    muc_string_view value = p->ini.value;

    if (value.size == 0 || value.size > most)
        return muc_ini_fail(&p->ini, value.data, "a %s has 1 to %zu characters", what, most);
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~')
            return muc_ini_fail(&p->ini, value.data + i, "not a character of a %s", what);
    return muc_arena_string(p->ini.ctx, p->arena, value.data, value.size, out);
}

static muc_status read_name(parser *p, const char **out)
{
    return read_text(p, "name", NAME_CHARACTERS, out);
}

static muc_status read_command(parser *p)
{
    size_t i = 0;

    while (p->out->flash[i])
        i++;
    if (i == MUC_MCU_MOST_COMMANDS)
        return muc_ini_fail(&p->ini, p->ini.key.data, "more than %d commands",
                            MUC_MCU_MOST_COMMANDS);
    return read_text(p, "command", COMMAND_CHARACTERS, &p->out->flash[i]);
}

static muc_status read_core(parser *p, muc_mcu_core *out)
{
    muc_choice choice;

    for (unsigned i = 0; i < MUC_COUNT(cores); i++) {
        if (muc_view_is(p->ini.value, cores[i].name)) {
            *out = (muc_mcu_core)i;
            return MUC_OK;
        }
    }
    muc_choice_begin(&choice, p->ini.value.data, p->ini.value.size);
    for (unsigned i = 0; i < MUC_COUNT(cores); i++)
        muc_choice_add(&choice, cores[i].name);
    return muc_ini_refuse(&p->ini, p->ini.value.data, &choice, "core");
}

static muc_status read_boot(parser *p, const char **out)
{
    muc_choice choice;

    for (unsigned i = 0; i < MUC_COUNT(boots); i++)
        if (muc_view_is(p->ini.value, boots[i])) {
            *out = boots[i];
            return MUC_OK;
        }
    muc_choice_begin(&choice, p->ini.value.data, p->ini.value.size);
    for (unsigned i = 0; i < MUC_COUNT(boots); i++)
        muc_choice_add(&choice, boots[i]);
    return muc_ini_refuse(&p->ini, p->ini.value.data, &choice, "boot");
}

static muc_status read_uses(parser *p, unsigned *out)
{
    const char *at = p->ini.value.data, *end = at + p->ini.value.size;

    *out = 0;
    while (at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        muc_string_view word = { at, (size_t)((blank ? blank : end) - at) };
        unsigned use = 0;

        while (use < MUC_MCU_USES && !muc_view_is(word, uses[use]))
            use++;
        if (use == MUC_MCU_USES)
            return muc_ini_fail(&p->ini, at, "expected some of weights, arena, state, tiles, code");
        *out |= 1u << use;
        at += word.size;
        while (at < end && *at == ' ')
            at++;
    }
    return MUC_OK;
}

static muc_status read_number(parser *p, size_t key, uint32_t *out)
{
    MUC_TRY(muc_ini_number(&p->ini, out));
    if (*out < keys[key].min || *out > keys[key].max)
        return muc_ini_fail(&p->ini, p->ini.value.data, "'%s' is %u, expected %u..%u",
                            keys[key].name, *out, keys[key].min, keys[key].max);
    return MUC_OK;
}

static muc_status read_value(parser *p, size_t key)
{
    muc_mcu_machine *m = p->out;
    muc_mcu_memory *memory = m->memory_count ? &m->memories[m->memory_count - 1] : NULL;
    char *owner = p->section == SECTION_MEMORY ? (char *)memory : (char *)m;

    switch (keys[key].type) {
    case NAME:
        return read_name(p, (const char **)(void *)(owner + keys[key].place));
    case CORE:
        return read_core(p, &m->core);
    case BOOT:
        return read_boot(p, &m->boot);
    case HOLDS:
        return read_uses(p, &memory->holds);
    case COMMAND:
        return read_command(p);
    case NUMBER:
        break;
    }
    return read_number(p, key, (uint32_t *)(void *)(owner + keys[key].place));
}

static muc_status read_pair(parser *p)
{
    muc_choice choice;

    for (size_t i = 0; i < MUC_COUNT(keys); i++) {
        if (keys[i].section != p->section || !muc_view_is(p->ini.key, keys[i].name))
            continue;
        if (p->seen >> i & 1 && keys[i].type != COMMAND)
            return muc_ini_fail(&p->ini, p->ini.key.data, "this key is there twice");
        p->seen |= 1u << i;
        return read_value(p, i);
    }
    muc_choice_begin(&choice, p->ini.key.data, p->ini.key.size);
    for (size_t i = 0; i < MUC_COUNT(keys); i++)
        if (keys[i].section == p->section)
            muc_choice_add(&choice, keys[i].name);
    return muc_ini_refuse(&p->ini, p->ini.key.data, &choice, "key");
}

static muc_status end_section(parser *p)
{
    for (size_t i = 0; i < MUC_COUNT(keys); i++)
        if (keys[i].section == p->section && keys[i].required && !(p->seen >> i & 1))
            return muc_ini_fail(&p->ini, (const char *)p->ini.text.data + p->ini.at,
                                "the key '%s' of the section before is missing", keys[i].name);
    p->seen = 0;
    return MUC_OK;
}

static muc_status begin_section(parser *p)
{
    const char *at = p->ini.section.data - 1;

    MUC_TRY(end_section(p));
    if (muc_view_is(p->ini.section, "machine") && !p->has_machine) {
        p->has_machine = true;
        p->section = SECTION_MACHINE;
    } else if (muc_view_is(p->ini.section, "memory")) {
        if (p->out->memory_count == MUC_MCU_MOST_MEMORIES)
            return muc_ini_fail(&p->ini, at, "more than %d memories", MUC_MCU_MOST_MEMORIES);
        p->out->memories[p->out->memory_count++].origin = MUC_MCU_NO_ORIGIN;
        p->section = SECTION_MEMORY;
    } else if (muc_view_is(p->ini.section, "dma") && !p->out->has_dma) {
        p->out->has_dma = true;
        p->section = SECTION_DMA;
    } else {
        return muc_ini_fail(&p->ini, at, "expected one [machine], [memory]..., at most one [dma]");
    }
    return MUC_OK;
}

const muc_mcu_memory *muc_mcu_memory_for(const muc_mcu_machine *machine, muc_mcu_use use)
{
    for (uint32_t i = 0; i < machine->memory_count; i++)
        if (machine->memories[i].holds >> use & 1)
            return &machine->memories[i];
    return use == MUC_MCU_CODE ? muc_mcu_memory_for(machine, MUC_MCU_WEIGHTS) : NULL;
}

static muc_status check_machine(const parser *p)
{
    const char *name = p->ini.text.name;

    if (!p->has_machine)
        return muc_fail(p->ini.ctx, MUC_MALFORMED, name, p->ini.text.size,
                        "the section [machine] is missing");
    for (uint32_t i = 0; i < p->out->memory_count; i++)
        if (!p->out->memories[i].line_bytes != !p->out->memories[i].line_cycles)
            return muc_fail(p->ini.ctx, MUC_MALFORMED, name, p->ini.text.size,
                            "memory '%s' has one of line_bytes and line_cycles, expected both or "
                            "none",
                            p->out->memories[i].name);
    for (unsigned use = 0; use < MUC_MCU_USES; use++) {
        unsigned holders = 0;

        for (uint32_t i = 0; i < p->out->memory_count; i++)
            holders += p->out->memories[i].holds >> use & 1;
        if (use == MUC_MCU_CODE && holders < 2)
            continue;
        if (use == MUC_MCU_TILES ? holders != p->out->has_dma : holders != 1)
            return muc_fail(p->ini.ctx, MUC_MALFORMED, name, p->ini.text.size,
                            "%u memories hold %s, expected one%s", holders, uses[use],
                            use == MUC_MCU_TILES ? " with [dma], none without" : "");
    }
    return MUC_OK;
}

muc_status muc_mcu_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                muc_mcu_machine *out)
{
    parser p = { .ini = muc_ini_of(ctx, text), .arena = arena, .out = out };
    muc_status status;

    *out = (muc_mcu_machine){ .cores = 1 };
    while (muc_ini_next(&p.ini, &status)) {
        MUC_TRY(status);
        MUC_TRY(p.ini.key.size ? read_pair(&p) : begin_section(&p));
    }
    MUC_TRY(end_section(&p));
    return check_machine(&p);
}

muc_status muc_mcu_machine_text(muc_context *ctx, muc_arena *arena, const char *name,
                                muc_bytes *out)
{
    unsigned found;
    const char *copy;
    muc_status status;
    muc_file file;

    if (!name)
        name = "host";
    for (unsigned i = 0; i < MUC_COUNT(built_in); i++)
        if (muc_machine_is_called(built_in[i].name, name)) {
            *out = (muc_bytes){ (const uint8_t *)built_in[i].text, strlen(built_in[i].text),
                                built_in[i].name };
            return MUC_OK;
        }
    if (!muc_path_exists(name))
        return muc_choose(ctx, "--machine", name, names, MUC_COUNT(names), &found);
    MUC_TRY(muc_file_open(ctx, name, &file));
    status = muc_arena_string(ctx, arena, (const char *)file.bytes.data, file.bytes.size, &copy);
    *out = (muc_bytes){ (const uint8_t *)copy, file.bytes.size, name };
    muc_file_close(&file);
    return status;
}

muc_status muc_mcu_find_machine(muc_context *ctx, muc_arena *arena, const char *name,
                                muc_mcu_machine *out)
{
    muc_bytes text;

    MUC_TRY(muc_mcu_machine_text(ctx, arena, name, &text));
    return muc_mcu_read_machine(ctx, arena, text, out);
}
