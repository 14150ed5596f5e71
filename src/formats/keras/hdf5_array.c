/* hdf5_array.c - reads HDF5's arrays, compact, contiguous or in chunks: element types, shapes,
 * elements. */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "formats/keras/hdf5_file.h"

enum { MAX_FILTERS = 8, DEFLATE = 1, SHUFFLE = 2, BYTES_PER_STEP = 64 };

/* ---- types ---- */

/* IEEE reals, and bf16: bits, bits of exponent and mantissa, bias */
static const struct {
    muc_dtype dtype;
    uint32_t bits, exponent, mantissa, bias;
} reals[] = {
    { MUC_F16, 16, 5, 10, 15 },
    { MUC_BF16, 16, 8, 7, 127 },
    { MUC_F32, 32, 8, 23, 127 },
    { MUC_F64, 64, 11, 52, 1023 },
};

/* {first bit, bits, at and bits of exponent, of mantissa, bias}, the sign's bit in the flags */
static muc_status read_real(muc_hdf5_type *out, uint64_t flags, muc_reader *r)
{
    static const uint32_t widths[] = { 2, 2, 1, 1, 1, 1, 4 };
    uint64_t v[MUC_COUNT(widths)];

    for (size_t i = 0; i < MUC_COUNT(widths); i++)
        MUC_TRY(muc_read_word(r, widths[i], "properties of a real type", &v[i]));
    for (size_t i = 0; i < MUC_COUNT(reals); i++)
        if (out->size * 8 == reals[i].bits && v[0] == 0 && v[1] == reals[i].bits &&
            v[2] == reals[i].mantissa && v[3] == reals[i].exponent && v[4] == 0 &&
            v[5] == reals[i].mantissa && v[6] == reals[i].bias && (flags & 0x40) == 0 &&
            (flags >> 4 & 3) == 2 && (flags >> 8 & 0xff) == reals[i].bits - 1) {
            out->kind = MUC_HDF5_REAL;
            out->real = reals[i].dtype;
            out->big_endian = (flags & 1) != 0;
        }
    return MUC_OK;
}

muc_status muc_hdf5_read_type(muc_hdf5 *f, muc_reader *r, muc_hdf5_type *out)
{
    enum { FLOATING = 1, STRING = 3, REFERRED = 9 };
    uint64_t word, size;

    *out = (muc_hdf5_type){ .kind = MUC_HDF5_OTHER };
    MUC_TRY(muc_read_word(r, 4, "class of a type", &word));
    MUC_TRY(muc_read_word(r, 4, "size of a type", &size));
    out->size = (uint32_t)size;
    if (size == 0)
        return muc_hdf5_fail(f, MUC_MALFORMED, "its elements have no bytes");
    switch (word & 15) {
    case FLOATING:
        return read_real(out, word >> 8, r);
    case STRING:
        out->kind = MUC_HDF5_STRING;
        break;
    case REFERRED: /* kind 1 is a string, 0 a sequence */
        if ((word >> 8 & 15) == 1)
            out->kind = MUC_HDF5_REFERRED;
        break;
    default:
        break;
    }
    return MUC_OK;
}

muc_status muc_hdf5_read_space(muc_hdf5 *f, muc_reader *r, muc_hdf5_array *out)
{
    uint8_t version, rank, flags, kind = 1;

    *out = (muc_hdf5_array){ .elements = 1 };
    MUC_TRY(muc_read_u8(r, "version of a dataspace", &version));
    MUC_TRY(muc_read_u8(r, "dimensions of a dataspace", &rank));
    MUC_TRY(muc_read_u8(r, "flags of a dataspace", &flags));
    if (version != 1 && version != 2)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "a dataspace of version %u", version);
    if (version == 2)
        MUC_TRY(muc_read_u8(r, "kind of a dataspace", &kind));
    else
        MUC_TRY(muc_hdf5_skip(r, 5, "dataspace"));
    if (rank > MUC_HDF5_MAX_RANK)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "%u dimensions, at most %d", rank,
                             MUC_HDF5_MAX_RANK);
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        MUC_TRY(muc_hdf5_length(f, r, "dimension", &out->dims[i]));
        if (!muc_mul_u64(out->elements, out->dims[i], &out->elements))
            return muc_hdf5_fail(f, MUC_MALFORMED, "more elements than can be counted");
    }
    if (kind == 2) /* null */
        out->elements = 0;
    return MUC_OK;
}

/* ---- an array at work ---- */

