/* calibration_pictures.h - pictures to calibrate a network on. */
#ifndef MUC_RUN_PICTURES_H
#define MUC_RUN_PICTURES_H

#include "run/port.h"
#include "formats/checkpoint.h"

/* Whether a path is a folder or begins as a picture does. False for what cannot be read. */
bool muc_is_pictures(const char *path);

/* A picture, or all files of a folder and of those in it, in the order of their paths, as samples
 * of an input along its first dimension, each as muc_image_array makes it. What begins with a dot
 * is left out. The array is in arena. MUC_USAGE for a folder without files, or of too many. */
muc_status muc_pictures_read(muc_context *ctx, muc_arena *arena, const char *path, const char *says,
                             const muc_port *input, muc_tensor_view *out);

#endif
