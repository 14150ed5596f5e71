/* pickle.c - runs the stack machine of pickle protocol 2, as far as weights need it. */
#include "formats/pickle.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_VALUES = 1 << 22, MAX_NAME = 128, MAX_COMPARES = 1 << 27 };

typedef muc_pickle_value value;

typedef struct machine {
    muc_context *ctx;
    muc_arena *arena;
    muc_reader *r;
    muc_pickle_storages *storages;
    value **stack;
    size_t depth, stack_capacity;
    size_t *marks; /* depths of the stack */
    size_t mark_count, mark_capacity;
    value **memo;
    size_t memo_capacity;
    size_t values, compares; /* made so far; of keys of storages */
} machine;

/* ---- stack ---- */

static muc_status new_value(machine *m, muc_pickle_kind kind, value **out)
{
    if (++m->values > MAX_VALUES)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->r->bytes.name, m->r->at,
                        "a pickle of more than %d values", MAX_VALUES);
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, 1, out));
    (*out)->kind = kind;
    return MUC_OK;
}

static muc_status push(machine *m, value *v)
{
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, m->depth + 1, &m->stack_capacity, &m->stack));
    m->stack[m->depth++] = v;
    return MUC_OK;
}

static muc_status push_new(machine *m, muc_pickle_kind kind, int64_t integer)
{
    value *v;

    MUC_TRY(new_value(m, kind, &v));
    v->integer = integer;
    return push(m, v);
}

/* the least depth that may be popped to */
static size_t floor_of(const machine *m)
{
    return m->mark_count > 0 ? m->marks[m->mark_count - 1] : 0;
}

static muc_status pop(machine *m, value **out)
{
    if (m->depth == floor_of(m))
        return muc_read_fail(m->r, "the pickle takes a value from an empty stack");
    *out = m->stack[--m->depth];
    return MUC_OK;
}

static muc_status mark(machine *m)
{
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, m->mark_count + 1, &m->mark_capacity, &m->marks));
    m->marks[m->mark_count++] = m->depth;
    return MUC_OK;
}

/* what was pushed since the last mark; valid until the next push */
static muc_status pop_marked(machine *m, value ***items, size_t *count)
{
    size_t start;

    if (m->mark_count == 0)
        return muc_read_fail(m->r, "the pickle looks for a mark that it did not set");
    start = m->marks[--m->mark_count];
    *items = m->stack ? m->stack + start : NULL;
    *count = m->depth - start;
    m->depth = start;
    return MUC_OK;
}

static muc_status append(machine *m, value *to, value *const *items, size_t count)
{
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, to->count + count, &to->capacity, &to->items));
    if (count > 0)
        memcpy(to->items + to->count, items, count * sizeof(*items));
    to->count += count;
    return MUC_OK;
}

static muc_status push_sequence(machine *m, value *const *items, size_t count)
{
    value *v;

    MUC_TRY(new_value(m, MUC_PICKLE_SEQUENCE, &v));
    MUC_TRY(append(m, v, items, count));
    return push(m, v);
}

/* the container on top of the stack gets the items */
static muc_status extend(machine *m, muc_pickle_kind kind, value *const *items, size_t count)
{
    value *to = NULL;

    MUC_TRY(pop(m, &to));
    if (to->kind != kind || (kind == MUC_PICKLE_DICT && count % 2 != 0))
        return muc_read_fail(m->r, "the pickle adds items to what is not a %s",
                             kind == MUC_PICKLE_DICT ? "dictionary" : "list");
    MUC_TRY(append(m, to, items, count));
    return push(m, to);
}

static muc_status put_memo(machine *m, uint64_t index)
{
    value *top = NULL;

    if (index > m->r->bytes.size) /* each takes a byte of the file to be put */
        return muc_read_fail(m->r, "memo %" PRIu64 " of a file of %zu bytes", index,
                             m->r->bytes.size);
    MUC_TRY(pop(m, &top));
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, (size_t)index + 1, &m->memo_capacity, &m->memo));
    m->memo[index] = top;
    return push(m, top);
}

static muc_status get_memo(machine *m, uint64_t index)
{
    if (index >= m->memo_capacity || !m->memo[index])
        return muc_read_fail(m->r, "memo %" PRIu64 " was never put", index);
    return push(m, m->memo[index]);
}

