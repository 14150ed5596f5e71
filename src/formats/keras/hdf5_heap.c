/* hdf5_heap.c - walks B-trees of versions 1 and 2, and reads objects of global and fractal heaps.
 */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/hdf5_file.h"

/* ---- trees of version 1 ---- */

typedef struct tree {
    muc_hdf5 *file;
    uint32_t kind, key_bytes;
    muc_hdf5_leaf *leaf;
    void *arg;
} tree;

/* {kind, level, used, left, right, key 0, child 0, key 1, ..}; levels fall on the way to a leaf, so
 * that the way is at most 256 long */
static muc_status visit_node(const tree *t, uint64_t address, uint32_t level_above)
{
    muc_hdf5 *f = t->file;
    uint64_t used, child;
    uint8_t kind, level;
    const uint8_t *key;
    muc_reader r;

    MUC_TRY(muc_hdf5_block(f, address, "TREE", &r));
    MUC_TRY(muc_read_u8(&r, "kind of a tree", &kind));
    MUC_TRY(muc_read_u8(&r, "level of a tree", &level));
    MUC_TRY(muc_read_word(&r, 2, "entries of a tree", &used));
    if (kind != t->kind || level >= level_above)
        return muc_hdf5_fail(f, MUC_MALFORMED,
                             "a tree of kind %u and level %u, expected kind %" PRIu32
                             " below level %" PRIu32,
                             kind, level, t->kind, level_above);
    MUC_TRY(muc_hdf5_skip(&r, 2 * (uint64_t)f->offset_bytes, "TREE"));
    MUC_TRY(muc_hdf5_take_steps(f, used + 1));
    for (uint64_t i = 0; i < used; i++) {
        MUC_TRY(muc_read_span(&r, t->key_bytes, "key of a tree", &key));
        MUC_TRY(muc_hdf5_address(f, &r, "child of a tree", &child));
        MUC_TRY(level == 0 ? t->leaf(t->arg, f, key, child) : visit_node(t, child, level));
    }
    return MUC_OK;
}

muc_status muc_hdf5_tree(muc_hdf5 *f, uint64_t address, uint32_t kind, uint32_t key_bytes,
                         muc_hdf5_leaf *leaf, void *arg)
{
    const tree t = { f, kind, key_bytes, leaf, arg };

    return visit_node(&t, address, 256);
}

/* ---- global heaps ---- */

muc_status muc_hdf5_heap_object(muc_hdf5 *f, uint64_t address, uint64_t index, muc_reader *out)
{
    uint64_t size, number;
    muc_reader r;

    MUC_TRY(muc_hdf5_block(f, address, "GCOL", &r));
    MUC_TRY(muc_hdf5_skip(&r, 4, "GCOL"));
    MUC_TRY(muc_hdf5_length(f, &r, "size of a global heap", &size));
    MUC_TRY(muc_hdf5_part(f, address, size, "global heap", out));
    if (out->bytes.size < r.at)
        return muc_hdf5_fail(f, MUC_MALFORMED,
                             "the global heap at %" PRIu64 " is %" PRIu64
                             " bytes long, which is less than its head",
                             address, size);
    r.bytes.size = out->bytes.size;
    /* {number, references, 0, size, bytes to a multiple of 8}; number 0 is what is free */
    while (muc_reader_left(&r) >= 8 + f->length_bytes) {
        MUC_TRY(muc_hdf5_take_steps(f, 1));
        MUC_TRY(muc_read_word(&r, 2, "object of a global heap", &number));
        MUC_TRY(muc_hdf5_skip(&r, 6, "object of a global heap"));
        MUC_TRY(muc_hdf5_length(f, &r, "object of a global heap", &size));
        if (number == 0)
            break;
        *out = r;
        MUC_TRY(muc_hdf5_skip(&r, size, "object of a global heap"));
        out->bytes.size = r.at;
        if (number == index)
            return MUC_OK;
        MUC_TRY(muc_hdf5_skip(&r, (8 - size % 8) % 8, "padding of a global heap"));
    }
    return muc_hdf5_fail(f, MUC_MALFORMED, "the global heap at %" PRIu64 " has no object %" PRIu64,
                         address, index);
}

