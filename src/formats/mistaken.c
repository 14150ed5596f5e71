/* mistaken.c - how files begin that are often saved in the place of a model's. */
#include "formats/mistaken.h"

#include <string.h>

static const struct {
    const char *begin, *what;
} others[] = {
    { "version https://git-lfs", "is a pointer of Git LFS, not the file: git lfs pull fetches it" },
    { "<!DOCTYPE", "is a page of HTML, not a model: download the file itself" },
    { "<!doctype", "is a page of HTML, not a model: download the file itself" },
    { "<html", "is a page of HTML, not a model: download the file itself" },
    { "\x1f\x8b", "is compressed: gunzip it first" },
    { "BZh", "is compressed: bunzip2 it first" },
    { "\xfd"
      "7zXZ",
      "is compressed: unxz it first" },
};

muc_status muc_refuse_mistaken(muc_context *ctx, muc_bytes bytes)
{
    for (size_t i = 0; i < MUC_COUNT(others); i++) {
        size_t length = strlen(others[i].begin);

        if (bytes.size >= length && memcmp(bytes.data, others[i].begin, length) == 0)
            return muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET, "%s", others[i].what);
    }
    return bytes.size ? MUC_OK
                      : muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET,
                                 "is empty: its download or export did not succeed");
}
