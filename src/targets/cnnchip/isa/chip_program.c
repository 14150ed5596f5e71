/* chip_program.c - program files of the CNN chip: header, ports, instructions. */
#include <string.h>

#include "base/half.h"
#include "targets/cnnchip/isa/chip_program.h"

const char *muc_cnnchip_port_name(uint32_t kind)
{
    static const char *const names[] = { "input", "output", "read", "written" };

    return kind < MUC_COUNT(names) ? names[kind] : NULL;
}

static void write_port(const muc_cnnchip_port *port, uint8_t *out)
{
    const uint32_t words[] = { port->kind,
                               port->address,
                               port->c,
                               port->h,
                               port->w,
                               port->rows,
                               port->pitch,
                               muc_f32_bits(port->scale),
                               (uint32_t)port->zero,
                               port->step,
                               port->last };

    for (size_t i = 0; i < MUC_COUNT(words); i++)
        muc_store_u32(out + 4 * i, words[i]);
}

muc_status muc_cnnchip_write_program(muc_context *ctx, muc_arena *arena,
                                     const muc_cnnchip_program *program, muc_bytes *out)
{
    size_t ports = (size_t)program->port_count * MUC_CNNCHIP_PORT_BYTES;
    size_t start = MUC_CNNCHIP_HEADER_BYTES + ports, size = start + program->code_bytes;
    const uint32_t words[] = {
        MUC_CNNCHIP_MAGIC,
        MUC_CNNCHIP_VERSION,
        program->element,
        program->pes,
        (uint32_t)start,
        program->code_bytes,
        program->insn_count,
        program->frame_bytes,
        program->filter_bytes,
        program->frame_image_bytes,
        program->filter_image_bytes,
        program->port_count,
        program->frame_crc,
        program->filter_crc,
    };
    uint8_t *data;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, size, &data));
    for (uint32_t i = 0; i < program->port_count; i++)
        write_port(&program->ports[i],
                   data + MUC_CNNCHIP_HEADER_BYTES + (size_t)i * MUC_CNNCHIP_PORT_BYTES);
    memcpy(data + start, program->code, program->code_bytes);
    for (size_t i = 0; i < MUC_COUNT(words); i++)
        muc_store_u32(data + 4 * i, words[i]);
    muc_store_u32(data + 56,
                  muc_crc32(0, data + MUC_CNNCHIP_HEADER_BYTES, size - MUC_CNNCHIP_HEADER_BYTES));
    muc_store_u32(data + 60, muc_crc32(0, data, 60));
    *out = (muc_bytes){ data, size, "program" };
    return MUC_OK;
}

bool muc_cnnchip_is_program(muc_bytes bytes)
{
    return bytes.size >= 4 && muc_load_u32(bytes.data) == MUC_CNNCHIP_MAGIC;
}

static muc_status malformed(muc_context *ctx, muc_bytes bytes, uint64_t offset, const char *what)
{
    return muc_fail(ctx, MUC_MALFORMED, bytes.name, offset, "%s", what);
}

