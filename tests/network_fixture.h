/* network_fixture.h - a network that ref runs, and the recorded arrays that it is compared with. */
#ifndef NETWORK_FIXTURE_H
#define NETWORK_FIXTURE_H

#include "base/file.h"
#include "formats/network.h"
#include "formats/npy/npz.h"
#include "ref/ref.h"

#define CONTEXT_THREADS 0
#include "context_fixture.h"

static muc_arena arena;
static muc_network network;
static muc_file file;
static muc_ref *ref;

static inline int free_network(void **state)
{
    muc_ref_close(ref);
    ref = NULL;
    muc_network_close(&network);
    muc_file_close(&file);
    memset(&file, 0, sizeof(file));
    muc_arena_free(&arena);
    return free_context(state);
}

#endif
