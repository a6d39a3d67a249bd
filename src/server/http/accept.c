// SPDX-License-Identifier: Apache-2.0
#include "server/http/accept.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { RETRY_MS = 100, FORGET_MS = 1000 };

struct st_accept {
    pthread_t thread;
    int listening, wake; // wake: an eventfd
    size_t n_places;
    st_accept_fn *take;
    void *context;
    pthread_mutex_t lock;
    size_t n_given; // clients that were taken and have not begun
    size_t n_open;  // those that have begun and not ended
    bool waits;     // for a place, or for resources
    bool stopping;
};

// Can only fail if the counter is full, and then the thread wakes anyway.
static void ring(struct st_accept *accept) {
    eventfd_write(accept->wake, 1);
}

// False: another try now would fail as well.
static bool accept_one(struct st_accept *accept) {
    struct sockaddr_storage address;
    socklen_t n_address = sizeof address;
    int client = accept4(accept->listening, (struct sockaddr *)&address, &n_address,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) // that client may be gone again
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
    pthread_mutex_lock(&accept->lock);
    accept->n_given++;
    pthread_mutex_unlock(&accept->lock);
    if (accept->take(accept->context, client, (struct sockaddr *)&address, n_address)) return true;
    pthread_mutex_lock(&accept->lock);
    if (accept->n_given > 0) accept->n_given--;
    pthread_mutex_unlock(&accept->lock);
    return true;
}

// Counts as free what was taken and did not begin while the thread waited: the library had no
// memory for those clients, and says so to nobody.
static void forget_given(struct st_accept *accept) {
    pthread_mutex_lock(&accept->lock);
    accept->n_given = 0;
    pthread_mutex_unlock(&accept->lock);
}

static void *run(void *context) {
    struct st_accept *accept = context;
    bool lacking = false; // descriptors or memory
    for (;;) {
        pthread_mutex_lock(&accept->lock);
        bool stopping = accept->stopping;
        bool waits = lacking || accept->n_given + accept->n_open >= accept->n_places;
        accept->waits = waits;
        pthread_mutex_unlock(&accept->lock);
        if (stopping) return NULL;
        struct pollfd files[] = {{.fd = accept->wake, .events = POLLIN},
                                 {.fd = accept->listening, .events = POLLIN}};
        int n = poll(files, waits ? 1 : 2, lacking ? RETRY_MS : waits ? FORGET_MS : -1);
        eventfd_t count;
        if (files[0].revents != 0) eventfd_read(accept->wake, &count);
        if (n == 0 && !lacking) forget_given(accept);
        lacking = files[1].revents != 0 && !accept_one(accept);
    }
}

static void free_accept(struct st_accept *accept) {
    if (accept->listening >= 0) close(accept->listening);
    if (accept->wake >= 0) close(accept->wake);
    pthread_mutex_destroy(&accept->lock);
    free(accept);
}

stint_status st_accept_open(int listening, size_t n_places, st_accept_fn *take, void *context,
                            struct st_accept **out) {
    struct st_accept *accept = calloc(1, sizeof *accept);
    if (accept == NULL) {
        close(listening);
        return st_fail(STINT_E_NOMEM, "no memory to accept connections");
    }
    *accept = (struct st_accept){
        .listening = listening, .n_places = n_places, .take = take, .context = context};
    pthread_mutex_init(&accept->lock, NULL);
    accept->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *out = accept;
    int error = accept->wake < 0 ? errno : pthread_create(&accept->thread, NULL, run, accept);
    if (error == 0) return STINT_OK;
    *out = NULL;
    free_accept(accept);
    return st_fail(STINT_E_IO, "cannot accept connections: %s", strerror(error));
}

void st_accept_stop(struct st_accept *accept) {
    if (accept->listening < 0) return;
    pthread_mutex_lock(&accept->lock);
    accept->stopping = true;
    pthread_mutex_unlock(&accept->lock);
    ring(accept);
    pthread_join(accept->thread, NULL);
    close(accept->listening);
    accept->listening = -1;
}

void st_accept_close(struct st_accept *accept) {
    if (accept == NULL) return;
    st_accept_stop(accept);
    free_accept(accept);
}

void st_accept_began(struct st_accept *accept) {
    pthread_mutex_lock(&accept->lock);
    if (accept->n_given > 0) accept->n_given--;
    accept->n_open++;
    pthread_mutex_unlock(&accept->lock);
}

void st_accept_ended(struct st_accept *accept) {
    pthread_mutex_lock(&accept->lock);
    accept->n_open--;
    bool waits = accept->waits;
    pthread_mutex_unlock(&accept->lock);
    if (waits) ring(accept);
}
