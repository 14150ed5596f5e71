/* archive.c - finds the members of a .keras file. */
#include "formats/keras/archive.h"

#include <string.h>

#include "formats/zip.h"

bool muc_keras_archive_probe(muc_bytes bytes)
{
    static const char *const members[] = { "metadata.json", "config.json", "model.weights.h5" };
    muc_string_view first;

    if (!muc_zip_first(bytes, &first))
        return false;
    for (size_t i = 0; i < MUC_COUNT(members); i++)
        if (first.size == strlen(members[i]) && memcmp(first.data, members[i], first.size) == 0)
            return true;
    return false;
}

muc_status muc_keras_archive_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                                  muc_keras_archive *out)
{
    muc_status status;
    muc_zip *zip;

    MUC_TRY(muc_zip_open(ctx, arena, bytes, &zip));
    status = muc_zip_read(zip, "config.json", &out->config);
    if (status == MUC_OK)
        status = muc_zip_read(zip, "model.weights.h5", &out->weights);
    if (status == MUC_OK)
        status = muc_zip_read(zip, "metadata.json", &out->metadata);
    muc_zip_close(zip);
    return status;
}
