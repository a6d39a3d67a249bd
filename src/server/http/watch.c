// SPDX-License-Identifier: Apache-2.0
#include "server/http/watch.h"

#include "base/clock.h"
#include "server/http/linger.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_EVENTS = 32, TICK_MS = 250 };
enum { WAKE_EVENT = 0 }; // answers are numbered from ST_LINGER_EVENT + 1 on

struct st_watch {
    pthread_t thread;
    int epoll, wake; // wake: an eventfd
    pthread_mutex_t lock;
    struct st_watched *first;
    size_t n;
    uint64_t last_number; // of an answer that was watched
    struct st_watch_limits limits;
    uint64_t patience_ns;
    struct st_linger *linger;
    bool closing;
};

// Can only fail if the counter is full, and then the thread wakes anyway.
static void ring(struct st_watch *watch) {
    eventfd_write(watch->wake, 1);
}

// Canceling calls back, so it runs without the lock; references keep the answers alive.
static void cancel(struct st_watch *watch, struct st_watched *watched) {
    struct st_answer *answer = watched->answer;
    watched->answer = NULL;
    watched->slow = false;
    watched->gone = true;
    pthread_mutex_unlock(&watch->lock);
    st_answer_cancel(answer);
    st_answer_release(answer);
    pthread_mutex_lock(&watch->lock);
}

// The connection may have been removed after its event was reported, and another one may have its
// memory: an address would name that one, and its client would get no answer.
static struct st_watched *find(struct st_watch *watch, uint64_t number) {
    struct st_watched *at = watch->first;
    while (at != NULL && at->number != number) at = at->next;
    return at;
}

static void cancel_answers(struct st_watch *watch, bool slow_ones) {
    struct st_watched *at = watch->first;
    while (at != NULL) {
        if (at->answer == NULL || (slow_ones && !at->slow)) {
            at = at->next;
            continue;
        }
        cancel(watch, at);
        at = watch->first; // the list was unlocked
    }
}

// The reply to a client that took too long. The client may be gone, so this does not wait.
static const char late[] =
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\n"
    "Content-Length: 110\r\n\r\n"
    "{\"error\":{\"message\":\"the request took too long\",\"type\":\"invalid_request_error\","
    "\"param\":null,\"code\":\"timeout\"}}";