/* ---- what is called ---- */

enum call { MAKES_DICT, MAKES_TENSOR, MAKES_FIRST };

static const struct {
    const char *name;
    enum call made;
} calls[] = {
#define TORCH_CALL(name, made) { name, MAKES_##made },
#include "formats/pickle_globals.def"
};

static const struct {
    const char *name;
    muc_dtype dtype;
} storages[] = {
#define TORCH_STORAGE(name, dtype) { "torch " name, MUC_##dtype },
#include "formats/pickle_globals.def"
};

static muc_status read_line(machine *m, muc_string_view *out)
{
    const uint8_t *start = m->r->bytes.data + m->r->at;
    size_t left = muc_reader_left(m->r);
    const uint8_t *end = memchr(start, '\n', left < MAX_NAME ? left : MAX_NAME);

    if (!end)
        return muc_read_fail(m->r, "a name in a pickle of more than %d bytes", MAX_NAME);
    *out = (muc_string_view){ (const char *)start, (size_t)(end - start) };
    m->r->at += out->size + 1;
    return MUC_OK;
}

static muc_status push_global(machine *m)
{
    muc_string_view module, name;
    value *v;

    MUC_TRY(read_line(m, &module));
    MUC_TRY(read_line(m, &name));
    MUC_TRY(new_value(m, MUC_PICKLE_GLOBAL, &v));
    MUC_TRY(muc_arena_format(m->ctx, m->arena, &v->text, "%.*s %.*s", (int)module.size, module.data,
                             (int)name.size, name.data));
    v->integer = -1;
    for (size_t i = 0; i < MUC_COUNT(calls); i++)
        if (strcmp(calls[i].name, v->text) == 0)
            return push(m, v);
    for (size_t i = 0; i < MUC_COUNT(storages); i++)
        if (strcmp(storages[i].name, v->text) == 0)
            return push(m, v);
    return muc_fail(m->ctx, MUC_UNSUPPORTED, m->r->bytes.name, m->r->at,
                    "the pickle names '%s', which weights do not need: save a state_dict()",
                    v->text);
}

static bool integers_of(const value *v, uint32_t *count, uint64_t *out)
{
    if (v->kind != MUC_PICKLE_SEQUENCE || v->count > MUC_PICKLE_MAX_RANK)
        return false;
    *count = (uint32_t)v->count;
    for (size_t i = 0; i < v->count; i++) {
        if (v->items[i]->kind != MUC_PICKLE_INTEGER || v->items[i]->integer < 0)
            return false;
        out[i] = (uint64_t)v->items[i]->integer;
    }
    return true;
}

/* (storage, first element, dims, strides, ..) */
static muc_status push_tensor(machine *m, const value *args)
{
    uint32_t strides;
    value *v;

    MUC_TRY(new_value(m, MUC_PICKLE_TENSOR, &v));
    if (args->count < 4 || args->items[0]->kind != MUC_PICKLE_STORAGE ||
        args->items[1]->kind != MUC_PICKLE_INTEGER || args->items[1]->integer < 0 ||
        !integers_of(args->items[2], &v->rank, v->dims) ||
        !integers_of(args->items[3], &strides, v->strides) || strides != v->rank)
        return muc_read_fail(m->r, "a tensor that is not a storage, place, shape and strides");
    v->storage = args->items[0]->storage;
    v->integer = args->items[1]->integer;
    return push(m, v);
}

/* OrderedDict() or OrderedDict([[key, value], ..]) */
static muc_status push_dict(machine *m, const value *args)
{
    value *v;

    MUC_TRY(new_value(m, MUC_PICKLE_DICT, &v));
    if (args->count > 1 || (args->count == 1 && args->items[0]->kind != MUC_PICKLE_SEQUENCE))
        return muc_read_fail(m->r, "a dictionary of no list");
    for (size_t i = 0; args->count == 1 && i < args->items[0]->count; i++) {
        const value *pair = args->items[0]->items[i];

        if (pair->kind != MUC_PICKLE_SEQUENCE || pair->count != 2)
            return muc_read_fail(m->r, "a dictionary of no pairs");
        MUC_TRY(append(m, v, pair->items, 2));
    }
    return push(m, v);
}

