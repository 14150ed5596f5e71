/* chip_folder.c - the CNN chip's folder: what its map says, and the master's part in a run. */
#include "targets/cnnchip/run/chip_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_folder.h"
#include "base/half.h"
#include "run/network_run.h"
#include "ref/ref.h"

enum { MOST_BORDER = 255, MOST_SIDE = 65535, FP16 = 2, INT8 = 1 };
enum { MOST_MEMORY = 1 << 30 }; /* bytes of FRAME, and of FILTER, that the simulator has */

/* ---- places ---- */

static muc_status damaged(muc_context *ctx, const muc_chip *chip, const char *what)
{
    return muc_fail(ctx, MUC_MALFORMED, chip->map_file.bytes.name, MUC_NO_OFFSET,
                    "the map is damaged: %s", what);
}

static uint32_t number(const json_t *item, const char *key, uint32_t most, bool *sound)
{
    const json_t *value = json_object_get(item, key);
    json_int_t n = json_integer_value(value);

    *sound = *sound && json_is_integer(value) && n >= 0 && n <= most;
    return *sound ? (uint32_t)n : 0;
}

/* first byte and end of the view with its border; false: not inside of FRAME */
static bool lies_inside(const muc_chip *chip, const muc_chip_place *p)
{
    uint64_t bytes = muc_cnnchip_element_bytes(chip->program.element);
    uint64_t above = ((uint64_t)p->border[0] * p->pitch + p->border[2]) * bytes;
    uint64_t last =
        (uint64_t)(p->c - 1) * p->rows * p->pitch + (uint64_t)(p->h - 1) * p->pitch + p->w;

    if (p->border[0] || p->border[1] || p->border[2] || p->border[3]) /* of whole channels */
        last = (uint64_t)p->c * p->rows * p->pitch - above / bytes;
    return p->c && p->h && p->w && p->rows >= p->border[0] + p->h + p->border[1] &&
           p->pitch >= p->border[2] + p->w + p->border[3] && above <= p->address &&
           p->address % bytes == 0 && p->address + last * bytes <= chip->program.frame_bytes;
}

static bool read_view(const muc_chip *chip, const json_t *item, muc_chip_place *out)
{
    const json_t *border = json_object_get(item, "border");
    bool sound = true;

    out->address = number(item, "address", UINT32_MAX, &sound);
    out->c = number(item, "c", MOST_SIDE, &sound);
    out->h = number(item, "h", MOST_SIDE, &sound);
    out->w = number(item, "w", MOST_SIDE, &sound);
    out->rows = number(item, "rows", MOST_SIDE, &sound);
    out->pitch = number(item, "pitch", MOST_SIDE, &sound);
    for (size_t i = 0; border && i < 4; i++) {
        json_int_t n = json_integer_value(json_array_get(border, i));

        sound = sound && n >= 0 && n <= MOST_BORDER;
        out->border[i] = sound ? (uint32_t)n : 0;
    }
    if (border)
        out->border_value = number(item, "border_value", UINT32_MAX, &sound);
    out->last = json_is_true(json_object_get(item, "channels_last"));
    out->scale = (float)json_number_value(json_object_get(item, "scale"));
    out->zero = (int32_t)json_integer_value(json_object_get(item, "zero"));
    return sound && lies_inside(chip, out) && out->scale > 0 && out->zero >= -128 &&
           out->zero <= 127;
}

