/* asm_words.h - what the two directions of uthinker_asm.h share: names of words, slots, buffers. */
#ifndef MUC_UTHINKER_ASM_WORDS_H
#define MUC_UTHINKER_ASM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mur.h"

/* The words of a row of MACH, META, ENTR or GOLD, in order. count 0: the section has no such rows.
 */
typedef struct muc_asm_row {
    const char *const *names;
    uint32_t count;
    const char *statement; /* that begins a row: "entry"; NULL: one word a line, one row in all */
} muc_asm_row;
muc_asm_row muc_asm_row_of(enum mur_section section);

/* The names of what a field's numbers stand for ("I0", ..), or NULL. */
const char *const *muc_asm_field_names(uint32_t field, uint32_t *count);

enum { MUC_ASM_LABEL_BYTES = 32 };

/* The label of a slot at some point of CODE: "" if it has none but its number. */
typedef struct muc_asm_labels {
    char of[MUR_SLOTS][MUC_ASM_LABEL_BYTES];
} muc_asm_labels;

/* The inputs' labels and no others. */
void muc_asm_labels_begin(muc_asm_labels *labels);
/* From here on the slot has the label, and no other slot has. False if it cannot be a label: not a
 * short identifier, an input's name, or one that reads as a slot. */
bool muc_asm_label_set(muc_asm_labels *labels, uint32_t slot, const char *label, size_t length);
/* The slot that has this label, or MUR_SLOTS. "s12" is slot 12. */
uint32_t muc_asm_label_find(const muc_asm_labels *labels, const char *label, size_t length);

/* Length of the identifier (letters, digits, '_', not beginning with a digit) at text. */
size_t muc_asm_identifier(const char *text, size_t size);

#endif
