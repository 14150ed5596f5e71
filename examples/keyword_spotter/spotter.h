/* spotter.h - hears words in a microphone's samples. */
#ifndef SPOTTER_H
#define SPOTTER_H

#include <stdint.h>

enum { SPOTTER_NOTHING = -1, SPOTTER_WORDS = 4 };

/* Before the others. */
void spotter_open(void);
/* Samples of 16 bits, 16,000 a second; an interrupt may call it. Returns how many had room. */
uint32_t spotter_put(const int16_t *samples, uint32_t count);
/* Works on one frame of what was put: 0 if there is none; else 1, and *word is a word's number that
 * was heard now, or SPOTTER_NOTHING. */
int spotter_next(int *word);
const char *spotter_name(int word);

#endif
