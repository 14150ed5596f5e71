/* placement.c - how far each search for a placement comes, for every list of buffers named, or for
 * lists made to be hard.
 *
 *     placement FILE...           NAME.CAPACITY.csv, each placed to fit and in as little as can be
 *     placement --generate SEEDS [FIRST]   of each kind of ../tests/packings.h, seeds FIRST.. (0)
 *
 * A file has a line `id,lower,upper,size` and one such line a buffer, which lives in steps
 * lower..upper-1; its capacity is the number in its name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tests/packings.h"

enum { MOST = 4096 };

static bool read_list(const char *path, muc_plan *plan)
{
    FILE *file = fopen(path, "r");
    char line[256];
    bool good = file && fgets(line, sizeof(line), file);

    plan->count = 0;
    while (good && fgets(line, sizeof(line), file)) {
        unsigned first, end;
        unsigned long long bytes;

        good = plan->count < MOST && strchr(line, ',') &&
               sscanf(strchr(line, ','), ",%u,%u,%llu", &first, &end, &bytes) == 3 && end > first;
        if (good)
            plan->buffers[plan->count++] =
                (muc_plan_buffer){ .name = "-", .bytes = bytes, .first = first, .last = end - 1 };
    }
    if (file)
        fclose(file);
    return good;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static unsigned lists, failed;
static double longest;

static muc_status print_row(muc_context *ctx, const char *name, muc_plan *plan, bool to_fit)
{
    double start = seconds(), taken;
    muc_status status = to_fit ? muc_plan_fit(ctx, plan) : muc_plan_place(ctx, plan);

    if (status != MUC_OK)
        return status;
    taken = seconds() - start;
    if (to_fit) {
        lists++;
        failed += plan->peak > plan->capacity;
        longest = taken > longest ? taken : longest;
    }
    printf("%-20s %-5s %7zu %9llu %9llu %9llu %9llu %9llu %8.3f  %s\n", name,
           to_fit ? "fit" : "least", plan->count, (unsigned long long)plan->live_bound,
           (unsigned long long)plan->reached[MUC_PLAN_GREEDY],
           (unsigned long long)plan->reached[MUC_PLAN_CLIMB],
           (unsigned long long)plan->reached[MUC_PLAN_EXACT], (unsigned long long)plan->nodes,
           taken,
           plan->peak == plan->least      ? "the least there is"
           : plan->peak <= plan->capacity ? "fits"
                                          : "does not fit");
    return MUC_OK;
}

static muc_status place_file(muc_context *ctx, const char *path, muc_plan *plan)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strchr(name, '.');

    plan->arena = name;
    plan->capacity = dot ? strtoull(dot + 1, NULL, 10) : 0;
    if (!read_list(path, plan))
        return muc_fail(ctx, MUC_MALFORMED, path, MUC_NO_OFFSET, "not a list of buffers");
    MUC_TRY(print_row(ctx, name, plan, true));
    return print_row(ctx, name, plan, false);
}

static muc_status place_generated(muc_context *ctx, uint32_t first, uint32_t seeds, muc_plan *plan)
{
    for (size_t k = 0; k < MUC_COUNT(packing_kinds); k++)
        for (uint32_t seed = first; seed < first + seeds; seed++) {
            char name[64];

            snprintf(name, sizeof(name), "%s %u", packing_kinds[k].name, seed);
            plan->arena = name;
            packing_list(&packing_kinds[k], seed, plan);
            MUC_TRY(print_row(ctx, name, plan, true));
        }
    return MUC_OK;
}

int main(int argc, char **argv)
{
    static muc_plan_buffer buffers[MOST];
    bool generate = argc > 2 && strcmp(argv[1], "--generate") == 0;
    muc_context *ctx = muc_context_new(1);
    muc_plan plan = { .alignment = 1, .buffers = buffers };
    muc_status status = MUC_OK;

    printf("%-20s %-5s %7s %9s %9s %9s %9s %9s %8s\n", "list", "to", "buffers", "bound", "greedy",
           "climb", "exact", "nodes", "seconds");
    if (generate)
        status = place_generated(ctx, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0,
                                 (uint32_t)strtoul(argv[2], NULL, 10), &plan);
    for (int i = 1; i < argc && !generate && status == MUC_OK; i++)
        status = place_file(ctx, argv[i], &plan);
    if (status != MUC_OK)
        fprintf(stderr, "%s\n", muc_error_message(ctx));
    printf("%u of %u fit, at most %.3f s of processor time\n", lists - failed, lists, longest);
    muc_context_free(ctx);
    return status != MUC_OK || failed > 0;
}
