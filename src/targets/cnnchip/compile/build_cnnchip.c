/* build_cnnchip.c - lowers, plans and emits a network, verifies it, and writes the folder of it. */
#include "targets/cnnchip/compile/build_cnnchip.h"
#include "targets/cnnchip/emit/chip_hex.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_folder.h"

/* ---- the road ---- */

/* the frame image: zeros, and the borders of inputs */
static void draw_border(const muc_cnnchip_lowering *l, const muc_cnnchip_storage *s, uint8_t *frame)
{
    uint32_t rows = muc_cnnchip_rows(s), pitch = muc_cnnchip_pitch(s);
    uint32_t bytes = muc_cnnchip_element_bytes(l->machine->element);

    for (uint64_t i = 0; i < (uint64_t)s->c * rows * pitch; i++) {
        uint32_t y = (uint32_t)(i / pitch % rows), x = (uint32_t)(i % pitch);

        if (y >= s->border.t && y < s->border.t + s->h && x >= s->border.l &&
            x < s->border.l + s->w)
            continue;
        for (uint32_t b = 0; b < bytes; b++)
            frame[s->address + i * bytes + b] = (uint8_t)(s->border.value >> 8 * b);
    }
}

static muc_status make_frame(muc_cnnchip_build *build)
{
    muc_cnnchip_lowering *l = &build->lowering;
    uint64_t size = 0;
    uint8_t *frame;

    for (uint32_t i = 0; i < l->storage_count; i++) {
        const muc_cnnchip_storage *s = &l->storages[i];
        uint64_t end = s->address + (uint64_t)s->c * muc_cnnchip_rows(s) * muc_cnnchip_pitch(s) *
                                        muc_cnnchip_element_bytes(l->machine->element);

        if (s->port != MUC_NO_ID && end > size)
            size = end;
    }
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, (size_t)size + 1, &frame));
    for (uint32_t i = 0; i < l->storage_count; i++)
        if (l->storages[i].port != MUC_NO_ID)
            draw_border(l, &l->storages[i], frame);
    build->frame_image = (muc_bytes){ frame, (size_t)size, "frame.bin" };
    return MUC_OK;
}

static muc_status add_port(muc_cnnchip_build *build, uint32_t tensor, muc_cnnchip_port_kind kind,
                           uint32_t step)
{
    muc_cnnchip_lowering *l = &build->lowering;
    muc_cnnchip_program *p = &build->program;
    const muc_cnnchip_value *v = &l->values[tensor];
    muc_cnnchip_port *port;

    if (!v->on_chip)
        return MUC_OK;
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, p->port_count + (size_t)1, sizeof(*p->ports),
                           &build->port_capacity, (void **)&p->ports));
    port = &p->ports[p->port_count++];
    *port = (muc_cnnchip_port){ .kind = kind,
                                .c = v->view.c,
                                .h = v->view.h,
                                .w = v->view.w,
                                .scale = l->is_int8 ? v->scale : 1,
                                .zero = l->is_int8 ? v->zero : 0,
                                .step = step,
                                .last = v->last };
    port->address = muc_cnnchip_locate(l, &v->view, &port->rows, &port->pitch);
    return MUC_OK;
}

/* what host step `index` reads of FRAME, then what it writes there, in the order of map.json */
static muc_status add_host_ports(muc_cnnchip_build *build, uint32_t index)
{
    const muc_cnnchip_lowering *l = &build->lowering;
    const muc_cnnchip_host *host = &l->hosts[index];

    for (uint32_t i = 0; i < host->node_count; i++) {
        const muc_node *node = &l->graph->nodes[host->nodes[i]];

        for (uint32_t k = 0; k < node->input_count; k++)
            if (muc_cnnchip_host_reads(l, index, i, k))
                MUC_TRY(add_port(build, node->inputs[k], MUC_CNNCHIP_PORT_READ, index + 1));
    }
    for (uint32_t i = 0; i < host->node_count; i++) {
        const muc_node *node = &l->graph->nodes[host->nodes[i]];

        for (uint32_t k = 0; k < node->output_count; k++)
            MUC_TRY(add_port(build, node->outputs[k], MUC_CNNCHIP_PORT_WRITTEN, index + 1));
    }
    return MUC_OK;
}

