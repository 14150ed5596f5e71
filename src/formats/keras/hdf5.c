/* hdf5.c - reads HDF5 files: superblock, object headers, groups and attributes of strings. */
#include "formats/keras/hdf5.h"

#include <inttypes.h>
#include <string.h>

#include "formats/keras/hdf5_file.h"

/* names: of layers, or of a layer's weights, in all parts of an attribute */
enum { MAX_NAMES = 65536, MAX_PATH = 1024 };
/* what a deflated array may inflate to, as in npz.c */
enum { FREE_BYTES = 64 << 20, BYTES_PER_BYTE = 100 };
/* Steps: entries of groups, messages, chunks. Looking up every array of a file walks each group
 * once for each of its members, which stays far below. */
enum { FREE_STEPS = 1 << 16, STEPS_PER_BYTE = 256, MAX_STEPS = 1 << 28 };
static const uint8_t signature[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };

bool muc_hdf5_probe(muc_bytes bytes)
{
    return bytes.size >= sizeof(signature) && memcmp(bytes.data, signature, sizeof(signature)) == 0;
}

/* ---- budgets and words ---- */

muc_subject muc_hdf5_subject(const muc_hdf5 *f)
{
    return muc_subject_of(f->ctx, f->bytes.name, MUC_NO_OFFSET, "HDF5 object '/%.200s'", f->path);
}

muc_status muc_hdf5_take_memory(muc_hdf5 *f, uint64_t bytes)
{
    if (bytes > f->memory)
        return muc_hdf5_fail(f, MUC_MALFORMED, "%" PRIu64 " bytes, out of proportion to the file",
                             bytes);
    f->memory -= bytes;
    return MUC_OK;
}

muc_status muc_hdf5_take_steps(muc_hdf5 *f, uint64_t steps)
{
    if (steps > f->steps)
        return muc_hdf5_fail(f, MUC_MALFORMED,
                             "more to follow than a file of this size can hold: a cycle?");
    f->steps -= steps;
    return MUC_OK;
}

muc_status muc_hdf5_part(muc_hdf5 *f, uint64_t at, uint64_t size, const char *what, muc_reader *out)
{
    if (at > f->bytes.size || size > f->bytes.size - at)
        return muc_hdf5_fail(f, MUC_MALFORMED,
                             "%s at %" PRIu64 " of %" PRIu64 " bytes, the file has %zu", what, at,
                             size, f->bytes.size);
    *out =
        (muc_reader){ f->ctx, { f->bytes.data, (size_t)(at + size), f->bytes.name }, (size_t)at };
    return MUC_OK;
}

muc_status muc_hdf5_block(muc_hdf5 *f, uint64_t at, const char *name, muc_reader *out)
{
    const uint8_t *found;

    MUC_TRY(muc_hdf5_part(f, at, 4, name, out));
    MUC_TRY(muc_hdf5_part(f, at, f->bytes.size - at, name, out));
    MUC_TRY(muc_read_span(out, 4, name, &found));
    return memcmp(found, name, 4) == 0
               ? MUC_OK
               : muc_hdf5_fail(f, MUC_MALFORMED, "no signature '%s' at %" PRIu64, name, at);
}

muc_status muc_hdf5_address(const muc_hdf5 *f, muc_reader *r, const char *what, uint64_t *out)
{
    MUC_TRY(muc_read_word(r, f->offset_bytes, what, out));
    if (*out == UINT64_MAX >> (64 - 8 * f->offset_bytes))
        *out = MUC_HDF5_NOWHERE;
    return MUC_OK;
}

muc_status muc_hdf5_length(const muc_hdf5 *f, muc_reader *r, const char *what, uint64_t *out)
{
    return muc_read_word(r, f->length_bytes, what, out);
}

muc_status muc_hdf5_skip(muc_reader *r, uint64_t bytes, const char *what)
{
    const uint8_t *skipped;

    return muc_read_span(r, bytes, what, &skipped);
}

/* ---- the superblock ---- */

static muc_status read_sizes(muc_hdf5 *f, muc_reader *r)
{
    uint8_t offset, length;

    MUC_TRY(muc_read_u8(r, "size of offsets", &offset));
    MUC_TRY(muc_read_u8(r, "size of lengths", &length));
    if ((offset != 2 && offset != 4 && offset != 8) || (length != 2 && length != 4 && length != 8))
        return muc_read_fail(r, "offsets of %u bytes and lengths of %u, expected 2, 4 or 8", offset,
                             length);
    f->offset_bytes = offset;
    f->length_bytes = length;
    return MUC_OK;
}

