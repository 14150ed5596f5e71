/* listing.c - counts the operators of a network's file by type, and refuses all that are unknown
 * together. */
#include "formats/listing.h"

#include <inttypes.h>
#include <string.h>

/* different operators that are told apart, and those of them that a message names */
enum { MOST_TYPES = 256, MOST_NAMED = 16 };

static const char others[] = "other operators";

static muc_listed_operator *find(const muc_listing *listing, const char *type, bool supported)
{
    for (size_t i = 0; i < listing->operator_count; i++) {
        muc_listed_operator *row = &listing->operators[i];

        if (row->supported == supported && strcmp(row->type, type) == 0)
            return row;
    }
    return NULL;
}

muc_status muc_listing_add(muc_context *ctx, muc_arena *arena, muc_listing *listing,
                           const char *type, const char *node, bool supported)
{
    muc_listed_operator *row = find(listing, type, supported);

    listing->nodes++;
    listing->lacks |= !supported;
    if (!row && listing->operator_count >= MOST_TYPES) {
        type = others;
        row = find(listing, type, supported);
    }
    if (!row) {
        MUC_TRY(MUC_ARENA_GROW(ctx, arena, listing->operator_count + 1, &listing->operator_capacity,
                               &listing->operators));
        row = &listing->operators[listing->operator_count];
        *row = (muc_listed_operator){ .supported = supported };
        MUC_TRY(muc_arena_string(ctx, arena, type, strlen(type), &row->type));
        MUC_TRY(muc_arena_string(ctx, arena, node, strlen(node), &row->first));
        listing->operator_count++;
    }
    row->nodes++;
    return MUC_OK;
}

bool muc_listing_is_short(const muc_listing *listing)
{
    for (size_t i = 0; i < listing->operator_count; i++)
        if (!listing->operators[i].supported)
            return true;
    return false;
}

muc_status muc_listing_add_port(muc_context *ctx, muc_arena *arena, muc_listing *listing,
                                const char *name, muc_text *shape, bool is_output)
{
    muc_listed_port port = { .is_output = is_output };
    muc_status status = muc_text_status(ctx, shape);

    if (status == MUC_OK)
        status =
            muc_arena_string(ctx, arena, shape->data ? shape->data : "", shape->size, &port.shape);
    muc_text_free(shape);
    MUC_TRY(status);
    MUC_TRY(muc_arena_string(ctx, arena, name, strlen(name), &port.name));
    MUC_TRY(MUC_ARENA_GROW(ctx, arena, listing->port_count + 1, &listing->port_capacity,
                           &listing->ports));
    listing->ports[listing->port_count++] = port;
    return MUC_OK;
}

muc_status muc_listing_refuse(muc_context *ctx, const char *path, const muc_listing *listing)
{
    muc_text text = { 0 };
    muc_status status;
    size_t count = 0;

    for (size_t i = 0; i < listing->operator_count; i++) {
        const muc_listed_operator *row = &listing->operators[i];

        if (row->supported || count++ >= MOST_NAMED)
            continue;
        muc_text_add(&text, "%s%.80s (%" PRIu64 " node%s'%.80s')", count > 1 ? ", " : "", row->type,
                     row->nodes, row->nodes == 1 ? ", " : "s, the first ", row->first);
    }
    if (count > MOST_NAMED)
        muc_text_add(&text, " and %zu more", count - MOST_NAMED);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                          "muc does not have %s of the network: %s; muc ops lists the operators "
                          "that it has, and muc inspect shows the network",
                          count == 1 ? "an operator" : "operators", text.data);
    muc_text_free(&text);
    return status;
}
