/* schedule_instructions.c - instructions of a template, with the tokens by which engines wait for
 * each other. */
#include "targets/uthinker/lower/schedule_instructions.h"

bool muc_schedule_begin_for(lowering *lo, const char *name, muc_expr count, muc_expr *variable)
{
    muc_expr opened;

    if (count == MUC_EXPR_NONE || muc_expr_get(lo->pool, count)->hi == 0)
        return false;
    opened = muc_ir_for(&lo->ir, name, count);
    if (variable)
        *variable = opened;
    return true;
}

/* the row of SPEC.md section 8's table of tokens */
static void synchronise(const lowering *lo, muc_instruction *instruction, uint32_t use)
{
    bool load = instruction->op == MUC_INSN_LD, store = instruction->op == MUC_INSN_ST;
    uint32_t half = use & HALF_MASK, signal, wait;

    if (instruction->op == MUC_INSN_EMBED)
        return;
    if (instruction->op == MUC_INSN_AMAX) {
        instruction->wait = 1 << TOKEN_ST;
        return;
    }
    if (!lo->chip->apart && !(use & WRITES_RESIDUAL && lo->chip->residual_apart))
        use |= WRITES_SHARED;
    if (load || store) {
        signal = load ? TOKEN_FILLED : TOKEN_ST;
        wait = 3 << TOKEN_FREE | 1 << TOKEN_ACC;
    } else {
        signal = TOKEN_ACC;
        wait = use & (READS_SHARED | WRITES_SHARED) ? 1 << TOKEN_FILLED : 0;
        wait |= use & WRITES_SHARED ? 1 << TOKEN_ST : 0;
    }
    if (half != NO_HALF) {
        wait = load || store ? 1u << (TOKEN_FREE + half / 2) : wait | 1u << half;
        signal = load ? half : TOKEN_FREE + half / 2;
    }
    instruction->wait = (uint16_t)wait;
    instruction->sig = store && half != NO_HALF ? 0 : (uint8_t)(signal + 1);
}

void muc_schedule_emit(lowering *lo, uint32_t op, uint32_t use, const field_value *values,
                       size_t count)
{
    muc_instruction instruction = { .op = op, .stage = lo->stage };
    uint32_t first = muc_insn_get(op)->first_field;

    for (uint32_t i = 0; i < muc_insn_fields(op); i++)
        instruction.fields[i].resolve = num(lo, 0);
    for (size_t i = 0; i < count; i++)
        instruction.fields[values[i].field - first].resolve = values[i].value;
    synchronise(lo, &instruction, use);
    muc_ir_add(&lo->ir, &instruction);
}

void muc_schedule_load_half(lowering *lo, uint32_t half, uint32_t at, enum mur_region region,
                            muc_expr off, muc_expr len)
{
    EMIT(lo, LD, half, FIELD(LD, addr, num(lo, half_address(lo, half) + (uint64_t)at)),
         FIELD(LD, buf, half_buffer(lo, half)), FIELD(LD, region, num(lo, region)),
         FIELD(LD, off, off), FIELD(LD, len, len));
}

void muc_schedule_store_half(lowering *lo, uint32_t half, muc_expr addr, muc_expr off, muc_expr len)
{
    EMIT(lo, ST, half, FIELD(ST, addr, addr), FIELD(ST, buf, half_buffer(lo, half)),
         FIELD(ST, region, num(lo, MUR_KV)), FIELD(ST, off, off), FIELD(ST, len, len));
}

void muc_schedule_load_place(lowering *lo, muc_uthinker_place place, enum mur_region region,
                             muc_expr off, muc_expr len)
{
    EMIT(lo, LD, NO_HALF, FIELD(LD, addr, num(lo, lo->chip->address[place])),
         FIELD(LD, buf, num(lo, muc_uthinker_place_buffer(lo->chip, place))),
         FIELD(LD, region, num(lo, region)), FIELD(LD, off, off), FIELD(LD, len, len));
}

