/* uthinker_isa.c - the tables. */
#include "targets/uthinker/isa/uthinker_isa.h"

#include <string.h>

/* A list of markers (one an instruction) and fields in the table's order: the fields of an
 * instruction are what lies between its marker and the next. */
enum {
#define MUR_INSN(name, opcode, words, engine, meaning) MARK_##name,
#define MUR_FIELD(insn, name, word, shift, width, unit) PLACE_##insn##_##name,
#include "mur_isa.def"
    MARKS_AND_FIELDS
};

static const muc_insn_info insns[] = {
#define MUR_INSN(name, opcode, words, engine, meaning) \
    { #name, opcode, words, MUR_##engine, (uint32_t)MARK_##name - MUC_INSN_##name, meaning },
#include "mur_isa.def"
};

static const muc_field_info fields[] = {
#define MUR_FIELD(insn, name, word, shift, width, unit) { #name, word, shift, width, #unit },
#include "mur_isa.def"
};

const muc_insn_info *muc_insn_get(uint32_t op)
{
    return &insns[op];
}

uint32_t muc_insn_fields(uint32_t op)
{
    uint32_t next = op + 1 < MUC_INSN_COUNT ? insns[op + 1].first_field : MUC_FIELD_COUNT;

    return next - insns[op].first_field;
}

const muc_field_info *muc_field_get(uint32_t field)
{
    return &fields[field];
}

uint32_t muc_field_max(uint32_t field)
{
    return UINT32_MAX >> (32 - fields[field].width);
}

bool muc_field_put(uint32_t field, uint32_t value, uint32_t *words)
{
    const muc_field_info *info = muc_field_get(field);

    if (value > muc_field_max(field))
        return false;
    words[info->word] |= value << info->shift;
    return true;
}

bool muc_insn_find_opcode(uint32_t opcode, uint32_t *op)
{
    for (*op = 0; *op < MUC_INSN_COUNT; ++*op)
        if (insns[*op].opcode == opcode)
            return true;
    return false;
}

bool muc_insn_find_name(const char *name, uint32_t length, uint32_t *op)
{
    for (*op = 0; *op < MUC_INSN_COUNT; ++*op)
        if (strlen(insns[*op].name) == length && memcmp(insns[*op].name, name, length) == 0)
            return true;
    return false;
}