/* base address, then others up to that of the root group: its header's in versions 2 and 3, else
 * in its symbol table entry */
static muc_status read_root(muc_hdf5 *f, muc_reader *r, uint32_t others)
{
    uint64_t address;

    MUC_TRY(muc_hdf5_address(f, r, "base address", &address));
    if (address != 0)
        return muc_read_fail(r, "a base address other than 0");
    for (uint32_t i = 0; i < others; i++)
        MUC_TRY(muc_hdf5_address(f, r, "superblock", &address));
    return muc_hdf5_address(f, r, "root group", &f->root);
}

static muc_status read_superblock(muc_hdf5 *f)
{
    muc_reader r = muc_reader_of(f->ctx, f->bytes);
    uint8_t version;

    MUC_TRY(muc_hdf5_skip(&r, sizeof(signature), "signature"));
    MUC_TRY(muc_read_u8(&r, "version of the superblock", &version));
    if (version > 3)
        return muc_fail(f->ctx, MUC_UNSUPPORTED, f->bytes.name, 8,
                        "HDF5 superblock of version %u, expected 0 to 3", version);
    if (version >= 2) {
        MUC_TRY(read_sizes(f, &r));
        MUC_TRY(muc_hdf5_skip(&r, 1, "flags"));
        MUC_TRY(read_root(f, &r, 2)); /* extension, end of file */
        return muc_hdf5_check(f, 0, r.at, "superblock");
    }
    MUC_TRY(muc_hdf5_skip(&r, 4, "versions"));
    MUC_TRY(read_sizes(f, &r));
    MUC_TRY(muc_hdf5_skip(&r, version == 1 ? 13 : 9, "ranks of trees"));
    /* free space, end of file, driver, and the name in the symbol table entry */
    return read_root(f, &r, 4);
}

muc_status muc_hdf5_open(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_hdf5 **out)
{
    uint64_t steps = FREE_STEPS + (uint64_t)STEPS_PER_BYTE * bytes.size;
    muc_hdf5 *f;

    if (!muc_hdf5_probe(bytes))
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 0, "no HDF5 signature");
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &f));
    *f = (muc_hdf5){ .ctx = ctx, .arena = arena, .bytes = bytes, .path = "" };
    f->memory = FREE_BYTES + (uint64_t)BYTES_PER_BYTE * bytes.size;
    f->steps = steps < MAX_STEPS ? steps : MAX_STEPS;
    *out = f;
    return read_superblock(f);
}

/* ---- messages ---- */

static muc_status begin_v1(muc_hdf5_walk *w, muc_reader *r)
{
    uint64_t count, size;

    MUC_TRY(muc_hdf5_skip(r, 2, "object header"));
    MUC_TRY(muc_read_word(r, 2, "number of messages", &count));
    MUC_TRY(muc_hdf5_skip(r, 4, "reference count"));
    MUC_TRY(muc_read_word(r, 4, "size of the header", &size));
    MUC_TRY(muc_hdf5_skip(r, 4, "object header"));
    w->version = 1;
    w->left = count;
    return muc_hdf5_part(w->file, r->at, size, "object header", &w->at);
}

static muc_status begin_v2(muc_hdf5_walk *w, muc_reader *r)
{
    uint64_t begin = r->at, size;
    uint8_t version, flags;

    MUC_TRY(muc_hdf5_skip(r, 4, "OHDR"));
    MUC_TRY(muc_read_u8(r, "version of the object header", &version));
    MUC_TRY(muc_read_u8(r, "flags of the object header", &flags));
    if (version != 2)
        return muc_hdf5_fail(w->file, MUC_UNSUPPORTED, "object header of version %u", version);
    MUC_TRY(muc_hdf5_skip(r, (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0), "object header"));
    MUC_TRY(muc_read_word(r, 1u << (flags & 3), "size of the header", &size));
    w->version = 2;
    w->ordered = (flags & 4) != 0;
    if (size > w->file->bytes.size)
        return muc_hdf5_fail(w->file, MUC_MALFORMED, "an object header of %" PRIu64 " bytes", size);
    MUC_TRY(muc_hdf5_check(w->file, begin, r->at - begin + size, "object header"));
    return muc_hdf5_part(w->file, r->at, size, "object header", &w->at);
}

