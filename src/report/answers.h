/* answers.h - what a report says first: does it fit, how fast is it, what costs most.
 *
 * The answers are the table "answers" (question, answer, detail); in pages they stand at the top,
 * beside the sentences of "what_to_change". They come after the tables that they speak of.
 */
#ifndef MUC_REPORT_ANSWERS_H
#define MUC_REPORT_ANSWERS_H

#include "report/report_builder.h"

#define MUC_QUESTION_FIT "Does it fit?"
#define MUC_QUESTION_SPEED "How fast is it?"
#define MUC_QUESTION_COSTS "What costs most?"
#define MUC_QUESTION_CHANGE "What to change?"

/* A memory of the table "memory". */
typedef struct muc_memory_use {
    const char *use, *memory; /* what for, and its name */
    uint64_t bytes, limit;    /* in use, and that it has; limit 0: not known */
} muc_memory_use;

/* The table "memory": use, memory, bytes, limit. */
void muc_report_begin_memories(muc_report *report);
void muc_report_add_memory_use(muc_report *report, const muc_memory_use *use);

/* Begins the table, which muc_report_end ends; between them each adds a row. */
void muc_report_begin_answers(muc_report *report);

/* "Does it fit?", from the table "memory"; nothing without one. */
void muc_report_answer_fit(muc_report *report);
/* "How fast is it?" answer "": not known, and detail says how to know. */
void muc_report_answer_speed(muc_report *report, const char *answer, const char *detail);
/* "What costs most?", from the tables of costs.def; nothing without one. */
void muc_report_answer_costs(muc_report *report);
/* another question */
void muc_report_answer(muc_report *report, const char *question, const char *answer,
                       const char *detail);

/* The table "what_to_change": sentences, in the order of what they are worth; muc_report_end ends
 * it. */
void muc_report_begin_advice(muc_report *report);
void muc_report_advise(muc_report *report, const char *format, ...) MUC_PRINTF(2, 3);

#endif