typedef enum layout {
    MISSING,
    COMPACT,
    CONTIGUOUS,
    TREE,   /* chunks that a tree refers to */
    SINGLE, /* one chunk, filtered or not */
    ROW,    /* all chunks, one after the other */
} layout;

typedef struct filter {
    uint64_t id;
    uint64_t element; /* of shuffle: bytes */
} filter;

typedef struct array {
    muc_hdf5 *file;
    muc_hdf5_array *out;
    float *data;
    bool has_type, has_space;
    muc_hdf5_type type;
    layout layout;
    muc_reader compact;
    uint64_t address, size; /* where its bytes are; size: of CONTIGUOUS, of a filtered SINGLE */
    uint64_t chunk[MUC_HDF5_MAX_RANK], chunk_bytes;
    uint32_t chunk_rank, mask; /* mask: filters that a SINGLE chunk was not put through */
    filter filters[MAX_FILTERS];
    uint32_t filter_count;
    uint64_t copied;   /* elements */
    uint8_t *bytes[2]; /* [chunk_bytes]: a chunk between two filters */
} array;

/* Elements as they are in the file to the array's from `first` on. */
static void convert(const array *a, const uint8_t *from, uint64_t count, uint64_t first)
{
    enum { GROUP = 64 };
    uint8_t swapped[GROUP * 8];
    uint32_t size = a->type.size;

    if (!a->type.big_endian) {
        muc_dtype_to_f32(a->type.real, from, 0, count, a->data + first);
        return;
    }
    for (uint64_t done = 0; done < count; done += GROUP) {
        uint64_t n = count - done < GROUP ? count - done : GROUP;

        for (uint64_t i = 0; i < n * size; i++)
            swapped[i] = from[done * size + i / size * size + (size - 1 - i % size)];
        muc_dtype_to_f32(a->type.real, swapped, 0, n, a->data + first + done);
    }
}

/* ---- filters ---- */

static muc_status inflate_chunk(array *a, const uint8_t *from, uint64_t size, uint8_t *to,
                                uint64_t *got)
{
    uLongf length = (uLongf)a->chunk_bytes;

    if (uncompress(to, &length, from, (uLong)size) != Z_OK)
        return muc_hdf5_fail(a->file, MUC_MALFORMED,
                             "a chunk that does not inflate to %" PRIu64 " bytes", a->chunk_bytes);
    *got = length;
    return MUC_OK;
}

/* first bytes of all elements, then second ones, ..; what is not a whole element follows as it is
 */
static void unshuffle(const uint8_t *from, uint64_t size, uint64_t element, uint8_t *to)
{
    uint64_t count = size / element;

    for (uint64_t i = 0; i < count; i++)
        for (uint64_t b = 0; b < element; b++)
            to[i * element + b] = from[b * count + i];
    memcpy(to + count * element, from + count * element, (size_t)(size - count * element));
}

/* a chunk of `size` stored bytes as it was before its filters; *out may borrow from the file */
static muc_status unfilter(array *a, uint64_t address, uint64_t size, uint32_t mask,
                           const uint8_t **out)
{
    muc_reader r;
    uint32_t next = 0;

    MUC_TRY(muc_hdf5_take_steps(a->file, a->chunk_bytes / BYTES_PER_STEP));
    MUC_TRY(muc_hdf5_part(a->file, address, size, "chunk", &r));
    *out = r.bytes.data + r.at;
    for (uint32_t i = a->filter_count; i-- > 0;) {
        uint8_t *to = a->bytes[next];

        if (mask >> i & 1)
            continue;
        if (a->filters[i].id == DEFLATE) {
            MUC_TRY(inflate_chunk(a, *out, size, to, &size));
        } else {
            if (size > a->chunk_bytes)
                return muc_hdf5_fail(a->file, MUC_MALFORMED,
                                     "a chunk of %" PRIu64 " bytes, expected %" PRIu64, size,
                                     a->chunk_bytes);
            unshuffle(*out, size, a->filters[i].element, to);
        }
        *out = to;
        next ^= 1;
    }
    return size == a->chunk_bytes ? MUC_OK
                                  : muc_hdf5_fail(a->file, MUC_MALFORMED,
                                                  "a chunk of %" PRIu64 " bytes, expected %" PRIu64,
                                                  size, a->chunk_bytes);
}

/* ---- chunks ---- */

