/* chip_isa.c - the tables, and the one encoder and decoder that expand from them. */
#include "targets/cnnchip/isa/chip_isa.h"

#include <string.h>

#include "base/bytes.h"

/* Markers (one an instruction) and fields in the table's order: the fields of an instruction lie
 * between its marker and the next. */
enum {
#define MUC_CNNCHIP_INSN(name, opcode, words, meaning) MARK_##name,
#define MUC_CNNCHIP_FIELD(insn, name, word, shift, width, kind, meaning) PLACE_##insn##_##name,
#include "targets/cnnchip/isa/chip_isa.def"
    PLACES
};

enum {
#define MUC_CNNCHIP_FIELD(insn, name, word, shift, width, kind, meaning) FIELD_##insn##_##name,
#include "targets/cnnchip/isa/chip_isa.def"
    FIELDS
};

static const muc_cnnchip_field fields[] = {
#define MUC_CNNCHIP_FIELD(insn, name, word, shift, width, kind, meaning) \
    { #name, word, shift, width, MUC_CNNCHIP_KIND_##kind, offsetof(muc_cnnchip_insn, name) },
#include "targets/cnnchip/isa/chip_isa.def"
};

static const struct {
    const char *name;
    uint32_t opcode, words, mark;
} rows[] = {
#define MUC_CNNCHIP_INSN(name, opcode, words, meaning) { #name, opcode, words, MARK_##name },
#include "targets/cnnchip/isa/chip_isa.def"
};

static const struct {
    const char *name, *insns;
    unsigned bit;
} flags[] = {
#define MUC_CNNCHIP_FLAG(name, bit, insns, meaning) { #name, insns, bit },
#include "targets/cnnchip/isa/chip_isa.def"
};

static const struct {
    const char *name, *meaning;
    unsigned number;
} faults[] = {
#define MUC_CNNCHIP_FAULT(name, number, meaning) { #name, meaning, number },
#include "targets/cnnchip/isa/chip_isa.def"
};

static const struct {
    const char *name;
    uint32_t number, bytes;
} elements[] = {
#define MUC_CNNCHIP_ELEMENT(name, number, bytes, meaning) { #name, number, bytes },
#include "targets/cnnchip/isa/chip_isa.def"
};

/* flags that an instruction of this name takes; END's letter, E, is in no row */
static uint32_t flags_of(const char *name)
{
    uint32_t taken = 0;

    for (size_t i = 0; i < MUC_COUNT(flags); i++)
        if (strchr(flags[i].insns, name[0]))
            taken |= 1u << flags[i].bit;
    return taken;
}

static muc_cnnchip_op_info info_of(uint32_t op)
{
    uint32_t first = rows[op].mark - op;
    uint32_t end = op + 1 < MUC_CNNCHIP_OPS ? rows[op + 1].mark - (op + 1) : (uint32_t)FIELDS;

    return (muc_cnnchip_op_info){ rows[op].name,  rows[op].opcode, rows[op].words,
                                  &fields[first], end - first,     flags_of(rows[op].name) };
}

muc_cnnchip_op_info muc_cnnchip_op_get(muc_cnnchip_op op)
{
    return info_of((uint32_t)op);
}

bool muc_cnnchip_op_of_opcode(uint32_t opcode, muc_cnnchip_op *out)
{
    for (uint32_t i = 0; i < MUC_CNNCHIP_OPS; i++)
        if (rows[i].opcode == opcode) {
            *out = (muc_cnnchip_op)i;
            return true;
        }
    return false;
}

const char *muc_cnnchip_flag_name(unsigned bit)
{
    for (size_t i = 0; i < MUC_COUNT(flags); i++)
        if (flags[i].bit == bit)
            return flags[i].name;
    return NULL;
}

const char *muc_cnnchip_fault_name(unsigned fault, const char **meaning)
{
    for (size_t i = 0; i < MUC_COUNT(faults); i++)
        if (faults[i].number == fault) {
            *meaning = faults[i].meaning;
            return faults[i].name;
        }
    return NULL;
}

const char *muc_cnnchip_element_name(uint32_t element)
{
    for (size_t i = 0; i < MUC_COUNT(elements); i++)
        if (elements[i].number == element)
            return elements[i].name;
    return NULL;
}

uint32_t muc_cnnchip_element_bytes(uint32_t element)
{
    return elements[element].bytes;
}

static uint32_t mask_of(const muc_cnnchip_field *field)
{
    return UINT32_MAX >> (32 - field->width);
}

bool muc_cnnchip_fits(const muc_cnnchip_field *field, uint32_t value)
{
    uint32_t sign = 1u << (field->width - 1);

    if (field->kind == MUC_CNNCHIP_KIND_signed)
        return value + sign <= mask_of(field);
    return value <= mask_of(field);
}

void muc_cnnchip_write_insn(const muc_cnnchip_insn *insn, uint8_t *out)
{
    muc_cnnchip_op_info info = info_of((uint32_t)insn->op);
    uint32_t words[MUC_CNNCHIP_MOST_WORDS] = { 0 };

    words[0] = info.opcode | insn->flags << 8 | insn->layer << 16;
    for (uint32_t i = 0; i < info.field_count; i++) {
        const muc_cnnchip_field *field = &info.fields[i];

        words[field->word] |= (muc_cnnchip_field_value(insn, field) & mask_of(field))
                              << field->shift;
    }
    for (uint32_t i = 0; i < info.words; i++)
        muc_store_u32(out + (size_t)4 * i, words[i]);
}

uint32_t muc_cnnchip_read_insn(const uint8_t *code, size_t bytes, muc_cnnchip_insn *out,
                               unsigned *fault)
{
    uint32_t words[MUC_CNNCHIP_MOST_WORDS], named[MUC_CNNCHIP_MOST_WORDS] = { UINT32_MAX };
    muc_cnnchip_op_info info;

    *out = (muc_cnnchip_insn){ 0 };
    *fault = 1;
    if (bytes < 4)
        return 0;
    words[0] = muc_load_u32(code);
    *fault = 2;
    if (!muc_cnnchip_op_of_opcode(words[0] & 0xff, &out->op))
        return 0;
    info = info_of((uint32_t)out->op);
    *fault = 1;
    if (bytes / 4 < info.words)
        return 0;
    for (uint32_t i = 1; i < info.words; i++)
        words[i] = muc_load_u32(code + (size_t)4 * i);
    out->flags = words[0] >> 8 & 0xff;
    out->layer = words[0] >> 16;
    for (uint32_t i = 0; i < info.field_count; i++) {
        const muc_cnnchip_field *field = &info.fields[i];
        uint32_t value = words[field->word] >> field->shift & mask_of(field);
        uint32_t sign = 1u << (field->width - 1);

        named[field->word] |= mask_of(field) << field->shift;
        if (field->kind == MUC_CNNCHIP_KIND_signed && value & sign)
            value |= ~mask_of(field);
        *muc_cnnchip_at(out, field) = value;
    }
    *fault = 3;
    for (uint32_t i = 1; i < info.words; i++)
        if (words[i] & ~named[i])
            return 0;
    for (unsigned bit = 0; bit < 8; bit++)
        if (out->flags >> bit & 1 && !muc_cnnchip_flag_name(bit))
            return 0;
    *fault = 0;
    return 4 * info.words;
}