static muc_status add_ports(muc_cnnchip_build *build)
{
    const muc_cnnchip_lowering *l = &build->lowering;

    for (uint32_t i = 0; i < l->storage_count; i++)
        if (l->storages[i].port != MUC_NO_ID)
            MUC_TRY(add_port(build, l->storages[i].port_as, MUC_CNNCHIP_PORT_INPUT, 0));
    for (uint32_t i = 0; i < l->graph->output_count; i++)
        MUC_TRY(add_port(build, l->graph->outputs[i], MUC_CNNCHIP_PORT_OUTPUT, 0));
    for (uint32_t h = 0; h < l->host_count; h++)
        MUC_TRY(add_host_ports(build, h));
    if (build->program.port_count > MUC_CNNCHIP_MOST_PORTS)
        return muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                        "%u tensors are the master's to read or write, at most %d can be",
                        build->program.port_count, MUC_CNNCHIP_MOST_PORTS);
    return MUC_OK;
}

static muc_status add_code(muc_cnnchip_build *build)
{
    muc_cnnchip_lowering *l = &build->lowering;
    muc_cnnchip_program *p = &build->program;
    uint64_t bytes = 0, limit = l->machine->program_bytes;
    uint8_t *code;

    for (uint32_t i = 0; i < l->insn_count; i++)
        bytes += 4 * (uint64_t)muc_cnnchip_op_get(l->insns[i].op).words;
    limit = limit ? limit : UINT32_MAX / 2;
    if (bytes > limit) {
        muc_fail(l->ctx, MUC_NOFIT, l->graph->name, MUC_NO_OFFSET,
                 "instructions of %" PRIu64 " bytes, the program has %" PRIu64, bytes, limit);
        muc_hint(l->ctx, "--machine FILE with program_bytes of %" PRIu64 " would do", bytes);
        if (l->machine->pes)
            muc_hint(l->ctx, "more processing elements (--pes) split fewer layers");
        return MUC_NOFIT;
    }
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, (size_t)bytes, &code));
    p->code = code;
    p->code_bytes = (uint32_t)bytes;
    p->insn_count = l->insn_count;
    for (uint32_t i = 0; i < l->insn_count; i++) {
        muc_cnnchip_write_insn(&l->insns[i], code);
        code += 4 * (size_t)muc_cnnchip_op_get(l->insns[i].op).words;
    }
    return MUC_OK;
}

/* the file, with the sum of the frame image, and the verifier's word on it */
static muc_status seal(muc_cnnchip_build *build)
{
    muc_cnnchip_lowering *l = &build->lowering;
    muc_cnnchip_program *p = &build->program, check;

    p->frame_crc = muc_crc32(0, build->frame_image.data, build->frame_image.size);
    MUC_TRY(muc_cnnchip_write_program(l->ctx, &l->arena, p, &build->program_file));
    return muc_cnnchip_read_program(l->ctx, &l->arena, build->program_file, &check) == MUC_OK
               ? MUC_OK
               : MUC_BUG;
}

muc_status muc_cnnchip_set_frame(muc_cnnchip_build *build, const uint8_t *frame)
{
    build->frame_image.data = frame;
    build->inputs_in_frame = true;
    return seal(build);
}

static muc_status make_images(muc_cnnchip_build *build)
{
    muc_cnnchip_lowering *l = &build->lowering;
    muc_cnnchip_program *p = &build->program;

    MUC_TRY(make_frame(build));
    build->filter_image =
        (muc_bytes){ l->weights, (size_t)(l->weights_bytes + l->params_bytes), "filter.bin" };
    p->element = build->machine.element;
    p->pes = build->machine.pes;
    p->frame_bytes = (uint32_t)l->plan.peak;
    p->frame_image_bytes = (uint32_t)build->frame_image.size;
    p->filter_image_bytes = (uint32_t)build->filter_image.size;
    p->filter_bytes = p->filter_image_bytes + (uint32_t)l->scratch_bytes;
    p->filter_crc = muc_crc32(0, build->filter_image.data, build->filter_image.size);
    return seal(build);
}

