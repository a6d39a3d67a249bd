// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct range {
    uint64_t offset;
    size_t bytes;
    void *to;
};

struct st_reader {
    int file;
    const char *name;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t submitted, answered;
    struct range ranges[ST_READER_DEPTH];
    size_t n_asked, n_answered; // since the reader was opened
    struct st_error why;        // of the first failure since the last wait
    bool started;               // the thread shall read what is pending
    bool reading;               // it, or the one that asks, does
    bool closing;
};

static stint_status read_range(const struct st_reader *r, struct range range) {
    unsigned char *to = range.to;
    while (range.bytes) {
        ssize_t n = pread(r->file, to, range.bytes, (off_t)range.offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return st_fail(STINT_E_IO, "%s: cannot be read at byte %llu: %s", r->name,
                           (unsigned long long)range.offset, strerror(errno));
        if (n == 0)
            return st_fail(STINT_E_IO, "%s: ends at byte %llu: it was cut short while in use",
                           r->name, (unsigned long long)range.offset);
        to += n;
        range.offset += (uint64_t)n;
        range.bytes -= (size_t)n;
    }
    return STINT_OK;
}

static bool is_pending(const struct st_reader *r) {
    return r->n_answered != r->n_asked;
}

// Answers all that is pending. With the lock held, which it gives back while it reads.
static void answer(struct st_reader *r) {
    r->reading = true;
    while (is_pending(r)) {
        size_t next = r->n_answered, end = r->n_asked;
        stint_status status = STINT_OK;
        pthread_mutex_unlock(&r->lock);
        for (; next < end && status == STINT_OK; next++)
            status = read_range(r, r->ranges[next % ST_READER_DEPTH]);
        pthread_mutex_lock(&r->lock);
        if (status != STINT_OK && r->why.status == STINT_OK) st_error_save(&r->why);
        r->n_answered = next;
    }
    r->reading = r->started = false;
    pthread_cond_signal(&r->answered);
}

static void *work(void *context) {
    struct st_reader *r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->closing) {
        if (r->started && !r->reading)
            answer(r);
        else
            pthread_cond_wait(&r->submitted, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

stint_status st_reader_open(int file, const char *name, struct st_reader **reader) {
    struct st_reader *r = calloc(1, sizeof *r);
    if (!r) return st_fail(STINT_E_NOMEM, "%s: no memory to read it", name);
    r->file = file;
    r->name = name;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->submitted, NULL);
    pthread_cond_init(&r->answered, NULL);
    int error = pthread_create(&r->thread, NULL, work, r);
    if (error) {
        free(r);
        return st_fail(STINT_E_NOMEM, "%s: no thread to read it: %s", name, strerror(error));
    }
    *reader = r;
    return STINT_OK;
}

void st_reader_close(struct st_reader *reader) {
    if (!reader) return;
    pthread_mutex_lock(&reader->lock);
    while (reader->reading) pthread_cond_wait(&reader->answered, &reader->lock);
    reader->closing = true;
    pthread_cond_signal(&reader->submitted);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    pthread_cond_destroy(&reader->answered);
    pthread_cond_destroy(&reader->submitted);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

// Until nothing is pending; where the thread is not at it, by reading.
static void finish(struct st_reader *r) {
    while (is_pending(r))
        if (r->reading)
            pthread_cond_wait(&r->answered, &r->lock);
        else
            answer(r);
}

void st_reader_prefetch(struct st_reader *reader, uint64_t offset, size_t bytes, void *to) {
    pthread_mutex_lock(&reader->lock);
    if (reader->n_asked - reader->n_answered == ST_READER_DEPTH) finish(reader);
    reader->ranges[reader->n_asked++ % ST_READER_DEPTH] = (struct range){offset, bytes, to};
    pthread_mutex_unlock(&reader->lock);
}

void st_reader_start(struct st_reader *reader) {
    pthread_mutex_lock(&reader->lock);
    reader->started = is_pending(reader);
    if (reader->started) pthread_cond_signal(&reader->submitted);
    pthread_mutex_unlock(&reader->lock);
}

stint_status st_reader_wait(struct st_reader *reader) {
    pthread_mutex_lock(&reader->lock);
    finish(reader);
    struct st_error why = reader->why;
    reader->why.status = STINT_OK;
    pthread_mutex_unlock(&reader->lock);
    return why.status == STINT_OK ? STINT_OK : st_error_restore(&why);
}
