/* sweep_file.c - reads descriptions of sweeps, and counts their points. */
#include "driver/sweep/sweep_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/ini.h"

typedef enum value_kind { TEXT, REAL, COUNT } value_kind;

static const struct {
    const char *name;
    value_kind kind;
    uint32_t most;
} keys[MUC_SWEEP_KEYS_END] = {
#define MUC_SWEEP_KEY(name, kind, most, meaning) { #name, kind, most },
    MUC_SWEEP_KEYS(MUC_SWEEP_KEY)
#undef MUC_SWEEP_KEY
};

typedef struct reading {
    muc_context *ctx;
    muc_arena *arena;
    muc_ini ini;
    muc_sweep_file *out;
} reading;

/* ---- lists ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static muc_status check_value(reading *r, const muc_sweep_axis *axis, const char *at,
                              const char *value)
{
    value_kind kind = axis->section ? TEXT : keys[axis->id].kind;
    char *end = NULL;

    if (kind == REAL && !(strtod(value, &end) > 0 && *end == '\0'))
        return muc_ini_fail(&r->ini, at, "'%s' is not a number above 0", value);
    if (kind == COUNT && (value[strspn(value, "0123456789")] || strlen(value) > 9))
        return muc_ini_fail(&r->ini, at, "'%s' is not a whole number below 10^9", value);
    for (uint32_t i = 0; i < axis->count; i++)
        if (strcmp(axis->values[i], value) == 0)
            return muc_ini_fail(&r->ini, at, "'%s' is in the list twice", value);
    return MUC_OK;
}

/* values stand apart by blanks */
static muc_status read_values(reading *r, muc_sweep_axis *axis)
{
    uint32_t most = axis->section ? MUC_SWEEP_VALUES : keys[axis->id].most;
    const char *at = r->ini.value.data, *end = at + r->ini.value.size;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, MUC_SWEEP_VALUES, &axis->values));
    while (at < end) {
        const char *from = at;
        const char *value;

        while (at < end && !is_blank(*at))
            at++;
        if (axis->count == most)
            return muc_ini_fail(&r->ini, from, "'%s' takes at most %u value%s", axis->key, most,
                                most > 1 ? "s" : "");
        MUC_TRY(muc_arena_string(r->ctx, r->arena, from, (size_t)(at - from), &value));
        MUC_TRY(check_value(r, axis, from, value));
        axis->values[axis->count++] = value;
        while (at < end && is_blank(*at))
            at++;
    }
    if (axis->count == 0)
        return muc_ini_fail(&r->ini, r->ini.key.data, "'%s' has no value", axis->key);
    return MUC_OK;
}

/* ---- lines ---- */

static muc_status find_key(reading *r, muc_sweep_axis *axis)
{
    muc_choice choice;
    uint32_t id = 0;

    while (id < MUC_SWEEP_KEYS_END && !muc_view_is(r->ini.key, keys[id].name))
        id++;
    axis->id = (muc_sweep_key)id;
    if (id < MUC_SWEEP_KEYS_END)
        return MUC_OK;
    muc_choice_begin(&choice, r->ini.key.data, r->ini.key.size);
    for (id = 0; id < MUC_SWEEP_KEYS_END; id++)
        muc_choice_add(&choice, keys[id].name);
    return muc_ini_refuse(&r->ini, r->ini.key.data, &choice, "key");
}

static bool is_same(const muc_sweep_axis *a, const muc_sweep_axis *b)
{
    return !a->section == !b->section && strcmp(a->key, b->key) == 0 &&
           (!a->section || strcmp(a->section, b->section) == 0);
}

static muc_status read_line(reading *r)
{
    muc_sweep_axis *axis = &r->out->axes[r->out->axis_count];
    const muc_string_view *section = &r->ini.section, *key = &r->ini.key;

    if (key->size == 0)
        return MUC_OK;
    if (section->size == 0)
        return muc_ini_fail(&r->ini, key->data, "expected [sweep] before the first key");
    if (r->out->axis_count == MUC_SWEEP_MOST_AXES)
        return muc_ini_fail(&r->ini, key->data, "more than %d lists", MUC_SWEEP_MOST_AXES);
    *axis = (muc_sweep_axis){ .id = MUC_SWEEP_KEYS_END };
    MUC_TRY(muc_arena_string(r->ctx, r->arena, key->data, key->size, &axis->key));
    if (muc_view_is(*section, "sweep"))
        MUC_TRY(find_key(r, axis));
    else
        MUC_TRY(muc_arena_string(r->ctx, r->arena, section->data, section->size, &axis->section));
    for (uint32_t i = 0; i < r->out->axis_count; i++)
        if (is_same(axis, &r->out->axes[i]))
            return muc_ini_fail(&r->ini, key->data, "this key is there twice");
    r->out->axis_count++;
    return read_values(r, axis);
}

bool muc_sweep_is_made(const muc_sweep_axis *axis)
{
    if (axis->section)
        return strcmp(axis->section, "energy") != 0;
    return axis->id != MUC_SWEEP_position && axis->id != MUC_SWEEP_call;
}

/* where an axis stands among the others: what makes programs first, [sweep] in the keys' order */
static uint32_t rank_of(const muc_sweep_axis *axis)
{
    return (muc_sweep_is_made(axis) ? 0 : 100) + (axis->section ? 50 : (uint32_t)axis->id);
}

