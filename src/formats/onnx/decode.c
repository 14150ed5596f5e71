/* decode.c - decodes ONNX files by protobuf-c, within limits.
 *
 * protobuf-c checks every length, but recurses as deep as a file asks and allocates what it asks:
 * a first walk over the nested messages limits the depth, and an allocator limits the memory.
 */
#include "formats/onnx/decode.h"

#include <inttypes.h>

enum {
    MAX_DEPTH = 32, /* a graph in an attribute of a node is 3 deep */
    MAX_VARINT_BYTES = 10,
    FREE_BYTES = 1 << 20, /* that any file may ask for */
    BYTES_PER_BYTE = 32,  /* a node of 40 bytes decodes to some 500, structures of lists included */
};

typedef struct field {
    uint32_t number;
    ProtobufCWireType type;
    uint64_t size; /* of the content of a LENGTH_PREFIXED one */
} field;

static muc_status read_varint(muc_reader *in, const char *what, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < MAX_VARINT_BYTES; i++) {
        uint8_t byte;

        MUC_TRY(muc_read_u8(in, what, &byte));
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            *out = value;
            return MUC_OK;
        }
    }
    return muc_read_fail(in, "%s has more than %d bytes", what, MAX_VARINT_BYTES);
}

/* Reads a field's head, and the content of all but LENGTH_PREFIXED ones. */
static muc_status read_field(muc_reader *in, field *out)
{
    uint64_t tag, ignored;
    const uint8_t *span;

    MUC_TRY(read_varint(in, "a field's tag", &tag));
    out->number = (uint32_t)(tag >> 3);
    out->type = (ProtobufCWireType)(tag & 7);
    out->size = 0;
    if (out->number == 0 || tag >> 32 != 0)
        return muc_read_fail(in, "no field has tag %" PRIu64, tag);
    switch ((int)out->type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return read_varint(in, "a number", &ignored);
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        return muc_read_span(in, 8, "a 64-bit number", &span);
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        return muc_read_span(in, 4, "a 32-bit number", &span);
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        MUC_TRY(read_varint(in, "a field's size", &out->size));
        if (out->size > muc_reader_left(in))
            return muc_read_fail(in, "field %u has %" PRIu64 " bytes, the file %zu more",
                                 out->number, out->size, muc_reader_left(in));
        return MUC_OK;
    default:
        return muc_read_fail(in, "field %u is of wire type %u", out->number, (unsigned)out->type);
    }
}

/* The nested message in a field, or NULL. */
static const ProtobufCMessageDescriptor *nested(const ProtobufCMessageDescriptor *descriptor,
                                                const field *f)
{
    const ProtobufCFieldDescriptor *row;

    if (f->type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return NULL;
    row = protobuf_c_message_descriptor_get_field(descriptor, f->number);
    return row && row->type == PROTOBUF_C_TYPE_MESSAGE ? row->descriptor : NULL;
}

static muc_status check_depth(muc_reader *in, size_t end,
                              const ProtobufCMessageDescriptor *descriptor, unsigned depth)
{
    if (depth > MAX_DEPTH)
        return muc_read_fail(in, "messages are nested deeper than %d", MAX_DEPTH);
    while (in->at < end) {
        const ProtobufCMessageDescriptor *inner;
        const uint8_t *span;
        field f;

        MUC_TRY(read_field(in, &f));
        if (f.size > end - in->at || in->at > end)
            return muc_read_fail(in, "field %u goes on after the end of its message", f.number);
        inner = nested(descriptor, &f);
        if (inner)
            MUC_TRY(check_depth(in, in->at + (size_t)f.size, inner, depth + 1));
        else
            MUC_TRY(muc_read_span(in, f.size, "a field", &span));
    }
    return MUC_OK;
}

typedef struct budget {
    muc_context *ctx;
    muc_arena *arena;
    const char *file;
    uint64_t left;
    muc_status status; /* of the first allocation that failed */
} budget;

static void *take(void *data, size_t size)
{
    budget *b = data;
    void *out;

    if (b->status == MUC_OK && size > b->left)
        b->status = muc_fail(b->ctx, MUC_MALFORMED, b->file, MUC_NO_OFFSET,
                             "what the file describes is out of proportion to its size");
    if (b->status == MUC_OK)
        b->status = muc_arena_new(b->ctx, b->arena, size, 1, &out);
    if (b->status != MUC_OK)
        return NULL;
    b->left -= size;
    return out;
}

/* the arena is freed as a whole */
static void give_back(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

muc_status muc_onnx_decode(muc_context *ctx, muc_arena *arena, muc_bytes file,
                           const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **out)
{
    budget b = { ctx, arena, file.name, FREE_BYTES + (uint64_t)BYTES_PER_BYTE * file.size, MUC_OK };
    ProtobufCAllocator allocator = { take, give_back, &b };
    muc_reader in = muc_reader_of(ctx, file);

    if (file.size > INT32_MAX)
        return muc_fail(ctx, MUC_UNSUPPORTED, file.name, MUC_NO_OFFSET,
                        "the file has %zu bytes; ONNX files are below 2 GiB, with external data",
                        file.size);
    MUC_TRY(check_depth(&in, file.size, descriptor, 0));
    *out = protobuf_c_message_unpack(descriptor, &allocator, file.size, file.data);
    if (*out || b.status != MUC_OK)
        return b.status;
    return muc_fail(ctx, MUC_MALFORMED, file.name, MUC_NO_OFFSET, "the file is not a valid %s",
                    descriptor->short_name);
}

static bool matches(const ProtobufCMessageDescriptor *descriptor, const field *f)
{
    const ProtobufCFieldDescriptor *row =
        protobuf_c_message_descriptor_get_field(descriptor, f->number);

    if (!row)
        return false;
    switch ((int)row->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return f->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default:
        return f->type == PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

bool muc_onnx_looks_like(muc_bytes file, const ProtobufCMessageDescriptor *descriptor,
                         unsigned present)
{
    muc_context *quiet = muc_context_new(1);
    muc_reader in = muc_reader_of(quiet, file);
    bool fits = quiet != NULL, seen = false;

    while (fits && in.at < file.size) {
        field f;

        fits = read_field(&in, &f) == MUC_OK && matches(descriptor, &f);
        in.at += fits ? (size_t)f.size : 0;
        seen = seen || (fits && f.number == present);
    }
    muc_context_free(quiet);
    return fits && seen;
}
