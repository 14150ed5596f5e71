/* local_server.c - serves the connections of one socket on several threads. */
#include "base/local_server.h"

#include <pthread.h>

/* A browser opens connections on which it asks nothing for a while: one thread must not be all. */
enum { ANSWERING_THREADS = 8, MOST_SECONDS = 5, DRAINED_BYTES = 1 << 16 };

typedef struct server {
    muc_socket listener;
    muc_answer_fn *answer;
    const void *arg;
} server;

/* What comes behind a request is read, or else the system resets the connection and the answer may
 * be lost. */
static void drain(muc_socket connection)
{
    uint8_t rest[4096];
    size_t drained = 0, size;

    muc_socket_end_sending(connection);
    while (drained < DRAINED_BYTES &&
           (size = muc_socket_receive(connection, rest, sizeof(rest))) > 0)
        drained += size;
}

static void *answer_connections(void *arg)
{
    const server *s = arg;
    bool over = false;

    while (!over) {
        muc_socket connection = muc_socket_accept(s->listener, MOST_SECONDS, &over);

        if (connection == MUC_NO_SOCKET)
            continue;
        if (s->answer(s->arg, connection))
            drain(connection);
        muc_socket_close(connection);
    }
    return NULL;
}

muc_status muc_serve_locally(muc_context *ctx, uint16_t port,
                             void (*ready)(void *ready_arg, uint16_t port), void *ready_arg,
                             muc_answer_fn *answer, const void *arg)
{
    server s = { .answer = answer, .arg = arg };
    pthread_t threads[ANSWERING_THREADS - 1];
    size_t count = 0;
    bool taken = false;

    s.listener = muc_socket_listen(&port, &taken);
    if (s.listener == MUC_NO_SOCKET)
        return muc_fail(ctx, MUC_IO, "127.0.0.1", MUC_NO_OFFSET,
                        taken ? "another program has port %u: choose another one, or 0 for any"
                              : "the system refuses to listen at port %u",
                        (unsigned)port);
    ready(ready_arg, port);
    while (count < MUC_COUNT(threads) &&
           pthread_create(&threads[count], NULL, answer_connections, &s) == 0)
        count++;
    answer_connections(&s);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    muc_socket_close(s.listener);
    return muc_fail(ctx, MUC_IO, "127.0.0.1", MUC_NO_OFFSET,
                    "the system gives no more connections");
}
