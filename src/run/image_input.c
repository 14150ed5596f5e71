/* image_input.c - makes inputs of pictures: finds the size, channels and numbers that a network
 * expects. */
#include "run/image_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "run/arrays.h"
#include "run/network_run.h"
#include "formats/npy/npy.h"

/* ---- what the input wants ---- */

static bool is_channels(uint64_t dim)
{
    return dim == 1 || dim == 3;
}

static muc_status no_picture(muc_context *ctx, const muc_port *input)
{
    return muc_fail(ctx, MUC_USAGE, input->name, MUC_NO_OFFSET,
                    "takes no picture: expected [rows, columns] with 1 or 3 channels before or "
                    "after, or a flat square");
}

/* n squared pixels of one or three channels, one after another */
static bool is_flat_square(uint64_t elements, muc_image_plan *plan)
{
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        uint32_t side = (uint32_t)sqrt((double)elements / channels);

        if ((uint64_t)side * side * channels == elements && side > 1) {
            plan->width = plan->height = side;
            plan->channels = channels;
            return true;
        }
    }
    return false;
}

/* The dimensions but for a batch of one, and rows, columns and channels among them. */
static muc_status find_shape(muc_context *ctx, const muc_port *input, const char *layout,
                             muc_image_plan *plan)
{
    const uint64_t *d = input->dims;
    uint32_t rank = input->rank;
    bool last, first;

    if (rank > 1 && (rank == 4 || rank == 2) && d[0] == 1)
        d++, rank--;
    if (rank == 1 && is_flat_square(d[0], plan))
        return MUC_OK;
    if (rank == 3 && !is_channels(d[0]) && !is_channels(d[2]))
        return no_picture(ctx, input);
    if (rank == 2 || (rank == 3 && d[0] == 1 && !is_channels(d[2]) && input->rank == 3)) {
        plan->height = (uint32_t)d[rank - 2];
        plan->width = (uint32_t)d[rank - 1];
        plan->channels = 1;
        return MUC_OK;
    }
    if (rank != 3)
        return no_picture(ctx, input);
    last = is_channels(d[2]) && !(layout && strcmp(layout, "nchw") == 0);
    first = is_channels(d[0]) && !(layout && strcmp(layout, "nhwc") == 0);
    if (!last && !first)
        return no_picture(ctx, input);
    plan->channels_last = last;
    plan->channels = (uint32_t)d[last ? 2 : 0];
    plan->height = (uint32_t)d[last ? 0 : 1];
    plan->width = (uint32_t)d[last ? 1 : 2];
    return MUC_OK;
}

/* the real numbers that the input's type can hold */
static void choose_numbers(const muc_port *input, muc_image_plan *plan)
{
    bool is_integer = muc_dtype_get(input->dtype)->kind == MUC_DTYPE_INTEGER;
    double least, most;

    plan->scale = 1.0 / 255;
    for (unsigned c = 0; c < MUC_IMAGE_CHANNELS; c++) {
        plan->mean[c] = 0;
        plan->std[c] = 1;
    }
    if (is_integer && !input->quantized) {
        plan->scale = 1;
        for (unsigned c = 0; c < MUC_IMAGE_CHANNELS; c++)
            plan->mean[c] = input->dtype == MUC_I8 ? 128 : 0;
    }
    if (!is_integer || !input->quantized)
        return;
    least = input->scale * ((input->dtype == MUC_I8 ? -128 : 0) - input->zero);
    most = least + input->scale * 255;
    if (most > 100) { /* samples themselves, from 0 or from -128 on */
        plan->scale = 1;
        for (unsigned c = 0; c < MUC_IMAGE_CHANNELS; c++)
            plan->mean[c] = least < -64 ? 128 : 0;
    } else if (least < -0.4) { /* -1..1 */
        plan->scale = 1 / 127.5;
        for (unsigned c = 0; c < MUC_IMAGE_CHANNELS; c++)
            plan->mean[c] = 1;
    }
}

/* ---- what the user says ---- */

static bool take_real(const char **at, double *out)
{
    char *end;

    *out = strtod(*at, &end);
    if (end == *at || !isfinite(*out))
        return false;
    *at = end;
    if (**at == '/') { /* 1/255 */
        double divisor = strtod(*at + 1, &end);

        if (end == *at + 1 || !(fabs(divisor) > 0))
            return false;
        *at = end;
        *out /= divisor;
    }
    return true;
}

