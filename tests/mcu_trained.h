/* mcu_trained.h - trained int8 networks of data/tflite as C, against their recorded outputs. */
#ifndef TEST_MCU_TRAINED_H
#define TEST_MCU_TRAINED_H

#include "mcu_network.h"

#include "formats/network.h"
#include "formats/npy/npz.h"
#include "passes/simplify/canonical.h"
#include "passes/simplify/fold.h"

/* Opens data/tflite/NAME.tflite as the compiler prepares it. */
static inline void mcu_open_trained(mcu_batch *batch, const char *name, muc_network *network)
{
    char path[96];

    snprintf(path, sizeof(path), "tflite/%s.tflite", name);
    CHECK_OK(batch->ctx, muc_network_open(batch->ctx, shared_data(path), NULL, network));
    CHECK_OK(batch->ctx, muc_fold(batch->ctx, network->graph));
    CHECK_OK(batch->ctx, muc_canonicalise(batch->ctx, network->graph));
    CHECK_OK(batch->ctx, muc_fuse(batch->ctx, network->graph));
    CHECK_OK(batch->ctx, muc_lay_channels_last(batch->ctx, network->graph));
}

/* The network's recorded runs, bit for bit. */
static inline void mcu_check_golden(mcu_batch *batch, size_t i, const char *name)
{
    muc_tensor_view *arrays;
    muc_arena arena = { 0 };
    mcu_arena a = mcu_arena_new(batch, i);
    size_t count, runs, in_bytes, out_bytes;
    char path[96];
    muc_file file;

    snprintf(path, sizeof(path), "tflite/golden/%s.npz", name);
    CHECK_OK(batch->ctx, muc_file_open(batch->ctx, shared_data(path), &file));
    CHECK_OK(batch->ctx, muc_npz_read(batch->ctx, &arena, file.bytes, &arrays, &count));
    CHECK_EQ(count, 2);
    runs = (size_t)arrays[0].dims[0];
    in_bytes = (size_t)arrays[0].bytes / runs;
    out_bytes = (size_t)arrays[1].bytes / runs;
    for (size_t r = 0; r < runs; r++) {
        memcpy(a.in[0], arrays[0].data + r * in_bytes, in_bytes);
        a.run(a.arena);
        mcu_compare(i, path, MUC_I8, arrays[1].data + r * out_bytes, a.out[0], out_bytes, 0);
    }
    mcu_arena_free(&a);
    muc_arena_free(&arena);
    muc_file_close(&file);
}

#endif