static muc_status read_header(muc_context *ctx, muc_bytes bytes, muc_cnnchip_program *out)
{
    const uint8_t *p = bytes.data;
    uint64_t start;

    if (bytes.size < MUC_CNNCHIP_HEADER_BYTES)
        return malformed(ctx, bytes, 0, "shorter than a CNN chip program's header, 64 bytes");
    if (!muc_cnnchip_is_program(bytes))
        return malformed(ctx, bytes, 0, "no program of the CNN chip: it begins otherwise");
    if (muc_load_u32(p + 60) != muc_crc32(0, p, 60))
        return malformed(ctx, bytes, 60, "the header's CRC is wrong");
    if (muc_load_u32(p + 56) !=
        muc_crc32(0, p + MUC_CNNCHIP_HEADER_BYTES, bytes.size - MUC_CNNCHIP_HEADER_BYTES))
        return malformed(ctx, bytes, 56, "the CRC of ports and instructions is wrong");
    if (muc_load_u32(p + 4) != MUC_CNNCHIP_VERSION)
        return malformed(ctx, bytes, 4, "of a version that is not 1");
    *out = (muc_cnnchip_program){
        .element = muc_load_u32(p + 8),
        .pes = muc_load_u32(p + 12),
        .code_bytes = muc_load_u32(p + 20),
        .insn_count = muc_load_u32(p + 24),
        .frame_bytes = muc_load_u32(p + 28),
        .filter_bytes = muc_load_u32(p + 32),
        .frame_image_bytes = muc_load_u32(p + 36),
        .filter_image_bytes = muc_load_u32(p + 40),
        .port_count = muc_load_u32(p + 44),
        .frame_crc = muc_load_u32(p + 48),
        .filter_crc = muc_load_u32(p + 52),
    };
    if (!muc_cnnchip_element_name(out->element))
        return malformed(ctx, bytes, 8, "no such element type: 0 to 2");
    if (out->frame_image_bytes > out->frame_bytes || out->filter_image_bytes > out->filter_bytes ||
        out->filter_bytes % 4 || out->filter_image_bytes % 4)
        return malformed(ctx, bytes, 28, "an image is larger than its memory, or not of words");
    start = MUC_CNNCHIP_HEADER_BYTES + (uint64_t)out->port_count * MUC_CNNCHIP_PORT_BYTES;
    if (out->port_count > MUC_CNNCHIP_MOST_PORTS || muc_load_u32(p + 16) != start ||
        start + out->code_bytes != bytes.size)
        return malformed(ctx, bytes, 16,
                         "header, ports and instructions do not add up to the file");
    out->code = p + start;
    return MUC_OK;
}

/* whether the port lies in FRAME and its words are as they must be */
static bool port_is_sound(const muc_cnnchip_program *program, const muc_cnnchip_port *port)
{
    uint64_t bytes = muc_cnnchip_element_bytes(program->element), end;

    if (port->kind >= MUC_CNNCHIP_PORT_KINDS || !port->c || !port->h || !port->w ||
        port->h > port->rows || port->w > port->pitch || port->rows > UINT16_MAX ||
        port->pitch > UINT16_MAX || port->address % bytes || !(port->scale > 0) || port->last > 1 ||
        (port->step != 0) != (port->kind >= MUC_CNNCHIP_PORT_READ))
        return false;
    end = (port->h - 1) * (uint64_t)port->pitch + port->w;
    if (!muc_mul_u64(port->c - 1, (uint64_t)port->rows * port->pitch, &bytes) ||
        !muc_add_u64(end, bytes, &end) ||
        !muc_mul_u64(end, muc_cnnchip_element_bytes(program->element), &end) ||
        !muc_add_u64(end, port->address, &end))
        return false;
    return end <= program->frame_bytes;
}

static muc_status read_ports(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                             muc_cnnchip_program *out)
{
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, out->port_count + (size_t)1, &out->ports));
    for (uint32_t i = 0; i < out->port_count; i++) {
        size_t at = MUC_CNNCHIP_HEADER_BYTES + (size_t)i * MUC_CNNCHIP_PORT_BYTES;
        const uint8_t *p = bytes.data + at;

        out->ports[i] = (muc_cnnchip_port){
            .kind = muc_load_u32(p),
            .address = muc_load_u32(p + 4),
            .c = muc_load_u32(p + 8),
            .h = muc_load_u32(p + 12),
            .w = muc_load_u32(p + 16),
            .rows = muc_load_u32(p + 20),
            .pitch = muc_load_u32(p + 24),
            .scale = muc_f32_of_bits(muc_load_u32(p + 28)),
            .zero = (int32_t)muc_load_u32(p + 32),
            .step = muc_load_u32(p + 36),
            .last = muc_load_u32(p + 40),
        };
        if (!port_is_sound(out, &out->ports[i]) || muc_load_u32(p + 44))
            return malformed(ctx, bytes, at, "a port that does not lie in FRAME, or is unknown");
    }
    return MUC_OK;
}

muc_status muc_cnnchip_read_program(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                                    muc_cnnchip_program *out)
{
    MUC_TRY(read_header(ctx, bytes, out));
    MUC_TRY(read_ports(ctx, arena, bytes, out));
    return muc_cnnchip_verify_program(ctx, out, bytes.name);
}
