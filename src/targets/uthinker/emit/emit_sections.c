/* emit_sections.c - sections. Words are little-endian whatever the host. */
#include "targets/uthinker/emit/emit_sections.h"

#include <string.h>

#include "base/half.h"
#include "base/large.h"
#include "base/threads.h"
#include "mur_stages.h"
#include "targets/uthinker/lower/split_rows.h"
#include "targets/uthinker/machines/uthinker_machine.h"

typedef struct emitter {
    muc_context *ctx;
    muc_arena *arena;
    muc_container *out;
} emitter;

static muc_status new_section(const emitter *e, enum mur_section section, size_t bytes,
                              uint8_t **out)
{
    MUC_TRY(MUC_ARENA_NEW(e->ctx, e->arena, bytes, out));
    e->out->section[section].data = *out;
    e->out->section[section].size = bytes;
    return MUC_OK;
}

static void store_words(uint8_t *at, const uint32_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        muc_store_u32(at + 4 * i, words[i]);
}

static muc_status emit_words(const emitter *e, enum mur_section section, const uint32_t *words,
                             size_t count)
{
    uint8_t *at;

    MUC_TRY(new_section(e, section, 4 * count, &at));
    store_words(at, words, count);
    return MUC_OK;
}

static muc_status emit_machine(const emitter *e, const muc_uthinker_machine *machine)
{
    const mur_mach mach = muc_uthinker_mach(machine);

    return emit_words(e, MUR_SECTION_MACH, &mach.isa, sizeof(mach) / 4);
}

static muc_status emit_meta(const emitter *e, const muc_uthinker_layout *y,
                            const muc_uthinker_tokens *tokens)
{
    const muc_uthinker_terms *terms = &y->options.terms;
    const mur_meta meta = { .vocabulary = y->vocabulary,
                            .context = y->options.context,
                            .rows = y->options.rows,
                            .layers = y->layers,
                            .width = y->width,
                            .heads = y->heads,
                            .kv_heads = y->kv_heads,
                            .head_width = y->head_width,
                            .ffn_width = y->ffn_width,
                            .tied = y->tied,
                            .recompute = y->options.recompute,
                            .terms_x = terms->x,
                            .terms_q = terms->q,
                            .terms_k = terms->k,
                            .terms_p = terms->p,
                            .terms_v = terms->v,
                            .terms_o = terms->o,
                            .terms_f = terms->f,
                            .terms_h = terms->h,
                            .terms_l = terms->l,
                            .kv_bytes = y->kv_bytes,
                            .io_bytes = y->io_bytes,
                            .embedded = y->embedded,
                            .logits = y->logits,
                            .embedding = y->matrix[MUC_MATRIX_EMBEDDING].offset,
                            .bos = tokens->bos,
                            .eos = tokens->eos[0],
                            .eos2 = tokens->eos[1],
                            .eos3 = tokens->eos[2],
                            .ffn_parts = y->ffn_parts,
                            .o_parts = y->o_parts };

    return emit_words(e, MUR_SECTION_META, &meta.vocabulary, sizeof(meta) / 4);
}

/* Only where something is not as META alone has it. */
static muc_status emit_layer_facts(const emitter *e, const muc_uthinker_layout *y)
{
    bool plain = !y->options.layer_terms && !y->windows && !y->angle_sums && y->input_norms;
    mur_layr *rows;

    if (plain && y->rotary == y->head_width && y->row_elements == 0)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(e->ctx, e->arena, y->layers, &rows));
    for (uint32_t l = 0; l < y->layers; l++)
        rows[l] = (mur_layr){
            .window = y->windows ? y->windows[l + 1] - y->windows[l] : y->options.context,
            .rotary = y->rotary,
            .rope = y->angle_sums ? y->angle_sums[l + 1] - y->angle_sums[l] : 0,
            .norms = y->input_norms,
            .vectors = y->row_elements,
            .one_term = muc_uthinker_one_term(muc_uthinker_terms_of(y, l), &y->options.terms),
        };
    return emit_words(e, MUR_SECTION_LAYR, &rows[0].window, (size_t)y->layers * sizeof(*rows) / 4);
}

static muc_status emit_code(const emitter *e, const muc_uthinker_entry *entries)
{
    mur_entr rows[MUC_UTHINKER_ENTRIES];
    uint8_t *at;
    size_t words = 0;

    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        rows[i] = (mur_entr){ .kind = entries[i].kind,
                              .start = (uint32_t)words,
                              .words = (uint32_t)entries[i].flat->count,
                              .min_m = entries[i].min_m,
                              .max_m = entries[i].max_m };
        words += entries[i].flat->count;
    }
    MUC_TRY(emit_words(e, MUR_SECTION_ENTR, &rows[0].kind, sizeof(rows) / 4));
    MUC_TRY(new_section(e, MUR_SECTION_CODE, 4 * words, &at));
    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++)
        store_words(at + 4 * (size_t)rows[i].start, entries[i].flat->words, entries[i].flat->count);
    return MUC_OK;
}

