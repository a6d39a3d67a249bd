// SPDX-License-Identifier: Apache-2.0
// Clients are accepted while there are places, whatever accept4() says, and no longer when that
// was stopped. The system's calls are replaced, so that resources run out and time passes at once.
#include "server/http/accept.h"
#include "server/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { MAX_CLIENTS = 64 };

// What takes clients: holds them until the test begins them.
struct taker {
    struct st_accept *accept;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int clients[MAX_CLIENTS];
    size_t n_clients; // taken and not ended
    size_t n_places;
    bool refuses, stopped, wrong;
    size_t n_taken;
};

static atomic_int error, n_errors;         // what accept4() says, and how often
static atomic_bool lacked, polled_lacking; // the thread polled a socket that it cannot accept from
static atomic_bool hurried;                // nothing happens during a wait

int accept4(int file, struct sockaddr *address, socklen_t *n, int flags) {
    if (atomic_load(&n_errors) > 0) {
        atomic_fetch_sub(&n_errors, 1);
        errno = atomic_load(&error);
        atomic_store(&lacked, errno == EMFILE || errno == ENFILE || errno == ENOBUFS);
        return -1;
    }
    return (int)syscall(SYS_accept4, file, address, n, flags);
}

int poll(struct pollfd *files, nfds_t n, int ms) {
    if (atomic_exchange(&lacked, false) && n > 1) atomic_store(&polled_lacking, true);
    if (ms > 0 && atomic_load(&hurried)) ms = 1;
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    return ppoll(files, n, ms < 0 ? NULL : &time, NULL);
}

static bool take(void *context, int client, const struct sockaddr *address, socklen_t n_address) {
    struct taker *t = context;
    pthread_mutex_lock(&t->lock);
    bool takes = !t->refuses;
    if (address->sa_family != AF_INET || n_address != sizeof(struct sockaddr_in)) t->wrong = true;
    if (t->stopped || (takes && t->n_clients == t->n_places)) t->wrong = true;
    if (takes)
        t->clients[t->n_clients++] = client;
    else
        close(client);
    t->n_taken++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return takes;
}

static uint16_t open_taker(struct taker *t, size_t n_places) {
    uint16_t port;
    int listening;
    *t = (struct taker){.lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .n_places = n_places};
    assert_int_equal(st_listen("127.0.0.1", 0, &port, &listening), STINT_OK);
    assert_int_equal(st_accept_open(listening, n_places, take, t, &t->accept), STINT_OK);
    return port;
}

static int connect_to(uint16_t port) {
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file >= 0 && connect(file, (const struct sockaddr *)&to, sizeof to) == 0) return file;
    close(file);
    return -1;
}

static void wait_taken(struct taker *t, size_t n) {
    pthread_mutex_lock(&t->lock);
    while (t->n_taken < n) pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

// Serves one client from its beginning to its end. False: there is none.
static bool serve_one(struct taker *t) {
    pthread_mutex_lock(&t->lock);
    int client = t->n_clients > 0 ? t->clients[--t->n_clients] : -1;
    pthread_mutex_unlock(&t->lock);
    if (client < 0) return false;
    st_accept_began(t->accept);
    close(client);
    st_accept_ended(t->accept);
    return true;
}

static void close_taker(struct taker *t) {
    st_accept_stop(t->accept);
    pthread_mutex_lock(&t->lock);
    t->stopped = true;
    pthread_mutex_unlock(&t->lock);
    while (serve_one(t)) continue;
    st_accept_close(t->accept);
    assert_false(t->wrong);
}

static void others_wait_for_a_place(void **state) {
    (void)state;
    struct taker t;
    int files[MAX_CLIENTS];
    uint16_t port = open_taker(&t, 3);
    for (size_t i = 0; i < MAX_CLIENTS; i++) files[i] = connect_to(port);
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        wait_taken(&t, i + 1);
        assert_true(serve_one(&t));
    }
    for (size_t i = 0; i < MAX_CLIENTS; i++) close(files[i]);
    close_taker(&t);
    assert_int_equal(t.n_taken, MAX_CLIENTS);
}

static void who_is_refused_holds_no_place(void **state) {
    (void)state;
    struct taker t;
    char byte;
    uint16_t port = open_taker(&t, 1);
    pthread_mutex_lock(&t.lock);
    t.refuses = true;
    pthread_mutex_unlock(&t.lock);
    for (size_t i = 0; i < 8; i++) {
        int file = connect_to(port);
        assert_int_equal(read(file, &byte, 1), 0);
        close(file);
    }
    close_taker(&t);
    assert_int_equal(t.n_taken, 8);
}

static void who_never_begins_loses_the_place(void **state) {
    (void)state;
    struct taker t;
    uint16_t port = open_taker(&t, 1);
    int first = connect_to(port);
    wait_taken(&t, 1);
    pthread_mutex_lock(&t.lock);
    close(t.clients[--t.n_clients]); // as the library does when it has no memory
    pthread_mutex_unlock(&t.lock);
    atomic_store(&hurried, true);
    int second = connect_to(port);
    wait_taken(&t, 2);
    atomic_store(&hurried, false);
    close(first);
    close(second);
    close_taker(&t);
}

static void errors_end_nothing(void **state) {
    (void)state;
    static const int all[] = {EMFILE,       ENFILE, ENOBUFS, ENOMEM, EINVAL, EINTR,
                              ECONNABORTED, EAGAIN, EPROTO,  EPERM,  EPIPE};
    struct taker t;
    uint16_t port = open_taker(&t, 4);
    atomic_store(&hurried, true);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        atomic_store(&error, all[i]);
        atomic_store(&n_errors, 3);
        int file = connect_to(port);
        wait_taken(&t, i + 1);
        assert_int_equal(atomic_load(&n_errors), 0);
        assert_true(serve_one(&t));
        close(file);
    }
    atomic_store(&hurried, false);
    close_taker(&t);
    assert_false(atomic_load(&polled_lacking)); // that would be a busy loop
}

static atomic_uint current_port; // 0: the end

static void *connect_for_ever(void *context) {
    (void)context;
    for (unsigned port; (port = atomic_load(&current_port)) != 0;) {
        int file = connect_to((uint16_t)port);
        if (file >= 0) close(file);
    }
    return NULL;
}

static void stopping_races_with_clients(void **state) {
    (void)state;
    pthread_t threads[2];
    atomic_store(&current_port, 1);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, connect_for_ever, NULL), 0);
    for (size_t i = 0; i < 200; i++) {
        struct taker t;
        uint16_t port = open_taker(&t, 1 + i % 8);
        atomic_store(&current_port, port);
        for (size_t n = 0; n < i % 20; n++) {
            wait_taken(&t, n + 1);
            serve_one(&t);
        }
        close_taker(&t);
        assert_int_equal(connect_to(port), -1);
    }
    atomic_store(&current_port, 0);
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_wait_for_a_place),
        cmocka_unit_test(who_is_refused_holds_no_place),
        cmocka_unit_test(who_never_begins_loses_the_place),
        cmocka_unit_test(errors_end_nothing),
        cmocka_unit_test(stopping_races_with_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