muc_status muc_chip_read_place(muc_context *ctx, const muc_chip *chip, const json_t *item,
                               muc_chip_place *out)
{
    const char *file = chip->map_file.bytes.name, *type, *at;
    const json_t *dims = json_object_get(item, "dims");
    bool sound = true;

    *out = (muc_chip_place){ .scale = 1 };
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "name", &out->name));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "tensor", &out->tensor));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "type", &type));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "at", &at));
    if (!out->tensor || !type || !at || !muc_dtype_find(type, &out->dtype) ||
        muc_dtype_get(out->dtype)->block_elements != 1 || json_array_size(dims) > MUC_MAX_RANK)
        return damaged(ctx, chip, "a tensor without a name, type or place");
    out->rank = (uint32_t)json_array_size(dims);
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = (uint64_t)json_integer_value(json_array_get(dims, i));
    if (!muc_dtype_measure(out->dtype, out->rank, out->dims, &out->elements, &out->bytes))
        return damaged(ctx, chip, out->tensor);
    out->in_frame = strcmp(at, "frame") == 0;
    out->in_file = strcmp(at, "host.bin") == 0;
    if (out->in_file) {
        out->offset = number(item, "offset", UINT32_MAX, &sound);
        sound = sound && out->offset <= chip->host_file.bytes.size &&
                out->bytes <= chip->host_file.bytes.size - out->offset;
    }
    if (out->in_frame)
        sound = (out->dtype == MUC_F32 || out->dtype == MUC_I8) && read_view(chip, item, out) &&
                (uint64_t)out->c * out->h * out->w == out->elements;
    return sound ? MUC_OK : damaged(ctx, chip, out->tensor);
}

static muc_status read_places(muc_context *ctx, muc_chip *chip, const json_t *items,
                              muc_chip_place **out, size_t *count)
{
    *count = json_array_size(items);
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, *count + 1, out));
    for (size_t i = 0; i < *count; i++) {
        MUC_TRY(muc_chip_read_place(ctx, chip, json_array_get(items, i), &(*out)[i]));
        if (!(*out)[i].name)
            return damaged(ctx, chip, "an input or output without a name");
    }
    return MUC_OK;
}

/* ---- elements ---- */

/* as the reference quantizes */
static int8_t to_int8(const muc_chip_place *p, float real)
{
    double q = roundf(real / p->scale) + (double)p->zero;

    return (int8_t)(isnan(q) ? p->zero : fmax(-128, fmin(127, q)));
}

static float of_int8(const muc_chip_place *p, int8_t q)
{
    return p->scale * (float)(q - p->zero);
}

float muc_chip_round(const muc_chip_place *p, float real)
{
    return of_int8(p, to_int8(p, real));
}

/* of element i, as the graph counts */
static uint8_t *address_of(const muc_chip *chip, const muc_chip_place *p, uint64_t i)
{
    uint64_t c, pixel, at;

    if (p->last) {
        c = i % p->c;
        pixel = i / p->c;
    } else {
        c = i / ((uint64_t)p->h * p->w);
        pixel = i % ((uint64_t)p->h * p->w);
    }
    at = (c * p->rows + pixel / p->w) * p->pitch + pixel % p->w;
    return chip->sim.frame + p->address + at * muc_cnnchip_element_bytes(chip->program.element);
}

void muc_chip_load(const muc_chip *chip, const muc_chip_place *p, uint8_t *out)
{
    uint32_t bytes = muc_cnnchip_element_bytes(chip->program.element);

    for (uint64_t i = 0; i < p->elements; i++) {
        const uint8_t *at = address_of(chip, p, i);
        float real;

        if (p->dtype == MUC_I8) {
            out[i] = *at;
            continue;
        }
        if (bytes == INT8)
            real = of_int8(p, (int8_t)*at);
        else
            real = bytes == FP16 ? muc_f32_of_f16(muc_load_u16(at))
                                 : muc_f32_of_bits(muc_load_u32(at));
        memcpy(out + 4 * i, &real, sizeof(real));
    }
}

static void store_real(const muc_chip *chip, const muc_chip_place *p, float real, uint8_t *at)
{
    uint32_t bytes = muc_cnnchip_element_bytes(chip->program.element);

    if (bytes == 4) {
        muc_store_u32(at, muc_f32_bits(real));
    } else if (bytes == FP16) {
        muc_store_u16(at, muc_f16_of_f32(real));
    } else {
        *at = (uint8_t)to_int8(p, real);
    }
}

