/* formula_text.c - has the compiler write each formula down, its functions being the device's. */
#include "targets/mcu/loops/formula_text.h"

#define OF(of_f32, of_f64) of_f32
#define R(number) number##f
#define TEXT(...) #__VA_ARGS__
#include "graph/primitives.h"

const char *muc_mcu_formula_text(muc_formula formula, bool is_real)
{
    static const struct {
        const char *real, *whole;
    } texts[MUC_FORMULA_COUNT] = {
#define MUC_OP(id, ...)
#define MUC_FORMULA_REAL(id, formula) [MUC_FORMULA_##id] = { TEXT(formula), NULL },
#define MUC_FORMULA_NUMBER(id, formula, whole) [MUC_FORMULA_##id] = { TEXT(formula), TEXT(whole) },
#define MUC_FORMULA_WHOLE(id, whole) [MUC_FORMULA_##id] = { NULL, TEXT(whole) },
#define MUC_FORMULA_TRUTH(id, formula) [MUC_FORMULA_##id] = { TEXT(formula), TEXT(formula) },
#define MUC_FORMULA_TEST(id, formula) [MUC_FORMULA_##id] = { TEXT(formula), NULL },
#include "graph/ops.def"
    };

    return is_real ? texts[formula].real : texts[formula].whole;
}

#define lowest (-9223372036854775807 - 1)
#define highest 9223372036854775807
#define U uint64_t
#define A int64_t
#undef infinity
#define infinity 1.0f / 0.0f

const muc_mcu_fold *muc_mcu_fold_text(muc_op op, bool is_real)
{
    static const muc_mcu_fold texts[MUC_OP_COUNT][2] = {
#define MUC_OP(id, ...)
#define FOLD(start, step, end) \
    { \
        TEXT(start), TEXT(step), TEXT(end) \
    }
#define MUC_FOLD_REAL(id, start, step, end) [MUC_OP_##id][true] = FOLD(start, step, end),
#define MUC_FOLD_WHOLE(id, start, step, end) [MUC_OP_##id][false] = FOLD(start, step, end),
#include "graph/ops.def"
    };

    return texts[op][is_real].start ? &texts[op][is_real] : NULL;
}

#define T float
#define x @a
#define y @y
#define beta @k
#define p @p
#define ONCE(...) { false, TEXT(__VA_ARGS__) ";" },
#define EACH(...) { true, TEXT(__VA_ARGS__) ";" },

#define weight @b
#define bias @i
#define n @n
#define shift @s
#define levels @l
#undef INT32_MIN /* generated code includes stdint.h itself */
#undef A
#define A int32_t

const muc_mcu_row_line *muc_mcu_row_text(muc_op op)
{
    enum { MOST_STEPS = 10 };
    static const muc_mcu_row_line steps[MUC_OP_COUNT][MOST_STEPS] = {
#define MUC_ROWS(id, in_f32, ...) [MUC_OP_##id] = { __VA_ARGS__ },
#define MUC_INTEGER_ROWS(id, ...) [MUC_OP_##id] = { __VA_ARGS__ },
#include "operators/rows.def"
    };

    return steps[op][0].text ? steps[op] : NULL;
}
