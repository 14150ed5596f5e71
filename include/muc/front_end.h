/* muc/front_end.h - what stands between a microphone and a network: features of recordings, and the
 * code that computes the same on a device. */
#ifndef MUC_FRONT_END_API_H
#define MUC_FRONT_END_API_H

#include "muc/compile.h"

MUC_API_BEGIN

/* features: "key=value,...", the keys of docs/SOUND.md, or NULL: those of MLPerf Tiny's keyword
 * spotter. MUC_USAGE naming what is wrong with them. */

/* Writes a folder of C99 as muc_compile does for microcontrollers: tables for floats and for
 * integers, and the runtime's functions that walk them. Of the options name (NULL: "front_end"),
 * machine and package count. Keys: folder, name, machine, features (every key),
 * features_of_a_frame, empty_bands, float_table_bytes, fixed_table_bytes, scratch_bytes. */
muc_status muc_front_end_compile(muc_context *ctx, const char *features,
                                 const muc_compile_options *options, const char *out_path,
                                 muc_report **out);

/* The features of recordings (RIFF WAVE, 16 bits, the rate of the features) by the device's own
 * code, as an array f32 [frames, features] of one, or [recordings, frames, features] of several,
 * which must be equally long, written to out_path (.npy) unless that is NULL. Keys: frames,
 * features_of_a_frame, and the table "recordings" (file, seconds, least, greatest). */
muc_status muc_front_end_run(muc_context *ctx, const char *features, const char *const *recordings,
                             size_t count, const char *out_path, muc_report **out);

MUC_API_END

#endif
