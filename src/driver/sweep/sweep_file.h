/* sweep_file.h - the description of a sweep: lists of values, whose every combination is a point.
 */
#ifndef MUC_SWEEP_FILE_H
#define MUC_SWEEP_FILE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"

/* Keys of section [sweep], in the order in which points count: the last changes fastest. A key of
 * what a program is made with (MADE) comes before those of its calls and of the machine's times.
 *
 * X(name, kind, most, meaning): most values, 1 or MUC_SWEEP_VALUES. */
#define MUC_SWEEP_KEYS(X) \
    X(model, TEXT, MUC_SWEEP_VALUES, "checkpoints and .bdt files") \
    X(machine, TEXT, MUC_SWEEP_VALUES, "machines, files or names; the default one") \
    X(bits, REAL, MUC_SWEEP_VALUES, "of a weight") \
    X(act_terms, TEXT, MUC_SWEEP_VALUES, "of activations: 2, 1, 2,k=1,v=1") \
    X(attention, TEXT, MUC_SWEEP_VALUES, "cache or recompute") \
    X(calib, TEXT, MUC_SWEEP_VALUES, "auto, or a text") \
    X(ctx_size, COUNT, MUC_SWEEP_VALUES, "positions to make room for") \
    X(position, COUNT, MUC_SWEEP_VALUES, "of the call's first token") \
    X(call, COUNT, MUC_SWEEP_VALUES, "tokens of the call") \
    X(text, TEXT, 1, "whose perplexity is measured") \
    X(limit, COUNT, 1, "documents of the text") \
    X(window, COUNT, 1, "tokens of a document")

enum { MUC_SWEEP_VALUES = 256, MUC_SWEEP_MOST_POINTS = 1000000, MUC_SWEEP_MOST_AXES = 16 };

typedef enum muc_sweep_key {
#define MUC_SWEEP_KEY(name, kind, most, meaning) MUC_SWEEP_##name,
    MUC_SWEEP_KEYS(MUC_SWEEP_KEY)
#undef MUC_SWEEP_KEY
        MUC_SWEEP_KEYS_END
} muc_sweep_key;

/* One list. A key of another section is one of the machine's file. */
typedef struct muc_sweep_axis {
    const char *section, *key; /* section NULL: [sweep] */
    muc_sweep_key id;          /* of [sweep]; else MUC_SWEEP_KEYS_END */
    const char **values;       /* as they are written */
    uint32_t count;
} muc_sweep_axis;

typedef struct muc_sweep_file {
    const char *name;
    muc_sweep_axis axes[MUC_SWEEP_MOST_AXES]; /* the first changes slowest */
    uint32_t axis_count;
    uint32_t points;
} muc_sweep_file;

/* In arena. Fails with MUC_MALFORMED naming file, line and column. */
muc_status muc_sweep_read(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_sweep_file *out);

/* The value that a point has on an axis. */
const char *muc_sweep_axis_value(const muc_sweep_file *file, uint32_t axis, uint32_t point);
/* The same by key of [sweep]; NULL where the file has none. */
const char *muc_sweep_value(const muc_sweep_file *file, muc_sweep_key key, uint32_t point);
uint64_t muc_sweep_count(const muc_sweep_file *file, muc_sweep_key key, uint32_t point,
                         uint64_t fallback);

/* A machine's file with the values that a point gives to its keys; base: the file without. Fails
 * with MUC_MALFORMED if the base lacks a section that the sweep has lists of. */
muc_status muc_sweep_machine(muc_context *ctx, const muc_sweep_file *file, uint32_t point,
                             muc_bytes base, muc_text *out);

/* Whether what differs between two values of an axis is in the program, not in its calls. */
bool muc_sweep_is_made(const muc_sweep_axis *axis);

#endif
