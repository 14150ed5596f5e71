/* import_resize.c - Resize and its forerunner Upsample: sizes from scales, scales from sizes. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/onnx/onnx_operators.h"

typedef struct resizing {
    onnx_shape shape;
    muc_expr sizes[MUC_GRAPH_MAX_RANK];
    double scales[MUC_GRAPH_MAX_RANK], roi[2 * MUC_GRAPH_MAX_RANK];
    bool has_roi;
    uint32_t axes[MUC_GRAPH_MAX_RANK], axis_count; /* that operands speak of */
} resizing;

static muc_status take_axes(onnx_call *call, resizing *r)
{
    const int64_t *axes;
    int64_t axis;
    size_t count;

    MUC_TRY(onnx_integers(call, "axes", &axes, &count));
    if (axes && count > r->shape.rank)
        return onnx_fail(call, MUC_MALFORMED, "%zu axes of %u dimensions", count, r->shape.rank);
    r->axis_count = axes ? (uint32_t)count : r->shape.rank;
    for (uint32_t i = 0; i < r->axis_count; i++) {
        MUC_TRY(
            muc_import_axis(onnx_subject(call), axes ? axes[i] : (int64_t)i, r->shape.rank, &axis));
        r->axes[i] = (uint32_t)axis;
    }
    for (uint32_t i = 0; i < r->shape.rank; i++) {
        r->sizes[i] = r->shape.dims[i];
        r->scales[i] = 1;
    }
    return MUC_OK;
}

/* floor(size * scale), which is known where one of them is 1 or the other a whole number */
static muc_status scale_dim(onnx_call *call, resizing *r, uint32_t axis)
{
    muc_expr_pool *pool = call->im->graph->pool;
    const muc_expr_node *dim = muc_expr_get(pool, r->shape.dims[axis]);
    double scale = r->scales[axis], size;

    if (!(scale > 0 && scale < 65536))
        return onnx_fail(call, MUC_MALFORMED, "the scale of dimension %u is %g", axis, scale);
    if (dim->op == MUC_EXPR_CONST) {
        size = floor((double)dim->immediate * scale);
        if (size > (double)INT32_MAX)
            return onnx_fail(call, MUC_UNSUPPORTED, "dimension %u becomes %g", axis, size);
        r->sizes[axis] = muc_expr_const(pool, (uint32_t)size);
        return MUC_OK;
    }
    if (scale != floor(scale))
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "dimension %u is not known, and its scale, %g, is not a whole number",
                         axis, scale);
    r->sizes[axis] = muc_expr_mul_const(pool, r->shape.dims[axis], (uint32_t)scale);
    return muc_expr_status(pool);
}

static muc_status use_scales(onnx_call *call, resizing *r, const double *scales, size_t count)
{
    if (count != r->axis_count)
        return onnx_fail(call, MUC_MALFORMED, "%zu scales of %u dimensions", count, r->axis_count);
    for (uint32_t i = 0; i < r->axis_count; i++) {
        r->scales[r->axes[i]] = scales[i];
        MUC_TRY(scale_dim(call, r, r->axes[i]));
    }
    return MUC_OK;
}

/* The whole image in or around the sizes wanted: one scale for all. */
static muc_status keep_aspect(onnx_call *call, resizing *r, bool inside)
{
    double scale = 0;

    for (uint32_t i = 0; i < r->axis_count; i++) {
        uint32_t axis = r->axes[i];
        const muc_expr_node *from = muc_expr_get(call->im->graph->pool, r->shape.dims[axis]),
                            *to = muc_expr_get(call->im->graph->pool, r->sizes[axis]);
        double own = (double)to->immediate / (double)from->immediate;

        if (from->op != MUC_EXPR_CONST || to->op != MUC_EXPR_CONST || from->immediate == 0)
            return onnx_fail(call, MUC_UNSUPPORTED, "dimension %u is not known", axis);
        scale = i == 0 || (own < scale) == inside ? own : scale;
    }
    for (uint32_t i = 0; i < r->axis_count; i++) {
        uint32_t axis = r->axes[i],
                 from = muc_expr_get(call->im->graph->pool, r->shape.dims[axis])->immediate;

        r->scales[axis] = scale;
        r->sizes[axis] =
            muc_expr_const(call->im->graph->pool, (uint32_t)floor(scale * (double)from + 0.5));
    }
    return MUC_OK;
}

/* *kept: scales are not sizes over the input's */
static muc_status use_sizes(onnx_call *call, resizing *r, const onnx_numbers *sizes, bool *kept)
{
    const char *policy;

    MUC_TRY(onnx_string(call, "keep_aspect_ratio_policy", "stretch", &policy));
    *kept = strcmp(policy, "stretch") != 0;
    if (sizes->count != r->axis_count)
        return onnx_fail(call, MUC_MALFORMED, "%u sizes of %u dimensions", sizes->count,
                         r->axis_count);
    for (uint32_t i = 0; i < r->axis_count; i++)
        if (!onnx_number_expr(call->im, sizes, i, &r->sizes[r->axes[i]]))
            return onnx_fail(call, MUC_MALFORMED, "size %u is negative", i);
    return *kept ? keep_aspect(call, r, strcmp(policy, "not_larger") == 0) : MUC_OK;
}