/* a stable sort: keys of one rank stay in the file's order */
static void sort_axes(muc_sweep_file *file)
{
    for (uint32_t i = 1; i < file->axis_count; i++)
        for (uint32_t k = i; k && rank_of(&file->axes[k - 1]) > rank_of(&file->axes[k]); k--) {
            muc_sweep_axis swapped = file->axes[k];

            file->axes[k] = file->axes[k - 1];
            file->axes[k - 1] = swapped;
        }
}

static muc_status count_points(reading *r)
{
    uint64_t points = 1;

    for (uint32_t i = 0; i < r->out->axis_count; i++) {
        points *= r->out->axes[i].count;
        if (points > MUC_SWEEP_MOST_POINTS)
            return muc_fail(r->ctx, MUC_MALFORMED, r->out->name, MUC_NO_OFFSET,
                            "the lists give more than %d points", MUC_SWEEP_MOST_POINTS);
    }
    r->out->points = (uint32_t)points;
    return MUC_OK;
}

muc_status muc_sweep_read(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_sweep_file *out)
{
    reading r = { ctx, arena, muc_ini_of(ctx, text), out };
    muc_status status;

    *out = (muc_sweep_file){ .name = text.name };
    while (muc_ini_next(&r.ini, &status)) {
        MUC_TRY(status);
        MUC_TRY(read_line(&r));
    }
    sort_axes(out);
    if (!muc_sweep_value(out, MUC_SWEEP_model, 0))
        return muc_fail(ctx, MUC_MALFORMED, text.name, text.size,
                        "the key 'model' is missing in [sweep]");
    return count_points(&r);
}

/* ---- points ---- */

const char *muc_sweep_axis_value(const muc_sweep_file *file, uint32_t axis, uint32_t point)
{
    for (uint32_t i = file->axis_count; i-- > axis + 1;)
        point /= file->axes[i].count;
    return file->axes[axis].values[point % file->axes[axis].count];
}

const char *muc_sweep_value(const muc_sweep_file *file, muc_sweep_key key, uint32_t point)
{
    for (uint32_t i = 0; i < file->axis_count; i++)
        if (!file->axes[i].section && file->axes[i].id == key)
            return muc_sweep_axis_value(file, i, point);
    return NULL;
}

uint64_t muc_sweep_count(const muc_sweep_file *file, muc_sweep_key key, uint32_t point,
                         uint64_t fallback)
{
    const char *value = muc_sweep_value(file, key, point);

    return value ? strtoull(value, NULL, 10) : fallback;
}

/* ---- machines ---- */

/* the axis of a key of the machine's file, or NULL */
static const char *value_of(const muc_sweep_file *file, uint32_t point, muc_string_view section,
                            muc_string_view key)
{
    for (uint32_t i = 0; i < file->axis_count; i++)
        if (file->axes[i].section && muc_view_is(section, file->axes[i].section) &&
            muc_view_is(key, file->axes[i].key))
            return muc_sweep_axis_value(file, i, point);
    return NULL;
}

static void add_pair(muc_text *out, const char *key, const char *value)
{
    muc_text_add(out, "%s = %s\n", key, value);
}

/* the values of keys that the base has not, where their section begins */
static void add_missing(muc_context *ctx, const muc_sweep_file *file, uint32_t point,
                        muc_bytes base, muc_string_view section, muc_text *out)
{
    for (uint32_t i = 0; i < file->axis_count; i++) {
        const muc_sweep_axis *axis = &file->axes[i];
        muc_ini ini = muc_ini_of(ctx, base);
        bool found = false;
        muc_status status;

        if (!axis->section || !muc_view_is(section, axis->section))
            continue;
        while (!found && muc_ini_next(&ini, &status) && status == MUC_OK)
            found = muc_view_is(ini.section, axis->section) && muc_view_is(ini.key, axis->key);
        if (!found)
            add_pair(out, axis->key, muc_sweep_axis_value(file, i, point));
    }
}

/* a section of the sweep that the machine has not would change nothing */
static muc_status check_sections(muc_context *ctx, const muc_sweep_file *file, muc_bytes base)
{
    for (uint32_t i = 0; i < file->axis_count; i++) {
        const muc_sweep_axis *axis = &file->axes[i];
        muc_ini ini = muc_ini_of(ctx, base);
        bool found = !axis->section;
        muc_status status;

        while (!found && muc_ini_next(&ini, &status)) {
            MUC_TRY(status);
            found = muc_view_is(ini.section, axis->section);
        }
        if (!found)
            return muc_fail(ctx, MUC_MALFORMED, file->name, MUC_NO_OFFSET,
                            "the machine %s has no section [%s], which has the list '%s'",
                            base.name, axis->section, axis->key);
    }
    return MUC_OK;
}

muc_status muc_sweep_machine(muc_context *ctx, const muc_sweep_file *file, uint32_t point,
                             muc_bytes base, muc_text *out)
{
    muc_ini ini = muc_ini_of(ctx, base);
    muc_status status;

    MUC_TRY(check_sections(ctx, file, base));
    while (muc_ini_next(&ini, &status)) {
        const char *value = value_of(file, point, ini.section, ini.key);

        MUC_TRY(status);
        if (ini.key.size == 0) {
            muc_text_add(out, "[%.*s]\n", (int)ini.section.size, ini.section.data);
            add_missing(ctx, file, point, base, ini.section, out);
        } else if (value) {
            muc_text_add(out, "%.*s = %s\n", (int)ini.key.size, ini.key.data, value);
        } else {
            muc_text_add(out, "%.*s = %.*s\n", (int)ini.key.size, ini.key.data, (int)ini.value.size,
                         ini.value.data);
        }
    }
    return muc_text_status(ctx, out);
}
