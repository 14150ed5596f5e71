/* text.h - a string that grows, for printers and reports. */
#ifndef MUC_TEXT_H
#define MUC_TEXT_H

#include "base/base.h"

/* All-zero is empty. An allocation failure is remembered and told by muc_text_status. */
typedef struct muc_text {
    char *data; /* NUL-terminated once anything was added */
    size_t size, capacity;
    bool failed;
} muc_text;

void muc_text_add(muc_text *text, const char *format, ...) MUC_PRINTF(2, 3);
void muc_text_add_args(muc_text *text, const char *format, va_list args) MUC_PRINTF(2, 0);
void muc_text_add_bytes(muc_text *text, const void *data, size_t size);
/* A name in the form that muc/visible.h describes. */
void muc_text_add_visible(muc_text *text, const char *string);
/* Bytes that are not UTF-8 are spelled \xff, all else is as it is. */
void muc_text_add_utf8(muc_text *text, const char *string);
/* The JSON form of that, quotes included; characters that muc_visible spells out are \uNNNN. */
void muc_text_add_json(muc_text *text, const char *string);
/* A field of comma-separated values (RFC 4180), visible: with a comma or a quote it stands in
 * quotes; what begins like a formula, which a spreadsheet would compute, is made text by an
 * apostrophe. */
void muc_text_add_csv(muc_text *text, const char *string);
muc_status muc_text_status(muc_context *ctx, const muc_text *text);
void muc_text_free(muc_text *text);

#endif
