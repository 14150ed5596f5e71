/* bd_survey.h - the error of every grid, for blocks beside each other. Not for other rooms. */
#ifndef MUC_BD_SURVEY_H
#define MUC_BD_SURVEY_H

#include "quant/bd_table.h"
#include "quant/blockdialect.h"

/* The exponent that just holds the largest element is not always the best, so its neighbours are
 * tried too. */
enum { MUC_BD_TRIED_EXPONENTS = 3 };

typedef double muc_bd_lanes __attribute__((vector_size(8 * MUC_BD_LANES)));

/* The least error of a kind's grids and the first grid that has it, of the lowest exponent, then
 * dialect. Where there is no grid the error is INFINITY. */
typedef struct muc_bd_least {
    muc_bd_lanes error;
    int64_t dialect[MUC_BD_LANES], exponent[MUC_BD_LANES];
} muc_bd_least;

/* What is known of up to MUC_BD_LANES blocks. */
typedef struct muc_bd_survey {
    int64_t first[MUC_BD_LANES];                              /* the lowest exponent tried */
    muc_bd_lanes zeros;                                       /* the error of zeros */
    muc_bd_lanes beyond;                                      /* > 0: some grid does better */
    muc_bd_lanes b4[MUC_BD_TRIED_EXPONENTS][MUC_BD_DIALECTS]; /* errors by exponent, dialect; */
    muc_bd_lanes b5[MUC_BD_TRIED_EXPONENTS];                  /* INFINITY: it is not tried */
    muc_bd_least least_b4, least_b5;
} muc_bd_survey;

/* Of blocks w[0..count-1] of n elements each; importance [n] or NULL. */
void muc_bd_survey_blocks(uint32_t kinds, const float *const *w, unsigned count,
                          const float *importance, unsigned n, muc_bd_survey *out);

/* The least error of a header, of B4 or B5, for an upper block and the one below it, by lane. */
void muc_bd_survey_shared(muc_bd_kind kind, const muc_bd_survey *upper, const muc_bd_survey *lower,
                          muc_bd_least *out);

#endif
