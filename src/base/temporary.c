/* temporary.c - keeps the list of temporary files, folders and child processes, and removes them
 * when a signal ends the program. */
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "muc/status.h"

enum { MOST_OPEN = 16, MOST_REMOVALS = 100, PAUSE_MICROSECONDS = 1000 };

/* a path, or with child != 0 a process */
typedef struct item item;
struct item {
    item *next;
    pid_t child;
    char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static item *all;

static item *new_item(pid_t child, size_t path_bytes)
{
    item *made = malloc(sizeof(*made) + path_bytes);

    if (made)
        made->child = child;
    else
        errno = ENOMEM;
    return made;
}

static void push(item *made)
{
    made->next = all;
    all = made;
}

/* a child, or a path and no child */
static void forget(pid_t child, const char *path)
{
    item **link = &all, *found;

    pthread_mutex_lock(&lock);
    while (*link && ((*link)->child != child || (path && strcmp((*link)->path, path) != 0)))
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
}

/* made and noted at once: a signal finds both or neither */
static int make(char *template, bool is_folder)
{
    size_t size = strlen(template) + 1;
    item *made = new_item(0, size);
    int result, error;

    if (!made)
        return -1;
    pthread_mutex_lock(&lock);
    result = is_folder ? (mkdtemp(template) ? 0 : -1) : mkostemp(template, O_CLOEXEC);
    error = errno;
    if (result >= 0) {
        memcpy(made->path, template, size);
        push(made);
    }
    pthread_mutex_unlock(&lock);
    if (result < 0)
        free(made);
    errno = error;
    return result;
}

int muc_temporary_file(char *template)
{
    return make(template, false);
}

bool muc_temporary_folder(char *template)
{
    return make(template, true) == 0;
}

void muc_temporary_forget(const char *path)
{
    forget(0, path);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

/* again where another thread, or a child, has written into it meanwhile */
static void remove_tree(const char *path)
{
    for (int i = 0; i < MOST_REMOVALS; i++) {
        nftw(path, remove_one, MOST_OPEN, FTW_PHYS | FTW_DEPTH);
        if (access(path, F_OK) != 0)
            return;
        usleep(PAUSE_MICROSECONDS);
    }
}

void muc_temporary_remove(const char *path)
{
    remove_tree(path);
    muc_temporary_forget(path);
}

/* where there is no exchange: three renames, which signals wait for */
static bool exchange_by_renames(const char *temporary, const char *path)
{
    size_t size = strlen(temporary) + sizeof(".old");
    char *aside = malloc(size);
    bool done;

    if (!aside) {
        errno = ENOMEM;
        return false;
    }
    snprintf(aside, size, "%s.old", temporary);
    done = rename(path, aside) == 0;
    if (done && rename(temporary, path) != 0) {
        int error = errno;

        rename(aside, path);
        errno = error;
        done = false;
    }
    if (done)
        rename(aside, temporary);
    free(aside);
    return done;
}

bool muc_temporary_exchange(const char *temporary, const char *path)
{
    bool done;

    pthread_mutex_lock(&lock);
#ifdef RENAME_EXCHANGE
    done = renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_EXCHANGE) == 0;
    if (!done && (errno == ENOSYS || errno == EINVAL))
#endif
        done = exchange_by_renames(temporary, path);
    pthread_mutex_unlock(&lock);
    return done;
}

void muc_child_note(pid_t child)
{
    item *made = new_item(child, 0);

    if (!made)
        return;
    pthread_mutex_lock(&lock);
    push(made);
    pthread_mutex_unlock(&lock);
}

void muc_child_forget(pid_t child)
{
    forget(child, NULL);
}

/* Whoever notes another from now on waits for the end of the program. */
void muc_remove_temporaries(void)
{
    pthread_mutex_lock(&lock);
    for (const item *i = all; i; i = i->next)
        if (i->child)
            kill(i->child, SIGTERM);
    for (const item *i = all; i; i = i->next)
        if (!i->child)
            remove_tree(i->path);
}
