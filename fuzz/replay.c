/* replay.c - runs a harness over the files of a folder, without libFuzzer.
 *
 * Besides each file as it is, every prefix of it and every single byte inverted are run, or every
 * STEPth: a small corpus then covers much of what a short fuzzing run would find.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* from a block of exactly its size, so that a sanitizer sees the first byte beyond it */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void replay(uint8_t *data, size_t size, size_t step)
{
    run(data, size);
    for (size_t cut = 0; cut < size; cut += step)
        run(data, cut);
    for (size_t i = 0; i < size; i += step) {
        data[i] ^= 0xff;
        run(data, size);
        data[i] ^= 0xff;
    }
}

static bool replay_file(const char *folder, const char *name, size_t step)
{
    uint8_t data[1 << 16];
    char path[4096];
    size_t size;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    size = fread(data, 1, sizeof(data), file);
    fclose(file);
    replay(data, size, step);
    return true;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    size_t step = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
    int count = argc > 1 && step > 0 ? scandir(argv[1], &entries, visible, alphasort) : -1;
    bool ok = count > 0;

    for (int i = 0; i < count; i++) {
        ok = replay_file(argv[1], entries[i]->d_name, step) && ok;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    printf("%s: %d files\n", count >= 0 ? argv[1] : "usage: replay FOLDER [STEP]", count);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