/* the part of a chunk that lies in the array; at: its first element's indices */
static muc_status copy_chunk(array *a, const uint64_t *at, const uint8_t *bytes)
{
    const muc_hdf5_array *out = a->out;
    uint32_t last = out->rank - 1;
    uint64_t index[MUC_HDF5_MAX_RANK] = { 0 }, run = out->dims[last] - at[last];

    run = run < a->chunk[last] ? run : a->chunk[last];
    for (;;) {
        uint64_t from = 0, to = 0;
        uint32_t d = last;

        for (uint32_t i = 0; i <= last; i++) {
            from = from * a->chunk[i] + index[i];
            to = to * out->dims[i] + at[i] + index[i];
        }
        MUC_TRY(muc_hdf5_take_steps(a->file, 1));
        convert(a, bytes + from * a->type.size, run, to);
        a->copied += run;
        while (d > 0) { /* the next row of the chunk */
            d--;
            if (++index[d] < a->chunk[d] && at[d] + index[d] < out->dims[d])
                break;
            index[d] = 0;
            if (d == 0)
                return MUC_OK;
        }
        if (last == 0)
            return MUC_OK;
    }
}

static muc_status place_chunk(array *a, const uint64_t *at, uint64_t address, uint64_t size,
                              uint32_t mask)
{
    const uint8_t *bytes;

    for (uint32_t i = 0; i < a->out->rank; i++)
        if (at[i] >= a->out->dims[i] || at[i] % a->chunk[i] != 0)
            return muc_hdf5_fail(a->file, MUC_MALFORMED, "a chunk lies outside of its array");
    MUC_TRY(unfilter(a, address, size, mask, &bytes));
    return copy_chunk(a, at, bytes);
}

/* key: {stored bytes, mask of filters, first element's indices, 0} */
static muc_status read_chunk(void *arg, muc_hdf5 *f, const uint8_t *key, uint64_t address)
{
    array *a = arg;
    uint64_t at[MUC_HDF5_MAX_RANK];

    (void)f;
    for (uint32_t i = 0; i < a->out->rank; i++)
        at[i] = muc_load_u64(key + 8 + 8 * i);
    return place_chunk(a, at, address, muc_load_u32(key), muc_load_u32(key + 4));
}

static muc_status read_row(array *a)
{
    uint64_t at[MUC_HDF5_MAX_RANK] = { 0 }, address = a->address;
    uint32_t d = 0;

    do {
        MUC_TRY(place_chunk(a, at, address, a->chunk_bytes, 0));
        address += a->chunk_bytes;
        for (d = a->out->rank; d-- > 0;) {
            at[d] += a->chunk[d];
            if (at[d] < a->out->dims[d])
                break;
            at[d] = 0;
        }
    } while (d < a->out->rank);
    return MUC_OK;
}

static muc_status read_chunks(array *a)
{
    const uint64_t at[MUC_HDF5_MAX_RANK] = { 0 };
    uint64_t bytes = a->type.size;

    if (a->chunk_rank != a->out->rank || a->chunk_rank == 0)
        return muc_hdf5_fail(a->file, MUC_MALFORMED, "chunks of other dimensions than the array");
    for (uint32_t i = 0; i < a->chunk_rank; i++)
        if (a->chunk[i] == 0 || !muc_mul_u64(bytes, a->chunk[i], &bytes) || bytes > UINT32_MAX)
            return muc_hdf5_fail(a->file, MUC_MALFORMED, "chunks of no byte or of 4 GiB");
    a->chunk_bytes = bytes;
    if (a->filter_count > 0) { /* which may make it larger than what is stored */
        MUC_TRY(muc_hdf5_take_memory(a->file, 2 * bytes));
        for (size_t i = 0; i < 2; i++)
            MUC_TRY(MUC_ARENA_NEW(a->file->ctx, a->file->arena, (size_t)bytes, &a->bytes[i]));
    }
    if (a->layout == TREE)
        return muc_hdf5_tree(a->file, a->address, 1, 16 + 8 * a->chunk_rank, read_chunk, a);
    if (a->layout == SINGLE)
        return place_chunk(a, at, a->address, a->filter_count ? a->size : bytes, a->mask);
    return a->filter_count == 0
               ? read_row(a)
               : muc_hdf5_fail(a->file, MUC_MALFORMED, "filters of chunks without sizes");
}

/* ---- messages ---- */

/* the last of the dimensions is the size of an element */
static muc_status read_chunk_dims(array *a, muc_reader *r, uint32_t rank, uint32_t bytes)
{
    uint64_t element;

    if (rank < 1 || rank > MUC_HDF5_MAX_RANK + 1)
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED, "chunks of %" PRIu32 " dimensions",
                             rank - 1);
    a->chunk_rank = rank - 1;
    for (uint32_t i = 0; i + 1 < rank; i++)
        MUC_TRY(muc_read_word(r, bytes, "size of chunks", &a->chunk[i]));
    return muc_read_word(r, bytes, "size of chunks", &element);
}