muc_status muc_hdf5_walk_begin(muc_hdf5 *f, uint64_t object, muc_hdf5_walk *out)
{
    muc_reader r;

    *out = (muc_hdf5_walk){ .file = f };
    MUC_TRY(muc_hdf5_part(f, object, 4, "object header", &r));
    MUC_TRY(muc_hdf5_part(f, object, f->bytes.size - object, "object header", &r));
    if (memcmp(f->bytes.data + object, "OHDR", 4) == 0)
        return begin_v2(out, &r);
    if (f->bytes.data[object] != 1)
        return muc_hdf5_fail(f, MUC_MALFORMED, "no object header at %" PRIu64, object);
    return begin_v1(out, &r);
}

static muc_status add_continuation(muc_hdf5_walk *w, muc_reader *r)
{
    if (w->block_count == MUC_HDF5_MAX_BLOCKS)
        return muc_hdf5_fail(w->file, MUC_UNSUPPORTED, "an object header of more than %d blocks",
                             MUC_HDF5_MAX_BLOCKS);
    MUC_TRY(muc_hdf5_address(w->file, r, "continuation", &w->starts[w->block_count]));
    return muc_hdf5_length(w->file, r, "continuation", &w->sizes[w->block_count++]);
}

/* the next block, or none */
static muc_status next_block(muc_hdf5_walk *w, bool *more)
{
    uint64_t size, at;
    const uint8_t *letters;

    *more = w->block < w->block_count;
    if (!*more)
        return MUC_OK;
    at = w->starts[w->block];
    size = w->sizes[w->block++];
    MUC_TRY(muc_hdf5_part(w->file, at, size, "continuation", &w->at));
    if (w->version == 1)
        return MUC_OK;
    MUC_TRY(muc_read_span(&w->at, 4, "OCHK", &letters));
    if (memcmp(letters, "OCHK", 4) != 0 || size < 8)
        return muc_hdf5_fail(w->file, MUC_MALFORMED, "no continuation at %" PRIu64, at);
    w->at.bytes.size -= 4; /* the checksum */
    return muc_hdf5_check(w->file, at, size - 4, "continuation");
}

static muc_status read_message(muc_hdf5_walk *w, muc_hdf5_message *out)
{
    uint64_t type, size, flags;

    MUC_TRY(muc_hdf5_take_steps(w->file, 1));
    MUC_TRY(muc_read_word(&w->at, w->version == 1 ? 2 : 1, "type of a message", &type));
    MUC_TRY(muc_read_word(&w->at, 2, "size of a message", &size));
    MUC_TRY(muc_read_word(&w->at, 1, "flags of a message", &flags));
    MUC_TRY(muc_hdf5_skip(&w->at, w->version == 1 ? 3 : w->ordered ? 2 : 0, "message"));
    out->type = (uint32_t)type;
    out->shared = (flags & 2) != 0;
    out->body = w->at;
    MUC_TRY(muc_hdf5_skip(&w->at, size, "message"));
    out->body.bytes.size = w->at.at;
    return MUC_OK;
}

muc_status muc_hdf5_walk_next(muc_hdf5_walk *w, bool *more, muc_hdf5_message *out)
{
    const size_t head = w->version == 1 ? 8 : w->ordered ? 6 : 4;

    for (;;) {
        *more = true;
        while (*more && muc_reader_left(&w->at) < head) /* a gap may end a block */
            MUC_TRY(next_block(w, more));
        if (w->version == 1 && w->left-- == 0)
            *more = false;
        if (!*more)
            return MUC_OK;
        MUC_TRY(read_message(w, out));
        if (out->type != MUC_HDF5_CONTINUATION)
            return MUC_OK;
        MUC_TRY(add_continuation(w, &out->body));
    }
}

/* ---- groups ---- */

enum { SYMBOLIC = 2 }; /* kind of a symbol table entry */

/* One name sought in one group. */
typedef struct search {
    const char *name;
    size_t length;
    muc_reader names; /* of a symbol table: its heap's data */
    bool found;
    uint64_t address;
} search;

