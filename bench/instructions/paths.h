/* paths.h - the way that a counted region takes through the code, as far as its cycles depend on
 * it.
 *
 * A segment is a run of instructions that are executed one after another, as QEMU translates them.
 * What a segment costs depends on the instructions before it, so a region's segments are counted by
 * the path of segments that leads to them: back to its begin, or to 32 instructions. The file has a
 * line "region" for each region, then its paths in the order of their first coming, "TIMES
 * ADDRESS:INSTRUCTIONS ...", numbers in hexadecimal; the last segment of a path is the one counted.
 */
#ifndef PATHS_H
#define PATHS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_INSTRUCTIONS = 32, PATH_MOST = PATH_INSTRUCTIONS + 1 };

struct segment {
    uint64_t address;
    uint32_t instructions;
};

struct path {
    uint64_t times;
    uint32_t length;
    const struct segment *segments[PATH_MOST]; /* the last one first */
};

static struct {
    FILE *file;
    int inside;
    const struct segment *ring[64]; /* what was entered last; none: NULL */
    uint32_t at;
    struct path *paths; /* of the region, in the order of coming */
    uint32_t count, room;
    uint32_t *slots; /* 1 + index of a path; 0: free */
    uint32_t slot_count;
} way;

static int paths_open(const char *name)
{
    way.file = fopen(name, "w");
    if (!way.file)
        fprintf(stderr, "%s: cannot write\n", name);
    return way.file != NULL;
}

/* lives as long as the process: translated code refers to it */
static struct segment *paths_segment(uint64_t address)
{
    struct segment *segment = malloc(sizeof(*segment));

    if (!segment)
        abort();
    *segment = (struct segment){ address, 0 };
    return segment;
}

static void paths_begin(void)
{
    way.inside = 1;
    way.count = 0;
    memset(way.ring, 0, sizeof(way.ring));
    if (way.slots)
        memset(way.slots, 0, way.slot_count * sizeof(*way.slots));
}

static uint32_t hash_of(const struct path *path)
{
    uint64_t hash = path->length;

    for (uint32_t i = 0; i < path->length; i++)
        hash = (hash ^ path->segments[i]->address ^ path->segments[i]->instructions) *
               0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

/* the slot of a path: its own or a free one */
static uint32_t *find(const struct path *path)
{
    uint32_t i = hash_of(path) & (way.slot_count - 1);

    while (way.slots[i]) {
        const struct path *other = &way.paths[way.slots[i] - 1];

        if (other->length == path->length &&
            memcmp(other->segments, path->segments, path->length * sizeof(*path->segments)) == 0)
            break;
        i = (i + 1) & (way.slot_count - 1);
    }
    return &way.slots[i];
}

static void grow(void)
{
    way.room = way.room ? 2 * way.room : 1024;
    way.slot_count = 4 * way.room;
    free(way.slots);
    way.slots = calloc(way.slot_count, sizeof(*way.slots));
    way.paths = realloc(way.paths, way.room * sizeof(*way.paths));
    if (!way.slots || !way.paths)
        abort();
    for (uint32_t i = 0; i < way.count; i++)
        *find(&way.paths[i]) = i + 1;
}

static void paths_enter(const struct segment *segment)
{
    struct path path = { 1, 1, { segment } };
    uint32_t before = 0, *slot;

    if (!way.inside)
        return;
    for (uint32_t i = 1; before < PATH_INSTRUCTIONS && way.ring[(way.at - i) % 64]; i++) {
        path.segments[path.length++] = way.ring[(way.at - i) % 64];
        before += way.ring[(way.at - i) % 64]->instructions;
    }
    way.ring[way.at++ % 64] = segment;
    if (way.count == way.room)
        grow();
    slot = find(&path);
    if (*slot) {
        way.paths[*slot - 1].times++;
        return;
    }
    way.paths[way.count++] = path;
    *slot = way.count;
}

static void paths_end(void)
{
    way.inside = 0;
    fprintf(way.file, "region\n");
    for (uint32_t i = 0; i < way.count; i++) {
        const struct path *path = &way.paths[i];

        fprintf(way.file, "%llx", (unsigned long long)path->times);
        for (uint32_t s = path->length; s-- > 0;)
            fprintf(way.file, " %llx:%x", (unsigned long long)path->segments[s]->address,
                    path->segments[s]->instructions);
        fprintf(way.file, "\n");
    }
    fflush(way.file);
}

#endif
