/* placement.c - how far each search for a placement comes, for every list of buffers named.
 *
 * A list has a line `id,lower,upper,size` and one such line a buffer, which lives in steps
 * lower..upper-1. Its capacity is the number in its name, NAME.CAPACITY.csv. Each is placed twice:
 * to fit the capacity, and in as little as can be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/place.h"

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

static muc_status print_row(muc_context *ctx, const char *name, muc_plan *plan, bool to_fit)
{
    double start = seconds();
    muc_status status = to_fit ? muc_plan_fit(ctx, plan) : muc_plan_place(ctx, plan);

    if (status != MUC_OK)
        return status;
    printf("%-20s %-5s %9llu %9llu %9llu %9llu %9llu %8.3f  %s\n", name, to_fit ? "fit" : "least",
           (unsigned long long)plan->live_bound, (unsigned long long)plan->reached[MUC_PLAN_GREEDY],
           (unsigned long long)plan->reached[MUC_PLAN_CLIMB],
           (unsigned long long)plan->reached[MUC_PLAN_EXACT], (unsigned long long)plan->nodes,
           seconds() - start,
           plan->peak == plan->least      ? "the least there is"
           : plan->peak <= plan->capacity ? "fits"
                                          : "does not fit");
    return MUC_OK;
}

int main(int argc, char **argv)
{
    static muc_plan_buffer buffers[MOST];
    muc_context *ctx = muc_context_new(1);

    printf("%-20s %-5s %9s %9s %9s %9s %9s %8s\n", "list", "to", "bound", "greedy", "climb",
           "exact", "nodes", "seconds");
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        const char *dot = strchr(name, '.');
        muc_plan plan = { .arena = name, .alignment = 1, .buffers = buffers };

        plan.capacity = dot ? strtoull(dot + 1, NULL, 10) : 0;
        if (!read_list(argv[i], &plan)) {
            fprintf(stderr, "%s: not a list of buffers\n", argv[i]);
            return 1;
        }
        if (print_row(ctx, name, &plan, true) != MUC_OK ||
            print_row(ctx, name, &plan, false) != MUC_OK) {
            fprintf(stderr, "%s\n", muc_error_message(ctx));
            return 1;
        }
    }
    muc_context_free(ctx);
    return 0;
}
