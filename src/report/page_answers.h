/* page_answers.h - the first screen of a page, and the bars of time below it; for this room alone.
 */
#ifndef MUC_REPORT_PAGE_ANSWERS_H
#define MUC_REPORT_PAGE_ANSWERS_H

#include "report/tree.h"

/* A card an answer; nothing if the report has none. */
void muc_page_add_answers(muc_text *text, const muc_report *report);

/* Whether the report tells the time of layers, or compares that of two reports. */
bool muc_page_has_bars(const muc_report *report);
/* A row a layer, in the order of the network; of two reports two bars a row. */
void muc_page_add_bars(muc_text *text, const muc_report *report);

#endif