static muc_status refuse_link(const muc_hdf5 *f, const char *kind)
{
    return muc_hdf5_fail(f, MUC_UNSUPPORTED, "%s link, expected an object of this file", kind);
}

static bool names_it(const search *s, uint64_t offset)
{
    size_t left = muc_reader_left(&s->names);

    return offset < left && s->length < left - offset &&
           memcmp(s->names.bytes.data + s->names.at + offset, s->name, s->length + 1) == 0;
}

static muc_status search_node(void *arg, muc_hdf5 *f, const uint8_t *key, uint64_t address)
{
    search *s = arg;
    uint64_t count, name, object, kind;
    muc_reader r;

    (void)key;
    MUC_TRY(muc_hdf5_block(f, address, "SNOD", &r));
    MUC_TRY(muc_hdf5_skip(&r, 2, "SNOD"));
    MUC_TRY(muc_read_word(&r, 2, "number of symbols", &count));
    MUC_TRY(muc_hdf5_take_steps(f, count));
    for (uint64_t i = 0; i < count; i++) {
        MUC_TRY(muc_read_word(&r, f->offset_bytes, "name of a symbol", &name));
        MUC_TRY(muc_hdf5_address(f, &r, "address of a symbol", &object));
        MUC_TRY(muc_read_word(&r, 4, "kind of a symbol", &kind));
        MUC_TRY(muc_hdf5_skip(&r, 20, "symbol"));
        if (s->found || !names_it(s, name))
            continue;
        if (kind == SYMBOLIC)
            return refuse_link(f, "a soft");
        s->found = true;
        s->address = object;
    }
    return MUC_OK;
}

static muc_status search_table(muc_hdf5 *f, muc_reader *r, search *s)
{
    uint64_t tree, heap, size, data;
    muc_reader local;

    MUC_TRY(muc_hdf5_address(f, r, "symbol table", &tree));
    MUC_TRY(muc_hdf5_address(f, r, "symbol table", &heap));
    MUC_TRY(muc_hdf5_block(f, heap, "HEAP", &local));
    MUC_TRY(muc_hdf5_skip(&local, 4, "HEAP"));
    MUC_TRY(muc_hdf5_length(f, &local, "size of a heap", &size));
    MUC_TRY(muc_hdf5_skip(&local, f->length_bytes, "HEAP"));
    MUC_TRY(muc_hdf5_address(f, &local, "data of a heap", &data));
    MUC_TRY(muc_hdf5_part(f, data, size, "data of a heap", &s->names));
    return muc_hdf5_tree(f, tree, 0, f->length_bytes, search_node, s);
}

/* a link message: {1, flags, [kind], [order], [character set], length, name, target} */
static muc_status search_link(void *arg, muc_hdf5 *f, muc_reader *r)
{
    search *s = arg;
    uint64_t length;
    uint8_t version, flags, kind = 0;
    const uint8_t *name;

    MUC_TRY(muc_read_u8(r, "version of a link", &version));
    MUC_TRY(muc_read_u8(r, "flags of a link", &flags));
    if (version != 1)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "a link of version %u", version);
    if (flags & 8)
        MUC_TRY(muc_read_u8(r, "kind of a link", &kind));
    MUC_TRY(muc_hdf5_skip(r, (flags & 4 ? 8 : 0) + (flags & 0x10 ? 1 : 0), "link"));
    MUC_TRY(muc_read_word(r, 1u << (flags & 3), "length of a name", &length));
    MUC_TRY(muc_read_span(r, length, "name of a link", &name));
    if (s->found || length != s->length || memcmp(name, s->name, s->length) != 0)
        return MUC_OK;
    if (kind != 0)
        return refuse_link(f, kind == 1 ? "a soft" : kind == 64 ? "an external" : "an unknown");
    s->found = true;
    return muc_hdf5_address(f, r, "target of a link", &s->address);
}

enum { LINKS = 5, ATTRIBUTES = 8 }; /* kinds of version 2 trees */

