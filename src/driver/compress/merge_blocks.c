/* merge_blocks.c - puts the parts of a quantized model together: muc merge -o. */
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/text.h"
#include "muc/compile.h"
#include "passes/weights/quantize_blocks.h"
#include "report/report_builder.h"
#include "run/bdt_model.h"

enum { MOST_TEXT = 96 };

typedef struct part {
    const char *path;
    muc_file file;
    muc_bdt bdt;
    unsigned long number, of;
    char text[MOST_TEXT];
    const char *common; /* in text: what all parts have in common */
} part;

typedef struct merging {
    muc_context *ctx;
    part *parts; /* [count], those before `open` are to be closed */
    size_t count, open;
    muc_graph *graph;
    uint64_t weights, bytes;
} merging;

/* ---- reading ---- */

static muc_status not_a_part(const merging *m, const part *p)
{
    return muc_fail(m->ctx, MUC_MALFORMED, p->path, MUC_NO_OFFSET,
                    "is not a part of a model: expected what muc quantize --shard I/N writes");
}

static muc_status read_text(const merging *m, part *p)
{
    const muc_bdt_entry *entry = muc_bdt_find(&p->bdt, MUC_BLOCKS_PART);
    char *end;

    if (!entry || entry->encoding != MUC_BDT_BYTES || entry->bytes >= MOST_TEXT)
        return not_a_part(m, p);
    memcpy(p->text, entry->data, (size_t)entry->bytes);
    p->number = strtoul(p->text, &end, 10);
    if (*end != '/')
        return not_a_part(m, p);
    p->common = end + 1;
    p->of = strtoul(p->common, &end, 10);
    return p->number >= 1 && p->number <= p->of && *end == ' ' ? MUC_OK : not_a_part(m, p);
}

static muc_status open_part(merging *m, const char *path)
{
    part *p = &m->parts[m->open];
    muc_status status;

    p->path = path;
    MUC_TRY(muc_file_open(m->ctx, path, &p->file));
    status = muc_bdt_probe(p->file.bytes) ? muc_bdt_read(m->ctx, p->file.bytes, &p->bdt)
                                          : not_a_part(m, p);
    if (status != MUC_OK) {
        muc_file_close(&p->file);
        return status;
    }
    m->open++;
    return read_text(m, p);
}

/* ---- what belongs together ---- */

static muc_status mismatch(const merging *m, const part *p, const char *what)
{
    return muc_fail(m->ctx, MUC_MISMATCH, p->path, MUC_NO_OFFSET,
                    "'%s' is not as in %s: parts of one model have the same checkpoint and options",
                    what, m->parts[0].path);
}

/* all but blocks and the graph, where they are told */
static muc_status check_same(const merging *m, const part *p)
{
    const part *first = &m->parts[0];

    if (strcmp(p->common, first->common) != 0)
        return mismatch(m, p, MUC_BLOCKS_PART);
    for (uint32_t i = 0; i < first->bdt.count; i++) {
        const muc_bdt_entry *a = &first->bdt.entries[i], *b = muc_bdt_find(&p->bdt, a->name);

        if (a->encoding == MUC_BDT_BD || strcmp(a->name, MUC_BLOCKS_GRAPH) == 0 ||
            strcmp(a->name, MUC_BLOCKS_PART) == 0)
            continue;
        if (!b || b->encoding != a->encoding || b->bytes != a->bytes ||
            memcmp(b->data, a->data, (size_t)a->bytes) != 0)
            return mismatch(m, p, a->name);
    }
    return MUC_OK;
}

static size_t count_of(const merging *m, unsigned long number)
{
    size_t count = 0;

    for (size_t i = 0; i < m->count; i++)
        count += m->parts[i].number == number;
    return count;
}

static muc_status check_parts(const merging *m)
{
    const part *first = &m->parts[0];

    for (size_t i = 0; i < m->count; i++) {
        const part *p = &m->parts[i];

        MUC_TRY(check_same(m, p));
        if (count_of(m, p->number) > 1)
            return muc_fail(m->ctx, MUC_USAGE, p->path, MUC_NO_OFFSET,
                            "shard %lu of %lu is given twice", p->number, p->of);
    }
    for (unsigned long number = 1; number <= first->of; number++)
        if (count_of(m, number) == 0)
            return muc_fail(m->ctx, MUC_USAGE, first->path, MUC_NO_OFFSET,
                            "shard %lu of %lu is missing", number, first->of);
    return MUC_OK;
}

/* ---- the model ---- */

