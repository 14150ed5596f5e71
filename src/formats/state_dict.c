/* state_dict.c - reads both containers of torch.save.
 *
 * Since 1.6 a zip with data.pkl and a member data/KEY for each storage. Before, pickles one after
 * the other: a magic number, a version, sizes of the machine, the object, a list of keys; then for
 * each key its elements' number and the elements.
 */
#include "formats/state_dict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/zip.h"

enum { MAX_DEPTH = 4, FREE_BYTES = 64 << 20, BYTES_PER_BYTE = 100 };
/* the pickle of the magic number */
static const uint8_t magic[] = { 0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19 };
static const char pickled[] = "data.pkl";

static bool is_legacy(muc_bytes bytes)
{
    return bytes.size >= sizeof(magic) && memcmp(bytes.data, magic, sizeof(magic)) == 0;
}

/* "FOLDER/data.pkl", or another member of such a folder: PyTorch writes that one first */
static bool is_zip(muc_bytes bytes)
{
    size_t end = sizeof(pickled) - 1;
    muc_string_view first;

    return muc_zip_first(bytes, &first) && first.size > end &&
           memcmp(first.data + first.size - end, pickled, end) == 0 &&
           first.data[first.size - end - 1] == '/';
}

bool muc_torch_probe(muc_bytes bytes)
{
    return is_legacy(bytes) || is_zip(bytes);
}

static muc_status fail(const muc_torch_state *s, muc_status status, const char *message)
{
    return muc_fail(s->ctx, status, s->bytes.name, MUC_NO_OFFSET, "%s", message);
}

/* ---- containers ---- */

static uint64_t storage_bytes(const muc_pickle_storage *storage)
{
    uint64_t bytes = 0;

    return muc_mul_u64(storage->elements, muc_dtype_get(storage->dtype)->block_bytes, &bytes)
               ? bytes
               : UINT64_MAX;
}

static muc_status read_members(muc_torch_state *s, muc_zip *zip, muc_pickle_value **root)
{
    const char *first = muc_zip_name(zip, 0), *name;
    muc_pickle_storages storages = { 0 };
    muc_bytes pickle, data;
    muc_reader r;
    int folder;

    if (!first || strlen(first) < sizeof(pickled))
        return fail(s, MUC_MALFORMED, "a zip without a first member");
    folder = (int)(strlen(first) - (sizeof(pickled) - 1));
    MUC_TRY(muc_zip_read(zip, first, &pickle));
    r = muc_reader_of(s->ctx, pickle);
    MUC_TRY(muc_pickle_read(s->arena, &r, &storages, root));
    for (size_t i = 0; i < storages.count; i++) {
        MUC_TRY(muc_arena_format(s->ctx, s->arena, &name, "%.*sdata/%s", folder, first,
                                 storages.items[i]->key));
        MUC_TRY(muc_zip_borrow(zip, name, &data));
        if (data.size < storage_bytes(storages.items[i]))
            return muc_fail(s->ctx, MUC_MALFORMED, data.name, MUC_NO_OFFSET,
                            "%zu bytes, expected %" PRIu64, data.size,
                            storage_bytes(storages.items[i]));
        storages.items[i]->data = data.data;
    }
    return MUC_OK;
}

static muc_status read_zip(muc_torch_state *s, muc_pickle_value **root)
{
    muc_status status;
    muc_zip *zip;

    MUC_TRY(muc_zip_open(s->ctx, s->arena, s->bytes, &zip));
    status = read_members(s, zip, root);
    muc_zip_close(zip);
    return status;
}

static muc_pickle_storage *find_storage(const muc_pickle_storages *storages, const char *key)
{
    for (size_t i = 0; i < storages->count; i++)
        if (strcmp(storages->items[i]->key, key) == 0)
            return storages->items[i];
    return NULL;
}

