/* temporary.c - a list of what is there for a while only. */
#include "base/temporary.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muc/status.h"

enum { MOST_OPEN = 16 };

typedef struct temporary temporary;
struct temporary {
    temporary *next;
    char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static temporary *all;

void muc_temporary_note(const char *path)
{
    size_t size = strlen(path) + 1;
    temporary *item = malloc(sizeof(*item) + size);

    if (!item)
        return;
    memcpy(item->path, path, size);
    pthread_mutex_lock(&lock);
    item->next = all;
    all = item;
    pthread_mutex_unlock(&lock);
}

void muc_temporary_forget(const char *path)
{
    temporary **link = &all, *item;

    pthread_mutex_lock(&lock);
    while (*link && strcmp((*link)->path, path) != 0)
        link = &(*link)->next;
    item = *link;
    if (item)
        *link = item->next;
    pthread_mutex_unlock(&lock);
    free(item);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, MOST_OPEN, FTW_PHYS | FTW_DEPTH);
}

void muc_temporary_remove(const char *path)
{
    remove_tree(path);
    muc_temporary_forget(path);
}

/* Whoever notes another from now on waits for the end of the program. */
void muc_remove_temporaries(void)
{
    pthread_mutex_lock(&lock);
    for (const temporary *item = all; item; item = item->next)
        remove_tree(item->path);
}
