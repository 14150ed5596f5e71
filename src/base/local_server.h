/* local_server.h - a server for programs of this computer alone, with one request for each
 * connection. */
#ifndef MUC_LOCAL_SERVER_H
#define MUC_LOCAL_SERVER_H

#include "base/base.h"

/* A socket of the system; MUC_NO_SOCKET: none. */
typedef intptr_t muc_socket;
enum { MUC_NO_SOCKET = -1 };

/* ---- sockets: posix/ and windows/ have each their form ---- */

/* Listens on 127.0.0.1 at a port, or with 0 at one that is free; *port becomes the socket's.
 * MUC_NO_SOCKET: refused; *taken tells whether another program has the port. */
muc_socket muc_socket_listen(uint16_t *port, bool *taken);
/* The next connection, whose calls wait for `seconds` at most. MUC_NO_SOCKET: this one failed; then
 * *over says whether all others will, too. */
muc_socket muc_socket_accept(muc_socket listener, unsigned seconds, bool *over);
/* At least one byte, as many as have come; 0: no more come, or they take too long. */
size_t muc_socket_receive(muc_socket socket, void *out, size_t most);
/* How many bytes were taken, at least one; 0: none are, or they take too long. */
size_t muc_socket_send(muc_socket socket, const void *data, size_t size);
void muc_socket_end_sending(muc_socket socket);
void muc_socket_close(muc_socket socket);

/* ---- the server ---- */

/* Reads a request and answers it; false: none came. Called by several threads at once. */
typedef bool muc_answer_fn(const void *arg, muc_socket connection);

/* Listens on 127.0.0.1 and tells the port; a few threads, one of which is the caller's, then answer
 * one connection each at a time, until the program ends. Port 0: one that is free. Returns only if
 * it fails. */
muc_status muc_serve_locally(muc_context *ctx, uint16_t port,
                             void (*ready)(void *ready_arg, uint16_t port), void *ready_arg,
                             muc_answer_fn *answer, const void *arg);

#endif