static muc_status read_legacy(muc_torch_state *s, muc_pickle_value **root)
{
    muc_reader r = muc_reader_of(s->ctx, s->bytes);
    muc_pickle_storages storages = { 0 };
    muc_pickle_value *skipped, *keys;
    uint64_t elements;

    for (int i = 0; i < 3; i++) /* magic number, version, sizes */
        MUC_TRY(muc_pickle_read(s->arena, &r, &storages, &skipped));
    MUC_TRY(muc_pickle_read(s->arena, &r, &storages, root));
    MUC_TRY(muc_pickle_read(s->arena, &r, &storages, &keys));
    if (keys->kind != MUC_PICKLE_SEQUENCE || keys->count != storages.count)
        return muc_read_fail(&r, "no list of %zu keys", storages.count);
    for (size_t i = 0; i < keys->count; i++) {
        const muc_pickle_value *key = keys->items[i];
        muc_pickle_storage *storage =
            key->kind == MUC_PICKLE_STRING ? find_storage(&storages, key->text) : NULL;

        MUC_TRY(muc_read_u64(&r, "number of elements", &elements));
        if (!storage || storage->elements != elements)
            return muc_read_fail(&r, "storage %zu of %" PRIu64 " elements, which no tensor has", i,
                                 elements);
        MUC_TRY(muc_read_span(&r, storage_bytes(storage), "storage", &storage->data));
    }
    for (size_t i = 0; i < storages.count; i++)
        if (!storages.items[i]->data)
            return muc_read_fail(&r, "storage '%.100s' has no elements", storages.items[i]->key);
    return MUC_OK;
}

/* ---- the state dict ---- */

static bool has_tensors(const muc_pickle_value *dict)
{
    for (size_t i = 1; i < dict->count; i += 2)
        if (dict->items[i]->kind == MUC_PICKLE_TENSOR)
            return true;
    return false;
}

static const muc_pickle_value *look_up(const muc_pickle_value *dict, const char *key)
{
    for (size_t i = 0; i + 1 < dict->count; i += 2)
        if (dict->items[i]->kind == MUC_PICKLE_STRING && strcmp(dict->items[i]->text, key) == 0)
            return dict->items[i + 1];
    return NULL;
}

static const muc_pickle_value *find_state(const muc_pickle_value *v)
{
    static const char *const usual[] = { "state_dict", "model_state_dict", "model", "net" };

    for (int depth = 0; depth < MAX_DEPTH && v; depth++) {
        const muc_pickle_value *next = NULL;

        if (v->kind == MUC_PICKLE_SEQUENCE && v->count == 1)
            next = v->items[0];
        if (v->kind == MUC_PICKLE_DICT && has_tensors(v))
            return v;
        for (size_t i = 0; v->kind == MUC_PICKLE_DICT && !next && i < MUC_COUNT(usual); i++)
            next = look_up(v, usual[i]);
        v = next;
    }
    return NULL;
}

static muc_status fail_tensor(const muc_torch_state *s, const char *name, const char *message)
{
    return muc_fail(s->ctx, MUC_MALFORMED, s->bytes.name, MUC_NO_OFFSET, "tensor '%.200s' %s", name,
                    message);
}

/* the greatest index that a tensor's strides reach is in its storage */
static muc_status check_tensor(const muc_torch_state *s, const muc_torch_weight *w,
                               const muc_pickle_value *v)
{
    uint64_t last = (uint64_t)v->integer, step;

    for (uint32_t i = 0; i < w->rank && w->elements > 0; i++)
        if (!muc_mul_u64(w->dims[i] - 1, v->strides[i], &step) || !muc_add_u64(last, step, &last))
            return fail_tensor(s, w->name, "has strides that overflow");
    if (w->elements > 0 && last >= v->storage->elements)
        return fail_tensor(s, w->name, "reaches beyond its storage");
    return MUC_OK;
}

static bool is_row_major(const muc_torch_weight *w, const muc_pickle_value *v)
{
    uint64_t step = 1;

    for (uint32_t i = w->rank; i-- > 0; step *= w->dims[i])
        if (w->dims[i] != 1 && v->strides[i] != step)
            return false;
    return true;
}

static void gather(const muc_torch_weight *w, const muc_pickle_value *v, uint8_t *out)
{
    uint64_t index[MUC_PICKLE_MAX_RANK] = { 0 }, at = (uint64_t)v->integer;
    size_t size = muc_dtype_get(w->dtype)->block_bytes;

    for (uint64_t i = 0; i < w->elements; i++) {
        memcpy(out + i * size, v->storage->data + at * size, size);
        for (uint32_t d = w->rank; d-- > 0;) {
            at += v->strides[d];
            if (++index[d] < w->dims[d])
                break;
            at -= index[d] * v->strides[d];
            index[d] = 0;
        }
    }
}

/* The greatest number of bytes that a file can stand for. */
static uint64_t most_bytes(const muc_torch_state *s)
{
    return FREE_BYTES + (uint64_t)BYTES_PER_BYTE * s->bytes.size;
}