/* "X", for all channels, or "X:Y:Z" */
static bool take_reals(const char *value, double out[MUC_IMAGE_CHANNELS])
{
    unsigned count = 0;

    do {
        if (count == MUC_IMAGE_CHANNELS || !take_real(&value, &out[count]))
            return false;
        count++;
    } while (*value == ':' && value++);
    if (count == 1)
        out[1] = out[2] = out[0];
    return *value == '\0' && count != 2;
}

static bool take_word(const char *value, const char *const *words, unsigned count, unsigned *out)
{
    for (*out = 0; *out < count; ++*out)
        if (strcmp(value, words[*out]) == 0)
            return true;
    return false;
}

static bool is_nonzero(const double values[MUC_IMAGE_CHANNELS])
{
    return fabs(values[0]) > 0 && fabs(values[1]) > 0 && fabs(values[2]) > 0;
}

static bool set_one(const char *key, const char *value, muc_image_plan *plan, const char **layout)
{
    static const char *const fits[] = { "stretch", "crop", "exact" };
    static const char *const orders[] = { "rgb", "bgr" };
    static const char *const layouts[] = { "nhwc", "nchw" };
    unsigned word;

    if (strcmp(key, "scale") == 0)
        return take_real(&value, &plan->scale) && *value == '\0';
    if (strcmp(key, "mean") == 0)
        return take_reals(value, plan->mean);
    if (strcmp(key, "std") == 0)
        return take_reals(value, plan->std) && is_nonzero(plan->std);
    if (strcmp(key, "size") == 0 && take_word(value, fits, 3, &word)) {
        plan->fit = (muc_image_fit)word;
        return true;
    }
    if (strcmp(key, "order") == 0 && take_word(value, orders, 2, &word)) {
        plan->bgr = word == 1;
        return true;
    }
    if (strcmp(key, "layout") == 0 && take_word(value, layouts, 2, &word)) {
        *layout = layouts[word];
        return true;
    }
    return false;
}

static muc_status take_settings(muc_context *ctx, const char *says, muc_image_plan *plan,
                                const char **layout)
{
    while (says && *says) {
        char item[128];
        size_t length = strcspn(says, ",");
        char *equals;

        if (length >= sizeof(item))
            return muc_fail(ctx, MUC_USAGE, "preprocessing", MUC_NO_OFFSET,
                            "'%.40s...' is too long", says);
        memcpy(item, says, length);
        item[length] = '\0';
        equals = strchr(item, '=');
        if (equals)
            *equals = '\0';
        if (!equals || !set_one(item, equals + 1, plan, layout))
            return muc_fail(ctx, MUC_USAGE, "preprocessing", MUC_NO_OFFSET,
                            "'%.*s' is not understood; expected scale=X, mean=X or X:Y:Z, std=X or "
                            "X:Y:Z, size=stretch|crop|exact, layout=nhwc|nchw or order=rgb|bgr",
                            (int)length, says);
        says += length + (says[length] == ',');
    }
    return MUC_OK;
}

muc_status muc_image_plan_for(muc_context *ctx, const muc_port *input, const char *says,
                              muc_image_plan *out)
{
    const char *layout = NULL;

    memset(out, 0, sizeof(*out));
    out->channels_last = true;
    choose_numbers(input, out);
    MUC_TRY(take_settings(ctx, says, out, &layout));
    return find_shape(ctx, input, layout, out);
}

/* ---- sizes ---- */

/* a picture's samples as numbers, resampled along one axis after the other */
typedef struct grid {
    uint32_t width, height, channels;
    double *data; /* malloc'ed */
} grid;

/* What one line of samples, `step` apart, becomes when part from..from+extent of it is `count`
 * long: means weighted by a triangle as wide as the larger pixel. */