/* elements in the graph's order to FRAME, and the border around them */
static void save(const muc_chip *chip, const muc_chip_place *p, const uint8_t *data)
{
    uint32_t bytes = muc_cnnchip_element_bytes(chip->program.element);
    uint64_t plane = (uint64_t)p->rows * p->pitch;
    uint8_t *first =
        chip->sim.frame + p->address - ((uint64_t)p->border[0] * p->pitch + p->border[2]) * bytes;

    if (p->border[0] || p->border[1] || p->border[2] || p->border[3])
        for (uint64_t i = 0; i < plane * p->c; i++) {
            uint64_t y = i / p->pitch % p->rows, x = i % p->pitch;

            if (y < p->border[0] || y >= p->rows - p->border[1] || x < p->border[2] ||
                x >= p->pitch - p->border[3])
                for (uint32_t b = 0; b < bytes; b++)
                    first[i * bytes + b] = (uint8_t)(p->border_value >> 8 * b);
        }
    for (uint64_t i = 0; i < p->elements; i++) {
        uint8_t *at = address_of(chip, p, i);
        float real;

        if (p->dtype == MUC_I8) {
            *at = data[i];
            continue;
        }
        memcpy(&real, data + 4 * i, sizeof(real));
        store_real(chip, p, real, at);
    }
}

/* ---- the folder ---- */

static muc_status open_file(muc_context *ctx, muc_chip *chip, const char *name, muc_file *out)
{
    const char *path;

    MUC_TRY(muc_arena_format(ctx, &chip->arena, &path, "%s/%s", chip->path, name));
    return muc_file_open(ctx, path, out);
}

static muc_status check_image(muc_context *ctx, muc_bytes image, uint32_t bytes, uint32_t crc)
{
    if (image.size != bytes || muc_crc32(0, image.data, image.size) != crc)
        return muc_fail(ctx, MUC_MALFORMED, image.name, MUC_NO_OFFSET,
                        "it is not the image that program.bin was made with");
    return MUC_OK;
}

bool muc_chip_fits(const muc_cnnchip_program *program)
{
    return program->frame_bytes <= MOST_MEMORY && program->filter_bytes <= MOST_MEMORY;
}

/* a program file of a few bytes may claim all that addresses reach */
static muc_status check_memories(muc_context *ctx, const muc_chip *chip)
{
    const muc_cnnchip_program *p = &chip->program;

    if (muc_chip_fits(p))
        return MUC_OK;
    return muc_fail(ctx, MUC_UNSUPPORTED, chip->program_file.bytes.name, 28,
                    "the program needs %u bytes of FRAME and %u of FILTER; the simulator has %u of "
                    "each",
                    p->frame_bytes, p->filter_bytes, (unsigned)MOST_MEMORY);
}

static muc_status make_memories(muc_context *ctx, muc_chip *chip)
{
    const muc_cnnchip_program *p = &chip->program;
    bool sound = true;

    MUC_TRY(check_memories(ctx, chip));

    MUC_TRY(check_image(ctx, chip->frame_file.bytes, p->frame_image_bytes, p->frame_crc));
    MUC_TRY(check_image(ctx, chip->filter_file.bytes, p->filter_image_bytes, p->filter_crc));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, p->frame_bytes + (size_t)1, &chip->sim.frame));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, p->filter_bytes + (size_t)1, &chip->sim.filter));
    if (p->filter_image_bytes)
        memcpy(chip->sim.filter, chip->filter_file.bytes.data, p->filter_image_bytes);
    chip->sim.frame_bytes = p->frame_bytes;
    chip->sim.filter_bytes = p->filter_bytes;
    chip->sim.filter_image_bytes = p->filter_image_bytes;
    chip->sim.program = p->code;
    chip->sim.program_bytes = p->code_bytes;
    chip->sim.element = (muc_cnnchip_element)p->element;
    chip->sim.pes = p->pes;
    chip->sim.bus_bytes = number(chip->map, "bus_bytes", 1 << 20, &sound);
    return sound ? MUC_OK : damaged(ctx, chip, "bus_bytes");
}

