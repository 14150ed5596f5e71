/* svg.h - pieces that pictures and pages share; for this room alone. */
#ifndef MUC_REPORT_SVG_H
#define MUC_REPORT_SVG_H

#include "report/tree.h"

/* Text between tags or in an attribute: what XML marks up is escaped, control characters are '?'.
 * NULL adds nothing. */
void muc_xml_add(muc_text *text, const char *string);
/* The first `most` characters of it, the last of them an ellipsis if there are more. */
void muc_xml_add_cut(muc_text *text, const char *string, size_t most);

/* The bytes of a layer's name that pictures show: up to the ';' where TFLite joins the names of
 * what is fused. */
size_t muc_name_heading(const char *name);
/* That much of a name, at most `most` characters; of a path the end is kept: "…_1/Relu". */
void muc_xml_add_name(muc_text *text, const char *string, size_t most);

/* 8640 -> "8,640" */
void muc_xml_add_count(muc_text *text, uint64_t value);

/* A class of page/pictures.css: a colour that the page's text is read on; there are 12, taken in
 * turn. */
const char *muc_svg_fill(size_t index);
/* A class for lines and points, in a colour that stands out from the page; there are 6. */
const char *muc_svg_stroke(size_t index);

/* The distance between marks on an axis: 1, 2 or 5 times a power of ten, so that `range` has at
 * most `most` of them. range above 0. */
double muc_svg_step(double range, unsigned most);

/* Begins a picture of so many pixels; "</svg>\n" ends it. */
void muc_svg_begin(muc_text *text, double width, double height);

/* Hangs a finished picture on the report, and frees the text. */
void muc_svg_hang(muc_report *report, const char *title, const char *note, muc_text *svg);

#endif
