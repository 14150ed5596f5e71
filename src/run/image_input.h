/* image_input.h - from a picture to what a network takes: one way for every target. */
#ifndef MUC_RUN_IMAGE_INPUT_H
#define MUC_RUN_IMAGE_INPUT_H

#include "formats/image/image.h"
#include "graph/graph.h"
#include "report/report_builder.h"
#include "run/port.h"

enum { MUC_IMAGE_CHANNELS = 3 };

typedef enum muc_image_fit {
    MUC_IMAGE_STRETCH, /* to the input's size, whatever the picture's proportions */
    MUC_IMAGE_CROP,    /* to cover the input, the middle cut out */
    MUC_IMAGE_EXACT,   /* a picture of another size is refused */
} muc_image_fit;

/* What becomes of a picture; x = (sample * scale - mean) / std, sample 0..255. */
typedef struct muc_image_plan {
    uint32_t width, height, channels; /* the input's */
    bool channels_last;
    muc_image_fit fit;
    bool bgr; /* blue first */
    double scale, mean[MUC_IMAGE_CHANNELS], std[MUC_IMAGE_CHANNELS];
} muc_image_plan;

/* Decides what to do for an input, by its shape, type and quantization and by what the user says,
 * "KEY=VALUE" parted by commas (NULL: nothing):
 *
 *   scale=X  mean=X or X:Y:Z  std=X or X:Y:Z    without them by the quantization's range: 0..1 or
 *                -1..1; an integer input without quantization takes samples (i8: minus 128), a real
 *                one 0..1
 *   size=stretch|crop|exact    stretch by default
 *   layout=nhwc|nchw           by the dimension of 1 or 3, the last before the first; an input
 *                without one is a square of pixels, flat
 *   order=rgb|bgr              rgb by default
 *
 * The number of channels is the input's: a grey picture is repeated, of a coloured one the
 * luminance (ITU-R BT.601) taken. MUC_USAGE for an input that takes no picture. */
muc_status muc_image_plan_for(muc_context *ctx, const muc_port *input, const char *says,
                              muc_image_plan *out);

/* Makes the input of a picture, in the input's type; quantized with its scale and zero point. Sizes
 * are changed by a triangle as wide as the larger pixel. out: input->bytes. */
muc_status muc_image_fill(muc_context *ctx, const muc_image *image, const muc_image_plan *plan,
                          const muc_port *input, uint8_t *out);

/* Both for a file: a picture, a .npy array of u8 ([height, width], with channels before or after or
 * none), or, where the file is neither, exactly the input's samples, raw, with channels last. The
 * array is in arena; a sentence of what was done is *said, in arena. */
muc_status muc_image_array(muc_context *ctx, muc_arena *arena, const char *path, const char *says,
                           const muc_port *input, muc_tensor_view *out, const char **said);

/* Adds the table "classes" (class, label, score) of the greatest five of a result; labels: a file
 * with a line a class, or NULL. Scores are real numbers where the result is quantized. */
muc_status muc_image_add_classes(muc_context *ctx, const char *labels,
                                 const muc_tensor_view *result, const muc_port *output,
                                 muc_report *report);

/* The first input of a network's graph as a port; its first dimension, if it is open, at its least.
 * MUC_USAGE naming another that is open. */
muc_status muc_network_input_port(muc_context *ctx, const muc_graph *graph, muc_port *out);
/* What is known of a tensor's numbers as a port: type and quantization. */
muc_port muc_network_number_port(const muc_tensor *tensor);

#endif