/* the matrix that has table number t */
static const muc_uthinker_matrix *table_owner(const muc_uthinker_layout *y, uint32_t t)
{
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++)
        if (y->matrix[i].table == t)
            return &y->matrix[i];
    return NULL;
}

typedef struct muc_table {
    const uint32_t *data;
    uint32_t count;
} muc_table;

static muc_status emit_tables(const emitter *e, const muc_uthinker_layout *y)
{
    const uint32_t *const of_layers[] = { y->windows, y->angle_sums };
    muc_table tables[MUC_MATRIX_COUNT + MUC_COUNT(of_layers)];
    uint32_t count = y->table_count;
    size_t words = 2;
    uint8_t *at;

    for (uint32_t t = 0; t < count; t++)
        tables[t] = (muc_table){ table_owner(y, t)->table_data, table_owner(y, t)->table_count };
    for (size_t i = 0; i < MUC_COUNT(of_layers); i++)
        if (of_layers[i])
            tables[count++] = (muc_table){ of_layers[i], y->layers + 1 };
    for (uint32_t t = 0; t < count; t++)
        words += 1 + (size_t)tables[t].count;
    MUC_TRY(new_section(e, MUR_SECTION_TABL, 4 * words, &at));
    muc_store_u32(at, count);
    words = 2 + (size_t)count;
    for (uint32_t t = 0; t < count; t++) {
        muc_store_u32(at + 4 + 4 * (size_t)t, (uint32_t)words);
        store_words(at + 4 * words, tables[t].data, tables[t].count);
        words += tables[t].count;
    }
    muc_store_u32(at + 4 + 4 * (size_t)count, (uint32_t)words);
    return MUC_OK;
}

/* The layers' sequences of a kind, to be one. */
typedef struct joining {
    const muc_uthinker_weight *weights; /* [layers] */
    uint32_t tiles;                     /* of one */
    uint32_t *at;                       /* [layers] where the blocks of each begin */
    const muc_large_file *file;
    size_t start; /* in it */
} joining;

static muc_status join_sequence(void *arg, size_t i)
{
    const joining *j = arg;
    const muc_uthinker_weight *weight = &j->weights[i];
    uint32_t own = 4 * (j->tiles + 1);
    uint8_t *index = j->file->data + j->start + 4 * i * j->tiles;

    for (uint32_t t = 0; t < j->tiles; t++)
        muc_store_u32(index + 4 * (size_t)t,
                      muc_load_u32(weight->sequence + 4 * (size_t)t) - own + j->at[i]);
    muc_uthinker_put_blocks(weight, j->tiles, j->file, j->start + j->at[i]);
    muc_large_rest(weight->whole ? weight->whole : weight->sequence, weight->resting);
    return MUC_OK;
}

/* tile offsets first, then the blocks of all layers */
static muc_status join_sequences(const emitter *e, const muc_uthinker_model *model,
                                 muc_matrix_kind kind, const muc_uthinker_matrix *matrix,
                                 const muc_large_file *file, size_t wgts)
{
    uint32_t count = muc_uthinker_matrix_shape(model, kind).count, at = 4 * (matrix->tiles + 1);
    joining j = { model->weights[kind], matrix->tiles / count, NULL, file, wgts + matrix->offset };

    MUC_TRY(MUC_ARENA_NEW(e->ctx, e->arena, count, &j.at));
    for (uint32_t i = 0; i < count; i++) {
        j.at[i] = at;
        at += (uint32_t)j.weights[i].bytes - 4 * (j.tiles + 1);
    }
    muc_store_u32(file->data + j.start + 4 * (size_t)matrix->tiles, at);
    return muc_parallel_for(e->ctx, count, join_sequence, &j);
}

static muc_status emit_weights(const emitter *e, const muc_uthinker_model *model,
                               const muc_uthinker_layout *y, muc_output *output)
{
    muc_large_file file;
    size_t wgts;
    muc_status status =
        muc_container_place_weights(e->ctx, e->arena, e->out, y->wgts_bytes, output, &file, &wgts);

    for (uint32_t i = 0; i < MUC_MATRIX_COUNT && status == MUC_OK; i++)
        if (y->matrix[i].bytes)
            status = join_sequences(e, model, (muc_matrix_kind)i, &y->matrix[i], &file, wgts);
    muc_large_close(&file);
    return status;
}

static void store_floats(uint8_t *at, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        muc_store_u32(at + 4 * i, muc_f32_bits(values[i]));
}

