/* chip_machine.c - reads descriptions of CNN chips. */
#include "targets/cnnchip/machines/chip_machine.h"

#include <string.h>

#include "base/choice.h"
#include "base/file.h"
#include "base/ini.h"
#include "targets/cnnchip/isa/chip_isa.h"

#include <cnnchip_machines.h> /* made by the build from machines/: machine_pe256[], ... */

enum { NAME_CHARACTERS = 64, LEAST_PES = 4, MOST_BUS_BYTES = 4096, MOST_MHZ = 100000 };

static const struct {
    const char *name, *text;
} built_in[] = {
#define MUC_CNNCHIP_MACHINE(id, name, meaning) { name, machine_##id },
#include "targets/cnnchip/machines/cnnchip_machines.def"
#undef MUC_CNNCHIP_MACHINE
};

static const char *const names[] = {
/* or the path of a file */
#define MUC_CNNCHIP_MACHINE(id, name, meaning) name,
#include "targets/cnnchip/machines/cnnchip_machines.def"
#undef MUC_CNNCHIP_MACHINE
};

/* Every key; NUMBER32 and NUMBER64 lie at an offset of the machine. */
typedef enum key_type { NAME, ELEMENT, NUMBER32, NUMBER64 } key_type;

static const struct {
    const char *name;
    key_type type;
    bool required;
    uint32_t min, max;
    size_t offset;
} keys[] = {
    { "name", NAME, true, 0, 0, 0 },
    { "element", ELEMENT, true, 0, 0, 0 },
    { "pes", NUMBER32, true, 0, MUC_CNNCHIP_MOST_PES, offsetof(muc_cnnchip_machine, pes) },
    { "bus_bytes", NUMBER32, false, 0, MOST_BUS_BYTES, offsetof(muc_cnnchip_machine, bus_bytes) },
    { "clock_mhz", NUMBER32, true, 1, MOST_MHZ, offsetof(muc_cnnchip_machine, clock_mhz) },
    { "frame_bytes", NUMBER64, false, 0, UINT32_MAX, offsetof(muc_cnnchip_machine, frame_bytes) },
    { "filter_bytes", NUMBER64, false, 0, UINT32_MAX, offsetof(muc_cnnchip_machine, filter_bytes) },
    { "program_bytes", NUMBER64, false, 0, UINT32_MAX,
      offsetof(muc_cnnchip_machine, program_bytes) },
};

typedef struct parser {
    muc_ini ini;
    muc_arena *arena;
    muc_cnnchip_machine *out;
    unsigned seen; /* bit k: keys[k] */
    bool has_machine;
} parser;

static muc_status read_name(parser *p)
{
    muc_string_view value = p->ini.value;

    if (value.size == 0 || value.size > NAME_CHARACTERS)
        return muc_ini_fail(&p->ini, value.data, "a name has 1 to %d characters", NAME_CHARACTERS);
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~')
            return muc_ini_fail(&p->ini, value.data + i, "not a character of a name");
    return muc_arena_string(p->ini.ctx, p->arena, value.data, value.size, &p->out->name);
}

static muc_status read_element(parser *p)
{
    for (uint32_t i = 0; muc_cnnchip_element_name(i); i++)
        if (muc_view_is(p->ini.value, muc_cnnchip_element_name(i))) {
            p->out->element = i;
            return MUC_OK;
        }
    return muc_ini_fail(&p->ini, p->ini.value.data, "expected fp32, fp16 or int8");
}

static muc_status read_number(parser *p, size_t key)
{
    char *at = (char *)p->out + keys[key].offset;
    uint32_t value;
    uint64_t wide;

    MUC_TRY(muc_ini_number(&p->ini, &value));
    if (value < keys[key].min || value > keys[key].max ||
        (strcmp(keys[key].name, "pes") == 0 && value != 0 && value < LEAST_PES))
        return muc_ini_fail(&p->ini, p->ini.value.data, "'%s' is %u, expected %s%u..%u",
                            keys[key].name, value, strcmp(keys[key].name, "pes") ? "" : "0 or ",
                            strcmp(keys[key].name, "pes") ? keys[key].min : LEAST_PES,
                            keys[key].max);
    wide = value;
    memcpy(at, keys[key].type == NUMBER32 ? (const void *)&value : (const void *)&wide,
           keys[key].type == NUMBER32 ? sizeof(value) : sizeof(wide));
    return MUC_OK;
}

static muc_status read_pair(parser *p)
{
    muc_choice choice;

    for (size_t i = 0; p->has_machine && i < MUC_COUNT(keys); i++) {
        if (!muc_view_is(p->ini.key, keys[i].name))
            continue;
        if (p->seen >> i & 1)
            return muc_ini_fail(&p->ini, p->ini.key.data, "this key is there twice");
        p->seen |= 1u << i;
        if (keys[i].type == NAME)
            return read_name(p);
        return keys[i].type == ELEMENT ? read_element(p) : read_number(p, i);
    }
    muc_choice_begin(&choice, p->ini.key.data, p->ini.key.size);
    for (size_t i = 0; p->has_machine && i < MUC_COUNT(keys); i++)
        muc_choice_add(&choice, keys[i].name);
    return muc_ini_refuse(&p->ini, p->ini.key.data, &choice, "key");
}

muc_status muc_cnnchip_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                    muc_cnnchip_machine *out)
{
    parser p = { .ini = muc_ini_of(ctx, text), .arena = arena, .out = out };
    muc_status status;

    *out = (muc_cnnchip_machine){ 0 };
    while (muc_ini_next(&p.ini, &status)) {
        MUC_TRY(status);
        if (p.ini.key.size) {
            MUC_TRY(read_pair(&p));
        } else {
            if (!muc_view_is(p.ini.section, "machine") || p.has_machine)
                return muc_ini_fail(&p.ini, p.ini.section.data - 1, "expected one [machine]");
            p.has_machine = true;
        }
    }
    for (size_t i = 0; i < MUC_COUNT(keys); i++)
        if (keys[i].required && !(p.seen >> i & 1))
            return muc_fail(ctx, MUC_MALFORMED, text.name, text.size,
                            "the key '%s' of [machine] is missing", keys[i].name);
    return MUC_OK;
}

muc_status muc_cnnchip_find_machine(muc_context *ctx, muc_arena *arena, const char *name,
                                    muc_cnnchip_machine *out)
{
    unsigned found;
    muc_status status;
    muc_file file;

    for (size_t i = 0; i < MUC_COUNT(built_in); i++) {
        const muc_bytes text = { (const uint8_t *)built_in[i].text, strlen(built_in[i].text),
                                 built_in[i].name };

        if (strcmp(name ? name : built_in[0].name, built_in[i].name) == 0)
            return muc_cnnchip_read_machine(ctx, arena, text, out);
    }
    if (!muc_path_exists(name))
        return muc_choose(ctx, "--machine", name, names, MUC_COUNT(names), &found);
    MUC_TRY(muc_file_open(ctx, name, &file));
    status = muc_cnnchip_read_machine(ctx, arena, file.bytes, out);
    muc_file_close(&file);
    return status;
}
