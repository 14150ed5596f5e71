/* playground.c - serves the page that runs muc in a browser, on this computer alone. */
#include "muc/playground.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/local_server.h"
#include "base/locale.h"
#include "base/system.h"
#include "driver/playground/http_request.h"
#include "run/installed.h"

enum { MOST_REQUEST_SECONDS = 10, MOST_ANSWER_SECONDS = 120, MOST_PAGE_BYTES = 64 << 20 };

static bool send_all(muc_socket connection, const char *data, size_t size, double until)
{
    for (size_t sent = 0, some; sent < size; sent += some) {
        some = muc_socket_send(connection, data + sent, size - sent);
        if (some == 0 || muc_seconds() > until)
            return false;
    }
    return true;
}

/* What is to be answered to the request that comes; false: none came. */
static bool take_request(muc_socket connection, http_answer *answer, bool *is_head)
{
    const double until = muc_seconds() + MOST_REQUEST_SECONDS;
    char head[HTTP_MOST_HEAD];
    size_t size = 0, some, whole;

    *is_head = false;
    while ((whole = http_head_size(head, size)) == 0) {
        if (size == sizeof(head)) {
            *answer = HTTP_431;
            return true;
        }
        some = muc_socket_receive(connection, head + size, sizeof(head) - size);
        size += some;
        if (some == 0 || muc_seconds() > until) {
            *answer = HTTP_408;
            return size > 0;
        }
    }
    *answer = http_judge(head, whole, is_head);
    return true;
}

static const char *words_of(http_answer answer)
{
    switch (answer) {
#define ANSWER_CASE(number, words) \
    case HTTP_##number: \
        return words;
        HTTP_ANSWER_TABLE(ANSWER_CASE)
#undef ANSWER_CASE
    }
    return "";
}

static bool answer_request(const void *arg, muc_socket connection)
{
    const muc_bytes *page = arg;
    char head[512], words[64];
    muc_bytes body = *page;
    http_answer answer;
    bool is_head;
    double until;

    if (!take_request(connection, &answer, &is_head))
        return false;
    if (answer != HTTP_200)
        body = (muc_bytes){ (const uint8_t *)words,
                            (size_t)snprintf(words, sizeof(words), "%s\n", words_of(answer)), "" };
    snprintf(head, sizeof(head),
             "HTTP/1.1 %d %s\r\nContent-Type: text/%s; charset=utf-8\r\nContent-Length: %zu\r\n"
             "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n%s"
             "Connection: close\r\n\r\n",
             (int)answer, words_of(answer), answer == HTTP_200 ? "html" : "plain", body.size,
             answer == HTTP_405 ? "Allow: GET, HEAD\r\n" : "");
    until = muc_seconds() + MOST_ANSWER_SECONDS;
    if (send_all(connection, head, strlen(head), until) && !is_head)
        send_all(connection, (const char *)body.data, body.size, until);
    return true;
}

/* The page that is installed, or that scripts/web made in the source folder. */
static muc_status find_page(muc_context *ctx, muc_arena *arena, const char **out)
{
    static const char *const places[] = { "muc.html", "build-web/muc.html" };

    for (size_t i = 0; i < MUC_COUNT(places); i++) {
        MUC_TRY(muc_arena_format(ctx, arena, out, "%s/%s", muc_data_folder(), places[i]));
        if (muc_path_exists(*out))
            return MUC_OK;
    }
    return muc_fail(ctx, MUC_IO, "muc.html", MUC_NO_OFFSET,
                    "the page is not installed; scripts/web of muc's sources makes it "
                    "(build-web/muc.html): give it by --page FILE");
}

/* A copy, since the file may be made anew while it is served. */
static muc_status read_page(muc_context *ctx, muc_arena *arena, const char *path, muc_bytes *out)
{
    static const char begin[] = "<!DOCTYPE html>";
    muc_file file = { 0 };
    muc_status status = muc_file_open(ctx, path, &file);
    uint8_t *copy = NULL;

    if (status != MUC_OK)
        return status;
    if (file.bytes.size < sizeof(begin) - 1 ||
        memcmp(file.bytes.data, begin, sizeof(begin) - 1) != 0)
        status =
            muc_fail(ctx, MUC_MALFORMED, path, 0, "is not a page: it begins without %s", begin);
    else if (file.bytes.size > MOST_PAGE_BYTES)
        status =
            muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                     "has %zu bytes, and a page %d at most", file.bytes.size, (int)MOST_PAGE_BYTES);
    else
        status = MUC_ARENA_NEW(ctx, arena, file.bytes.size, &copy);
    if (status == MUC_OK) {
        memcpy(copy, file.bytes.data, file.bytes.size);
        *out = (muc_bytes){ copy, file.bytes.size, path };
    }
    muc_file_close(&file);
    return status;
}

typedef struct listener {
    muc_playground_ready *ready;
    void *arg;
} listener;

static void tell_address(void *arg, uint16_t port)
{
    const listener *l = arg;
    char address[64];

    snprintf(address, sizeof(address), "http://127.0.0.1:%u/", (unsigned)port);
    l->ready(l->arg, address);
}

muc_status muc_playground(muc_context *ctx, const char *page, uint16_t port,
                          muc_playground_ready *ready, void *arg)
{
    MUC_IN_C_LOCALE;
    listener l = { ready, arg };
    muc_arena arena = { 0 };
    muc_bytes bytes;
    muc_status status = page ? MUC_OK : find_page(ctx, &arena, &page);

    if (status == MUC_OK)
        status = read_page(ctx, &arena, page, &bytes);
    if (status == MUC_OK)
        status = muc_serve_locally(ctx, port, tell_address, &l, answer_request, &bytes);
    muc_arena_free(&arena);
    return status;
}
