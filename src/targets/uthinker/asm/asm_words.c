/* asm_words.c - tables of names, and the labels of slots. */
#include "targets/uthinker/asm/asm_words.h"

#include <string.h>

#include "base/base.h"
#include "targets/uthinker/isa/uthinker_isa.h"

static const char *const mach_names[] = {
#define MUR_MACH(name, min, max, meaning) #name,
#include "mur_sections.def"
};
static const char *const meta_names[] = {
#define MUR_META(name, min, max, meaning) #name,
#include "mur_sections.def"
};
static const char *const entr_names[] = {
#define MUR_ENTR(name, min, max, meaning) #name,
#include "mur_sections.def"
};
static const char *const gold_names[] = {
#define MUR_GOLD(name, meaning) #name,
#include "mur_sections.def"
};
static const char *const layr_names[] = {
#define MUR_LAYR(name, min, max, meaning) #name,
#include "mur_sections.def"
};

static const char *const buffer_names[] = { "I0", "I1", "W0", "W1", "GB" };
static const char *const region_names[] = { "WGTS", "PARM", "KV", "IO" };
static const char *const input_names[] = { "pos", "m", "end", "logits" };

muc_asm_row muc_asm_row_of(enum mur_section section)
{
    if (section == MUR_SECTION_MACH)
        return (muc_asm_row){ mach_names, MUC_COUNT(mach_names), NULL };
    if (section == MUR_SECTION_META)
        return (muc_asm_row){ meta_names, MUC_COUNT(meta_names), NULL };
    if (section == MUR_SECTION_ENTR)
        return (muc_asm_row){ entr_names, MUC_COUNT(entr_names), "entry" };
    if (section == MUR_SECTION_GOLD)
        return (muc_asm_row){ gold_names, MUC_COUNT(gold_names), "gold" };
    if (section == MUR_SECTION_LAYR)
        return (muc_asm_row){ layr_names, MUC_COUNT(layr_names), "layer" };
    return (muc_asm_row){ NULL, 0, NULL };
}

const char *const *muc_asm_field_names(uint32_t field, uint32_t *count)
{
    const char *name = muc_field_get(field)->name;

    /* the dst of EMBED and AMAX is a place in IO */
    if (strcmp(name, "buf") == 0 || strcmp(name, "src") == 0 || strcmp(name, "wsrc") == 0 ||
        (strcmp(name, "dst") == 0 && field != MUC_FIELD_EMBED_dst && field != MUC_FIELD_AMAX_dst)) {
        *count = MUC_COUNT(buffer_names);
        return buffer_names;
    }
    if (strcmp(name, "region") == 0) {
        *count = MUC_COUNT(region_names);
        return region_names;
    }
    *count = 0;
    return NULL;
}

size_t muc_asm_identifier(const char *text, size_t size)
{
    size_t length = 0;

    while (length < size && ((text[length] >= 'a' && text[length] <= 'z') ||
                             (text[length] >= 'A' && text[length] <= 'Z') || text[length] == '_' ||
                             (length > 0 && text[length] >= '0' && text[length] <= '9')))
        length++;
    return length;
}

/* "s12" */
static bool is_slot_name(const char *label, size_t length, uint32_t *slot)
{
    if (length < 2 || length > 3 || label[0] != 's')
        return false;
    *slot = 0;
    for (size_t i = 1; i < length; i++) {
        if (label[i] < '0' || label[i] > '9')
            return false;
        *slot = 10 * *slot + (uint32_t)(label[i] - '0');
    }
    return *slot < MUR_SLOTS;
}

static bool equals(const char *name, const char *label, size_t length)
{
    return strlen(name) == length && memcmp(name, label, length) == 0;
}

void muc_asm_labels_begin(muc_asm_labels *labels)
{
    memset(labels, 0, sizeof(*labels));
    for (uint32_t i = 0; i < MUC_COUNT(input_names); i++)
        strcpy(labels->of[i], input_names[i]);
}

bool muc_asm_label_set(muc_asm_labels *labels, uint32_t slot, const char *label, size_t length)
{
    uint32_t other;

    labels->of[slot][0] = '\0';
    if (length == 0 || length >= MUC_ASM_LABEL_BYTES ||
        muc_asm_identifier(label, length) != length || is_slot_name(label, length, &other))
        return false;
    for (uint32_t i = 0; i < MUC_COUNT(input_names); i++)
        if (equals(input_names[i], label, length))
            return false;
    for (uint32_t i = 0; i < MUR_SLOTS; i++)
        if (equals(labels->of[i], label, length))
            labels->of[i][0] = '\0';
    memcpy(labels->of[slot], label, length);
    labels->of[slot][length] = '\0';
    return true;
}

uint32_t muc_asm_label_find(const muc_asm_labels *labels, const char *label, size_t length)
{
    uint32_t slot;

    if (is_slot_name(label, length, &slot))
        return slot;
    for (slot = 0; slot < MUC_COUNT(input_names); slot++)
        if (equals(input_names[slot], label, length))
            return slot;
    for (slot = 0; slot < MUR_SLOTS && length > 0; slot++)
        if (equals(labels->of[slot], label, length))
            return slot;
    return MUR_SLOTS;
}