static void resample_line(const double *in, uint32_t length, size_t step, double from,
                          double extent, uint32_t count, double *out, size_t out_step)
{
    double ratio = extent / count, reach = ratio > 1 ? ratio : 1;

    for (uint32_t i = 0; i < count; i++) {
        double middle = from + (i + 0.5) * ratio, sum = 0, total = 0;
        long first = (long)floor(middle - reach), last = (long)ceil(middle + reach);

        for (long j = first < 0 ? 0 : first; j <= last && j < (long)length; j++) {
            double weight = 1 - fabs((double)j + 0.5 - middle) / reach;

            if (weight > 0) {
                sum += weight * in[(size_t)j * step];
                total += weight;
            }
        }
        out[i * out_step] = sum / total;
    }
}

/* the part of the picture that is taken, in its pixels */
typedef struct part {
    double x, y, width, height;
} part;

static part part_of(const muc_image *image, const muc_image_plan *plan)
{
    part p = { 0, 0, image->width, image->height };

    if (plan->fit != MUC_IMAGE_CROP)
        return p;
    if (p.width * plan->height > p.height * plan->width) {
        p.width = p.height * plan->width / plan->height;
        p.x = (image->width - p.width) / 2;
    } else {
        p.height = p.width * plan->height / plan->width;
        p.y = (image->height - p.height) / 2;
    }
    return p;
}

static double luminance(const uint8_t *rgb)
{
    return (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2]) / 1000.0;
}

/* the picture with the input's channels */
static void take_channels(const muc_image *image, const muc_image_plan *plan, double *out)
{
    size_t pixels = (size_t)image->width * image->height;

    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *pixel = image->data + i * image->channels;

        for (uint32_t c = 0; c < plan->channels; c++) {
            uint32_t from = plan->bgr ? 2 - c : c;

            out[i * plan->channels + c] = image->channels == 1  ? pixel[0]
                                          : plan->channels == 1 ? luminance(pixel)
                                                                : pixel[from];
        }
    }
}

static void resize(const double *in, const muc_image *image, const muc_image_plan *plan,
                   double *between, double *out)
{
    part p = part_of(image, plan);
    size_t channels = plan->channels, row = plan->width * channels;

    for (uint32_t y = 0; y < image->height; y++)
        for (size_t c = 0; c < channels; c++)
            resample_line(in + (size_t)y * image->width * channels + c, image->width, channels, p.x,
                          p.width, plan->width, between + y * row + c, channels);
    for (size_t i = 0; i < row; i++)
        resample_line(between + i, image->height, row, p.y, p.height, plan->height, out + i, row);
}

/* *out is malloc'ed: [height][width][channels] of the input */
static muc_status sample(muc_context *ctx, const muc_image *image, const muc_image_plan *plan,
                         double **out)
{
    bool same = image->width == plan->width && image->height == plan->height;
    size_t channels = plan->channels;
    double *in = NULL, *between = NULL;
    muc_status status;

    if (!same && plan->fit == MUC_IMAGE_EXACT)
        return muc_fail(ctx, MUC_USAGE, "image", MUC_NO_OFFSET,
                        "the picture has %u x %u pixels, the input %u x %u", image->width,
                        image->height, plan->width, plan->height);
    MUC_TRY(MUC_NEW_ARRAY(ctx, "image", (size_t)image->width * image->height * channels, &in));
    take_channels(image, plan, in);
    if (same) {
        *out = in;
        return MUC_OK;
    }
    status = MUC_NEW_ARRAY(ctx, "image", (size_t)plan->width * image->height * channels, &between);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "image", (size_t)plan->width * plan->height * channels, out);
    if (status == MUC_OK)
        resize(in, image, plan, between, *out);
    free(in);
    free(between);
    return status;
}

/* ---- numbers ---- */

muc_status muc_image_fill(muc_context *ctx, const muc_image *image, const muc_image_plan *plan,
                          const muc_port *input, uint8_t *out)
{
    size_t pixels = (size_t)plan->width * plan->height, channels = plan->channels;
    bool is_real = muc_dtype_get(input->dtype)->kind == MUC_DTYPE_FLOAT;
    muc_tensor_view view = { .name = "image", .dtype = MUC_F64, .rank = 1, .file = "image" };
    double *samples, *values;
    muc_status status;

    MUC_TRY(sample(ctx, image, plan, &samples));
    status = MUC_NEW_ARRAY(ctx, "image", pixels * channels, &values);
    for (size_t i = 0; status == MUC_OK && i < pixels * channels; i++) {
        size_t c = i % channels;
        double value = (samples[i] * plan->scale - plan->mean[c]) / plan->std[c];

        /* integers without a scale: the nearest */
        values[plan->channels_last ? i : c * pixels + i / channels] =
            is_real || input->quantized ? value : floor(value + 0.5);
    }
    view.dims[0] = pixels * channels;
    view.data = (const uint8_t *)values;
    if (status == MUC_OK)
        status = muc_tensor_measure(ctx, &view);
    if (status == MUC_OK)
        status = muc_port_convert(ctx, input, &view, out);
    free(samples);
    free(values);
    return status;
}

