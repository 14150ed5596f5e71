/* json_scan.h - reads long arrays and objects of JSON value by value, without a tree of them. */
#ifndef MUC_BASE_JSON_SCAN_H
#define MUC_BASE_JSON_SCAN_H

#include "base/arena.h"
#include "base/bytes.h"

/* All-zero but for ctx, bytes and arena at the start. Messages tell the offset in bytes. */
typedef struct muc_json_scan {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes bytes;
    size_t at;
    char *string; /* of the last string that had escapes */
    size_t string_capacity;
} muc_json_scan;

/* The next character that is not white space, or '\0' at the end; it is left there. */
char muc_scan_peek(muc_json_scan *scan);
/* Takes that character if it is c. */
bool muc_scan_take(muc_json_scan *scan, char c);
muc_status muc_scan_expect(muc_json_scan *scan, char c);
/* After a value of an array or an object: *more if a comma follows, otherwise takes the bracket
 * that closes. */
muc_status muc_scan_next(muc_json_scan *scan, char closing, bool *more);
/* A string, unescaped: *out is NUL-terminated only by chance and good until the next one. Bytes
 * need not be UTF-8. */
muc_status muc_scan_string(muc_json_scan *scan, muc_string_view *out);
/* A whole number of at most 10 digits; -1 for anything else that is neither a string nor a bracket.
 */
muc_status muc_scan_count(muc_json_scan *scan, int64_t *out);
/* Any number that is finite. */
muc_status muc_scan_number(muc_json_scan *scan, double *out);
/* Any value; strings and brackets are matched, no more. */
muc_status muc_scan_skip(muc_json_scan *scan);

#endif
