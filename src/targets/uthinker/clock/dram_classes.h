/* dram_classes.h - what lies where in the regions of a program, by SPEC.md section 8. */
#ifndef MUC_UTHINKER_DRAM_CLASSES_H
#define MUC_UTHINKER_DRAM_CLASSES_H

#include "mur.h"
#include "targets/uthinker/lower/uthinker_layout.h"

typedef enum muc_dram_class {
#define MUC_DRAM_CLASS(name, words) MUC_DRAM_##name,
#include "targets/uthinker/clock/dram_classes.def"
    MUC_DRAM_CLASSES
} muc_dram_class;

enum { MUC_DRAM_MATRICES = MUC_DRAM_ROPE };

const char *muc_dram_class_words(muc_dram_class class);

typedef struct muc_dram_places {
    uint64_t start[MUC_DRAM_CLASSES]; /* in its region; what the program lacks begins where the next
                                         does */
    uint64_t block_bytes[MUC_DRAM_MATRICES]; /* of a matrix without its table of tiles */
    uint32_t own_layers; /* with weights of their own; 0 if WGTS does not hold them by SPEC.md */
} muc_dram_places;

/* Of a program that was opened; of sections with other content the places mean nothing. */
muc_dram_places muc_dram_places_of(const mur_program *program, const muc_uthinker_machine *machine);

/* A token's keys of a head, in all slabs. */
uint32_t muc_dram_key_bytes(const mur_meta *meta, const muc_uthinker_machine *machine,
                            uint32_t terms);

/* Layers with weights of their own; 0 if region WGTS does not hold them by SPEC.md. */
uint32_t muc_dram_own_layers(const mur_program *program);

/* What lies at an offset of a region. */
muc_dram_class muc_dram_class_at(const muc_dram_places *places, enum mur_region region,
                                 uint64_t offset);

#endif
