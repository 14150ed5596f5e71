/* local_socket_windows.c - opens sockets on 127.0.0.1, by Winsock. */
#include "base/local_server.h"

#include <limits.h>
#include <winsock2.h>

enum { WAITING_CONNECTIONS = 64 };

muc_socket muc_socket_listen(uint16_t *port, bool *taken)
{
    const BOOL yes = TRUE; /* or else another program could take the port beside this one */
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(*port) };
    int size = sizeof(address);
    WSADATA library;
    SOCKET listener;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (WSAStartup(MAKEWORD(2, 2), &library) != 0)
        return MUC_NO_SOCKET;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener == INVALID_SOCKET)
        return MUC_NO_SOCKET;
    if (setsockopt(listener, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&yes, sizeof(yes)) ||
        bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, WAITING_CONNECTIONS) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        *taken = WSAGetLastError() == WSAEADDRINUSE || WSAGetLastError() == WSAEACCES;
        closesocket(listener);
        return MUC_NO_SOCKET;
    }
    *port = ntohs(address.sin_port);
    return (muc_socket)listener;
}

muc_socket muc_socket_accept(muc_socket listener, unsigned seconds, bool *over)
{
    const DWORD wait = seconds * 1000;
    SOCKET connection = accept((SOCKET)listener, NULL, NULL);

    if (connection == INVALID_SOCKET) {
        *over = WSAGetLastError() == WSAENOTSOCK || WSAGetLastError() == WSAEINVAL;
        Sleep(100); /* until another connection ends */
        return MUC_NO_SOCKET;
    }
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, (const char *)&wait, sizeof(wait));
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, (const char *)&wait, sizeof(wait));
    return (muc_socket)connection;
}

static int within_int(size_t size)
{
    return size < INT_MAX ? (int)size : INT_MAX;
}

static size_t moved(int bytes)
{
    return bytes > 0 ? (size_t)bytes : 0;
}

size_t muc_socket_receive(muc_socket socket, void *out, size_t most)
{
    return moved(recv((SOCKET)socket, out, within_int(most), 0));
}

size_t muc_socket_send(muc_socket socket, const void *data, size_t size)
{
    return moved(send((SOCKET)socket, data, within_int(size), 0));
}

void muc_socket_end_sending(muc_socket socket)
{
    shutdown((SOCKET)socket, SD_SEND);
}

void muc_socket_close(muc_socket socket)
{
    closesocket((SOCKET)socket);
}
