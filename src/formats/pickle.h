/* pickle.h - the values of a PyTorch pickle, of which nothing is ever executed.
 *
 * What torch.save writes of tensors in dictionaries, lists and tuples is read; any other class or
 * function is refused by name.
 */
#ifndef MUC_PICKLE_H
#define MUC_PICKLE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "graph/dtype.h"

enum { MUC_PICKLE_MAX_RANK = 8 };

typedef enum muc_pickle_kind {
    MUC_PICKLE_NONE,
    MUC_PICKLE_BOOL,
    MUC_PICKLE_INTEGER,
    MUC_PICKLE_REAL,
    MUC_PICKLE_STRING,
    MUC_PICKLE_SEQUENCE, /* a list or tuple */
    MUC_PICKLE_DICT,     /* items: key, value, key, value, .. */
    MUC_PICKLE_GLOBAL,   /* a class or function: "module name" */
    MUC_PICKLE_STORAGE,
    MUC_PICKLE_TENSOR,
} muc_pickle_kind;

/* Elements of one type that lie apart from the pickle. */
typedef struct muc_pickle_storage {
    const char *key;
    muc_dtype dtype;
    uint64_t elements;
    const uint8_t *data; /* found later; NULL till then */
} muc_pickle_storage;

typedef struct muc_pickle_value muc_pickle_value;
struct muc_pickle_value {
    muc_pickle_kind kind;
    int64_t integer;  /* of a tensor its first element in the storage */
    const char *text; /* STRING (with length), GLOBAL; NUL-terminated */
    size_t length;
    muc_pickle_value **items; /* SEQUENCE, DICT */
    size_t count, capacity;
    muc_pickle_storage *storage; /* STORAGE, TENSOR */
    uint32_t rank;               /* TENSOR: */
    uint64_t dims[MUC_PICKLE_MAX_RANK], strides[MUC_PICKLE_MAX_RANK];
};

/* Storages seen, in the order of their appearance; zero at first. */
typedef struct muc_pickle_storages {
    muc_pickle_storage **items;
    size_t count, capacity;
} muc_pickle_storages;

/* Reads one pickle from the reader's place up to behind its end. */
muc_status muc_pickle_read(muc_arena *arena, muc_reader *reader, muc_pickle_storages *storages,
                           muc_pickle_value **out);

#endif
