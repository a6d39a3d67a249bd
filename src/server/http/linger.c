// SPDX-License-Identifier: Apache-2.0
#include "server/http/linger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N_SOCKETS = 64, BLOCK_BYTES = 64 << 10, MAX_BLOCKS = 16, MAX_BYTES = 64 << 20 };

struct lingering {
    int file; // -1: none
    uint64_t until_ns;
    size_t n_read;
};

struct st_linger {
    struct lingering sockets[N_SOCKETS];
    size_t next; // the oldest one, or a free place
    char block[BLOCK_BYTES];
};

struct st_linger *st_linger_open(void) {
    struct st_linger *linger = calloc(1, sizeof *linger);
    if (linger == NULL) return NULL;
    for (size_t i = 0; i < N_SOCKETS; i++) linger->sockets[i].file = -1;
    return linger;
}

static void end(struct lingering *socket) {
    if (socket->file >= 0) close(socket->file); // which also takes it out of the epoll set
    socket->file = -1;
}

void st_linger_close(struct st_linger *linger) {
    if (linger == NULL) return;
    for (size_t i = 0; i < N_SOCKETS; i++) end(&linger->sockets[i]);
    free(linger);
}

void st_linger_add(struct st_linger *linger, int epoll, int file, uint64_t until_ns) {
    struct lingering *socket = &linger->sockets[linger->next];
    linger->next = (linger->next + 1) % N_SOCKETS;
    end(socket);
    socket->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (socket->file < 0) return;
    socket->until_ns = until_ns;
    socket->n_read = 0;
    shutdown(socket->file, SHUT_WR); // the end of the reply
    // No connection's address: the event only wakes the thread.
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = ST_LINGER_EVENT};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket->file, &event) != 0) end(socket);
}

// A part of it, so that one client cannot keep the thread. False: nothing more will come.
static bool read_some(struct st_linger *linger, struct lingering *socket) {
    for (int i = 0; i < MAX_BLOCKS; i++) {
        ssize_t n = recv(socket->file, linger->block, BLOCK_BYTES, MSG_DONTWAIT);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        socket->n_read += (size_t)n;
        if (n == 0 || socket->n_read > MAX_BYTES) return false;
    }
    return true;
}

void st_linger_read(struct st_linger *linger, uint64_t now_ns) {
    for (size_t i = 0; i < N_SOCKETS; i++) {
        struct lingering *socket = &linger->sockets[i];
        if (socket->file < 0) continue;
        if (now_ns >= socket->until_ns || !read_some(linger, socket)) end(socket);
    }
}