static muc_status open_map(muc_context *ctx, const char *path, muc_chip *chip)
{
    const char *target;

    MUC_TRY(muc_arena_string(ctx, &chip->arena, path, strlen(path), &chip->path));
    MUC_TRY(open_file(ctx, chip, "map.json", &chip->map_file));
    MUC_TRY(muc_json_parse(ctx, chip->map_file.bytes, 0, &chip->map));
    MUC_TRY(muc_json_string_or_null(ctx, chip->map_file.bytes.name, chip->map, "target", &target));
    return target && strcmp(target, "cnnchip") == 0
               ? muc_folder_protect(ctx, path)
               : damaged(ctx, chip, "it is not of the CNN chip");
}

/* constants of host steps, and outputs that are constant */
static bool has_host_file(const json_t *map)
{
    const json_t *outputs = json_object_get(map, "outputs");
    bool has = json_array_size(json_object_get(map, "host_steps")) > 0;

    for (size_t i = 0; i < json_array_size(outputs) && !has; i++) {
        const char *at = json_string_value(json_object_get(json_array_get(outputs, i), "at"));

        has = at && strcmp(at, "host.bin") == 0;
    }
    return has;
}

static muc_status open_folder(muc_context *ctx, const char *path, muc_chip *chip)
{
    MUC_TRY(open_map(ctx, path, chip));
    MUC_TRY(open_file(ctx, chip, "program.bin", &chip->program_file));
    MUC_TRY(open_file(ctx, chip, "frame.bin", &chip->frame_file));
    MUC_TRY(open_file(ctx, chip, "filter.bin", &chip->filter_file));
    if (has_host_file(chip->map))
        MUC_TRY(open_file(ctx, chip, "host.bin", &chip->host_file));
    MUC_TRY(muc_cnnchip_read_program(ctx, &chip->arena, chip->program_file.bytes, &chip->program));
    MUC_TRY(make_memories(ctx, chip));
    MUC_TRY(read_places(ctx, chip, json_object_get(chip->map, "inputs"), &chip->inputs,
                        &chip->input_count));
    return read_places(ctx, chip, json_object_get(chip->map, "outputs"), &chip->outputs,
                       &chip->output_count);
}

muc_status muc_chip_open(muc_context *ctx, const char *path, muc_chip *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = open_folder(ctx, path, out);
    if (status != MUC_OK)
        muc_chip_close(out);
    return status;
}

void muc_chip_close(muc_chip *chip)
{
    json_decref(chip->map);
    muc_file_close(&chip->map_file);
    muc_file_close(&chip->program_file);
    muc_file_close(&chip->frame_file);
    muc_file_close(&chip->filter_file);
    muc_file_close(&chip->host_file);
    muc_arena_free(&chip->run);
    muc_arena_free(&chip->arena);
    memset(chip, 0, sizeof(*chip));
}

bool muc_is_chip_folder(const char *path)
{
    muc_context *ctx = path && muc_path_is_dir(path) ? muc_context_new(1) : NULL;
    muc_chip chip = { 0 };
    bool is_one = ctx && open_map(ctx, path, &chip) == MUC_OK;

    muc_chip_close(&chip); /* whoever opens it tells what is wrong with the rest */
    muc_context_free(ctx);
    return is_one;
}

/* ---- what the master has ---- */

static const muc_chip_tensor *find_tensor(const muc_chip *chip, const char *name)
{
    for (size_t i = chip->tensor_count; i-- > 0;)
        if (strcmp(chip->tensors[i].name, name) == 0)
            return &chip->tensors[i];
    return NULL;
}

static muc_status keep_tensor(muc_context *ctx, muc_chip *chip, const char *name, uint64_t bytes,
                              uint8_t **data)
{
    MUC_TRY(muc_arena_grow(ctx, &chip->run, chip->tensor_count + 1, sizeof(*chip->tensors),
                           &chip->tensor_capacity, (void **)&chip->tensors));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->run, (size_t)bytes + 1, data));
    chip->tensors[chip->tensor_count++] = (muc_chip_tensor){ name, *data, bytes };
    return MUC_OK;
}