/* link or attribute info: {0, flags, [largest order], heap, tree of names, ...} */
static muc_status walk_info(muc_hdf5 *f, muc_reader *r, uint32_t kind, muc_hdf5_dense_leaf *leaf,
                            void *arg)
{
    uint32_t order_bytes = kind == LINKS ? 8 : 2;
    uint64_t heap, tree;
    uint8_t version, flags;

    MUC_TRY(muc_read_u8(r, "version of an info message", &version));
    MUC_TRY(muc_read_u8(r, "flags of an info message", &flags));
    MUC_TRY(muc_hdf5_skip(r, flags & 1 ? order_bytes : 0, "info message"));
    MUC_TRY(muc_hdf5_address(f, r, "heap of names", &heap));
    MUC_TRY(muc_hdf5_address(f, r, "tree of names", &tree));
    return heap == MUC_HDF5_NOWHERE ? MUC_OK : muc_hdf5_dense(f, heap, tree, kind, leaf, arg);
}

static muc_status search_group(muc_hdf5 *f, uint64_t group, search *s)
{
    muc_hdf5_walk walk;
    muc_hdf5_message message;
    bool more;

    MUC_TRY(muc_hdf5_walk_begin(f, group, &walk));
    for (;;) {
        MUC_TRY(muc_hdf5_walk_next(&walk, &more, &message));
        if (!more || s->found)
            return MUC_OK;
        if (message.type == MUC_HDF5_SYMBOL_TABLE)
            MUC_TRY(search_table(f, &message.body, s));
        else if (message.type == MUC_HDF5_LINK)
            MUC_TRY(search_link(s, f, &message.body));
        else if (message.type == MUC_HDF5_LINK_INFO)
            MUC_TRY(walk_info(f, &message.body, LINKS, search_link, s));
    }
}

muc_status muc_hdf5_locate(muc_hdf5 *f, const char *path, bool *found, uint64_t *address)
{
    f->path = path;
    *found = true;
    *address = f->root;
    if (strlen(path) >= MAX_PATH)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "a path of more than %d bytes", MAX_PATH - 1);
    while (*found && *path) {
        size_t length = strcspn(path, "/");
        char name[MAX_PATH];
        search s = { .name = name, .length = length };

        memcpy(name, path, length);
        name[length] = '\0';
        path += length + (path[length] == '/');
        if (length == 0) /* "a//b", and a slash at either end */
            continue;
        MUC_TRY(search_group(f, *address, &s));
        *found = s.found;
        *address = s.address;
    }
    return MUC_OK;
}

muc_status muc_hdf5_exists(muc_hdf5 *file, const char *path, bool *out)
{
    uint64_t address;

    return muc_hdf5_locate(file, path, out, &address);
}

/* ---- attributes ---- */

/* One attribute of strings sought in one object. */
typedef struct names {
    const char *wanted;
    bool found;
    const char **items;
    size_t count, capacity;
} names;

static muc_status add_name(muc_hdf5 *f, names *n, const uint8_t *text, size_t size)
{
    const uint8_t *end = memchr(text, '\0', size);

    if (n->count == MAX_NAMES)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "an attribute of more than %d strings", MAX_NAMES);
    if (end)
        size = (size_t)(end - text);
    MUC_TRY(muc_hdf5_take_memory(f, size + sizeof(*n->items)));
    MUC_TRY(MUC_ARENA_GROW(f->ctx, f->arena, n->count + 1, &n->capacity, &n->items));
    return muc_arena_string(f->ctx, f->arena, (const char *)text, size, &n->items[n->count++]);
}

/* {length, address of a collection, number in it} */
static muc_status add_referred(muc_hdf5 *f, names *n, muc_reader *r)
{
    uint64_t length, address, index;
    const uint8_t *text;
    muc_reader object;

    MUC_TRY(muc_read_word(r, 4, "string", &length));
    MUC_TRY(muc_hdf5_address(f, r, "string", &address));
    MUC_TRY(muc_read_word(r, 4, "string", &index));
    MUC_TRY(muc_hdf5_heap_object(f, address, index, &object));
    MUC_TRY(muc_read_span(&object, length, "string of a heap", &text));
    return add_name(f, n, text, (size_t)length);
}

static muc_status add_strings(muc_hdf5 *f, names *n, muc_reader *r, const muc_hdf5_type *type,
                              uint64_t count)
{
    if (count == 0) /* which h5py stores as an empty array of f64 */
        return MUC_OK;
    if (count > MAX_NAMES)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "an attribute of more than %d strings", MAX_NAMES);
    if (type->kind == MUC_HDF5_REFERRED) {
        for (uint64_t i = 0; i < count; i++)
            MUC_TRY(add_referred(f, n, r));
        return MUC_OK;
    }
    if (type->kind != MUC_HDF5_STRING)
        return muc_hdf5_fail(f, MUC_MALFORMED, "attribute '%.100s' is not of strings", n->wanted);
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *text;

        MUC_TRY(muc_read_span(r, type->size, "string of an attribute", &text));
        MUC_TRY(add_name(f, n, text, type->size));
    }
    return MUC_OK;
}