void muc_schedule_store_place(lowering *lo, muc_uthinker_place place, muc_expr addr,
                              enum mur_region region, muc_expr off, muc_expr len)
{
    EMIT(lo, ST, NO_HALF, FIELD(ST, addr, addr),
         FIELD(ST, buf, num(lo, muc_uthinker_place_buffer(lo->chip, place))),
         FIELD(ST, region, num(lo, region)), FIELD(ST, off, off), FIELD(ST, len, len));
}

void muc_schedule_mm(lowering *lo, const left_operand *left, const right_operand *right,
                     muc_uthinker_place to, muc_expr daddr, muc_expr dpitch, muc_expr acc)
{
    uint32_t shared = to == MUC_PLACE_VT || to == MUC_PLACE_LG ? WRITES_SHARED
                      : to == MUC_PLACE_RES                    ? WRITES_RESIDUAL
                                                               : 0;

    EMIT(lo, MM, right->half | shared, FIELD(MM, saddr, left->addr), FIELD(MM, rows, left->rows),
         FIELD(MM, waddr, right->addr), FIELD(MM, cols, right->cols), FIELD(MM, wlen, right->wlen),
         FIELD(MM, src, num(lo, muc_uthinker_place_buffer(lo->chip, left->place))),
         FIELD(MM, wsrc, half_buffer(lo, right->half)), FIELD(MM, acc, acc),
         FIELD(MM, terms, num(lo, left->terms)), FIELD(MM, daddr, daddr),
         FIELD(MM, spitch, num(lo, left->pitch)), FIELD(MM, dpitch, dpitch), FIELD(MM, k, left->k));
}

left_operand muc_schedule_rows_of(lowering *lo, muc_uthinker_place place, muc_expr rows, uint32_t k,
                                  uint32_t terms)
{
    left_operand left = {
        place, num(lo, lo->chip->address[place]), rows, num(lo, k), slots(k, terms), terms
    };

    return left;
}

void muc_schedule_load_gains(lowering *lo, muc_expr row)
{
    uint64_t bytes = 4 * (uint64_t)lo->y->width;

    lo->stage = "NORM";
    muc_schedule_load_place(lo, MUC_PLACE_GN, MUR_PARM,
                            add_num(lo, times(lo, row, bytes), lo->y->gain_attention),
                            num(lo, lo->y->gain_rows * bytes));
}

void muc_schedule_norm(lowering *lo, muc_expr saddr, muc_expr rows, muc_expr gain,
                       muc_uthinker_place to, uint32_t terms)
{
    uint32_t d = lo->y->width, pitch = lo->y->gain_rows > 1 ? d : 0;

    EMIT(lo, NORM, NO_HALF | READS_SHARED, FIELD(NORM, saddr, saddr), FIELD(NORM, rows, rows),
         FIELD(NORM, gaddr, add_num(lo, times(lo, gain, pitch), word(lo, MUC_PLACE_GN))),
         FIELD(NORM, dst, num(lo, muc_uthinker_place_buffer(lo->chip, to))),
         FIELD(NORM, terms, num(lo, terms)), FIELD(NORM, daddr, num(lo, lo->chip->address[to])),
         FIELD(NORM, k, num(lo, d)), FIELD(NORM, spitch, num(lo, d)),
         FIELD(NORM, epsilon, num(lo, lo->y->epsilon)));
}

void muc_schedule_cap(lowering *lo, muc_expr saddr, muc_expr rows, muc_expr k, uint64_t spitch,
                      uint32_t factor, uint32_t cap, uint32_t shared)
{
    EMIT(lo, CAP, NO_HALF | shared, FIELD(CAP, saddr, saddr), FIELD(CAP, rows, rows),
         FIELD(CAP, k, k), FIELD(CAP, spitch, num(lo, spitch)), FIELD(CAP, factor, num(lo, factor)),
         FIELD(CAP, cap, num(lo, cap)));
}

bool muc_schedule_has(const lowering *lo, muc_vector_kind kind)
{
    return lo->y->vector_elements[kind] != 0;
}

