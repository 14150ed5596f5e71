/* costs.c - finds a report's layers and their time by costs.def. */
#include "report/costs.h"

#include <string.h>

#include "report/report_builder.h"

static const muc_costs known[] = {
#define MUC_COSTS(table, names, time, unit, engine, bytes, macs) \
    { table, names, time, unit, engine, bytes, macs, NULL, 0 },
#include "report/costs.def"
#undef MUC_COSTS
};

static bool has_column(const json_t *rows, const char *key)
{
    size_t index;
    json_t *row;

    json_array_foreach((json_t *)rows, index, row)
    {
        if (json_object_get(row, key))
            return true;
    }
    return false;
}

bool muc_costs_find(const json_t *root, muc_costs *out)
{
    size_t index;
    json_t *row;

    for (size_t i = 0; i < MUC_COUNT(known); i++) {
        *out = known[i];
        out->rows = json_object_get(root, known[i].table);
        if (!has_column(out->rows, out->time) || !has_column(out->rows, out->engine))
            continue;
        json_array_foreach((json_t *)out->rows, index, row)
        {
            out->total += muc_costs_time(out, row);
        }
        if (out->total > 0)
            return true;
    }
    return false;
}

static double positive(const json_t *value)
{
    double number = json_number_value(value);

    return number > 0 ? number : 0;
}

/* of a description that was edited a sum may be larger than a count is */
static uint64_t count_of(double sum)
{
    return sum < 1e18 ? (uint64_t)sum : (uint64_t)1e18;
}

double muc_costs_time(const muc_costs *costs, const json_t *row)
{
    return positive(json_object_get(row, costs->time));
}

bool muc_costs_are_macs(const muc_costs *costs)
{
    return strcmp(costs->time, costs->macs) == 0;
}

uint64_t muc_costs_macs(const muc_costs *costs, const json_t *row)
{
    return count_of(positive(json_object_get(row, costs->macs)));
}

/* the i-th of words apart by blanks; false after the last */
static bool word_of(const char *words, unsigned i, char word[32])
{
    size_t length;

    for (; i && *words; i--)
        words += strcspn(words, " ") + (words[strcspn(words, " ")] == ' ');
    length = strcspn(words, " ");
    if (length == 0 || length >= 32)
        return false;
    memcpy(word, words, length);
    word[length] = '\0';
    return true;
}

uint64_t muc_costs_bytes(const muc_costs *costs, const json_t *row)
{
    double sum = 0;
    char key[32];

    for (unsigned i = 0; word_of(costs->bytes, i, key); i++)
        sum += positive(json_object_get(row, key));
    return count_of(sum);
}

const char *muc_costs_engine(const muc_costs *costs, const json_t *row)
{
    return muc_member_text(row, costs->engine);
}

const char *muc_costs_name(const muc_costs *costs, const json_t *row, unsigned i)
{
    char key[32];

    return word_of(costs->names, i, key) ? muc_member_text(row, key) : NULL;
}

size_t muc_costs_largest(const muc_costs *costs, const json_t *out[MUC_COSTS_SHOWN])
{
    size_t count = 0, index;
    json_t *row;

    json_array_foreach((json_t *)costs->rows, index, row)
    {
        double time = muc_costs_time(costs, row);
        size_t at = count;

        if (time <= 0 ||
            (count == MUC_COSTS_SHOWN && time <= muc_costs_time(costs, out[MUC_COSTS_SHOWN - 1])))
            continue;
        if (count < MUC_COSTS_SHOWN)
            count++;
        else
            at--;
        for (; at && muc_costs_time(costs, out[at - 1]) < time; at--)
            out[at] = out[at - 1];
        out[at] = row;
    }
    return count;
}