/* ---- fractal heaps ---- */

/* Objects lie in a space of addresses of its own. Rows of table width blocks cover it: rows 0 and 1
 * of blocks of the starting size, each further one of twice the size; a block is direct up to the
 * largest direct size, else an indirect block, which has rows of its own. */
typedef struct heap {
    muc_hdf5 *file;
    uint64_t width, start, largest_direct; /* bytes are powers of two */
    uint32_t offset_bytes, size_bytes, id_bytes;
    uint64_t root, root_rows; /* rows 0: the root is a direct block */
} heap;

static uint32_t bytes_for(uint64_t value)
{
    uint32_t bytes = 1;

    while (bytes < 8 && value >> 8 * bytes)
        bytes++;
    return bytes;
}

static bool is_power(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static muc_status open_heap(muc_hdf5 *f, uint64_t address, heap *out)
{
    uint64_t id, filters, flags, managed, bits, rows;
    muc_reader r;

    *out = (heap){ .file = f };
    MUC_TRY(muc_hdf5_block(f, address, "FRHP", &r));
    MUC_TRY(muc_hdf5_skip(&r, 1, "FRHP"));
    MUC_TRY(muc_read_word(&r, 2, "length of a heap's identifiers", &id));
    MUC_TRY(muc_read_word(&r, 2, "filters of a heap", &filters));
    MUC_TRY(muc_read_word(&r, 1, "flags of a heap", &flags));
    MUC_TRY(muc_read_word(&r, 4, "largest managed object", &managed));
    /* huge objects, free space, counts */
    MUC_TRY(
        muc_hdf5_skip(&r, 10 * (uint64_t)f->length_bytes + 2 * (uint64_t)f->offset_bytes, "FRHP"));
    MUC_TRY(muc_read_word(&r, 2, "width of a heap's table", &out->width));
    MUC_TRY(muc_hdf5_length(f, &r, "size of a heap's first block", &out->start));
    MUC_TRY(muc_hdf5_length(f, &r, "size of a heap's largest block", &out->largest_direct));
    MUC_TRY(muc_read_word(&r, 2, "bits of a heap's addresses", &bits));
    MUC_TRY(muc_hdf5_skip(&r, 2, "FRHP"));
    MUC_TRY(muc_hdf5_address(f, &r, "root of a heap", &out->root));
    MUC_TRY(muc_read_word(&r, 2, "rows of a heap's root", &rows));
    if (filters != 0)
        return muc_hdf5_fail(f, MUC_UNSUPPORTED, "a heap with filters");
    if (bits < 1 || bits > 64 || !is_power(out->start) || !is_power(out->largest_direct) ||
        out->start > out->largest_direct || out->largest_direct > UINT32_MAX ||
        !is_power(out->width) || id < 1 || id > 64)
        return muc_hdf5_fail(f, MUC_MALFORMED, "a heap of impossible sizes");
    out->root_rows = rows;
    out->id_bytes = (uint32_t)id;
    out->offset_bytes = (uint32_t)(bits + 7) / 8;
    out->size_bytes = bytes_for(managed < out->largest_direct ? managed : out->largest_direct);
    return MUC_OK;
}

static uint64_t row_block(const heap *h, uint64_t row)
{
    return row < 2 ? h->start : h->start << (row - 1);
}

/* rows of direct blocks in any indirect block */
static uint64_t direct_rows(const heap *h)
{
    uint64_t rows = 1;

    while (row_block(h, rows) < h->largest_direct)
        rows++;
    return rows + 1;
}

/* The entry of an indirect block of `rows` rows, which covers the heap from *base, that holds
 * offset; *base becomes where the entry's block begins, *row its row. */
static muc_status entry_for(const heap *h, uint64_t rows, uint64_t offset, uint64_t *base,
                            uint64_t *row, uint64_t *entry)
{
    uint64_t left = offset - *base;

    for (*row = 0; *row < rows && *row < 40; ++*row) {
        uint64_t block = row_block(h, *row), all;

        if (!muc_mul_u64(block, h->width, &all))
            break;
        if (left < all) {
            *entry = *row * h->width + left / block;
            *base += left / block * block;
            return MUC_OK;
        }
        left -= all;
        *base += all;
    }
    return muc_hdf5_fail(h->file, MUC_MALFORMED, "an object lies outside of its heap");
}

/* rows of the indirect block that stands in a row */
static uint64_t rows_below(const heap *h, uint64_t row)
{
    uint64_t rows = 1, size = row_block(h, row);

    while (rows < 40 && row_block(h, rows) * h->width < size)
        rows++;
    return rows;
}

/* bytes of the heap's space from offset, in the direct block that holds them */
static muc_status heap_bytes(const heap *h, uint64_t offset, uint64_t size, muc_reader *out)
{
    muc_hdf5 *f = h->file;
    uint64_t address = h->root, rows = h->root_rows, base = 0, row = 0, entry = 0, block = h->start;
    uint64_t direct = direct_rows(h);
    muc_reader r;

    for (bool indirect = rows > 0; indirect; indirect = row >= direct) {
        MUC_TRY(muc_hdf5_take_steps(f, 1));
        if (indirect && row >= direct)
            rows = rows_below(h, row);
        MUC_TRY(entry_for(h, rows, offset, &base, &row, &entry));
        MUC_TRY(muc_hdf5_block(f, address, "FHIB", &r));
        MUC_TRY(muc_hdf5_skip(&r, 1 + f->offset_bytes + h->offset_bytes, "FHIB"));
        MUC_TRY(muc_hdf5_skip(&r, entry * f->offset_bytes, "FHIB"));
        MUC_TRY(muc_hdf5_address(f, &r, "block of a heap", &address));
        block = row_block(h, row);
    }
    MUC_TRY(muc_hdf5_block(f, address, "FHDB", &r));
    if (offset - base > block || size > block - (offset - base))
        return muc_hdf5_fail(f, MUC_MALFORMED, "an object lies outside of its heap's block");
    return muc_hdf5_part(f, address + (offset - base), size, "object of a heap", out);
}

/* {kind, offset, length}; kinds 1 and 2 are objects that are too large, or tiny ones */
static muc_status heap_message(const heap *h, muc_reader *id, muc_reader *out)
{
    uint64_t kind, offset, size;

    MUC_TRY(muc_read_word(id, 1, "identifier of a heap", &kind));
    if ((kind & 0xf0) != 0)
        return muc_hdf5_fail(h->file, MUC_UNSUPPORTED,
                             "a link or an attribute that is stored apart: larger than its heap "
                             "manages");
    MUC_TRY(muc_read_word(id, h->offset_bytes, "identifier of a heap", &offset));
    MUC_TRY(muc_read_word(id, h->size_bytes, "identifier of a heap", &size));
    return heap_bytes(h, offset, size, out);
}

/* ---- trees of version 2 ---- */

enum { MAX_DEPTH = 16, NODE_HEAD = 10 }; /* signature, version, kind, checksum */

typedef struct tree2 {
    heap heap;
    uint32_t kind, record_bytes, id_at;               /* id_at: of the identifier in a record */
    uint32_t count_bytes, total_bytes[MAX_DEPTH + 1]; /* of a child's records, and of all below */
    muc_hdf5_dense_leaf *leaf;
    void *arg;
} tree2;

static muc_status visit_record(const tree2 *t, muc_reader *r)
{
    muc_reader record = *r, message;

    MUC_TRY(muc_hdf5_take_steps(t->heap.file, 1));
    MUC_TRY(muc_hdf5_skip(r, t->record_bytes, "record of a tree"));
    record.bytes.size = r->at;
    MUC_TRY(muc_hdf5_skip(&record, t->id_at, "record of a tree"));
    MUC_TRY(heap_message(&t->heap, &record, &message));
    return t->leaf(t->arg, t->heap.file, &message);
}

static muc_status visit_node2(const tree2 *t, uint64_t address, uint64_t count, uint32_t depth)
{
    muc_hdf5 *f = t->heap.file;
    uint64_t child, below, all;
    uint8_t kind;
    muc_reader r;

    MUC_TRY(muc_hdf5_take_steps(f, 1));
    MUC_TRY(muc_hdf5_block(f, address, depth ? "BTIN" : "BTLF", &r));
    MUC_TRY(muc_hdf5_skip(&r, 1, "version of a tree"));
    MUC_TRY(muc_read_u8(&r, "kind of a tree", &kind));
    if (kind != t->kind)
        return muc_hdf5_fail(f, MUC_MALFORMED, "a tree of kind %u, expected %" PRIu32, kind,
                             t->kind);
    for (uint64_t i = 0; i < count; i++)
        MUC_TRY(visit_record(t, &r));
    for (uint64_t i = 0; depth > 0 && i <= count; i++) {
        MUC_TRY(muc_hdf5_address(f, &r, "child of a tree", &child));
        MUC_TRY(muc_read_word(&r, t->count_bytes, "records of a child", &below));
        if (depth > 1)
            MUC_TRY(muc_read_word(&r, t->total_bytes[depth - 1], "records below a child", &all));
        MUC_TRY(visit_node2(t, child, below, depth - 1));
    }
    return MUC_OK;
}

/* A pointer to a child has its number of records, in as many bytes as a leaf's most take, and from
 * depth 2 on that of all records below, in as many as their most takes. */
static void measure_nodes(const muc_hdf5 *f, tree2 *t, uint64_t node_bytes, uint32_t depth)
{
    uint64_t most = (node_bytes - NODE_HEAD) / t->record_bytes, all = most;

    t->count_bytes = bytes_for(most);
    t->total_bytes[0] = 0; /* a leaf's records are all there is */
    for (uint32_t d = 1; d <= depth; d++) {
        uint64_t pointer = f->offset_bytes + t->count_bytes + t->total_bytes[d - 1], here;

        here = node_bytes - NODE_HEAD < pointer
                   ? 0
                   : (node_bytes - NODE_HEAD - pointer) / (t->record_bytes + pointer);
        if (!muc_mul_u64(all, here + 1, &all) || !muc_add_u64(all, here, &all))
            all = UINT64_MAX;
        t->total_bytes[d] = bytes_for(all);
    }
}

muc_status muc_hdf5_dense(muc_hdf5 *f, uint64_t heap_address, uint64_t tree_address, uint32_t kind,
                          muc_hdf5_dense_leaf *leaf, void *arg)
{
    tree2 t = { .kind = kind, .id_at = kind == 5 ? 4 : 0, .leaf = leaf, .arg = arg };
    uint64_t node_bytes, record_bytes, depth, root, count;
    uint8_t found;
    muc_reader r;

    MUC_TRY(open_heap(f, heap_address, &t.heap));
    MUC_TRY(muc_hdf5_block(f, tree_address, "BTHD", &r));
    MUC_TRY(muc_hdf5_skip(&r, 1, "version of a tree"));
    MUC_TRY(muc_read_u8(&r, "kind of a tree", &found));
    MUC_TRY(muc_read_word(&r, 4, "size of a tree's nodes", &node_bytes));
    MUC_TRY(muc_read_word(&r, 2, "size of a tree's records", &record_bytes));
    MUC_TRY(muc_read_word(&r, 2, "depth of a tree", &depth));
    MUC_TRY(muc_hdf5_skip(&r, 2, "BTHD"));
    MUC_TRY(muc_hdf5_address(f, &r, "root of a tree", &root));
    MUC_TRY(muc_read_word(&r, 2, "records of a tree's root", &count));
    if (found != kind || depth > MAX_DEPTH || node_bytes < NODE_HEAD + record_bytes ||
        record_bytes < t.id_at + t.heap.id_bytes)
        return muc_hdf5_fail(f, MUC_MALFORMED,
                             "a tree of kind %u, depth %" PRIu64 " and records of %" PRIu64
                             " bytes",
                             found, depth, record_bytes);
    if (count == 0)
        return MUC_OK;
    t.record_bytes = (uint32_t)record_bytes;
    measure_nodes(f, &t, node_bytes, (uint32_t)depth);
    return visit_node2(&t, root, count, (uint32_t)depth);
}
