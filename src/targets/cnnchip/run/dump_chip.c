/* dump_chip.c - what lies in the CNN chip's memories after each instruction of a run, as files that
 * a simulation of the hardware can be compared with. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/output_folder.h"
#include "base/text.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "run/arrays.h"
#include "targets/cnnchip/emit/chip_hex.h"

typedef struct dump {
    muc_context *ctx;
    muc_chip *chip;
    muc_folder *folder;
    const json_t *layers;
    size_t next; /* layer whose last instruction comes next */
    uint64_t instruction;
    uint32_t line_bytes;
    muc_text index;
    muc_status status;
} dump;

static muc_status add_memory(dump *d, const char *memory, const muc_cnnchip_insn *insn,
                             muc_bytes bytes)
{
    const char *name;

    MUC_TRY(muc_arena_format(d->ctx, &d->chip->run, &name, "%s_%05" PRIu64 ".hex", memory,
                             d->instruction));
    muc_text_add(&d->index, "%" PRIu64 ",%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s,\n",
                 d->instruction, muc_cnnchip_op_get(insn->op).name, insn->layer, insn->part,
                 insn->parts, name);
    return muc_cnnchip_write_hex(d->ctx, d->folder, name, bytes, d->line_bytes);
}

static muc_status write_layer(dump *d, const muc_chip_place *place, const char *name)
{
    muc_tensor_view view = { .name = place->tensor, .dtype = place->dtype, .rank = place->rank };
    muc_text text = { 0 };
    muc_status status;
    uint8_t *data;

    for (uint32_t i = 0; i < place->rank; i++)
        view.dims[i] = place->dims[i];
    MUC_TRY(MUC_NEW_ARRAY(d->ctx, d->chip->path, (size_t)place->bytes + 1, &data));
    muc_chip_load(d->chip, place, data);
    view.data = data;
    view.bytes = place->bytes;
    status = muc_array_as_npy(d->ctx, name, &view, &text);
    free(data);
    return muc_folder_write_text(d->folder, name, status, &text);
}

static muc_status add_layer(dump *d, const muc_cnnchip_insn *insn)
{
    muc_chip_place place;
    const char *name;

    MUC_TRY(muc_chip_read_place(d->ctx, d->chip, json_array_get(d->layers, d->next), &place));
    if (!place.in_frame)
        return MUC_OK;
    MUC_TRY(muc_arena_format(d->ctx, &d->chip->run, &name, "layer_%03zu.npy", d->next + 1));
    muc_text_add(&d->index, "%" PRIu64 ",%s,%zu,,,%s,", d->instruction,
                 muc_cnnchip_op_get(insn->op).name, d->next + 1, name);
    muc_text_add_csv(&d->index, place.tensor);
    muc_text_add(&d->index, "\n");
    return write_layer(d, &place, name);
}

static muc_status add_instruction(dump *d, const muc_cnnchip_sim *sim, uint32_t pc)
{
    uint32_t image = sim->filter_image_bytes;
    muc_cnnchip_insn insn;
    unsigned fault;

    if (!muc_cnnchip_read_insn(sim->program + pc, sim->program_bytes - pc, &insn, &fault))
        return MUC_OK;
    if (insn.flags & MUC_CNNCHIP_FLAG_dst32)
        MUC_TRY(add_memory(
            d, "scratch", &insn,
            (muc_bytes){ sim->filter + image, sim->filter_bytes - image, d->chip->path }));
    else if (insn.op != MUC_CNNCHIP_END)
        MUC_TRY(add_memory(d, "frame", &insn,
                           (muc_bytes){ sim->frame, sim->frame_bytes, d->chip->path }));
    for (; d->next < json_array_size(d->layers); d->next++) {
        uint64_t end = muc_chip_layer_end(json_array_get(d->layers, d->next));

        if (end > d->instruction + 1)
            break;
        if (end == d->instruction + 1)
            MUC_TRY(add_layer(d, &insn));
    }
    return MUC_OK;
}

static void trace(void *arg, const muc_cnnchip_sim *sim, uint32_t pc, const uint32_t *words,
                  const muc_cnnchip_counts *counts)
{
    dump *d = arg;

    (void)words, (void)counts;
    if (d->status == MUC_OK)
        d->status = add_instruction(d, sim, pc);
    d->instruction++;
}

static muc_status run_dumped(dump *d, const muc_tensor_view *arrays, size_t count,
                             muc_tensor_view **outputs)
{
    muc_text_add(&d->index, "instruction,operation,layer,part,parts,file,tensor\n");
    d->chip->sim.trace = trace;
    d->chip->sim.trace_arg = d;
    MUC_TRY(muc_chip_run(d->ctx, d->chip, arrays, count, outputs));
    return muc_folder_write_text(d->folder, "index.csv", d->status, &d->index);
}

muc_status muc_chip_dump(muc_context *ctx, muc_chip *chip, const char *path,
                         const muc_tensor_view *arrays, size_t count, muc_tensor_view **outputs)
{
    json_int_t bits = json_integer_value(json_object_get(chip->map, "hex_bits"));
    dump d = { .ctx = ctx,
               .chip = chip,
               .layers = json_object_get(chip->map, "layers"),
               .line_bytes =
                   bits >= 8 && bits <= MUC_CNNCHIP_MOST_HEX_BITS ? (uint32_t)bits / 8 : 4 };
    muc_status status;

    MUC_TRY(muc_folder_begin(ctx, path, &d.folder));
    status = run_dumped(&d, arrays, count, outputs);
    muc_text_free(&d.index);
    chip->sim.trace = NULL;
    return muc_folder_end(d.folder, status, NULL, NULL);
}