/* the tensor's bytes, wherever they are */
static muc_status get_tensor(muc_context *ctx, muc_chip *chip, const muc_chip_place *place,
                             const uint8_t **out)
{
    const muc_chip_tensor *tensor;
    uint8_t *data;

    if (place->in_file) {
        *out = chip->host_file.bytes.data + place->offset;
        return MUC_OK;
    }
    if (place->in_frame) {
        MUC_TRY(MUC_ARENA_NEW(ctx, &chip->run, (size_t)place->bytes + 1, &data));
        muc_chip_load(chip, place, data);
        *out = data;
        return MUC_OK;
    }
    tensor = find_tensor(chip, place->tensor);
    if (!tensor || tensor->bytes != place->bytes)
        return damaged(ctx, chip, place->tensor);
    *out = tensor->data;
    return MUC_OK;
}

/* ---- host steps ---- */

static muc_status put_results(muc_context *ctx, muc_chip *chip, const muc_graph *graph,
                              const muc_ref *ref, const json_t *writes)
{
    for (size_t i = 0; i < json_array_size(writes); i++) {
        muc_chip_place place;
        muc_ref_view view;
        bool is_half;
        uint32_t id;
        uint8_t *data;

        MUC_TRY(muc_chip_read_place(ctx, chip, json_array_get(writes, i), &place));
        is_half = place.dtype == MUC_F16 || place.dtype == MUC_BF16;
        id = muc_graph_find(graph, place.tensor);
        if (id == MUC_NO_ID || !muc_ref_get(ref, id, &view) ||
            view.dtype != (is_half ? MUC_F32 : place.dtype) || view.elements != place.elements)
            return damaged(ctx, chip, place.tensor);
        MUC_TRY(keep_tensor(ctx, chip, place.tensor, place.bytes, &data));
        if (is_half)
            muc_ref_narrow(place.dtype, &view, data);
        else
            memcpy(data, view.data, (size_t)place.bytes);
        if (place.in_frame)
            save(chip, &place, data);
    }
    return MUC_OK;
}

static muc_status run_graph(muc_context *ctx, muc_chip *chip, const json_t *step, muc_graph *graph)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    const json_t *reads = json_object_get(step, "reads");
    size_t count = json_array_size(reads);
    muc_ref_input *inputs;
    muc_status status;
    muc_ref *ref;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->run, count + 1, &inputs));
    for (size_t i = 0; i < count; i++) {
        muc_chip_place place;
        const uint8_t *data;

        MUC_TRY(muc_chip_read_place(ctx, chip, json_array_get(reads, i), &place));
        MUC_TRY(get_tensor(ctx, chip, &place, &data));
        inputs[i] = (muc_ref_input){ place.tensor, data, (size_t)place.bytes };
    }
    MUC_TRY(muc_ref_open(ctx, graph, &ref));
    status = muc_ref_run(ref, bindings, inputs, count);
    if (status == MUC_OK)
        status = put_results(ctx, chip, graph, ref, json_object_get(step, "writes"));
    muc_ref_close(ref);
    return status;
}

static muc_status run_host(muc_context *ctx, muc_chip *chip, uint32_t code)
{
    const json_t *step = json_array_get(json_object_get(chip->map, "host_steps"), code - 1);
    const char *name;
    muc_graph *graph;
    muc_status status;
    muc_file file;

    MUC_TRY(muc_json_string_or_null(ctx, chip->map_file.bytes.name, step, "graph", &name));
    if (!name || !muc_is_plain_name(name))
        return damaged(ctx, chip, "a host step without a graph");
    MUC_TRY(open_file(ctx, chip, name, &file));
    status = muc_graph_parse(ctx, file.bytes, &graph);
    if (status == MUC_OK) {
        status = run_graph(ctx, chip, step, graph);
        muc_graph_free(graph);
    }
    muc_file_close(&file);
    return status;
}