// The library sees the end of the stream and closes the connection.
static void end(struct st_watched *at) {
    if (!at->answered) send(at->file, late, sizeof late - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    at->deadline_ns = at->waits_ns = 0;
    shutdown(at->file, SHUT_RDWR);
}

static bool is_late(const struct st_watch *watch, const struct st_watched *at, uint64_t now) {
    if (at->waits_ns == 0) return false;
    if (at->deadline_ns != 0 && now >= at->deadline_ns) return true;
    return watch->n > watch->limits.full / 2 && now - at->waits_ns >= watch->patience_ns;
}

static struct st_watched *slowest(const struct st_watch *watch) {
    struct st_watched *found = NULL;
    for (struct st_watched *at = watch->first; at != NULL; at = at->next)
        if (at->waits_ns != 0 && (found == NULL || at->waits_ns < found->waits_ns)) found = at;
    return found;
}

static void end_late(struct st_watch *watch, uint64_t now) {
    size_t n_ended = 0;
    for (struct st_watched *at = watch->first; at != NULL; at = at->next)
        if (is_late(watch, at, now)) end(at), n_ended++;
    // At least an eighth of the places becomes free, if that many wait.
    size_t n_free = watch->limits.full / 8 + 1;
    if (watch->n < watch->limits.full) return;
    for (; n_ended < n_free; n_ended++) {
        struct st_watched *at = slowest(watch);
        if (at == NULL) return;
        end(at);
    }
}

static void *run(void *context) {
    struct st_watch *watch = context;
    struct epoll_event events[MAX_EVENTS];
    for (;;) {
        int n = epoll_wait(watch->epoll, events, MAX_EVENTS, TICK_MS);
        if (n < 0 && errno != EINTR) n = 0;
        pthread_mutex_lock(&watch->lock);
        bool closing = watch->closing;
        for (int i = 0; i < n; i++) {
            eventfd_t count;
            uint64_t number = events[i].data.u64;
            if (number == WAKE_EVENT) eventfd_read(watch->wake, &count);
            struct st_watched *watched = number > ST_LINGER_EVENT ? find(watch, number) : NULL;
            if (watched != NULL && watched->answer != NULL) cancel(watch, watched);
        }
        cancel_answers(watch, true);
        end_late(watch, st_now_ns());
        st_linger_read(watch->linger, st_now_ns());
        pthread_mutex_unlock(&watch->lock);
        if (closing) return NULL;
    }
}

static void free_watch(struct st_watch *watch) {
    st_linger_close(watch->linger);
    if (watch->epoll >= 0) close(watch->epoll);
    if (watch->wake >= 0) close(watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

stint_status st_watch_open(const struct st_watch_limits *limits, struct st_watch **watch) {
    struct st_watch *made = calloc(1, sizeof *made);
    struct st_linger *linger = made != NULL ? st_linger_open() : NULL;
    if (linger == NULL) {
        free(made);
        return st_fail(STINT_E_NOMEM, "no memory to watch connections");
    }
    made->limits = *limits;
    made->last_number = ST_LINGER_EVENT;
    made->patience_ns = (uint64_t)(limits->patience * 1e9);
    made->linger = linger;
    pthread_mutex_init(&made->lock, NULL);
    made->epoll = epoll_create1(EPOLL_CLOEXEC);
    made->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE_EVENT};
    if (made->epoll < 0 || made->wake < 0 ||
        epoll_ctl(made->epoll, EPOLL_CTL_ADD, made->wake, &event) != 0 ||
        pthread_create(&made->thread, NULL, run, made) != 0) {
        stint_status status = st_fail(STINT_E_IO, "cannot watch connections: %s", strerror(errno));
        free_watch(made);
        return status;
    }
    *watch = made;
    return STINT_OK;
}

void st_watch_close(struct st_watch *watch) {
    if (watch == NULL) return;
    pthread_mutex_lock(&watch->lock);
    watch->closing = true;
    pthread_mutex_unlock(&watch->lock);
    ring(watch);
    pthread_join(watch->thread, NULL);
    free_watch(watch);
}

void st_watch_add(struct st_watch *watch, struct st_watched *watched, int file) {
    *watched = (struct st_watched){.watch = watch, .file = file, .waits_ns = st_now_ns()};
    pthread_mutex_lock(&watch->lock);
    watch->n++;
    watched->next = watch->first;
    if (watch->first != NULL) watch->first->before = watched;
    watch->first = watched;
    pthread_mutex_unlock(&watch->lock);
}

void st_watch_remove(struct st_watched *watched) {
    struct st_watch *watch = watched->watch;
    st_watch_answer(watched, NULL);
    pthread_mutex_lock(&watch->lock);
    watch->n--;
    if (watched->lingers) {
        uint64_t until = st_now_ns() + (uint64_t)(watch->limits.linger * 1e9);
        st_linger_add(watch->linger, watch->epoll, watched->file, until);
    }
    if (watched->before != NULL)
        watched->before->next = watched->next;
    else
        watch->first = watched->next;
    if (watched->next != NULL) watched->next->before = watched->before;
    pthread_mutex_unlock(&watch->lock);
}

void st_watch_deadline(struct st_watched *watched, double seconds) {
    uint64_t now = st_now_ns();
    pthread_mutex_lock(&watched->watch->lock);
    watched->deadline_ns = now + (uint64_t)(seconds * 1e9);
    watched->waits_ns = now;
    pthread_mutex_unlock(&watched->watch->lock);
}

void st_watch_progress(struct st_watched *watched, size_t n_bytes) {
    struct st_watch *watch = watched->watch;
    uint64_t now = st_now_ns();
    pthread_mutex_lock(&watch->lock);
    if (watched->waits_ns != 0) {
        watched->waits_ns += (uint64_t)((double)n_bytes * 1e9 / watch->limits.bytes_per_second);
        if (watched->waits_ns > now) watched->waits_ns = now;
    }
    pthread_mutex_unlock(&watch->lock);
}

void st_watch_complete(struct st_watched *watched) {
    pthread_mutex_lock(&watched->watch->lock);
    watched->deadline_ns = watched->waits_ns = 0;
    watched->answered = true;
    pthread_mutex_unlock(&watched->watch->lock);
}

void st_watch_linger(struct st_watched *watched) {
    pthread_mutex_lock(&watched->watch->lock);
    watched->lingers = true;
    pthread_mutex_unlock(&watched->watch->lock);
}

void st_watch_answer(struct st_watched *watched, struct st_answer *answer) {
    struct st_watch *watch = watched->watch;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT};
    if (answer != NULL) st_answer_hold(answer);
    pthread_mutex_lock(&watch->lock);
    struct st_answer *before = watched->answer;
    watched->answer = answer;
    watched->number = answer != NULL ? ++watch->last_number : 0;
    event.data.u64 = watched->number;
    if (answer != NULL) watched->slow = watched->gone = false;
    if (answer != NULL)
        epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watched->file, &event);
    else // it may be missing
        epoll_ctl(watch->epoll, EPOLL_CTL_DEL, watched->file, NULL);
    pthread_mutex_unlock(&watch->lock);
    st_answer_release(before);
}

void st_watch_slow(struct st_watched *watched) {
    pthread_mutex_lock(&watched->watch->lock);
    watched->slow = true;
    pthread_mutex_unlock(&watched->watch->lock);
    ring(watched->watch);
}

bool st_watch_gone(struct st_watched *watched) {
    pthread_mutex_lock(&watched->watch->lock);
    bool gone = watched->gone;
    pthread_mutex_unlock(&watched->watch->lock);
    return gone;
}

void st_watch_cancel_all(struct st_watch *watch) {
    pthread_mutex_lock(&watch->lock);
    cancel_answers(watch, false);
    pthread_mutex_unlock(&watch->lock);
}

// The library has begun to send a stream in chunks; a whole answer comes at once.
static void tell(const struct st_watched *at, const struct st_json_text *error) {
    struct st_json_text out = {0};
    size_t n = error->bytes.count;
    if (st_answer_streams(at->answer)) {
        st_json_format(&out, "%zx\r\ndata: ", n + strlen("data: \n\n"));
        st_json_rawn(&out, error->bytes.data, n);
        st_json_raw(&out, "\n\n\r\n0\r\n\r\n");
    } else {
        st_json_format(&out,
                       "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                       n);
        st_json_rawn(&out, error->bytes.data, n);
    }
    if (!out.failed) send(at->file, out.bytes.data, out.bytes.count, MSG_DONTWAIT | MSG_NOSIGNAL);
    st_bytes_free(&out.bytes);
    shutdown(at->file, SHUT_RDWR);
}

void st_watch_tell_all(struct st_watch *watch, const struct st_problem *problem) {
    struct st_json_text error = {0};
    st_problem_write(problem, &error);
    pthread_mutex_lock(&watch->lock);
    for (const struct st_watched *at = watch->first; at != NULL && !error.failed; at = at->next)
        if (at->answer != NULL) tell(at, &error);
    pthread_mutex_unlock(&watch->lock);
    st_bytes_free(&error.bytes);
}