static muc_status reduce(machine *m)
{
    value *args = NULL, *callee = NULL;

    MUC_TRY(pop(m, &args));
    MUC_TRY(pop(m, &callee));
    if (callee->kind != MUC_PICKLE_GLOBAL || args->kind != MUC_PICKLE_SEQUENCE)
        return muc_read_fail(m->r, "the pickle calls what is not a function");
    for (size_t i = 0; i < MUC_COUNT(calls); i++) {
        if (strcmp(calls[i].name, callee->text) != 0)
            continue;
        switch (calls[i].made) {
        case MAKES_DICT:
            return push_dict(m, args);
        case MAKES_TENSOR:
            return push_tensor(m, args);
        case MAKES_FIRST:
        default:
            return args->count > 0 ? push(m, args->items[0])
                                   : muc_read_fail(m->r, "a call of no argument");
        }
    }
    return muc_read_fail(m->r, "the pickle calls '%s'", callee->text);
}

/* ("storage", class, key, place, elements, view of another) */
static muc_status push_storage(machine *m)
{
    const value *id, *key;
    value *v, *top = NULL;

    MUC_TRY(pop(m, &top));
    id = top;
    if (id->kind != MUC_PICKLE_SEQUENCE || id->count < 5 ||
        id->items[1]->kind != MUC_PICKLE_GLOBAL || id->items[2]->kind != MUC_PICKLE_STRING ||
        id->items[4]->kind != MUC_PICKLE_INTEGER || id->items[4]->integer < 0 ||
        (id->count > 5 && id->items[5]->kind != MUC_PICKLE_NONE))
        return muc_read_fail(m->r, "a storage that is not a class, key, place and size");
    key = id->items[2];
    MUC_TRY(new_value(m, MUC_PICKLE_STORAGE, &v));
    m->compares += m->storages->count;
    if (m->compares > MAX_COMPARES)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->r->bytes.name, m->r->at,
                        "a pickle of more than %zu storages", m->storages->count);
    for (size_t i = 0; i < m->storages->count && !v->storage; i++)
        if (strcmp(m->storages->items[i]->key, key->text) == 0)
            v->storage = m->storages->items[i];
    if (v->storage)
        return push(m, v);
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, 1, &v->storage));
    v->storage->key = key->text;
    v->storage->elements = (uint64_t)id->items[4]->integer;
    v->storage->dtype = MUC_DTYPE_COUNT;
    for (size_t i = 0; i < MUC_COUNT(storages); i++)
        if (strcmp(storages[i].name, id->items[1]->text) == 0)
            v->storage->dtype = storages[i].dtype;
    if (v->storage->dtype == MUC_DTYPE_COUNT)
        return muc_read_fail(m->r, "'%s' is not a storage", id->items[1]->text);
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, m->storages->count + 1, &m->storages->capacity,
                           &m->storages->items));
    m->storages->items[m->storages->count++] = v->storage;
    return push(m, v);
}

/* an object's state: of a dictionary its attributes, of no account */
static muc_status build(machine *m)
{
    value *state = NULL, *object = NULL;

    MUC_TRY(pop(m, &state));
    MUC_TRY(pop(m, &object));
    if (object->kind != MUC_PICKLE_DICT)
        return muc_read_fail(m->r, "the pickle gives state to what is not a dictionary");
    return push(m, object);
}

/* ---- opcodes ---- */

static muc_status push_string(machine *m)
{
    const uint8_t *text;
    uint64_t length;
    value *v;

    MUC_TRY(muc_read_word(m->r, 4, "pickle", &length));
    MUC_TRY(muc_read_span(m->r, length, "string of a pickle", &text));
    MUC_TRY(new_value(m, MUC_PICKLE_STRING, &v));
    v->length = (size_t)length;
    MUC_TRY(muc_arena_string(m->ctx, m->arena, (const char *)text, v->length, &v->text));
    return push(m, v);
}

/* little-endian, of two's complement; longer than 8 bytes: its lowest, which no size has */
static muc_status push_long(machine *m)
{
    uint64_t length, word = 0;
    const uint8_t *p;

    MUC_TRY(muc_read_word(m->r, 1, "pickle", &length));
    MUC_TRY(muc_read_span(m->r, length, "number of a pickle", &p));
    for (uint64_t i = 0; i < 8; i++)
        word |= (uint64_t)(i < length                            ? p[i]
                           : length > 0 && p[length - 1] >= 0x80 ? 0xff
                                                                 : 0)
                << 8 * i;
    return push_new(m, MUC_PICKLE_INTEGER, (int64_t)word);
}