muc_status muc_cnnchip_compile(muc_context *ctx, const muc_graph *graph, const char *name,
                               const muc_cnnchip_machine *machine, muc_cnnchip_build **out)
{
    muc_cnnchip_build *build = muc_calloc(1, sizeof(*build));
    muc_status status = MUC_OK;
    muc_cnnchip_lowering *l;

    if (!build)
        return muc_fail_nomem(ctx, "cnnchip", sizeof(*build));
    l = &build->lowering;
    build->name = name;
    build->machine = *machine;
    build->hex_bits = 32;
    l->ctx = ctx;
    l->graph = graph;
    l->machine = &build->machine;
    l->is_int8 = machine->element == MUC_CNNCHIP_int8;
    status = muc_cnnchip_lower(l); /* nodes to steps */
    if (status == MUC_OK)
        status = muc_cnnchip_plan_frame(l); /* storages to addresses */
    if (status == MUC_OK)
        status = muc_cnnchip_emit(l); /* steps to instructions, weights to the filter image */
    if (status == MUC_OK)
        status = add_ports(build);
    if (status == MUC_OK)
        status = add_code(build);
    if (status == MUC_OK && !graph->zeros)
        status = make_images(build); /* and the verifier's word on them */
    if (status == MUC_OK)
        *out = build;
    else
        muc_cnnchip_build_free(build);
    return status;
}

void muc_cnnchip_build_free(muc_cnnchip_build *build)
{
    if (!build)
        return;
    muc_arena_free(&build->lowering.arena);
    free(build);
}

/* ---- the folder ---- */

static muc_status write_host(muc_context *ctx, const muc_cnnchip_build *build, muc_folder *folder)
{
    const muc_cnnchip_lowering *l = &build->lowering;
    muc_text data = { 0 };

    for (uint32_t h = 0; h < l->host_count; h++) {
        muc_text text = { 0 }, name = { 0 };
        muc_status status;

        muc_text_add(&name, "host_%" PRIu32 ".graph", h + 1);
        status = muc_cnnchip_print_host(ctx, build, h, &text);
        if (status == MUC_OK)
            status = muc_text_status(ctx, &name);
        status = muc_folder_write_text(folder, name.data ? name.data : "", status, &text);
        muc_text_free(&name);
        MUC_TRY(status);
    }
    if (l->host_count == 0 && muc_cnnchip_host_data(l, MUC_NO_ID, NULL) == 0)
        return MUC_OK;
    muc_cnnchip_host_data(l, MUC_NO_ID, &data);
    return muc_folder_write_text(folder, "host.bin", MUC_OK, &data);
}

static muc_status write_files(muc_context *ctx, const muc_cnnchip_build *build, muc_folder *folder)
{
    const struct {
        const char *name, *hex;
        muc_bytes bytes;
    } files[] = {
        { "program.bin", "program.hex", build->program_file },
        { "frame.bin", "frame.hex", build->frame_image },
        { "filter.bin", "filter.hex", build->filter_image },
    };
    muc_text assembly = { 0 }, map = { 0 };
    muc_status status;

    for (size_t i = 0; i < MUC_COUNT(files); i++) {
        MUC_TRY(muc_folder_write(folder, files[i].name, files[i].bytes.data, files[i].bytes.size));
        if (build->hex_bits)
            MUC_TRY(muc_cnnchip_write_hex(ctx, folder, files[i].hex, files[i].bytes,
                                          build->hex_bits / 8));
    }
    status = muc_cnnchip_disassemble(ctx, build->program_file, &assembly);
    MUC_TRY(muc_folder_write_text(folder, "program.asm", status, &assembly));
    muc_cnnchip_print_map(build, &map);
    MUC_TRY(muc_folder_write_text(folder, "map.json", MUC_OK, &map));
    return write_host(ctx, build, folder);
}

muc_status muc_cnnchip_write_folder(muc_context *ctx, const muc_cnnchip_build *build,
                                    const char *path, muc_folder_check *check, void *arg)
{
    muc_folder *folder;

    MUC_TRY(muc_folder_begin(ctx, path, &folder));
    return muc_folder_end(folder, write_files(ctx, build, folder), check, arg);
}