static muc_status read_weight(muc_torch_state *s, const muc_pickle_value *v, uint64_t *left,
                              muc_torch_weight *w)
{
    uint64_t bytes;
    uint8_t *copy;

    w->dtype = v->storage->dtype;
    w->rank = v->rank;
    w->elements = 1;
    for (uint32_t i = 0; i < v->rank; i++) {
        w->dims[i] = v->dims[i];
        if (!muc_mul_u64(w->elements, v->dims[i], &w->elements))
            return fail_tensor(s, w->name, "has more elements than can be counted");
    }
    MUC_TRY(check_tensor(s, w, v));
    if (is_row_major(w, v)) {
        w->stored = v->storage->data;
        if (w->elements > 0)
            w->stored += (uint64_t)v->integer * muc_dtype_get(w->dtype)->block_bytes;
        return MUC_OK;
    }
    if (!muc_mul_u64(w->elements, muc_dtype_get(w->dtype)->block_bytes, &bytes) || bytes > *left)
        return fail_tensor(s, w->name, "is out of proportion to the file");
    *left -= bytes;
    MUC_TRY(MUC_ARENA_NEW(s->ctx, s->arena, (size_t)bytes + 1, &copy));
    gather(w, v, copy);
    w->stored = copy;
    return MUC_OK;
}

muc_status muc_torch_widen(muc_torch_state *state)
{
    uint64_t left = most_bytes(state), bytes;

    for (size_t i = 0; i < state->count; i++) {
        muc_torch_weight *w = &state->items[i];
        float *data;

        if (muc_dtype_get(w->dtype)->kind != MUC_DTYPE_FLOAT)
            continue;
        if (!muc_mul_u64(w->elements, sizeof(float), &bytes) || bytes > left)
            return fail_tensor(state, w->name, "is out of proportion to the file");
        left -= bytes;
        MUC_TRY(MUC_ARENA_NEW(state->ctx, state->arena, (size_t)w->elements + 1, &data));
        muc_dtype_to_f32(w->dtype, w->stored, 0, w->elements, data);
        w->data = data;
    }
    return MUC_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const muc_torch_weight *)a)->name, ((const muc_torch_weight *)b)->name);
}

/* what torch.nn.DataParallel puts before all names */
static void strip_names(muc_torch_state *s)
{
    static const char prefix[] = "module.";

    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->items[i].name, prefix, sizeof(prefix) - 1) != 0)
            return;
    for (size_t i = 0; i < s->count; i++)
        s->items[i].name += sizeof(prefix) - 1;
}

static muc_status read_state(muc_torch_state *s, const muc_pickle_value *dict)
{
    uint64_t left = most_bytes(s);

    if (!dict)
        return fail(s, MUC_UNSUPPORTED,
                    "no state dict: a dictionary of tensors, or one under "
                    "\"state_dict\" or \"model\"");
    MUC_TRY(MUC_ARENA_NEW(s->ctx, s->arena, dict->count / 2, &s->items));
    for (size_t i = 0; i + 1 < dict->count; i += 2) {
        const muc_pickle_value *key = dict->items[i], *v = dict->items[i + 1];

        if (key->kind != MUC_PICKLE_STRING || v->kind != MUC_PICKLE_TENSOR)
            return muc_fail(s->ctx, MUC_UNSUPPORTED, s->bytes.name, MUC_NO_OFFSET,
                            "entry '%.200s' of the state dict is not a tensor",
                            key->kind == MUC_PICKLE_STRING ? key->text : "?");
        s->items[s->count].name = key->text;
        MUC_TRY(read_weight(s, v, &left, &s->items[s->count++]));
    }
    strip_names(s);
    qsort(s->items, s->count, sizeof(*s->items), by_name);
    for (size_t i = 1; i < s->count; i++)
        if (by_name(&s->items[i - 1], &s->items[i]) == 0)
            return fail_tensor(s, s->items[i].name, "is there twice");
    return MUC_OK;
}

muc_status muc_torch_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_torch_state *out)
{
    muc_pickle_value *root;

    *out = (muc_torch_state){ .ctx = ctx, .arena = arena, .bytes = bytes };
    MUC_TRY(is_legacy(bytes) ? read_legacy(out, &root) : read_zip(out, &root));
    return read_state(out, find_state(root));
}

muc_torch_weight *muc_torch_find(const muc_torch_state *state, const char *name)
{
    const muc_torch_weight key = { .name = name };

    return state->count == 0 ? NULL
                             : bsearch(&key, state->items, state->count, sizeof(key), by_name);
}

muc_status muc_torch_check_used(const muc_torch_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->items[i].data && !state->items[i].used)
            return fail_tensor(state, state->items[i].name,
                               "is in the file, but the network has no place for it");
    return MUC_OK;
}
