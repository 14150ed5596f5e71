/* local_socket_posix.c - opens sockets on 127.0.0.1, by POSIX. */
#include "base/local_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WAITING_CONNECTIONS = 64 };

muc_socket muc_socket_listen(uint16_t *port, bool *taken)
{
    const int yes = 1; /* a port that the last server left may be used again at once */
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(*port) };
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0)
        return MUC_NO_SOCKET;
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, WAITING_CONNECTIONS) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        *taken = errno == EADDRINUSE;
        close(listener);
        return MUC_NO_SOCKET;
    }
    *port = ntohs(address.sin_port);
    return listener;
}

muc_socket muc_socket_accept(muc_socket listener, unsigned seconds, bool *over)
{
    const struct timeval wait = { .tv_sec = (time_t)seconds };
    const struct timespec pause = { .tv_nsec = 100000000 };
    int connection = accept((int)listener, NULL, NULL);

    if (connection < 0) {
        *over = errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            nanosleep(&pause, NULL); /* until another connection ends */
        return MUC_NO_SOCKET;
    }
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    return connection;
}

static size_t moved(ssize_t bytes)
{
    return bytes > 0 ? (size_t)bytes : 0;
}

size_t muc_socket_receive(muc_socket socket, void *out, size_t most)
{
    return moved(recv((int)socket, out, most, 0));
}

size_t muc_socket_send(muc_socket socket, const void *data, size_t size)
{
    return moved(send((int)socket, data, size, MSG_NOSIGNAL));
}

void muc_socket_end_sending(muc_socket socket)
{
    shutdown((int)socket, SHUT_WR);
}

void muc_socket_close(muc_socket socket)
{
    close((int)socket);
}