/* ---- the run ---- */

static muc_status put_input(muc_context *ctx, muc_chip *chip, const muc_chip_place *p,
                            const muc_tensor_view *array)
{
    uint8_t *data, *converted;

    if (array->elements != p->elements)
        return muc_fail(ctx, MUC_USAGE, array->file, MUC_NO_OFFSET,
                        "array '%s' has %llu elements, input '%s' %llu", array->name,
                        (unsigned long long)array->elements, p->name,
                        (unsigned long long)p->elements);
    MUC_TRY(keep_tensor(ctx, chip, p->tensor, p->bytes, &data));
    if (p->dtype != MUC_F32 && p->in_frame &&
        muc_dtype_get(array->dtype)->kind == MUC_DTYPE_FLOAT) {
        for (uint64_t i = 0; i < p->elements; i++)
            store_real(chip, p, (float)muc_array_element(array, i), &data[i]);
    } else {
        MUC_TRY(muc_array_convert(ctx, array, p->dtype, &chip->run, &converted));
        memcpy(data, converted, (size_t)p->bytes);
    }
    if (p->in_frame)
        save(chip, p, data);
    return MUC_OK;
}

static muc_status put_inputs(muc_context *ctx, muc_chip *chip, const muc_tensor_view *arrays,
                             size_t array_count)
{
    const char **names;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->run, chip->input_count + 1, &names));
    for (size_t i = 0; i < chip->input_count; i++)
        names[i] = chip->inputs[i].name;
    for (size_t i = 0; i < chip->input_count; i++) {
        const muc_tensor_view *array =
            muc_network_match(arrays, array_count, names, chip->input_count, i);

        if (!array)
            return muc_network_refuse_input(ctx, chip->path, arrays, array_count, names[i]);
        MUC_TRY(put_input(ctx, chip, &chip->inputs[i], array));
    }
    return MUC_OK;
}

static muc_status fill_frame(muc_context *ctx, muc_chip *chip, const muc_tensor_view *arrays,
                             size_t count)
{
    MUC_TRY(read_places(ctx, chip, json_object_get(chip->map, "inputs"), &chip->inputs,
                        &chip->input_count));
    for (size_t i = 0; i < chip->input_count; i++)
        if (!chip->inputs[i].in_frame)
            return muc_fail(ctx, MUC_UNSUPPORTED, arrays->file, MUC_NO_OFFSET,
                            "input '%s' is the master's alone: it is not a part of the frame image",
                            chip->inputs[i].name);
    if (muc_chip_images(chip, arrays, count) != 1)
        return muc_fail(ctx, MUC_USAGE, arrays->file, MUC_NO_OFFSET,
                        "holds several images; the frame image takes one");
    return put_inputs(ctx, chip, arrays, count);
}

muc_status muc_chip_fill_frame(muc_context *ctx, muc_bytes map, const muc_cnnchip_program *program,
                               const muc_tensor_view *arrays, size_t count, uint8_t *frame)
{
    muc_chip chip = { .path = map.name, .program = *program };
    muc_status status;

    chip.map_file.bytes = map;
    chip.sim.frame = frame;
    MUC_TRY(muc_json_parse(ctx, map, 0, &chip.map));
    status = fill_frame(ctx, &chip, arrays, count);
    json_decref(chip.map);
    muc_arena_free(&chip.run);
    muc_arena_free(&chip.arena);
    return status;
}

static muc_status take_outputs(muc_context *ctx, muc_chip *chip, muc_tensor_view **out)
{
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->run, chip->output_count + 1, out));
    for (size_t i = 0; i < chip->output_count; i++) {
        const muc_chip_place *p = &chip->outputs[i];
        muc_tensor_view *view = &(*out)[i];

        *view = (muc_tensor_view){ .name = p->name ? p->name : p->tensor,
                                   .dtype = p->dtype,
                                   .rank = p->rank,
                                   .file = chip->path };
        memcpy(view->dims, p->dims, sizeof(view->dims));
        MUC_TRY(get_tensor(ctx, chip, p, &view->data));
        MUC_TRY(muc_tensor_measure(ctx, view));
    }
    return MUC_OK;
}