uint64_t muc_schedule_vector(const lowering *lo, muc_vector_kind kind)
{
    uint64_t at = word(lo, MUC_PLACE_EX);

    for (uint32_t i = 0; i < (uint32_t)kind; i++)
        at += lo->y->vector_elements[i];
    return at;
}

void muc_schedule_scale(lowering *lo, muc_expr saddr, uint64_t spitch, muc_expr rows, uint64_t k,
                        muc_expr daddr, uint64_t dpitch, uint32_t factor, bool acc, uint32_t shared)
{
    EMIT(lo, SCALE, NO_HALF | READS_SHARED | shared, FIELD(SCALE, saddr, saddr),
         FIELD(SCALE, rows, rows), FIELD(SCALE, daddr, daddr), FIELD(SCALE, acc, num(lo, acc)),
         FIELD(SCALE, k, num(lo, k)), FIELD(SCALE, spitch, num(lo, spitch)),
         FIELD(SCALE, dpitch, num(lo, dpitch)), FIELD(SCALE, factor, num(lo, factor)));
}

void muc_schedule_rms(lowering *lo, muc_expr saddr, muc_expr rows, uint64_t k, uint64_t gaddr,
                      muc_expr daddr, bool acc)
{
    EMIT(lo, RMS, NO_HALF | READS_SHARED, FIELD(RMS, saddr, saddr), FIELD(RMS, rows, rows),
         FIELD(RMS, gaddr, num(lo, gaddr)), FIELD(RMS, acc, num(lo, acc)), FIELD(RMS, daddr, daddr),
         FIELD(RMS, k, num(lo, k)), FIELD(RMS, spitch, num(lo, k)), FIELD(RMS, dpitch, num(lo, k)),
         FIELD(RMS, epsilon, num(lo, lo->y->epsilon)));
}

void muc_schedule_bias(lowering *lo, muc_vector_kind kind, muc_expr from, muc_uthinker_place place,
                       muc_expr first, muc_expr rows, uint64_t columns, bool acc)
{
    uint32_t shared = place == MUC_PLACE_VT ? WRITES_SHARED : 0;

    if (muc_schedule_has(lo, kind))
        muc_schedule_scale(lo, add_num(lo, from, muc_schedule_vector(lo, kind)), 0, rows, columns,
                           add_num(lo, times(lo, first, columns), word(lo, place)), columns,
                           MUC_UTHINKER_ONE, acc, shared);
}

void muc_schedule_norm_heads(lowering *lo, muc_vector_kind kind, muc_uthinker_place place,
                             muc_expr rows)
{
    muc_expr at = num(lo, word(lo, place));

    if (muc_schedule_has(lo, kind) && !lo->y->whole_norms)
        muc_schedule_rms(lo, at, rows, lo->y->head_width, muc_schedule_vector(lo, kind), at, false);
}

muc_expr muc_schedule_angles(lowering *lo)
{
    uint64_t words = (uint64_t)lo->chip->rows * lo->y->rotary;

    return add_num(lo, times(lo, lo->angle, words), word(lo, MUC_PLACE_TB));
}

void muc_schedule_rope(lowering *lo, muc_uthinker_place place, muc_expr table, muc_expr rows,
                       uint32_t heads)
{
    uint32_t hd = lo->y->head_width, turned = lo->y->rotary, apart = turned < hd ? heads : 1;
    muc_expr g = num(lo, 0);

    if (!muc_schedule_begin_for(lo, place == MUC_PLACE_QF ? "g" : "key", num(lo, apart), &g))
        return;
    EMIT(lo, ROPE, NO_HALF, FIELD(ROPE, saddr, add_num(lo, times(lo, g, hd), word(lo, place))),
         FIELD(ROPE, rows, rows), FIELD(ROPE, taddr, table),
         FIELD(ROPE, heads, num(lo, heads / apart)), FIELD(ROPE, k, num(lo, turned)),
         FIELD(ROPE, spitch, num(lo, (uint64_t)heads * hd)));
    muc_ir_end_for(&lo->ir);
}

