/* code_item.h - one item of CODE (SPEC.md section 5) taken apart and put together again. */
#ifndef MUC_UTHINKER_ITEM_H
#define MUC_UTHINKER_ITEM_H

#include "mur_code.h"
#include "targets/uthinker/isa/uthinker_isa.h"

enum { MUC_ITEM_MAX_WORDS = 1 + MUR_MAX_WORDS + MUC_INSN_MAX_FIELDS };

/* A field of an instruction: a number, or what a slot holds when the program runs, and a number
 * more. */
typedef struct muc_item_field {
    bool is_slot;
    uint32_t value, more;
} muc_item_field;

/* kind says which members count. FOR's body is not part of the item. */
typedef struct muc_item {
    uint32_t kind;          /* enum mur_item */
    uint32_t op, sig, wait; /* INST: muc_uthinker_op; 0 or token + 1; one bit a token */
    muc_item_field fields[MUC_INSN_MAX_FIELDS];
    uint32_t eval, dst, a, b, second; /* EVAL: enum mur_op; slots; its second word */
    bool immediate;                   /* EVAL: b is the second word */
    uint32_t variable, most, body;    /* FOR: slot; largest count; words of the body */
    muc_item_field count;             /* FOR: a number is `most` */
    bool streamed;                    /* FOR: a sequencer may repeat it */
} muc_item;

/* Writes the item and returns its words; 0 if a value does not fit where it goes. */
uint32_t muc_item_encode(const muc_item *item, uint32_t words[MUC_ITEM_MAX_WORDS]);

/* Reads the item that begins at words[0], looking at no word beyond count. Returns its words, or 0
 * if muc_item_encode would not write these very words. */
uint32_t muc_item_decode(const uint32_t *words, size_t count, muc_item *out);

/* The mnemonic of an EVAL's operator, or NULL. */
const char *muc_eval_name(uint32_t op);

#endif