muc_status muc_chip_run(muc_context *ctx, muc_chip *chip, const muc_tensor_view *arrays,
                        size_t array_count, muc_tensor_view **outputs)
{
    muc_cnnchip_state state;

    if (chip->program.frame_image_bytes)
        memcpy(chip->sim.frame, chip->frame_file.bytes.data, chip->program.frame_image_bytes);
    muc_arena_free(&chip->run);
    chip->tensors = NULL;
    chip->tensor_count = chip->tensor_capacity = 0;
    if (array_count || !json_is_true(json_object_get(chip->map, "inputs_in_frame")))
        MUC_TRY(put_inputs(ctx, chip, arrays, array_count));
    chip->sim.program_bytes = chip->stop ? chip->stop : chip->program.code_bytes;
    state = muc_cnnchip_sim_start(&chip->sim);
    while (state == MUC_CNNCHIP_ENDED && chip->sim.code != 0) {
        MUC_TRY(run_host(ctx, chip, chip->sim.code));
        state = muc_cnnchip_sim_resume(&chip->sim);
    }
    *outputs = NULL;
    if (chip->stop && chip->sim.pc == chip->stop)
        return MUC_OK;
    if (state != MUC_CNNCHIP_ENDED)
        return muc_fail(ctx, MUC_BUG, chip->path, MUC_NO_OFFSET,
                        "the chip stopped at byte %u of the code with fault %u", chip->sim.pc,
                        chip->sim.code);
    return take_outputs(ctx, chip, outputs);
}

/* ---- traces ---- */

uint64_t muc_chip_layer_end(const json_t *layer)
{
    const json_t *steps = json_object_get(layer, "steps"), *range;

    if (json_array_size(steps) == 0)
        return 0;
    range = json_object_get(json_array_get(steps, json_array_size(steps) - 1), "instructions");
    return (uint64_t)json_integer_value(json_array_get(range, 1));
}

void muc_chip_trace_result(const muc_cnnchip_sim *sim, const muc_cnnchip_insn *insn, muc_text *text)
{
    bool sums = (insn->flags & MUC_CNNCHIP_FLAG_dst32) != 0, dense = insn->op == MUC_CNNCHIP_DENSE;
    uint32_t element = muc_cnnchip_element_bytes(sim->element), size = sums ? 4 : element;
    uint32_t h = dense ? 1 : insn->out_h, w = dense ? 1 : insn->out_w, crc = 0;
    uint64_t rows = dense ? 1 : insn->dst_rows, pitch = dense ? 1 : insn->dst_pitch, count = 0;
    double least = INFINITY, greatest = -INFINITY, total = 0;

    if (insn->op == MUC_CNNCHIP_END)
        return;
    for (uint32_t c = 0; c < insn->out_c; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++) {
                uint64_t at =
                    (c * rows + y * (uint64_t)insn->step_h) * pitch + x * (uint64_t)insn->step_w;
                const uint8_t *p = (sums ? sim->filter : sim->frame) + insn->dst + at * size;
                double value;

                if (sim->element == MUC_CNNCHIP_int8)
                    value = sums ? (int32_t)muc_load_u32(p) : (int8_t)*p;
                else
                    value = (double)(size == 2 ? muc_f32_of_f16(muc_load_u16(p))
                                               : muc_f32_of_bits(muc_load_u32(p)));
                least = fmin(least, value);
                greatest = fmax(greatest, value);
                total += value;
                crc = muc_crc32(crc, p, size);
                count++;
            }
    muc_text_add(text, ",%llu,%.9g,%.9g,%.9g,%08x", (unsigned long long)count, least, greatest,
                 total / (double)count, crc);
}
