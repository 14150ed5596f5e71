/* hdf5_file.h - what the parts of the HDF5 reader share: words of the file, messages of its
 * objects.
 *
 * A muc_reader here is a part of the file: its positions are the file's. Whatever is followed takes
 * from the file's budget of steps, so that no cycle and no tree of shared branches takes long.
 */
#ifndef MUC_KERAS_HDF5_FILE_H
#define MUC_KERAS_HDF5_FILE_H

#include "formats/keras/hdf5.h"
#include "graph/dtype.h"

#define MUC_HDF5_NOWHERE UINT64_MAX /* an address that is undefined */
enum { MUC_HDF5_MAX_BLOCKS = 64 };  /* of one object's header */

struct muc_hdf5 {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes bytes;
    uint32_t offset_bytes, length_bytes; /* of an address, and of a size: 2, 4 or 8 */
    uint64_t root;                       /* address of the root group's header */
    uint64_t memory, steps;              /* that may still be taken */
    const char *path;                    /* of the object at work, for messages */
};

/* Fails naming the file and the object at work. */
muc_subject muc_hdf5_subject(const muc_hdf5 *f);
#define muc_hdf5_fail(f, status, ...) muc_fail_on(muc_hdf5_subject(f), status, __VA_ARGS__)
muc_status muc_hdf5_take_memory(muc_hdf5 *f, uint64_t bytes);
muc_status muc_hdf5_take_steps(muc_hdf5 *f, uint64_t steps);

/* size bytes of the file from `at` */
muc_status muc_hdf5_part(muc_hdf5 *f, uint64_t at, uint64_t size, const char *what,
                         muc_reader *out);
/* From `at` to the file's end, past a signature of four letters that must be there. */
muc_status muc_hdf5_block(muc_hdf5 *f, uint64_t at, const char *signature, muc_reader *out);
muc_status muc_hdf5_address(const muc_hdf5 *f, muc_reader *r, const char *what, uint64_t *out);
muc_status muc_hdf5_length(const muc_hdf5 *f, muc_reader *r, const char *what, uint64_t *out);
muc_status muc_hdf5_skip(muc_reader *r, uint64_t bytes, const char *what);

/* lookup3 of Bob Jenkins, started at 0, as HDF5 sums the metadata of its newer versions. */
uint32_t muc_hdf5_checksum(const uint8_t *data, size_t size);
/* The bytes from `begin`, behind which their checksum stands. */
muc_status muc_hdf5_check(muc_hdf5 *f, uint64_t begin, uint64_t size, const char *what);

/* ---- messages of an object ---- */

enum {
    MUC_HDF5_DATASPACE = 0x01,
    MUC_HDF5_LINK_INFO = 0x02,
    MUC_HDF5_DATATYPE = 0x03,
    MUC_HDF5_LINK = 0x06,
    MUC_HDF5_EXTERNAL = 0x07,
    MUC_HDF5_LAYOUT = 0x08,
    MUC_HDF5_FILTERS = 0x0b,
    MUC_HDF5_ATTRIBUTE = 0x0c,
    MUC_HDF5_CONTINUATION = 0x10,
    MUC_HDF5_SYMBOL_TABLE = 0x11,
    MUC_HDF5_ATTRIBUTE_INFO = 0x15,
};

typedef struct muc_hdf5_message {
    uint32_t type;
    bool shared; /* its body stands elsewhere */
    muc_reader body;
} muc_hdf5_message;

typedef struct muc_hdf5_walk {
    muc_hdf5 *file;
    uint32_t version, block, block_count;
    bool ordered;  /* version 2: messages carry their order of creation */
    uint64_t left; /* version 1: messages of the whole header */
    muc_reader at; /* in a block */
    uint64_t starts[MUC_HDF5_MAX_BLOCKS], sizes[MUC_HDF5_MAX_BLOCKS];
} muc_hdf5_walk;

muc_status muc_hdf5_walk_begin(muc_hdf5 *f, uint64_t object, muc_hdf5_walk *out);
/* Continuations are followed, not given. */
muc_status muc_hdf5_walk_next(muc_hdf5_walk *walk, bool *more, muc_hdf5_message *out);

/* Whether there is an object of this path, and its header's address. */
muc_status muc_hdf5_locate(muc_hdf5 *f, const char *path, bool *found, uint64_t *address);

/* ---- types and spaces, as messages and attributes have them ---- */

typedef enum muc_hdf5_class {
    MUC_HDF5_REAL,
    MUC_HDF5_STRING,   /* of a fixed size */
    MUC_HDF5_REFERRED, /* a string in a global heap */
    MUC_HDF5_OTHER,
} muc_hdf5_class;

typedef struct muc_hdf5_type {
    muc_hdf5_class kind;
    uint32_t size;  /* bytes of an element */
    muc_dtype real; /* if kind is MUC_HDF5_REAL */
    bool big_endian;
} muc_hdf5_type;

muc_status muc_hdf5_read_type(muc_hdf5 *f, muc_reader *r, muc_hdf5_type *out);
/* rank and dims of an array, elements; a null dataspace has no element */
muc_status muc_hdf5_read_space(muc_hdf5 *f, muc_reader *r, muc_hdf5_array *out);

/* ---- trees and heaps ---- */

/* Called for each leaf of a version 1 tree with its key's bytes and its address. */
typedef muc_status muc_hdf5_leaf(void *arg, muc_hdf5 *f, const uint8_t *key, uint64_t address);
/* kind: 0 group, 1 chunks; key_bytes: of a key. */
muc_status muc_hdf5_tree(muc_hdf5 *f, uint64_t address, uint32_t kind, uint32_t key_bytes,
                         muc_hdf5_leaf *leaf, void *arg);
/* Called for each message that a fractal heap holds, in the order of the tree's hashes. */
typedef muc_status muc_hdf5_dense_leaf(void *arg, muc_hdf5 *f, muc_reader *message);
/* tree: a version 2 tree whose records of kind (5 links, 8 attributes) refer to the heap. */
muc_status muc_hdf5_dense(muc_hdf5 *f, uint64_t heap, uint64_t tree, uint32_t kind,
                          muc_hdf5_dense_leaf *leaf, void *arg);
/* Object number index of the global heap's collection at address. */
muc_status muc_hdf5_heap_object(muc_hdf5 *f, uint64_t address, uint64_t index, muc_reader *out);

#endif
