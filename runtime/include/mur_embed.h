/* mur_embed.h - the CPU's own instructions. */
#ifndef MUR_EMBED_H
#define MUR_EMBED_H

#include "mur.h"

/* Executes EMBED or AMAX (SPEC.md section 4): words is the resolved instruction, io region IO,
 * 4-byte aligned. What a board's mur_hal.host does. Stack under 700 bytes.
 * Returns MUR_E_FAULT for a token beyond the vocabulary, a malformed sequence, or an access outside
 * WGTS or IO. */
mur_status mur_embed(const mur_program *program, void *io, const uint32_t *words);

#endif
