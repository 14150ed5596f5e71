/* mur_bd_pairs.h - the two levels of every byte of codes of a BlockDialect matrix, for each
 * dialect: rows of a table [MUR_BD_DIALECTS][256] of MUR_BD_PAIR(first column's level, second
 * one's), which whoever includes this defines.
 */
#define PAIRS(y, a, b, c, d, e, f, g, h) \
    MUR_BD_PAIR(a, y), MUR_BD_PAIR(b, y), MUR_BD_PAIR(c, y), MUR_BD_PAIR(d, y), MUR_BD_PAIR(e, y), \
        MUR_BD_PAIR(f, y), MUR_BD_PAIR(g, y), MUR_BD_PAIR(h, y), MUR_BD_PAIR(-(a), y), \
        MUR_BD_PAIR(-(b), y), MUR_BD_PAIR(-(c), y), MUR_BD_PAIR(-(d), y), MUR_BD_PAIR(-(e), y), \
        MUR_BD_PAIR(-(f), y), MUR_BD_PAIR(-(g), y), MUR_BD_PAIR(-(h), y)
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) \
    [id] = { PAIRS(a, a, b, c, d, e, f, g, h),    PAIRS(b, a, b, c, d, e, f, g, h), \
             PAIRS(c, a, b, c, d, e, f, g, h),    PAIRS(d, a, b, c, d, e, f, g, h), \
             PAIRS(e, a, b, c, d, e, f, g, h),    PAIRS(f, a, b, c, d, e, f, g, h), \
             PAIRS(g, a, b, c, d, e, f, g, h),    PAIRS(h, a, b, c, d, e, f, g, h), \
             PAIRS(-(a), a, b, c, d, e, f, g, h), PAIRS(-(b), a, b, c, d, e, f, g, h), \
             PAIRS(-(c), a, b, c, d, e, f, g, h), PAIRS(-(d), a, b, c, d, e, f, g, h), \
             PAIRS(-(e), a, b, c, d, e, f, g, h), PAIRS(-(f), a, b, c, d, e, f, g, h), \
             PAIRS(-(g), a, b, c, d, e, f, g, h), PAIRS(-(h), a, b, c, d, e, f, g, h) },
#include "mur_dialect.def"
#undef MUR_DIALECT
#undef PAIRS
