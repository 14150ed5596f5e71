/* system.h - what a program asks of the operating system: clocks, processors, locks, its own file,
 * libraries, terminals and signals. posix/ and windows/ have each their form. */
#ifndef MUC_SYSTEM_H
#define MUC_SYSTEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- clocks and processors ---- */

uint64_t muc_nanoseconds(void);           /* since some moment, never set back */
double muc_seconds(void);                 /* the same */
uint64_t muc_processor_nanoseconds(void); /* of all threads of this process together */
unsigned muc_processors(void);            /* that this process may use, at least 1 */
int muc_own_processor(void);              /* that runs this thread; -1: unknown */

/* ---- locks and memory ---- */

/* Begins as MUC_LOCK_OPEN. Whoever has it takes it no second time. */
typedef pthread_mutex_t muc_lock;
#define MUC_LOCK_OPEN PTHREAD_MUTEX_INITIALIZER
void muc_lock_take(muc_lock *lock);
void muc_lock_give(muc_lock *lock);

/* alignment is a power of two, of which bytes is a multiple; NULL if memory is out. */
void *muc_aligned_alloc(size_t alignment, size_t bytes);
/* The same, for what is read again and again from one end to the other: in pages of 2 MiB where the
 * system has them. */
void *muc_alloc_huge(size_t bytes);
void muc_aligned_free(void *data); /* of both; NULL is fine */

/* ---- files of programs ---- */

/* The file that holds this code, a program or a shared library, links followed: malloc'ed, or NULL.
 */
char *muc_own_file(void);
/* Libraries that are loaded by name; NULL: muc_library_error says why, for a message. */
void *muc_library_open(const char *path);
void *muc_library_find(void *library, const char *name);
const char *muc_library_error(void);
void muc_library_close(void *library);
/* A variable of the environment; value NULL takes it away. */
void muc_set_variable(const char *name, const char *value);

/* ---- the command ---- */

/* First of all: standard streams carry bytes as they are, and arguments become UTF-8; what *argv is
 * set to stays until the program ends. */
void muc_begin_program(int *argc, char ***argv);
/* A path as a user writes it, with '/' between folders from here on. */
void muc_take_path(char *path);
bool muc_is_terminal(FILE *stream);
/* Whether a path is a regular file to which standard output goes. */
bool muc_is_standard_output(const char *path);
FILE *muc_open_stream(const char *path); /* for reading, as fopen */
/* Signals that end the program call `last`, and remove its temporary files, before it ends; a file
 * that shrinks while it is mapped ends it with a message and MUC_IO; writes beyond a limit or into
 * a broken pipe fail. Before any other thread is there. */
void muc_catch_signals(void (*last)(void));
/* After a failed write: ends the program, as SIGPIPE does, if nobody reads what it writes. */
void muc_end_by_broken_pipe(void);

#endif