/* version 4: {flags, rank, bytes of a size, sizes, index, what the index takes, address} */
static muc_status read_indexed(array *a, muc_reader *r)
{
    enum { INDEX_SINGLE = 1, INDEX_IMPLICIT = 2 };
    uint64_t mask;
    uint8_t flags, rank, bytes, index;

    MUC_TRY(muc_read_u8(r, "flags of a layout", &flags));
    MUC_TRY(muc_read_u8(r, "dimensions of chunks", &rank));
    MUC_TRY(muc_read_u8(r, "bytes of a chunk's size", &bytes));
    if (bytes < 1 || bytes > 8)
        return muc_hdf5_fail(a->file, MUC_MALFORMED, "sizes of chunks of %u bytes", bytes);
    MUC_TRY(read_chunk_dims(a, r, rank, bytes));
    MUC_TRY(muc_read_u8(r, "index of chunks", &index));
    if (index != INDEX_SINGLE && index != INDEX_IMPLICIT)
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED,
                             "chunks with an index of kind %u, expected a tree of version 1, one "
                             "chunk, or chunks in a row",
                             index);
    a->layout = index == INDEX_SINGLE ? SINGLE : ROW;
    if (index == INDEX_SINGLE && (flags & 2) != 0) {
        MUC_TRY(muc_hdf5_length(a->file, r, "size of a chunk", &a->size));
        MUC_TRY(muc_read_word(r, 4, "filters of a chunk", &mask));
        a->mask = (uint32_t)mask;
    }
    return muc_hdf5_address(a->file, r, "address of chunks", &a->address);
}

/* version 3 and 4: {version, class, what the class takes} */
static muc_status read_layout(array *a, muc_reader *r)
{
    uint64_t size;
    uint8_t version, kind, rank;

    MUC_TRY(muc_read_u8(r, "version of a layout", &version));
    MUC_TRY(muc_read_u8(r, "class of a layout", &kind));
    if (version < 3 || version > 4)
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED, "a layout of version %u, expected 3 or 4",
                             version);
    switch (kind) {
    case 0:
        a->layout = COMPACT;
        MUC_TRY(muc_read_word(r, 2, "size of a compact array", &size));
        a->compact = *r;
        MUC_TRY(muc_hdf5_skip(r, size, "compact array"));
        a->compact.bytes.size = r->at;
        return MUC_OK;
    case 1:
        a->layout = CONTIGUOUS;
        MUC_TRY(muc_hdf5_address(a->file, r, "address of an array", &a->address));
        return muc_hdf5_length(a->file, r, "size of an array", &a->size);
    case 2:
        if (version == 4)
            return read_indexed(a, r);
        a->layout = TREE;
        MUC_TRY(muc_read_u8(r, "dimensions of chunks", &rank));
        MUC_TRY(muc_hdf5_address(a->file, r, "address of chunks", &a->address));
        return read_chunk_dims(a, r, rank, 4);
    case 3:
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED,
                             "it is a virtual array, whose elements are in other files");
    default:
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED, "a layout of class %u", kind);
    }
}

/* {identifier, [length of name], flags, numbers, [name], numbers..}; the names stand in version 1,
 * or where the identifier is none of the library's own */
static muc_status read_filter(array *a, muc_reader *r, bool first, filter *out)
{
    uint64_t name = 0, flags, count;

    MUC_TRY(muc_read_word(r, 2, "filter", &out->id));
    if (first || out->id >= 256)
        MUC_TRY(muc_read_word(r, 2, "filter", &name));
    MUC_TRY(muc_read_word(r, 2, "filter", &flags));
    MUC_TRY(muc_read_word(r, 2, "filter", &count));
    if (out->id != DEFLATE && out->id != SHUFFLE)
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED,
                             "filter %" PRIu64 ", expected deflate (1) or shuffle (2)", out->id);
    MUC_TRY(muc_hdf5_skip(r, first ? (name + 7) / 8 * 8 : name, "name of a filter"));
    out->element = 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value;

        MUC_TRY(muc_read_word(r, 4, "filter", &value));
        if (i == 0 && out->id == SHUFFLE)
            out->element = value;
    }
    if (out->element == 0)
        return muc_hdf5_fail(a->file, MUC_MALFORMED, "shuffled elements of no byte");
    return muc_hdf5_skip(r, first && count % 2 ? 4 : 0, "padding of a filter");
}

