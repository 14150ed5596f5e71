/* muc/compile.h - a checkpoint becomes blocks, and blocks become a program. */
#ifndef MUC_COMPILE_H
#define MUC_COMPILE_H

#include "muc/model.h"

MUC_API_BEGIN

/* How weights are stored; all-zero is the default. */
typedef struct muc_weight_options {
    const char *codec;       /* "bd4": BlockDialect, the default; of target mcu "int8" is */
    double bits;             /* most bits per stored weight, all bytes counted; 0: 4.8 */
    const char *calibration; /* NULL: none; "auto": text that the model generates; a text file */
    uint32_t shard, shards;  /* of muc_quantize: part shard of shards, from 1 on; 0 shards: all */
} muc_weight_options;

/* All-zero is the default. Strings are as the command line has them. */
typedef struct muc_compile_options {
    muc_weight_options weights; /* must be all-zero for a .bdt file, which has its weights */
    const char *target;         /* "uthinker" (default) */
    const char *machine;        /* a machine file (.ini); NULL: the target's own */
    /* "2" (default), "1", by place: "2,p=1,v=1" (SPEC.md section 8), by layer: "2,k:0-3=1", or
     * "auto": one term at the places, and of the layers, where that saves something and the
     * divergence from float32, measured on texts that the checkpoint writes or those that
     * calibration names, grows by no more than a twentieth in all */
    const char *act_terms;
    const char *attention; /* "cache" (default) or "recompute" */
    const char *name;      /* of mcu and cnnchip: of what is made; NULL: the model's */
    const char *package;   /* of mcu: "cmake" (default), "zephyr", "arduino", "esp-idf", ... */
    const char *patch;     /* of mcu: "auto" (default), "least" or "off" */
    const char *fuse;      /* the same, of layers in tiles */
    const char *pes; /* of cnnchip: processing elements, "4".. or "unlimited"; NULL: machine's */
    const char *element; /* of cnnchip: "fp32", "fp16" or "int8"; NULL: the machine's */
    const char *hex;     /* of cnnchip: bits of a line of .hex, "bus" or "none"; NULL: 32 */
    bool strip;          /* leave the debug map out */
    bool weights_file;   /* of mcu: constants in NAME_weights.bin, however few they are */
    bool may_shorten;    /* of muc_new_project: a shorter context, where the model's has no room */
} muc_compile_options;

/* Writes a checkpoint's weights as blocks, with all else that its program needs, to a .bdt file
 * (docs/FORMAT-bdt.md). Keys: file, bytes, weights, bits_per_weight, snr_db, and the table "blocks"
 * (kind, count). A part has every shards-th matrix, and is good for muc_merge_blocks alone. */
muc_status muc_quantize(muc_context *ctx, const muc_model *model, const muc_weight_options *options,
                        const char *out_path, muc_report **out);

/* Writes the .bdt file of which these are all the parts, in any order: the bytes that are made
 * without parts. Keys: file, bytes, weights, bits_per_weight. MUC_USAGE naming a part that is
 * missing or there twice, MUC_MISMATCH for parts of different models or options. */
muc_status muc_merge_blocks(muc_context *ctx, const char *const *paths, size_t count,
                            const char *out_path, muc_report **out);

/* Compiles a checkpoint or a .bdt file. The bytes depend on the input and the options alone, and a
 * .bdt file gives the bytes that its checkpoint gives. Keys: file, bytes, crc32, bits_per_weight,
 * the group "self_check" (positions, kl, top1_agreement, both against float32; not from a .bdt
 * file), with act_terms "auto" act_terms, what was chosen, and the table "terms", a row a trial in
 * their order, first two terms everywhere (place, layers, divergence, dram_bytes and decode: for
 * the token at the last position, prefill: tokens a second, kept), and the table "memory" (place,
 * bytes, limit, use). Fails with MUC_NOFIT, naming what does not fit and by how much. */
muc_status muc_compile(muc_context *ctx, const muc_model *model, const muc_compile_options *options,
                       const char *out_path, muc_report **out);

/* Which machines a model fits, planned from shapes: those of all targets that take it, or of the
 * target and the machine that the options name; a float network also as --quant int8 would make it.
 * Keys: file and the tables "machines" (target, machine, weights, fits: yes or no, flash_bytes,
 * flash_limit, ram_bytes, ram_limit, and where a model tells, of a run of a network or a token in
 * the middle of the context, ms_least, ms_most, mj_least, mj_most) and "why_not" (machine, weights,
 * reason: what would help, too). Flash of a network is its constants, without code. Times of
 * microcontrollers are between those of the networks in bench/cycles.csv, of a token from the first
 * position to the last by bench/token_cycles.csv. MUC_NOFIT if it fits none; the report is made all
 * the same. */
muc_status muc_fit(muc_context *ctx, const muc_model *model, const muc_compile_options *options,
                   muc_report **out);

/* Compares a program, stage by stage, with its checkpoint: the machine's results with the graph
 * run in the machine's arithmetic, bit for bit, and with float32. prompt NULL: the program's golden
 * tokens. Keys: exact, positions, first_divergence, and the table "stages" (stage, values,
 * wrong, error: the largest difference from float32, snr_db). MUC_MISMATCH if a bit differs; the
 * report is made all the same.
 */
muc_status muc_verify(muc_context *ctx, const muc_model *program, const muc_model *model,
                      const char *prompt, muc_report **out);

/* Compares a network opened with quant "int8" with the same network opened without, on its inputs
 * or else on what calibrated it. Keys: samples, top1_agreement (of the outputs' rows), and the
 * table "layers" (node, operator, type, values, error: the largest difference, snr_db). */
muc_status muc_verify_int8(muc_context *ctx, const muc_model *integer, const muc_model *real,
                           muc_report **out);

/* A program file as assembly text (syntax: src/targets/uthinker/asm/uthinker_asm.h), and back: the
 * round trip gives the same bytes. The text is malloc'ed, for the caller to free. Only a program
 * that the verifier accepts is written. */
muc_status muc_disassemble(muc_context *ctx, const char *path, char **text);
muc_status muc_assemble(muc_context *ctx, const char *path, const char *out_path);

/* The instructions that the program issues for `tokens` tokens from a position on, Placeholders
 * resolved. */
muc_status muc_list_resolved(muc_context *ctx, const char *path, uint32_t position, uint32_t tokens,
                             char **text);

MUC_API_END

#endif