/* the part of an attribute of the given size, which version 1 pads to a multiple of 8 */
static muc_status attribute_part(muc_reader *r, uint64_t size, bool padded, muc_reader *out)
{
    *out = *r;
    MUC_TRY(muc_hdf5_skip(r, size, "attribute"));
    out->bytes.size = r->at;
    return muc_hdf5_skip(r, padded ? (8 - size % 8) % 8 : 0, "padding of an attribute");
}

/* {version, flags, sizes of name, type and space, [character set], name, type, space, data} */
static muc_status read_attribute(void *arg, muc_hdf5 *f, muc_reader *r)
{
    names *n = arg;
    size_t length = strlen(n->wanted);
    uint64_t name_size, type_size, space_size;
    uint8_t version, flags;
    muc_reader name, type_part, space_part;
    muc_hdf5_type type;
    muc_hdf5_array space;

    MUC_TRY(muc_read_u8(r, "version of an attribute", &version));
    MUC_TRY(muc_read_u8(r, "flags of an attribute", &flags));
    if (version < 1 || version > 3)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "an attribute of version %u", version);
    MUC_TRY(muc_read_word(r, 2, "attribute", &name_size));
    MUC_TRY(muc_read_word(r, 2, "attribute", &type_size));
    MUC_TRY(muc_read_word(r, 2, "attribute", &space_size));
    MUC_TRY(muc_hdf5_skip(r, version == 3, "character set of an attribute"));
    MUC_TRY(attribute_part(r, name_size, version == 1, &name));
    if (muc_reader_left(&name) != length + 1 ||
        memcmp(name.bytes.data + name.at, n->wanted, length + 1) != 0)
        return MUC_OK;
    if (version > 1 && (flags & 3) != 0)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "attribute '%.100s' of a shared type", n->wanted);
    MUC_TRY(attribute_part(r, type_size, version == 1, &type_part));
    MUC_TRY(attribute_part(r, space_size, version == 1, &space_part));
    MUC_TRY(muc_hdf5_read_type(f, &type_part, &type));
    MUC_TRY(muc_hdf5_read_space(f, &space_part, &space));
    n->found = true;
    return add_strings(f, n, r, &type, space.elements);
}

static muc_status find_attribute(muc_hdf5 *f, uint64_t object, const char *wanted, names *n)
{
    muc_hdf5_walk walk;
    muc_hdf5_message message;
    bool more;

    n->wanted = wanted;
    n->found = false;
    MUC_TRY(muc_hdf5_walk_begin(f, object, &walk));
    for (;;) {
        MUC_TRY(muc_hdf5_walk_next(&walk, &more, &message));
        if (!more || n->found)
            return MUC_OK;
        if (message.type == MUC_HDF5_ATTRIBUTE && !message.shared)
            MUC_TRY(read_attribute(n, f, &message.body));
        else if (message.type == MUC_HDF5_ATTRIBUTE_INFO)
            MUC_TRY(walk_info(f, &message.body, ATTRIBUTES, read_attribute, n));
    }
}

muc_status muc_hdf5_strings(muc_hdf5 *file, const char *path, const char *attribute, bool *found,
                            const char *const **out, size_t *count)
{
    names n = { 0 };
    uint64_t object;

    MUC_TRY(muc_hdf5_locate(file, path, found, &object));
    if (!*found)
        return muc_hdf5_fail(file, MUC_MALFORMED, "is missing");
    MUC_TRY(find_attribute(file, object, attribute, &n));
    *found = n.found;
    for (unsigned part = 0; part == 0 ? !n.found : n.found; part++) {
        const char *name;

        MUC_TRY(muc_arena_format(file->ctx, file->arena, &name, "%s%u", attribute, part));
        MUC_TRY(find_attribute(file, object, name, &n));
        *found = *found || n.found;
    }
    *out = n.items;
    *count = n.count;
    return MUC_OK;
}
