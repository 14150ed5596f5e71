/* visible_name.h - characters of UTF-8, one by one, and the form in which names are printed. */
#ifndef MUC_BASE_VISIBLE_H
#define MUC_BASE_VISIBLE_H

#include "base/base.h"
#include "muc/visible.h"

/* The code point at the head of a text and its bytes, or -1 where it is not UTF-8. left is at
 * least 1. */
int32_t muc_utf8_read(const char *text, size_t left, size_t *size);
bool muc_is_utf8(const char *text, size_t size);
/* The bytes of a code point, 1 to 4. */
size_t muc_utf8_write(uint32_t code, char out[4]);

enum { MUC_VISIBLE_BYTES = 8 };

/* The visible form of the character at the head of a string, NUL-terminated, and how many bytes of
 * the string it is for: 0 at its end. */
size_t muc_visible_character(const char *string, char out[MUC_VISIBLE_BYTES]);
/* Whether a code point is one of those that muc_visible spells as \xNN or \uNNNN. */
bool muc_is_harmful(int32_t code);

#endif