static muc_status push_integer(machine *m, uint32_t bytes)
{
    uint64_t word;

    MUC_TRY(muc_read_word(m->r, bytes, "pickle", &word));
    return push_new(m, MUC_PICKLE_INTEGER, bytes == 4 ? (int32_t)(uint32_t)word : (int64_t)word);
}

static muc_status push_tuple(machine *m, size_t count)
{
    value *items[3] = { NULL };

    for (size_t i = count; i-- > 0;)
        MUC_TRY(pop(m, &items[i]));
    return push_sequence(m, items, count);
}

static muc_status extend_one(machine *m, muc_pickle_kind kind, size_t count)
{
    value *items[2] = { NULL };

    for (size_t i = count; i-- > 0;)
        MUC_TRY(pop(m, &items[i]));
    return extend(m, kind, items, count);
}

static muc_status step_marked(machine *m, uint8_t opcode)
{
    value **items = NULL;
    size_t count = 0;

    MUC_TRY(pop_marked(m, &items, &count));
    if (opcode == 't')
        return push_sequence(m, items, count);
    return extend(m, opcode == 'u' ? MUC_PICKLE_DICT : MUC_PICKLE_SEQUENCE, items, count);
}

static muc_status step_memo(machine *m, uint8_t opcode)
{
    uint64_t index;

    MUC_TRY(muc_read_word(m->r, opcode == 'q' || opcode == 'h' ? 1 : 4, "pickle", &index));
    return opcode == 'q' || opcode == 'r' ? put_memo(m, index) : get_memo(m, index);
}

static muc_status step(machine *m, uint8_t opcode)
{
    uint64_t word;

    switch (opcode) {
    case 0x80:
        return muc_read_word(m->r, 1, "pickle", &word); /* PROTO */
    case '(':
        return mark(m);
    case 'c':
        return push_global(m);
    case 'R':
        return reduce(m);
    case 'b':
        return build(m);
    case 'Q':
        return push_storage(m); /* BINPERSID */
    case 'q':
    case 'r':
    case 'h':
    case 'j':
        return step_memo(m, opcode);
    case ')':
        return push_sequence(m, NULL, 0);
    case ']':
        return push_sequence(m, NULL, 0);
    case '}':
        return push_new(m, MUC_PICKLE_DICT, 0);
    case 't':
    case 'u':
    case 'e':
        return step_marked(m, opcode);
    case 0x85:
        return push_tuple(m, 1);
    case 0x86:
        return push_tuple(m, 2);
    case 0x87:
        return push_tuple(m, 3);
    case 's':
        return extend_one(m, MUC_PICKLE_DICT, 2);
    case 'a':
        return extend_one(m, MUC_PICKLE_SEQUENCE, 1);
    case 'X':
        return push_string(m);
    case 'K':
        return push_integer(m, 1);
    case 'M':
        return push_integer(m, 2);
    case 'J':
        return push_integer(m, 4);
    case 0x8a:
        return push_long(m);
    case 'G':
        MUC_TRY(muc_read_word(m->r, 8, "pickle", &word));
        return push_new(m, MUC_PICKLE_REAL, 0); /* no weight is among them */
    case 'N':
        return push_new(m, MUC_PICKLE_NONE, 0);
    case 0x88:
        return push_new(m, MUC_PICKLE_BOOL, 1);
    case 0x89:
        return push_new(m, MUC_PICKLE_BOOL, 0);
    default:
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->r->bytes.name, m->r->at - 1,
                        "pickle opcode 0x%02x, which weights do not need", opcode);
    }
}

muc_status muc_pickle_read(muc_arena *arena, muc_reader *reader, muc_pickle_storages *found,
                           muc_pickle_value **out)
{
    machine m = { .ctx = reader->ctx, .arena = arena, .r = reader, .storages = found };
    uint8_t opcode;

    for (;;) {
        MUC_TRY(muc_read_u8(reader, "pickle", &opcode));
        if (opcode == '.') /* STOP */
            return pop(&m, out);
        MUC_TRY(step(&m, opcode));
    }
}