static muc_status emit_parameters(const emitter *e, const muc_uthinker_model *model,
                                  const muc_uthinker_layout *y)
{
    size_t gains = y->input_norms ? (size_t)y->own_layers * y->width : 0;
    size_t table = (size_t)y->options.context * y->rotary;
    uint8_t *parm;

    MUC_TRY(muc_arena_new_large(e->ctx, e->arena, (size_t)y->parm_bytes + 1, &parm));
    e->out->section[MUR_SECTION_PARM].data = parm;
    e->out->section[MUR_SECTION_PARM].size = y->parm_bytes;
    for (uint32_t i = 0; i < y->angles; i++)
        store_floats(parm + y->rope + 4 * i * table,
                     model->rope + (size_t)i * model->context * y->rotary, table);
    store_floats(parm + y->gain_attention, model->gain_attention, gains);
    store_floats(parm + y->gain_ffn, model->gain_ffn, gains);
    store_floats(parm + y->gain_final, model->gain_final, y->width);
    store_floats(parm + y->vectors, model->vectors, (size_t)y->own_layers * y->row_elements);
    muc_large_rest((const uint8_t *)model->rope,
                   (size_t)y->angles * model->context * y->rotary * sizeof(*model->rope));
    return MUC_OK;
}

static muc_status emit_debug(const emitter *e, const muc_uthinker_entry *entries)
{
    muc_debug_name *names;
    muc_bytes section;
    size_t count = 0, row = 0;
    uint32_t start = 0;

    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++)
        count += entries[i].flat->label_count;
    MUC_TRY(MUC_ARENA_NEW(e->ctx, e->arena, count, &names));
    for (uint32_t i = 0; i < MUC_UTHINKER_ENTRIES; i++) {
        const muc_flat *flat = entries[i].flat;

        for (size_t k = 0; k < flat->label_count; k++) {
            names[row] = flat->labels[k];
            names[row++].word += start;
        }
        start += (uint32_t)flat->count;
    }
    MUC_TRY(muc_debug_write(e->ctx, e->arena, names, count, &section));
    e->out->section[MUR_SECTION_DEBG].data = section.data;
    e->out->section[MUR_SECTION_DEBG].size = section.size;
    return MUC_OK;
}

/* GOLD and STAG have their place in the file before the program has run. */
static muc_status emit_golden(const emitter *e, const muc_uthinker_tokens *tokens)
{
    const uint8_t *data = e->out->section[MUR_SECTION_META].data;
    const mur_meta *meta = (const mur_meta *)(const void *)data;
    size_t positions = meta->context < tokens->golden ? meta->context : tokens->golden;
    uint8_t *zeros;

    if (positions == 0)
        return MUC_OK;
    MUC_TRY(new_section(e, MUR_SECTION_GOLD, positions * sizeof(mur_gold), &zeros));
    if (tokens->strip)
        return MUC_OK;
    return new_section(e, MUR_SECTION_STAG, positions * mur_stage_words(meta) * sizeof(uint32_t),
                       &zeros);
}

muc_status muc_uthinker_emit_code(muc_context *ctx, muc_arena *arena,
                                  const muc_uthinker_layout *layout,
                                  const muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES],
                                  const muc_uthinker_tokens *tokens, muc_container *out)
{
    const emitter e = { ctx, arena, out };

    memset(out, 0, sizeof(*out));
    MUC_TRY(emit_machine(&e, &layout->machine));
    MUC_TRY(emit_meta(&e, layout, tokens));
    MUC_TRY(emit_code(&e, entries));
    return emit_tables(&e, layout);
}

muc_status muc_uthinker_emit(muc_context *ctx, muc_arena *arena, const muc_uthinker_model *model,
                             const muc_uthinker_layout *layout,
                             const muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES],
                             const muc_uthinker_tokens *tokens, muc_container *out)
{
    const emitter e = { ctx, arena, out };

    MUC_TRY(muc_uthinker_emit_code(ctx, arena, layout, entries, tokens, out));
    MUC_TRY(emit_parameters(&e, model, layout));
    out->section[MUR_SECTION_TOKN].data = tokens->tokenizer;
    out->section[MUR_SECTION_TOKN].size = tokens->tokenizer_bytes;
    if (tokens->prompt) {
        out->section[MUR_SECTION_PRMT].data = (const uint8_t *)tokens->prompt;
        out->section[MUR_SECTION_PRMT].size = strlen(tokens->prompt);
    }
    MUC_TRY(emit_layer_facts(&e, layout));
    if (!tokens->strip)
        MUC_TRY(emit_debug(&e, entries));
    MUC_TRY(emit_golden(&e, tokens));
    return emit_weights(&e, model, layout, tokens->output); /* the others say where they lie */
}
