/* file_system.h - what file.c and its neighbours ask of the operating system. posix/ and windows/
 * have each their form. errno says why something failed; paths have '/' between folders. */
#ifndef MUC_FILE_SYSTEM_H
#define MUC_FILE_SYSTEM_H

#include "base/base.h"

/* What a path leads to. Device and inode together tell one file from another. */
struct muc_file_info {
    uint64_t device, inode, bytes;
    uint64_t modified; /* when its content was last changed: differs if that differs */
    enum { MUC_PATH_FILE, MUC_PATH_FOLDER, MUC_PATH_OTHER } kind; /* OTHER: a device, a pipe */
};

bool muc_info_of_path(const char *path, muc_file_info *out);
/* The same, but a link is not followed: it is OTHER. */
bool muc_info_of_link(const char *path, muc_file_info *out);
bool muc_info_of_open(int fd, muc_file_info *out);

/* Descriptors that no child inherits; -1: none. */
int muc_open_to_read(const char *path);  /* anything that is there; never waits */
int muc_open_to_write(const char *path); /* what is there, as it is */
void *muc_map(int fd, size_t bytes);     /* read-only, bytes > 0; NULL: not */
void muc_unmap(void *data, size_t bytes);
bool muc_flush_to_disk(int fd);
void muc_begin_flush(int fd); /* which need not wait for as much, then */

/* A new file, open to read and write, or folder, that only this user may use; "XXXXXX" at the end
 * of template becomes its name. */
int muc_make_new_file(char *template);
bool muc_make_new_folder(char *template);
/* Gives it the rights that files and folders have which this user makes. */
void muc_give_usual_rights(const char *path, bool is_folder);
bool muc_may_write_in(const char *folder);
bool muc_may_run(const char *path);     /* whether a program is there, on Windows with .exe */
extern const char muc_path_separator[]; /* between the folders of PATH */
bool muc_make_folder(const char *path);
/* A file replaces the one that is there; a folder needs a free place. */
bool muc_rename(const char *from, const char *to);
/* Two paths change places at once. False with errno ENOSYS: this system has no such call. */
bool muc_exchange(const char *one, const char *other);
bool muc_remove(const char *path);           /* a file or an empty folder */
char *muc_real_path(const char *path);       /* links followed, malloc'ed; NULL: not there */
const char *muc_folder_of_temporaries(void); /* where the user names none */
/* Whether a relative path of a model's file means here what it means elsewhere. */
bool muc_is_common_name(const char *path);

/* Names in a folder but "." and "..", in no order; visit returns false to end early. */
typedef bool muc_visit_name(void *arg, const char *name);
bool muc_visit_names(const char *folder, muc_visit_name *visit, void *arg);

/* ---- of both systems: folders.c ---- */

/* Visits what lies in a folder and its folders, these after what they hold; links are not followed.
 * False: something could not be read, or visit ended it by false. */
typedef bool muc_visit_path(void *arg, const char *path, const muc_file_info *info);
bool muc_visit_tree(const char *folder, muc_visit_path *visit, void *arg);

#endif
