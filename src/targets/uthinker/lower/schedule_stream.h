/* schedule_stream.h - matrices that are loaded chunk by chunk, each while the product of the one
 * before it is under way. Private to the schedule. */
#ifndef MUC_UTHINKER_SCHEDULE_STREAM_H
#define MUC_UTHINKER_SCHEDULE_STREAM_H

#include "targets/uthinker/lower/schedule_instructions.h"

/* The load of a chunk to a W buffer, and what is done with the chunk that lies there. */
typedef void chunk_load(lowering *lo, numbered chunk, uint32_t buffer);
typedef void chunk_body(lowering *lo, numbered chunk, bool last, uint32_t buffer);
/* The first load of what follows a stage, to a W buffer. */
typedef void next_load(lowering *lo, uint32_t buffer);

enum { ANY_BUFFER = 2 };

/* What follows a stage; NULL: nothing is loaded before its end. */
typedef struct next_stage {
    next_load *load;
    uint32_t begins; /* the W buffer that it has to begin with, or ANY_BUFFER */
} next_stage;

/* Chunks before a stage's last ones that are written out one by one rather than as a For: their
 * columns are Immediates, and nothing is evaluated for a round. */
enum { MUC_MOST_WRITTEN_OUT = 16 };

/* The stage of a matrix: chunk 0 is loaded already, to lo->buffer; on return lo->buffer has what
 * comes next. */
typedef struct chunk_stream {
    const char *variable;
    uint32_t chunks;
    chunk_load *load;
    chunk_body *body;
    next_stage next;
    bool apart; /* no For has the first two chunks: their bodies differ from the others */
} chunk_stream;
void muc_schedule_stream(lowering *lo, const chunk_stream *stream);

/* Around a stage's last use of a buffer: begin issues the next stage's load to the other one, or
 * end does if that one must begin with this. Where stages are unrotated neither does: the next one
 * begins with it, or the round of a loop ends. */
bool muc_schedule_begin_last(lowering *lo, const next_stage *next, uint32_t buffer);
void muc_schedule_end_last(lowering *lo, const next_stage *next, uint32_t buffer, bool begun);
void muc_schedule_begin_stage(lowering *lo);
void muc_schedule_end_round(lowering *lo);

/* A chunk of a matrix kind, of the layer and kv head at hand, to a half, or to a buffer by its
 * first half. */
void muc_schedule_load_chunk(lowering *lo, muc_matrix_kind kind, numbered chunk, uint32_t half);
/* where one lies then; last: it is the stream's last one */
right_operand muc_schedule_chunk_in(lowering *lo, muc_matrix_kind kind, uint32_t half, bool last);
/* MM of a chunk to the same columns of a place in GB, from row `first` on */
void muc_schedule_mm_columns(lowering *lo, const left_operand *left, const right_operand *right,
                             muc_matrix_kind kind, numbered chunk, muc_uthinker_place to,
                             muc_expr first, uint64_t pitch, muc_expr acc);

#endif
