/* muc/playground.h - the page that runs muc in a browser, served on this computer. */
#ifndef MUC_PLAYGROUND_H
#define MUC_PLAYGROUND_H

#include "muc/status.h"

MUC_API_BEGIN

/* Told once that the page can be opened: "http://127.0.0.1:8080/". */
typedef void muc_playground_ready(void *arg, const char *address);

/* Serves the page, and nothing else, on 127.0.0.1 until the program ends; returns only if it fails.
 * page: a file that scripts/web made; NULL: the one that is installed with muc, or that scripts/web
 * made in the source folder (MUC_IO where there is none). It is read once, at the start.
 * port: 0: one that is free. */
muc_status muc_playground(muc_context *ctx, const char *page, uint16_t port,
                          muc_playground_ready *ready, void *arg);

MUC_API_END

#endif
