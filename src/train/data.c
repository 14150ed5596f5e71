/* data.c - an epoch is a list of pieces that its random state decides; so a place in the data is
 * that state and an index. */
#include "train/data.h"

/* pieces of a document of length tokens; the first is shorter by shift */
static size_t piece_count(size_t length, size_t window, size_t shift)
{
    if (length < 2)
        return 0;
    return length - 1 <= window ? 1 : (length - 1 + shift + window - 1) / window;
}

static void add_pieces(muc_train_loader *loader, size_t document, size_t shift)
{
    const muc_train_corpus *corpus = loader->corpus;
    size_t start = corpus->starts[document], last = corpus->starts[document + 1] - 1;
    size_t counted = start + (corpus->silent ? corpus->silent[document] : 0);
    size_t first = start, end;

    shift = last - start <= loader->window ? 0 : shift;
    for (; first < last; first = end) {
        end = first + loader->window - (first == start ? shift : 0);
        end = end < last ? end : last;
        if (counted <= end)
            loader->pieces[loader->piece_count++] = (muc_train_piece){ first, end, counted };
    }
}

static muc_status begin_epoch(muc_train_loader *loader)
{
    const muc_train_corpus *corpus = loader->corpus;
    size_t shift, need = 0;

    loader->after = loader->place.random;
    shift = loader->ordered ? 0 : muc_train_random_below(&loader->after, (uint32_t)loader->window);
    for (size_t d = 0; d < corpus->documents; d++)
        need += piece_count(corpus->starts[d + 1] - corpus->starts[d], loader->window, shift);
    MUC_TRY(muc_arena_grow(loader->ctx, &loader->arena, need, sizeof(*loader->pieces),
                           &loader->piece_capacity, (void **)&loader->pieces));
    loader->piece_count = 0;
    for (size_t d = 0; d < corpus->documents; d++)
        if (corpus->starts[d + 1] - corpus->starts[d] > 1)
            add_pieces(loader, d, shift);
    if (loader->piece_count == 0 || loader->piece_count > UINT32_MAX)
        return muc_fail(loader->ctx, MUC_MALFORMED, "train", MUC_NO_OFFSET,
                        "%zu pieces in %zu documents, expected between one and 2^32",
                        loader->piece_count, corpus->documents);
    for (size_t i = loader->ordered ? 0 : loader->piece_count; i-- > 1;) {
        size_t other = muc_train_random_below(&loader->after, (uint32_t)i + 1);
        muc_train_piece piece = loader->pieces[i];

        loader->pieces[i] = loader->pieces[other];
        loader->pieces[other] = piece;
    }
    return MUC_OK;
}

static muc_status make(muc_train_loader *loader)
{
    muc_context *ctx = loader->ctx;

    if (loader->window == 0 || loader->window > loader->rows || loader->rows > UINT32_MAX)
        return muc_fail(ctx, MUC_USAGE, "train", MUC_NO_OFFSET,
                        "windows of %zu tokens in batches of %zu", loader->window, loader->rows);
    MUC_TRY(MUC_ARENA_NEW(ctx, &loader->arena, loader->rows, &loader->tokens));
    MUC_TRY(MUC_ARENA_NEW(ctx, &loader->arena, loader->rows, &loader->positions));
    MUC_TRY(MUC_ARENA_NEW(ctx, &loader->arena, loader->rows, &loader->targets));
    MUC_TRY(MUC_ARENA_NEW(ctx, &loader->arena, loader->rows + 1, &loader->starts));
    MUC_TRY(begin_epoch(loader));
    if (loader->place.next <= loader->piece_count)
        return MUC_OK;
    return muc_fail(ctx, MUC_MALFORMED, "train", MUC_NO_OFFSET,
                    "piece %llu of an epoch of %zu: the data is not what the run began with",
                    (unsigned long long)loader->place.next, loader->piece_count);
}

muc_status muc_train_loader_make(muc_context *ctx, const muc_train_corpus *corpus, size_t window,
                                 size_t rows, const muc_train_place *place, muc_train_loader *out)
{
    muc_status status;

    *out = (muc_train_loader){
        .ctx = ctx, .corpus = corpus, .window = window, .rows = rows, .ordered = !place
    };
    if (place)
        out->place = *place;
    status = make(out);
    if (status != MUC_OK)
        muc_train_loader_free(out);
    return status;
}

void muc_train_loader_free(muc_train_loader *loader)
{
    muc_arena_free(&loader->arena);
}

static size_t put(muc_train_loader *loader, const muc_train_piece *piece, size_t row)
{
    const uint32_t *tokens = loader->corpus->tokens;
    size_t counted = 0;

    for (size_t t = piece->first; t < piece->end; t++, row++) {
        bool counts = t + 1 >= piece->counted;

        loader->tokens[row] = tokens[t];
        loader->positions[row] = (uint32_t)(t - piece->first);
        loader->targets[row] = counts ? (int32_t)tokens[t + 1] : -1;
        counted += counts;
    }
    return counted;
}

muc_status muc_train_loader_next(muc_train_loader *loader, muc_train_batch *out, size_t *counted)
{
    size_t rows = 0, documents = 0;

    if (loader->place.next == loader->piece_count) {
        loader->place.random = loader->after;
        loader->place.epoch++;
        loader->place.next = 0;
        MUC_TRY(begin_epoch(loader));
    }
    *counted = 0;
    for (; loader->place.next < loader->piece_count; loader->place.next++) {
        const muc_train_piece *piece = &loader->pieces[loader->place.next];

        if (piece->end - piece->first > loader->rows - rows)
            break;
        loader->starts[documents++] = rows;
        *counted += put(loader, piece, rows);
        rows += piece->end - piece->first;
    }
    loader->starts[documents] = rows;
    *out = (muc_train_batch){
        .rows = rows,
        .tokens = loader->tokens,
        .positions = loader->positions,
        .targets = loader->targets,
        .documents = { documents, loader->starts },
        .weight = 1.0 / (double)*counted, /* every piece has a target */
    };
    return MUC_OK;
}