/* ---- files ---- */

/* channels before rows and columns become channels after them */
static void interleave(const uint8_t *planes, const muc_image *image, uint8_t *out)
{
    size_t pixels = (size_t)image->width * image->height;

    for (size_t i = 0; i < pixels; i++)
        for (uint32_t c = 0; c < image->channels; c++)
            out[i * image->channels + c] = planes[c * pixels + i];
}

static muc_status read_npy(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out)
{
    muc_tensor_view array;
    const uint64_t *d = array.dims;
    bool first, last;
    uint8_t *data;

    MUC_TRY(muc_npy_read_copy(ctx, arena, bytes, &array));
    last = array.rank == 2 || (array.rank == 3 && is_channels(d[2]));
    first = array.rank == 3 && is_channels(d[0]);
    if (array.dtype != MUC_U8 || !(first || last))
        return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, MUC_NO_OFFSET,
                        "an array of %s with %u dimensions is not a picture: expected u8 [height, "
                        "width] with 1 or 3 channels before or after",
                        muc_dtype_get(array.dtype)->name, array.rank);
    if (last) {
        MUC_TRY(muc_image_new(ctx, arena, bytes, d[1], d[0], array.rank == 3 ? (uint32_t)d[2] : 1,
                              out, &data));
        memcpy(data, array.data, (size_t)array.bytes);
        return MUC_OK;
    }
    MUC_TRY(muc_image_new(ctx, arena, bytes, d[2], d[1], (uint32_t)d[0], out, &data));
    interleave(array.data, out, data);
    return MUC_OK;
}

static muc_status read_picture(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                               const muc_image_plan *plan, muc_image *out)
{
    uint64_t raw = (uint64_t)plan->width * plan->height * plan->channels;
    uint8_t *data;

    if (muc_image_probe(bytes))
        return muc_image_read(ctx, arena, bytes, out);
    if (bytes.size >= 6 && memcmp(bytes.data, "\x93NUMPY", 6) == 0)
        return read_npy(ctx, arena, bytes, out);
    if (bytes.size != raw)
        return muc_fail(
            ctx, MUC_UNSUPPORTED, bytes.name, 0,
            "is not a picture that is read (PNG, PGM, PPM, a .npy array of u8); raw samples "
            "would be %llu bytes, it has %zu",
            (unsigned long long)raw, bytes.size);
    MUC_TRY(
        muc_image_new(ctx, arena, bytes, plan->width, plan->height, plan->channels, out, &data));
    memcpy(data, bytes.data, bytes.size);
    return MUC_OK;
}

static void say_numbers(muc_text *text, const double values[MUC_IMAGE_CHANNELS], uint32_t channels)
{
    for (uint32_t c = 0; c < channels; c++)
        muc_text_add(text, "%s%.6g", c ? ":" : "", values[c]);
}

static muc_status say(muc_context *ctx, muc_arena *arena, const muc_image *image,
                      const muc_image_plan *plan, const char **out)
{
    bool same = image->width == plan->width && image->height == plan->height;
    muc_text text = { 0 };
    muc_status status;

    muc_text_add(&text, "%u x %u %s", image->width, image->height,
                 image->channels == 1 ? "grey" : "colour");
    if (!same)
        muc_text_add(&text, ", %s to %u x %u",
                     plan->fit == MUC_IMAGE_CROP ? "cut and sized" : "sized", plan->width,
                     plan->height);
    if (plan->channels != image->channels)
        muc_text_add(&text, plan->channels == 1 ? ", made grey" : ", made colour");
    muc_text_add(&text, "%s, (sample * %.6g - ", plan->bgr ? ", blue first" : "", plan->scale);
    say_numbers(&text, plan->mean, plan->channels);
    muc_text_add(&text, ") / ");
    say_numbers(&text, plan->std, plan->channels);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = muc_arena_string(ctx, arena, text.data, text.size, out);
    muc_text_free(&text);
    return status;
}

