/* emit_chains.c - chains: their places in the small memory, and as C. */
#include <inttypes.h>

#include "targets/mcu/tiles/chains.h"
#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/tiles/tiles.h"

/* ---- places ---- */

static const char *operand_name(const muc_mcu_program *program, const muc_mcu_chain_column *column)
{
    return program->steps[column->step].tiled->layer.operands[column->operand].name;
}

muc_status muc_mcu_add_chain_buffers(muc_context *ctx, muc_mcu_program *program,
                                     const muc_mcu_chain *chain)
{
    const char *name;

    for (uint32_t c = 0; c < chain->column_count; c++) {
        const muc_mcu_chain_column *column = &chain->columns[c];

        MUC_TRY(muc_arena_format(ctx, &program->arena, &name, "%s_%s_0",
                                 program->steps[column->step].name, operand_name(program, column)));
        MUC_TRY(muc_mcu_add_tile_buffer(ctx, program,
                                        &(muc_plan_buffer){
                                            .bytes = column->room.bytes,
                                            .first = chain->first + column->room.first,
                                            .last = chain->first + column->room.last,
                                        },
                                        name));
    }
    for (uint32_t step = chain->first; step < chain->end; step++) {
        const mur_tiles *tiles = &chain->links[step - chain->first].tiles;

        if (!program->steps[step].tiled->layer.scratch_bytes)
            continue;
        MUC_TRY(muc_arena_format(ctx, &program->arena, &name, "%s_scratch_0",
                                 program->steps[step].name));
        MUC_TRY(muc_mcu_add_tile_buffer(
            ctx, program,
            &(muc_plan_buffer){ .bytes = (uint64_t)tiles->scratch_bytes * tiles->cores,
                                .first = step,
                                .last = step },
            name));
    }
    return MUC_OK;
}

/* ---- as C ---- */

/* "chain_3": by its first step */
static void print_name(const muc_mcu_chain *chain, muc_text *text)
{
    muc_text_add(text, "chain_%" PRIu32, chain->first);
}

static void print_link(const muc_mcu_program *program, const muc_mcu_chain *chain, uint32_t step,
                       muc_text *text)
{
    const muc_mcu_step *of = &program->steps[step];
    const muc_mcu_link *link = &chain->links[step - chain->first];
    uint32_t count = of->tiled->layer.operand_count;
    const char *descriptor = of->tiled->descriptor;

    muc_text_add(text, "    { .tiles = &%s_tiles,\n      .layer = %s,\n      .compute = %s,\n",
                 of->name, descriptor ? descriptor : "NULL", of->tiled->compute);
    if (of->tiled->kernel)
        muc_text_add(text, "      .kernel = &%s_kernel,\n", of->name);
    muc_text_add(text, "      .column = { ");
    for (uint32_t i = 0; i < count; i++)
        muc_text_add(text, "%s%u", i ? ", " : "", link->column[i]);
    muc_text_add(text, " },\n      .moves = { ");
    for (uint32_t i = 0; i < count; i++)
        muc_text_add(text, "%s%u", i ? ", " : "", link->moves[i]);
    muc_text_add(text, " },\n      .skip = { ");
    for (uint32_t i = 0; i < count; i++)
        muc_text_add(text, "%s%" PRIu32, i ? ", " : "", link->skip[i]);
    muc_text_add(text, " } },\n");
}

static void print_tables(const muc_mcu_program *program, const muc_mcu_chain *chain, muc_text *text)
{
    uint32_t spans = chain->turns * chain->column_count;

    muc_text_add(text, "static const mur_tiles_column ");
    print_name(chain, text);
    muc_text_add(text, "_columns[] = {\n");
    for (uint32_t c = 0; c < chain->column_count; c++)
        muc_text_add(text, "    { %s_%s_0, %" PRIu32 " },\n",
                     program->steps[chain->columns[c].step].name,
                     operand_name(program, &chain->columns[c]), chain->columns[c].row_bytes);
    muc_text_add(text, "};\nstatic const mur_tiles_span ");
    print_name(chain, text);
    muc_text_add(text, "_spans[] = {");
    for (uint32_t i = 0; i < spans; i++)
        muc_text_add(text, "%s{ %" PRIu32 ", %" PRIu32 " },", i % 6 ? " " : "\n    ",
                     chain->spans[i].first, chain->spans[i].end);
    muc_text_add(text, "\n};\nstatic const mur_tiles_link ");
    print_name(chain, text);
    muc_text_add(text, "_links[] = {\n");
    for (uint32_t step = chain->first; step < chain->end; step++)
        print_link(program, chain, step, text);
    muc_text_add(text, "};\n");
}

/* where an operand that moves lies in the large memory */
static void print_place(const muc_mcu_program *program, uint32_t value, muc_text *text)
{
    const muc_mcu_argument argument = { .kind = MUC_MCU_WRITE, .value = value, .dtype = MUC_U8 };

    muc_text_add(text, "(void *)(uintptr_t)");
    muc_mcu_print_argument(program, &argument, text);
}

void muc_mcu_emit_chain(const muc_mcu_program *program, const muc_mcu_chain *chain, muc_text *text)
{
    for (uint32_t step = chain->first; step < chain->end; step++) {
        const muc_mcu_step *of = &program->steps[step];

        if (of->tiled->kernel)
            muc_text_add(text, "static %s *const %s_kernel = %s;\n", of->tiled->kernel_type,
                         of->name, of->tiled->kernel);
        muc_mcu_print_tiles(of, &chain->links[step - chain->first].tiles, NULL, text);
    }
    print_tables(program, chain, text);
    muc_text_add(text, "\nstatic void run_");
    print_name(chain, text);
    muc_text_add(text, "(uint8_t *arena)\n{\n    static const mur_tiles_chain chain = {\n"
                       "        .links = ");
    print_name(chain, text);
    muc_text_add(text, "_links,\n        .columns = ");
    print_name(chain, text);
    muc_text_add(text, "_columns,\n        .spans = ");
    print_name(chain, text);
    muc_text_add(text,
                 "_spans,\n        .link_count = %" PRIu32 ",\n        .column_count = %" PRIu32
                 ",\n        .turns = %" PRIu32 ",\n    };\n"
                 "    void *const data[][MUR_TILES_OPERANDS] = {\n",
                 chain->end - chain->first, chain->column_count, chain->turns);
    for (uint32_t step = chain->first; step < chain->end; step++) {
        const muc_mcu_tiled *tiled = program->steps[step].tiled;

        muc_text_add(text, "        { ");
        for (uint32_t i = 0; i < tiled->layer.operand_count; i++) {
            muc_text_add(text, i ? ", " : "");
            if (chain->links[step - chain->first].moves[i])
                print_place(program, tiled->values[i], text);
            else
                muc_text_add(text, "NULL");
        }
        muc_text_add(text, " },\n");
    }
    muc_text_add(text, "    };\n\n    mur_tiles_run_chain(&chain, data, tile_memory);\n}\n\n");
}

void muc_mcu_emit_chain_call(const muc_mcu_program *program, const muc_mcu_chain *chain,
                             muc_text *text)
{
    muc_text_add(text, "    /* %s to %s, in the small memory */\n    run_",
                 program->steps[chain->first].name, program->steps[chain->end - 1].name);
    print_name(chain, text);
    muc_text_add(text, "(arena);\n");
}