static muc_status attach(merging *m, uint32_t id)
{
    muc_tensor *tensor = &m->graph->tensors[id];
    bool is_matrix = muc_becomes_blocks(m->graph, id);
    uint64_t elements = 1;

    for (uint32_t d = 0; d < tensor->rank; d++)
        elements *= muc_expr_get(m->graph->pool, tensor->dims[d])->lo;
    tensor->sequence_bytes = 0;
    for (size_t i = 0; i < m->count; i++) {
        const muc_bdt_entry *entry = muc_bdt_find(&m->parts[i].bdt, tensor->name);

        if (!entry)
            continue;
        if (entry->encoding != (is_matrix ? MUC_BDT_BD : MUC_BDT_F32) ||
            (uint64_t)entry->n * entry->k != elements || (is_matrix && tensor->sequence))
            return not_a_part(m, &m->parts[i]);
        if (!is_matrix) {
            tensor->data = entry->data;
            return entry->bytes == tensor->bytes ? MUC_OK : not_a_part(m, &m->parts[i]);
        }
        tensor->sequence = entry->data;
        tensor->sequence_bytes = entry->bytes;
        m->weights += elements;
        m->bytes += entry->bytes;
    }
    return tensor->sequence ? MUC_OK : not_a_part(m, &m->parts[0]);
}

static muc_status join(merging *m)
{
    const part *first = &m->parts[0];
    const muc_bdt_entry *text = muc_bdt_find(&first->bdt, MUC_BLOCKS_GRAPH);

    if (!text || text->encoding != MUC_BDT_BYTES)
        return not_a_part(m, first);
    MUC_TRY(
        muc_graph_parse(m->ctx, (muc_bytes){ text->data, text->bytes, first->path }, &m->graph));
    for (uint32_t i = 0; i < m->graph->tensor_count; i++)
        if (m->graph->tensors[i].kind == MUC_TENSOR_CONST)
            MUC_TRY(attach(m, i));
    return MUC_OK;
}

/* in the order in which muc_blocks_write has them */
static muc_status add_entries(const merging *m, const muc_text *text, muc_bdt_writer *writer)
{
    const muc_bdt *first = &m->parts[0].bdt;

    for (uint32_t i = 0; i < first->count; i++) {
        muc_bdt_entry entry = first->entries[i];

        if (entry.encoding != MUC_BDT_BYTES || strcmp(entry.name, MUC_BLOCKS_PART) == 0)
            continue;
        if (strcmp(entry.name, MUC_BLOCKS_GRAPH) == 0) {
            entry.data = (const uint8_t *)text->data;
            entry.bytes = text->size;
        }
        MUC_TRY(muc_bdt_add(writer, &entry));
    }
    for (uint32_t i = 0; i < m->graph->tensor_count; i++)
        if (m->graph->tensors[i].kind == MUC_TENSOR_CONST)
            MUC_TRY(muc_blocks_add_constant(writer, m->graph, &m->graph->tensors[i]));
    return MUC_OK;
}

static muc_status write_model(const merging *m, const char *path)
{
    muc_bdt_writer *writer;
    muc_text text = { 0 };
    muc_status status;

    MUC_TRY(muc_bdt_begin(m->ctx, path, &writer));
    muc_graph_print(m->graph, &text);
    status = muc_text_status(m->ctx, &text);
    if (status == MUC_OK)
        status = add_entries(m, &text, writer);
    muc_text_free(&text);
    if (status == MUC_OK)
        return muc_bdt_commit(writer);
    muc_bdt_discard(writer);
    return status;
}

static muc_status merge(merging *m, const char *const *paths, const char *out_path)
{
    for (size_t i = 0; i < m->count; i++)
        MUC_TRY(open_part(m, paths[i]));
    MUC_TRY(check_parts(m));
    MUC_TRY(join(m));
    return write_model(m, out_path);
}

muc_status muc_merge_blocks(muc_context *ctx, const char *const *paths, size_t count,
                            const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;
    merging m = { .ctx = ctx, .count = count };
    muc_status status;

    MUC_TRY(muc_output_precheck(ctx, out_path));
    MUC_TRY(MUC_NEW_ARRAY(ctx, out_path, count, &m.parts));
    status = merge(&m, paths, out_path);
    if (status == MUC_OK)
        status = muc_report_new(ctx, out);
    if (status == MUC_OK) {
        muc_report_add_text(*out, "file", "%s", out_path);
        muc_report_add_count(*out, "weights", m.weights);
        muc_report_add_count(*out, "bytes", m.bytes);
        muc_report_add_bits_per_weight(*out, m.bytes, m.weights);
        status = muc_report_status(ctx, *out);
    }
    muc_graph_free(m.graph);
    for (size_t i = 0; i < m.open; i++) {
        muc_bdt_free(&m.parts[i].bdt);
        muc_file_close(&m.parts[i].file);
    }
    free(m.parts);
    return status;
}