muc_status muc_image_array(muc_context *ctx, muc_arena *arena, const char *path, const char *says,
                           const muc_port *input, muc_tensor_view *out, const char **said)
{
    muc_image_plan plan;
    muc_image image;
    muc_status status;
    muc_file file;
    uint8_t *data;

    MUC_TRY(muc_image_plan_for(ctx, input, says, &plan));
    MUC_TRY(muc_file_open(ctx, path, &file));
    status = read_picture(ctx, arena, file.bytes, &plan, &image);
    muc_file_close(&file);
    MUC_TRY(status);
    MUC_TRY(muc_arena_new(ctx, arena, (size_t)input->bytes, 1, (void **)&data));
    MUC_TRY(muc_image_fill(ctx, &image, &plan, input, data));
    *out = muc_port_array(input, data, path);
    MUC_TRY(muc_tensor_measure(ctx, out));
    return say(ctx, arena, &image, &plan, said);
}

/* ---- a graph's input ---- */

muc_port muc_network_number_port(const muc_tensor *tensor)
{
    muc_port port = { .name = tensor->name, .dtype = tensor->dtype };

    if (tensor->quantization && tensor->quantization->count == 1) {
        port.quantized = true;
        port.scale = (double)tensor->quantization->scales[0];
        port.zero = tensor->quantization->zero_points[0];
    }
    return port;
}

muc_status muc_network_input_port(muc_context *ctx, const muc_graph *graph, muc_port *out)
{
    const muc_tensor *tensor = graph->tensors;
    uint64_t elements;

    for (; tensor < graph->tensors + graph->tensor_count; tensor++)
        if (tensor->kind == MUC_TENSOR_INPUT)
            break;
    if (tensor == graph->tensors + graph->tensor_count)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET, "has no input for a picture");
    *out = muc_network_number_port(tensor);
    out->rank = tensor->rank;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const muc_expr_node *dim = muc_expr_get(graph->pool, tensor->dims[i]);

        if (i > 0 && dim->lo != dim->hi)
            return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                            "dimension %u of input '%s' is open; fix it with --dim for a picture",
                            i, tensor->name);
        out->dims[i] = dim->lo;
    }
    if (!muc_dtype_measure(out->dtype, out->rank, out->dims, &elements, &out->bytes) || !elements)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET, "input '%s' takes no picture",
                        tensor->name);
    return MUC_OK;
}

/* ---- classes ---- */

enum { MOST_LABEL = 120 };

/* line number `line` of a text, from 0; "" beyond its end */
static muc_bytes line_of(muc_bytes text, uint64_t line)
{
    size_t at = 0, end;

    for (; line > 0 && at < text.size; at++)
        line -= text.data[at] == '\n';
    for (end = at; end < text.size && text.data[end] != '\n' && text.data[end] != '\r'; end++)
        ;
    return (muc_bytes){ text.data + at, end - at, text.name };
}

muc_status muc_image_add_classes(muc_context *ctx, const char *labels,
                                 const muc_tensor_view *result, const muc_port *output,
                                 muc_report *report)
{
    uint64_t top[MUC_ARRAY_TOP];
    size_t count = muc_array_top(result, 0, result->elements, top);
    muc_file file = { 0 };

    if (labels)
        MUC_TRY(muc_file_open(ctx, labels, &file));
    muc_report_begin_table(report, "classes");
    for (size_t i = 0; i < count; i++) {
        double score = muc_port_real(output, muc_array_element(result, top[i]));

        muc_report_begin_row(report);
        muc_report_add_count(report, "class", top[i]);
        if (labels) {
            muc_bytes label = line_of(file.bytes, top[i]);

            muc_report_add_text(report, "label", "%.*s",
                                (int)(label.size < MOST_LABEL ? label.size : MOST_LABEL),
                                (const char *)label.data);
        }
        muc_report_add_real(report, "score", score);
        muc_report_end(report);
    }
    muc_report_end(report);
    muc_file_close(&file);
    return MUC_OK;
}