static muc_status read_filters(array *a, muc_reader *r)
{
    uint8_t version, count;

    MUC_TRY(muc_read_u8(r, "version of filters", &version));
    MUC_TRY(muc_read_u8(r, "number of filters", &count));
    if (version < 1 || version > 2 || count > MAX_FILTERS)
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED, "%u filters of version %u, at most %d",
                             count, version, MAX_FILTERS);
    MUC_TRY(muc_hdf5_skip(r, version == 1 ? 6 : 0, "filters"));
    for (uint32_t i = 0; i < count; i++)
        MUC_TRY(read_filter(a, r, version == 1, &a->filters[i]));
    a->filter_count = count;
    return MUC_OK;
}

static muc_status read_message(array *a, muc_hdf5_message *m)
{
    switch (m->type) {
    case MUC_HDF5_DATASPACE:
    case MUC_HDF5_DATATYPE:
    case MUC_HDF5_LAYOUT:
    case MUC_HDF5_FILTERS:
        if (m->shared)
            return muc_hdf5_fail(a->file, MUC_UNSUPPORTED,
                                 "a type or shape that stands elsewhere in the file");
        break;
    case MUC_HDF5_EXTERNAL:
        return muc_hdf5_fail(a->file, MUC_UNSUPPORTED, "its elements are in another file");
    default:
        return MUC_OK;
    }
    if (m->type == MUC_HDF5_DATASPACE) {
        a->has_space = true;
        return muc_hdf5_read_space(a->file, &m->body, a->out);
    }
    if (m->type == MUC_HDF5_DATATYPE) {
        a->has_type = true;
        return muc_hdf5_read_type(a->file, &m->body, &a->type);
    }
    return m->type == MUC_HDF5_LAYOUT ? read_layout(a, &m->body) : read_filters(a, &m->body);
}

/* ---- elements ---- */

static muc_status read_bytes(array *a, uint64_t bytes)
{
    muc_reader r = a->compact;
    const uint8_t *from;

    if (a->layout == CONTIGUOUS) {
        if (a->size < bytes)
            return muc_hdf5_fail(a->file, MUC_MALFORMED,
                                 "%" PRIu64 " bytes are stored, expected %" PRIu64, a->size, bytes);
        MUC_TRY(muc_hdf5_part(a->file, a->address, bytes, "array", &r));
    }
    MUC_TRY(muc_read_span(&r, bytes, "array", &from));
    convert(a, from, a->out->elements, 0);
    a->copied = a->out->elements;
    return MUC_OK;
}

static muc_status read_elements(array *a)
{
    muc_hdf5 *f = a->file;
    uint64_t bytes, stored;

    if (a->layout == MISSING || !a->has_type || !a->has_space)
        return muc_hdf5_fail(f, MUC_MALFORMED, "not an array");
    if (a->type.kind != MUC_HDF5_REAL)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "not of IEEE reals of 16, 32 or 64 bits");
    if (!muc_mul_u64(a->out->elements, sizeof(float), &bytes) ||
        !muc_mul_u64(a->out->elements, a->type.size, &stored))
        return muc_hdf5_fail(f, MUC_MALFORMED, "more elements than can be counted");
    MUC_TRY(muc_hdf5_take_memory(f, bytes));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, (size_t)a->out->elements + 1, &a->data));
    if (a->out->elements > 0)
        MUC_TRY(a->layout == COMPACT || a->layout == CONTIGUOUS ? read_bytes(a, stored)
                                                                : read_chunks(a));
    a->out->data = a->data;
    return a->copied == a->out->elements
               ? MUC_OK /* the library would fill what was never written */
               : muc_hdf5_fail(f, MUC_MALFORMED,
                               "%" PRIu64 " elements are stored, expected %" PRIu64, a->copied,
                               a->out->elements);
}

muc_status muc_hdf5_array_at(muc_hdf5 *file, const char *path, muc_hdf5_array *out)
{
    array a = { .file = file, .out = out };
    muc_hdf5_message message;
    muc_hdf5_walk walk;
    uint64_t object;
    bool more;

    *out = (muc_hdf5_array){ 0 };
    MUC_TRY(muc_hdf5_locate(file, path, &more, &object));
    if (!more)
        return muc_hdf5_fail(file, MUC_MALFORMED, "is missing");
    MUC_TRY(muc_hdf5_walk_begin(file, object, &walk));
    for (;;) {
        MUC_TRY(muc_hdf5_walk_next(&walk, &more, &message));
        if (!more)
            return read_elements(&a);
        MUC_TRY(read_message(&a, &message));
    }
}
