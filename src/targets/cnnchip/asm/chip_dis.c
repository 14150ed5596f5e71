/* chip_dis.c - programs of the CNN chip as text. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "targets/cnnchip/isa/chip_program.h"

/* as many digits as give the same bits again, or the bits */
static void print_real(muc_text *text, uint32_t bits)
{
    char digits[32];

    for (int precision = 1; precision <= 9; precision++) {
        snprintf(digits, sizeof(digits), "%.*g", precision, (double)muc_f32_of_bits(bits));
        if (isdigit((unsigned char)digits[digits[0] == '-']) &&
            muc_f32_bits(strtof(digits, NULL)) == bits) {
            muc_text_add(text, "%s", digits);
            return;
        }
    }
    muc_text_add(text, "0x%08" PRIx32, bits);
}

static void print_field(muc_text *text, const muc_cnnchip_field *field, uint32_t value)
{
    muc_text_add(text, " %s=", field->name);
    switch (field->kind) {
    case MUC_CNNCHIP_KIND_address:
    case MUC_CNNCHIP_KIND_bits:
        muc_text_add(text, "0x%" PRIx32, value);
        return;
    case MUC_CNNCHIP_KIND_signed:
        muc_text_add(text, "%" PRId32, (int32_t)value);
        return;
    case MUC_CNNCHIP_KIND_real:
        print_real(text, value);
        return;
    case MUC_CNNCHIP_KIND_count:
        break;
    }
    muc_text_add(text, "%" PRIu32, value);
}

static void print_insn(muc_text *text, const muc_cnnchip_insn *insn)
{
    muc_cnnchip_op_info info = muc_cnnchip_op_get(insn->op);

    for (const char *at = info.name; *at; at++)
        muc_text_add(text, "%c", tolower((unsigned char)*at));
    for (unsigned bit = 0; bit < 8; bit++)
        if (insn->flags >> bit & 1)
            muc_text_add(text, " %s", muc_cnnchip_flag_name(bit));
    if (insn->layer)
        muc_text_add(text, " layer=%" PRIu32, insn->layer);
    for (uint32_t i = 0; i < info.field_count; i++) {
        uint32_t value = muc_cnnchip_field_value(insn, &info.fields[i]);

        if (value)
            print_field(text, &info.fields[i], value);
    }
    muc_text_add(text, "\n");
}

static void print_header(muc_text *text, const muc_cnnchip_program *p)
{
    muc_text_add(text, ".element %s\n.pes %" PRIu32 "\n", muc_cnnchip_element_name(p->element),
                 p->pes);
    muc_text_add(text, ".frame %" PRIu32 " %" PRIu32 " 0x%08" PRIx32 "\n", p->frame_bytes,
                 p->frame_image_bytes, p->frame_crc);
    muc_text_add(text, ".filter %" PRIu32 " %" PRIu32 " 0x%08" PRIx32 "\n", p->filter_bytes,
                 p->filter_image_bytes, p->filter_crc);
    for (uint32_t i = 0; i < p->port_count; i++) {
        const muc_cnnchip_port *port = &p->ports[i];

        muc_text_add(text,
                     ".port %s 0x%" PRIx32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
                     " %" PRIu32 " ",
                     muc_cnnchip_port_name(port->kind), port->address, port->c, port->h, port->w,
                     port->rows, port->pitch);
        print_real(text, muc_f32_bits(port->scale));
        muc_text_add(text, " %" PRId32 " %" PRIu32 " %" PRIu32 "\n", port->zero, port->step,
                     port->last);
    }
}

muc_status muc_cnnchip_disassemble(muc_context *ctx, muc_bytes bytes, muc_text *text)
{
    muc_arena arena = { 0 };
    muc_cnnchip_program program;
    muc_status status = muc_cnnchip_read_program(ctx, &arena, bytes, &program);

    if (status == MUC_OK)
        print_header(text, &program);
    for (uint32_t at = 0; status == MUC_OK && at < program.code_bytes;) {
        muc_cnnchip_insn insn;
        unsigned fault;

        at += muc_cnnchip_read_insn(program.code + at, program.code_bytes - at, &insn, &fault);
        print_insn(text, &insn);
    }
    muc_arena_free(&arena);
    return status;
}
