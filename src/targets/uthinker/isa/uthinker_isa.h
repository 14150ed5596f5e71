/* uthinker_isa.h - runtime/include/mur_isa.def as tables: what passes, assembler and printers ask.
 */
#ifndef MUC_UTHINKER_ISA_H
#define MUC_UTHINKER_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "mur.h"

/* Instructions in the order of the table; not their opcodes. */
typedef enum muc_uthinker_op {
#define MUR_INSN(name, opcode, words, engine, meaning) MUC_INSN_##name,
#include "mur_isa.def"
    MUC_INSN_COUNT
} muc_uthinker_op;

/* Every field of every instruction, an instruction's fields one after the other. */
typedef enum muc_uthinker_field {
#define MUR_FIELD(insn, name, word, shift, width, unit) MUC_FIELD_##insn##_##name,
#include "mur_isa.def"
    MUC_FIELD_COUNT
} muc_uthinker_field;

enum { MUC_INSN_MAX_FIELDS = 16 };

typedef struct muc_insn_info {
    const char *name;
    uint32_t opcode, words;
    enum mur_engine engine;
    uint32_t first_field;
    const char *meaning;
} muc_insn_info;

typedef struct muc_field_info {
    const char *name;
    uint32_t word, shift, width;
    const char *unit;
} muc_field_info;

const muc_insn_info *muc_insn_get(uint32_t op);
/* Its fields are first_field .. first_field + muc_insn_fields - 1. */
uint32_t muc_insn_fields(uint32_t op);
const muc_field_info *muc_field_get(uint32_t field);
/* The largest value the field can hold. */
uint32_t muc_field_max(uint32_t field);
/* Puts a value into an instruction's words; false if the field cannot hold it. */
bool muc_field_put(uint32_t field, uint32_t value, uint32_t *words);
/* False if there is no such instruction. */
bool muc_insn_find_opcode(uint32_t opcode, uint32_t *op);
bool muc_insn_find_name(const char *name, uint32_t length, uint32_t *op);

/* Word 0 of every instruction: SPEC.md section 2. */
enum {
    MUC_WORD0_OPCODE = 0xff,
    MUC_WORD0_SIG_SHIFT = 8,
    MUC_WORD0_SIG_MASK = 31,
    MUC_WORD0_WAIT_SHIFT = 16,
    MUC_WORD0_ZERO = 0xe000
};

#endif