static muc_status known_reals(onnx_call *call, uint32_t input, double *out, uint32_t most,
                              size_t *count)
{
    const onnx_numbers *numbers;

    MUC_TRY(onnx_known(call, input, &numbers));
    if (!onnx_is_real(numbers->dtype) || numbers->count > most)
        return onnx_fail(call, MUC_MALFORMED, "input %u has %u elements of type %s", input,
                         numbers->count, muc_dtype_get(numbers->dtype)->name);
    for (uint32_t i = 0; i < numbers->count; i++)
        out[i] = numbers->items[i].real;
    *count = numbers->count;
    return MUC_OK;
}

/* Operand 2 is scales, or empty where operand 3 gives sizes. */
static muc_status take_sizes(onnx_call *call, resizing *r, bool *has_scales)
{
    double scales[MUC_GRAPH_MAX_RANK];
    const onnx_numbers *sizes;
    uint32_t first = call->version < 11 ? 1 : 2;
    size_t count = 0;

    if (onnx_has_input(call, first))
        MUC_TRY(known_reals(call, first, scales, MUC_GRAPH_MAX_RANK, &count));
    *has_scales = count > 0;
    if (count > 0)
        return use_scales(call, r, scales, count);
    MUC_TRY(onnx_known(call, first + 1, &sizes));
    return use_sizes(call, r, sizes, has_scales);
}

static muc_status take_roi(onnx_call *call, resizing *r)
{
    double roi[2 * MUC_GRAPH_MAX_RANK];
    size_t count;

    MUC_TRY(known_reals(call, 1, roi, 2 * MUC_GRAPH_MAX_RANK, &count));
    if (count != 2 * (size_t)r->axis_count)
        return onnx_fail(call, MUC_MALFORMED,
                         "the region has %zu numbers, expected two for each axis", count);
    for (uint32_t i = 0; i < r->shape.rank; i++) {
        r->roi[i] = 0;
        r->roi[r->shape.rank + i] = 1;
    }
    for (uint32_t i = 0; i < r->axis_count; i++) {
        r->roi[r->axes[i]] = roi[i];
        r->roi[r->shape.rank + r->axes[i]] = roi[r->axis_count + i];
    }
    r->has_roi = true;
    return MUC_OK;
}

static muc_status cook(onnx_call *call, const resizing *r, bool has_scales, const char *details)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_exprs(&a, MUC_KEY_SIZES, r->sizes, r->shape.rank);
    if (has_scales)
        muc_attributes_set_reals(&a, MUC_KEY_SCALES, r->scales, r->shape.rank);
    if (r->has_roi)
        muc_attributes_set_reals(&a, MUC_KEY_ROI, r->roi, 2 * r->shape.rank);
    return onnx_cook_given(call, &a, "resize 0 %s mode=@mode:nearest given", details);
}

/* before version 11 */
static const char *const old_details = "coordinates=asymmetric rounding=floor";

muc_status onnx_import_resize(onnx_call *call)
{
    resizing r = { .has_roi = false };
    const char *coordinates;
    bool has_scales;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    r.shape = onnx_shape_of(call, x);
    MUC_TRY(take_axes(call, &r));
    MUC_TRY(take_sizes(call, &r, &has_scales));
    if (call->version < 11)
        return cook(call, &r, has_scales, old_details);
    MUC_TRY(onnx_string(call, "coordinate_transformation_mode", "", &coordinates));
    if (strcmp(coordinates, "tf_crop_and_resize") == 0)
        MUC_TRY(take_roi(call, &r));
    return cook(call, &r, has_scales,
                "coordinates=@coordinate_transformation_mode:half_pixel "
                "rounding=@nearest_mode:round_prefer_floor "
                "cubic_coefficient=@cubic_coeff_a:-0.75 exclude_outside=@exclude_outside:0 "
                "extrapolation=@extrapolation_value:0 antialias=@antialias:0");
}

muc_status onnx_import_upsample(onnx_call *call)
{
    double scales[MUC_GRAPH_MAX_RANK];
    const Onnx__AttributeProto *list;
    resizing r = { .has_roi = false };
    size_t count = 0;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    r.shape = onnx_shape_of(call, x);
    MUC_TRY(take_axes(call, &r));
    MUC_TRY(onnx_attribute(call, "scales", &list));
    if (onnx_has_input(call, 1))
        MUC_TRY(known_reals(call, 1, scales, MUC_GRAPH_MAX_RANK, &count));
    for (; list && count < list->n_floats && count < MUC_GRAPH_MAX_RANK; count++)
        scales[count] = (double)list->floats[count];
    MUC_TRY(use_scales(call, &r, scales, count));
    return cook(call, &r, true, old_details);
}
