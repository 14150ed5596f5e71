/* code_item.c - the only place that knows where the bits of an item go. */
#include "targets/uthinker/isa/code_item.h"

#include <string.h>

#include "base/base.h"

#define FITS(item, name, value) ((value) <= UINT32_MAX >> (32 - MUR_WIDTH_##item##_##name))
#define BITS(item, name, value) ((uint32_t)(value) << MUR_SHIFT_##item##_##name)

static const char *const eval_names[] = {
#define MUR_EVAL(name, number, operands, meaning) [number] = #name,
#include "mur_eval.def"
#undef MUR_EVAL
};

const char *muc_eval_name(uint32_t op)
{
    return op < MUC_COUNT(eval_names) ? eval_names[op] : NULL;
}

static uint32_t patch_of(uint32_t field, uint32_t slot)
{
    const muc_field_info *info = muc_field_get(field);

    return BITS(PATCH, slot, slot) | BITS(PATCH, word, info->word) |
           BITS(PATCH, shift, info->shift) | BITS(PATCH, width, info->width);
}

static uint32_t encode_instruction(const muc_item *item, uint32_t *words)
{
    const muc_insn_info *info = muc_insn_get(item->op);
    uint32_t patches = 0;

    if (item->sig > MUR_TOKENS || item->wait > UINT16_MAX)
        return 0;
    words[1] = info->opcode | item->sig << MUC_WORD0_SIG_SHIFT | item->wait << MUC_WORD0_WAIT_SHIFT;
    for (uint32_t i = 1; i < info->words; i++)
        words[1 + i] = 0;
    for (uint32_t i = 0; i < muc_insn_fields(item->op); i++) {
        const muc_item_field *field = &item->fields[i];

        if (!muc_field_put(info->first_field + i, field->is_slot ? field->more : field->value,
                           words + 1))
            return 0;
        if (field->is_slot && !FITS(PATCH, slot, field->value))
            return 0;
        if (field->is_slot)
            words[1 + info->words + patches++] = patch_of(info->first_field + i, field->value);
    }
    words[0] = MUR_INST | BITS(INST, patches, patches) | BITS(INST, words, info->words);
    return 1 + info->words + patches;
}

static uint32_t encode_eval(const muc_item *item, uint32_t *words)
{
    if (!FITS(EVAL, op, item->eval) || !FITS(EVAL, dst, item->dst) || !FITS(EVAL, a, item->a) ||
        !FITS(EVAL, b, item->b))
        return 0;
    words[0] = MUR_EVAL | BITS(EVAL, op, item->eval) | BITS(EVAL, dst, item->dst) |
               BITS(EVAL, a, item->a) | BITS(EVAL, b, item->b) |
               BITS(EVAL, immediate, item->immediate);
    words[1] = item->second;
    return MUR_WORDS_EVAL;
}

static uint32_t encode_for(const muc_item *item, uint32_t *words)
{
    uint32_t slot = item->count.is_slot ? item->count.value : 0;

    if (!FITS(FOR, variable, item->variable) || !FITS(FOR, count, slot))
        return 0;
    words[0] = MUR_FOR | BITS(FOR, variable, item->variable) | BITS(FOR, count, slot) |
               BITS(FOR, constant, !item->count.is_slot) | BITS(FOR, streamed, item->streamed);
    words[1] = item->most;
    words[2] = item->body;
    return MUR_WORDS_FOR;
}

uint32_t muc_item_encode(const muc_item *item, uint32_t words[MUC_ITEM_MAX_WORDS])
{
    switch (item->kind) {
    case MUR_INST:
        return encode_instruction(item, words);
    case MUR_EVAL:
        return encode_eval(item, words);
    case MUR_FOR:
        return encode_for(item, words);
    case MUR_NEXT:
    case MUR_END:
        words[0] = item->kind;
        return 1;
    default:
        return 0;
    }
}

static bool decode_instruction(const uint32_t *words, size_t count, muc_item *out)
{
    uint32_t patches = MUR_CODE_GET(words[0], INST, patches);
    const muc_insn_info *info;

    if (count < 2 || !muc_insn_find_opcode(words[1] & MUC_WORD0_OPCODE, &out->op))
        return false;
    info = muc_insn_get(out->op);
    if (MUR_CODE_GET(words[0], INST, words) != info->words || count < 1 + info->words + patches)
        return false;
    out->sig = words[1] >> MUC_WORD0_SIG_SHIFT & MUC_WORD0_SIG_MASK;
    out->wait = words[1] >> MUC_WORD0_WAIT_SHIFT;
    for (uint32_t i = 0; i < muc_insn_fields(out->op); i++) {
        const muc_field_info *field = muc_field_get(info->first_field + i);

        out->fields[i].value =
            words[1 + field->word] >> field->shift & muc_field_max(info->first_field + i);
        for (uint32_t p = 0; p < patches; p++) {
            uint32_t patch = words[1 + info->words + p];
            uint32_t slot = MUR_CODE_GET(patch, PATCH, slot);

            if (patch == patch_of(info->first_field + i, slot))
                out->fields[i] = (muc_item_field){ true, slot, out->fields[i].value };
        }
    }
    return true;
}

static void decode_eval(const uint32_t *words, muc_item *out)
{
    out->eval = MUR_CODE_GET(words[0], EVAL, op);
    out->dst = MUR_CODE_GET(words[0], EVAL, dst);
    out->a = MUR_CODE_GET(words[0], EVAL, a);
    out->b = MUR_CODE_GET(words[0], EVAL, b);
    out->immediate = MUR_CODE_GET(words[0], EVAL, immediate);
    out->second = words[1];
}

static void decode_for(const uint32_t *words, muc_item *out)
{
    out->variable = MUR_CODE_GET(words[0], FOR, variable);
    out->most = words[1];
    out->body = words[2];
    out->streamed = MUR_CODE_GET(words[0], FOR, streamed);
    out->count = (muc_item_field){ true, MUR_CODE_GET(words[0], FOR, count), 0 };
    if (MUR_CODE_GET(words[0], FOR, constant))
        out->count = (muc_item_field){ false, words[1], 0 };
}

uint32_t muc_item_decode(const uint32_t *words, size_t count, muc_item *out)
{
    static const uint32_t least[] = {
#define MUR_ITEM(name, kind, words, meaning) [kind] = words,
#include "mur_code.def"
    };
    uint32_t again[MUC_ITEM_MAX_WORDS], kind, size;

    memset(out, 0, sizeof(*out));
    if (count == 0)
        return 0;
    kind = mur_bits(words[0], 0, MUR_KIND_WIDTH);
    if (kind >= MUC_COUNT(least) || least[kind] == 0 || count < least[kind])
        return 0;
    out->kind = kind;
    if (out->kind == MUR_INST && !decode_instruction(words, count, out))
        return 0;
    if (out->kind == MUR_EVAL)
        decode_eval(words, out);
    if (out->kind == MUR_FOR)
        decode_for(words, out);
    size = muc_item_encode(out, again);
    if (size == 0 || size > count || memcmp(words, again, 4 * (size_t)size) != 0)
        return 0;
    return size;
}
