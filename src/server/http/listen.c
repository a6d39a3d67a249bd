// SPDX-License-Identifier: Apache-2.0
#include "server/http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static stint_status look_up(const char *host, const char *port, struct addrinfo **found) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    int error = getaddrinfo(host, port, &hints, found);
    if (error == 0) return STINT_OK;
    return st_fail(STINT_E_IO, "cannot listen on '%s': %s", host, gai_strerror(error));
}

// The port that a socket is bound to; 0 if it is unknown.
static uint16_t port_of(int file) {
    struct sockaddr_storage address;
    socklen_t n = sizeof address;
    if (getsockname(file, (struct sockaddr *)&address, &n) != 0) return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&address)->sin_port);
}

// A socket, or -1 with errno.
static int listen_on(const struct addrinfo *address) {
    int one = 1;
    int file = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                      address->ai_protocol);
    if (file < 0) return -1;
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(file, address->ai_addr, address->ai_addrlen) == 0 && listen(file, SOMAXCONN) == 0)
        return file;
    int error = errno;
    close(file);
    errno = error;
    return -1;
}

stint_status st_listen(const char *host, uint16_t port, uint16_t *bound, int *out) {
    char service[8];
    struct addrinfo *found;
    int file = -1;
    snprintf(service, sizeof service, "%u", port);
    ST_TRY(look_up(host, service, &found));
    for (const struct addrinfo *at = found; at != NULL && file < 0; at = at->ai_next)
        file = listen_on(at);
    int error = errno;
    freeaddrinfo(found);
    if (file < 0)
        return st_fail(STINT_E_IO, "cannot listen on %s port %u: %s%s", host, port, strerror(error),
                       error == EADDRINUSE ? "; select another --port, 0 takes a free one" : "");
    *bound = port_of(file);
    *out = file;
    return STINT_OK;
}

static bool is_local(const struct sockaddr *address) {
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    uint32_t ip = ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
    return address->sa_family == AF_INET && ip >> 24 == 127;
}

bool st_listen_is_local(const char *host) {
    struct addrinfo *found;
    bool local = true;
    if (look_up(host, "0", &found) != STINT_OK) return false;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        local = local && is_local(at->ai_addr);
    freeaddrinfo(found);
    return local;
}