void muc_schedule_quant(lowering *lo, muc_uthinker_place from, muc_expr rows, uint32_t k,
                        uint64_t spitch, muc_uthinker_place to, uint32_t terms, uint32_t shared)
{
    EMIT(lo, QUANT, NO_HALF | shared, FIELD(QUANT, saddr, num(lo, word(lo, from))),
         FIELD(QUANT, rows, rows), FIELD(QUANT, daddr, num(lo, lo->chip->address[to])),
         FIELD(QUANT, dst, num(lo, muc_uthinker_place_buffer(lo->chip, to))),
         FIELD(QUANT, terms, num(lo, terms)), FIELD(QUANT, k, num(lo, k)),
         FIELD(QUANT, spitch, num(lo, spitch)), FIELD(QUANT, dpitch, num(lo, slots(k, terms))));
}

void muc_schedule_quant_queries(lowering *lo)
{
    uint32_t hd = lo->y->head_width, group = lo->y->group,
             pitch = muc_uthinker_query_columns(lo->y);
    uint64_t from = word(lo, MUC_PLACE_QF) + lo->made_head * group * hd;
    uint64_t bytes = slots(hd, lo->terms->q);
    muc_expr g;

    lo->stage = "Q";
    if (!muc_schedule_begin_for(lo, "query", num(lo, group), &g))
        return;
    EMIT(lo, QUANT, NO_HALF, FIELD(QUANT, saddr, add_num(lo, times(lo, g, hd), from)),
         FIELD(QUANT, rows, lo->m),
         FIELD(QUANT, daddr, add_num(lo, times(lo, g, bytes), lo->chip->address[MUC_PLACE_Q])),
         FIELD(QUANT, dst, num(lo, muc_uthinker_place_buffer(lo->chip, MUC_PLACE_Q))),
         FIELD(QUANT, terms, num(lo, lo->terms->q)), FIELD(QUANT, k, num(lo, hd)),
         FIELD(QUANT, spitch, num(lo, pitch)), FIELD(QUANT, dpitch, num(lo, group * bytes)));
    muc_ir_end_for(&lo->ir);
}

void muc_schedule_quant_keys(lowering *lo, muc_uthinker_place from, muc_expr rows, uint32_t s,
                             uint32_t half, muc_expr addr)
{
    uint32_t w = muc_uthinker_slab(lo->y, s), terms = lo->terms->k;
    uint32_t column = lo->made_head * lo->y->head_width + lo->y->machine.tile_k * s;

    EMIT(lo, QUANT, half, FIELD(QUANT, saddr, num(lo, word(lo, from) + column)),
         FIELD(QUANT, rows, rows), FIELD(QUANT, daddr, addr),
         FIELD(QUANT, dst, half_buffer(lo, half)), FIELD(QUANT, terms, num(lo, terms)),
         FIELD(QUANT, k, num(lo, w)),
         FIELD(QUANT, spitch, num(lo, muc_uthinker_key_columns(lo->y))),
         FIELD(QUANT, dpitch, num(lo, slots(w, terms))));
}

void muc_schedule_pack_values(lowering *lo, muc_expr first, muc_expr rows, uint32_t half,
                              muc_expr addr)
{
    uint32_t hd = lo->y->head_width, pitch = muc_uthinker_key_columns(lo->y);
    uint64_t column = word(lo, MUC_PLACE_VT) + lo->made_head * hd;

    EMIT(lo, QPACK, half | READS_SHARED,
         FIELD(QPACK, saddr, add_num(lo, times(lo, first, pitch), column)),
         FIELD(QPACK, rows, rows), FIELD(QPACK, daddr, addr), FIELD(QPACK, cols, num(lo, hd)),
         FIELD(QPACK, dst, half_buffer(lo, half)), FIELD(QPACK, terms, num(lo, lo->terms->v)),
         FIELD(QPACK, spitch, num(lo, pitch)));
}
