/* temporary.c - keeps the list of temporary files, folders and child processes, and removes them
 * when a signal ends the program. */
#include "base/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file_system.h"
#include "base/system.h"

enum { MOST_REMOVALS = 100, PAUSE_NANOSECONDS = 1000000 };

/* a path, or with child != 0 a process */
typedef struct item item;
struct item {
    item *next;
    muc_child child;
    char path[];
};

static muc_lock lock = MUC_LOCK_OPEN;
static item *all;

static item *new_item(muc_child child, size_t path_bytes)
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
static void forget(muc_child child, const char *path)
{
    item **link = &all, *found;

    muc_lock_take(&lock);
    while (*link && ((*link)->child != child || (path && strcmp((*link)->path, path) != 0)))
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    muc_lock_give(&lock);
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
    muc_lock_take(&lock);
    result = is_folder ? (muc_make_new_folder(template) ? 0 : -1) : muc_make_new_file(template);
    error = errno;
    if (result >= 0) {
        memcpy(made->path, template, size);
        push(made);
    }
    muc_lock_give(&lock);
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

static bool remove_one(void *arg, const char *path, const muc_file_info *info)
{
    (void)arg;
    (void)info;
    muc_remove(path);
    return true;
}

/* again where another thread, or a child, has written into it meanwhile */
static void remove_tree(const char *path)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NANOSECONDS };
    muc_file_info info;

    for (int i = 0; i < MOST_REMOVALS; i++) {
        if (muc_info_of_link(path, &info) && info.kind == MUC_PATH_FOLDER)
            muc_visit_tree(path, remove_one, NULL);
        if (muc_remove(path) || errno == ENOENT)
            return;
        nanosleep(&pause, NULL);
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
    done = muc_rename(path, aside);
    if (done && !muc_rename(temporary, path)) {
        int error = errno;

        muc_rename(aside, path);
        errno = error;
        done = false;
    }
    if (done)
        muc_rename(aside, temporary);
    free(aside);
    return done;
}

bool muc_temporary_exchange(const char *temporary, const char *path)
{
    bool done;

    muc_lock_take(&lock);
    done =
        muc_exchange(temporary, path) || (errno == ENOSYS && exchange_by_renames(temporary, path));
    muc_lock_give(&lock);
    return done;
}

int muc_child_start(muc_child_starter *start, void *arg, muc_child *child)
{
    item *made = new_item(0, 0);
    int error;

    if (!made)
        return ENOMEM;
    muc_lock_take(&lock);
    error = start(arg, child);
    if (!error) {
        made->child = *child;
        push(made);
    }
    muc_lock_give(&lock);
    if (error)
        free(made);
    return error;
}

void muc_child_forget(muc_child child)
{
    forget(child, NULL);
}

/* The lock is kept: a thread that would make another one waits until the program ends. */
void muc_remove_temporaries(void)
{
    muc_lock_take(&lock);
    for (const item *i = all; i; i = i->next)
        if (i->child)
            muc_child_end(i->child);
    for (const item *i = all; i; i = i->next)
        if (!i->child)
            remove_tree(i->path);
}
