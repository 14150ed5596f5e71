/* mur_normalize.c - the normal form NFC of Unicode (UAX #15), over the tables of gen/mur_nfc.h.
 *
 * Characters are taken apart into code points, marks put in the order of their classes, and what
 * has a composite composed again. Bytes that are not UTF-8 stay, and nothing composes with them.
 */
#include "mur_encoder.h"
#include "mur_utf8.h"

#include <string.h>

#include "gen/mur_nfc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    FIRST_CHANGED = 0x300, /* a text of smaller characters is in NFC */
    HANGUL = 0xac00,       /* syllables, of which the standard gives arithmetic */
    LEADS = 0x1100,
    VOWELS = 0x1161,
    TAILS = 0x11a7,
    LEAD_COUNT = 19,
    VOWEL_COUNT = 21,
    TAIL_COUNT = 28,
    LEAD_SYLLABLES = VOWEL_COUNT * TAIL_COUNT,
    SYLLABLES = LEAD_COUNT * LEAD_SYLLABLES
};

/* ---- the tables ---- */

static uint32_t class_of(uint32_t code)
{
    size_t low = 0, high = COUNT(nfc_classes);

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (nfc_classes[middle] >> 8 <= code)
            low = middle;
        else
            high = middle;
    }
    return nfc_classes[low] & 0xff;
}

static uint32_t code_at(size_t i)
{
    return nfc_decompositions[i][0] & 0x1fffff;
}

static uint32_t first_at(size_t i)
{
    return nfc_decompositions[i][1] & 0x1fffff;
}

/* 0: it stands for another character alone */
static uint32_t second_at(size_t i)
{
    return nfc_decompositions[i][0] >> 21 | nfc_decompositions[i][1] >> 21 << 11;
}

/* What a character is made of; false if it is not a composite. */
static int take_apart(uint32_t code, uint32_t *first, uint32_t *second)
{
    size_t low = 0, high = COUNT(nfc_decompositions);

    if (code >= HANGUL && code < HANGUL + SYLLABLES) {
        const uint32_t tail = (code - HANGUL) % TAIL_COUNT;

        *first = tail ? code - tail : LEADS + (code - HANGUL) / LEAD_SYLLABLES;
        *second = tail ? TAILS + tail : VOWELS + (code - HANGUL) % LEAD_SYLLABLES / TAIL_COUNT;
        return 1;
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (code_at(middle) == code) {
            *first = first_at(middle);
            *second = second_at(middle);
            return 1;
        }
        if (code_at(middle) < code)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* The composite of two characters, or 0. */
static uint32_t compose(uint32_t first, uint32_t second)
{
    size_t low = 0, high = COUNT(nfc_compositions);

    if (first - LEADS < LEAD_COUNT && second - VOWELS < VOWEL_COUNT)
        return HANGUL + ((first - LEADS) * VOWEL_COUNT + second - VOWELS) * TAIL_COUNT;
    if (first - HANGUL < SYLLABLES && (first - HANGUL) % TAIL_COUNT == 0 && second > TAILS &&
        second < TAILS + TAIL_COUNT)
        return first + second - TAILS;
    while (low < high) {
        const size_t middle = low + (high - low) / 2, at = nfc_compositions[middle];

        if (first_at(at) == first && second_at(at) == second)
            return code_at(at);
        if (first_at(at) < first || (first_at(at) == first && second_at(at) < second))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* ---- the form ---- */

size_t mur_nfc_parts(uint32_t code, uint32_t *out)
{
    uint32_t parts[MUR_NFC_PARTS];
    size_t count = 0;

    for (uint32_t second; count + 1 < MUR_NFC_PARTS && take_apart(code, &code, &second);)
        if (second)
            parts[count++] = second;
    out[0] = code;
    for (size_t i = 0; i < count; i++)
        out[1 + i] = parts[count - 1 - i];
    return count + 1;
}

/* Marks in the order of their classes, those of one class as they came; spare: room for as many. */
static void order_marks(uint32_t *marks, size_t count, uint32_t *spare)
{
    uint32_t done_class = 0;

    for (size_t done = 0; done < count;) {
        uint32_t next = 256;

        for (size_t i = 0; i < count; i++) {
            const uint32_t here = class_of(marks[i]);

            if (here > done_class && here < next)
                next = here;
        }
        for (size_t i = 0; i < count; i++)
            if (class_of(marks[i]) == next)
                spare[done++] = marks[i];
        done_class = next;
    }
    memcpy(marks, spare, count * sizeof(*marks));
}

static void order_all(uint32_t *codes, size_t count, uint32_t *spare)
{
    for (size_t i = 0; i < count;) {
        uint32_t last = class_of(codes[i]);
        size_t end = i + 1;
        int ordered = 1;

        for (uint32_t here; last && end < count && (here = class_of(codes[end])) != 0; end++) {
            ordered = ordered && last <= here;
            last = here;
        }
        if (!ordered)
            order_marks(codes + i, end - i, spare);
        i = end;
    }
}

static size_t compose_all(uint32_t *codes, size_t count)
{
    size_t starter = SIZE_MAX, out = 0;
    uint32_t last = 0; /* the class of what stands before */

    for (size_t i = 0; i < count; i++) {
        const uint32_t class = class_of(codes[i]);
        const int is_free = starter != SIZE_MAX && (out == starter + 1 || last < class);
        const uint32_t composite = is_free ? compose(codes[starter], codes[i]) : 0;

        if (composite) {
            codes[starter] = composite;
            continue;
        }
        if (class == 0)
            starter = out;
        last = class;
        codes[out++] = codes[i];
    }
    return out;
}

int mur_nfc(const uint8_t *text, size_t size, uint32_t *words, size_t word_count, size_t *out_size)
{
    const size_t room = word_count / 2; /* the other half is to order marks in */
    uint8_t *out = (uint8_t *)words;
    size_t count = 0, bytes = 0, length;

    for (size_t at = 0; at < size; at += length) {
        if (room - count < MUR_NFC_PARTS)
            return 0;
        count += mur_nfc_parts(mur_utf8_read(text + at, size - at, &length), words + count);
    }
    order_all(words, count, words + room);
    count = compose_all(words, count);
    for (size_t i = 0; i < count; i++) /* never beyond the word that was read */
        bytes += mur_utf8_write(words[i], out + bytes);
    *out_size = bytes;
    return 1;
}
