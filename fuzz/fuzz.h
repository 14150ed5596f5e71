/* fuzz.h - what the harnesses of checkpoint formats share.
 *
 * Each harness defines libFuzzer's entry. Linked with replay.c it runs a corpus without libFuzzer.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "formats/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every element of every tensor; a refusal is fine, a sanitizer's report is not. */
void fuzz_read_tensors(muc_context *ctx, const muc_tensor_view *views, size_t count);
/* Reads, settles and touches a checkpoint held in memory. */
void fuzz_format(muc_format_probe *probe, muc_format_read *read, const uint8_t *data, size_t size);
/* Opens a network held in memory and runs it on zeros, if it is small. */
void fuzz_network(muc_bytes bytes);
/* Sets the checksums of a .bdt file right, so that mutation reaches what they guard. */
void fuzz_seal_bdt(uint8_t *data, size_t size);

#endif
