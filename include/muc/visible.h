/* muc/visible.h - names of files, tensors and nodes in a form that does no harm where it is
 * printed.
 */
#ifndef MUC_VISIBLE_H
#define MUC_VISIBLE_H

#include "muc/status.h"

MUC_API_BEGIN

/* Copies a string as it may be printed: \n, \r and \t are spelled so; \x1b stands for another
 * control character of ASCII, or for a byte that is not UTF-8; \u202e for the control characters
 * from U+0080 on and for what has no width or turns the direction of writing. All else stays.
 * Gives the form's bytes; out takes as many whole characters as fit, and a NUL. */
size_t muc_visible(const char *string, char *out, size_t size);

/* The string as JSON has it, quotes included: bytes that are not UTF-8 are spelled \\xff, harmful
 * characters \u202e. malloc'ed, for the caller to free; NULL if memory is out. */
char *muc_json_string(const char *string);

MUC_API_END

#endif
