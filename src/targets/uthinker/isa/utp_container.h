/* utp_container.h - program files (SPEC.md section 7) as sections of bytes: written whole, opened
 * in place. */
#ifndef MUC_UTHINKER_CONTAINER_H
#define MUC_UTHINKER_CONTAINER_H

#include "base/arena.h"
#include "base/file.h"
#include "mur.h"

/* One a section of mur_sections.def, in its order; NULL: absent. Borrowed. */
typedef struct muc_container {
    struct {
        const uint8_t *data;
        size_t size;
    } section[MUR_SECTIONS];
    uint8_t *file; /* large memory that the file is written to, where one section may lie already;
                    * NULL: there is none yet */
    size_t file_bytes;
} muc_container;

const char *muc_section_name(enum mur_section section); /* "CODE" */

/* A section and where it lies. */
typedef struct muc_container_place {
    enum mur_section section;
    uint32_t offset; /* 0: right after the one before, aligned */
    const uint8_t *data;
    size_t size;
} muc_container_place;

/* The file of this major version and the given minor one, of the given sections in the given order,
 * in arena. Fails with MUC_MALFORMED if the offsets are impossible, with MUC_NOFIT from 4 GiB on.
 */
muc_status muc_container_write_places(muc_context *ctx, muc_arena *arena,
                                      const muc_container_place *places, size_t count,
                                      uint32_t minor, muc_bytes *out);

/* Makes sections->file, in arena, for the sections that there are and WGTS of so many bytes, which
 * lies in it, at *at, from here on, to be filled; *file is to be closed then, also after a failure.
 * It is the output's, unless that is NULL or cannot be mapped. */
muc_status muc_container_place_weights(muc_context *ctx, muc_arena *arena, muc_container *sections,
                                       size_t bytes, muc_output *output, muc_large_file *file,
                                       size_t *at);

/* The file's bytes, in sections->file or in arena, sections in the order of the table, each right
 * after the one before, in the oldest version that has them. What is in its place in sections->file
 * is not copied. */
muc_status muc_container_write(muc_context *ctx, muc_arena *arena, muc_container *sections,
                               muc_bytes *out);

/* Checks everything that the runtime checks when it opens a program, CRCs included, and gives the
 * sections where they lie in bytes, which must be aligned to 16. Fails with MUC_MALFORMED naming
 * the first offset known to be wrong. program, if it is not NULL, is the runtime's view. */
muc_status muc_container_open(muc_context *ctx, muc_bytes bytes, muc_container *out,
                              mur_program *program);

#endif
