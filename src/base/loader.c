// SPDX-License-Identifier: Apache-2.0
#include "base/loader.h"

#include "base/clock.h"
#include "base/direct.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_TOGETHER = 16, // loads that one read brings
    // Between two of them: a read of their own would bring as much beside them, in the blocks that
    // they begin and end in.
    MAX_GAP = 2 * ST_LOAD_BLOCK,
};

struct open_file {
    int file; // -1: not open
    const char *name;
    bool direct;
};

struct st_loader {
    struct open_file *files; // [n_files]
    size_t n_files;
    size_t max_bytes;
    st_loader_read_fn *read;
    void *context;
    pthread_t *threads;
    unsigned char *rooms; // [threads, ST_LOAD_ROOM]
    size_t n_threads, n_rooms;
    pthread_mutex_t lock;
    pthread_cond_t submitted, answered;
    struct st_load *first, **last; // what no thread has taken yet
    size_t n_idle, n_pending;      // threads; loads that are not done
    uint64_t busy_since;
    struct st_loader_counts counts;
    struct st_error why; // of the last failure
    bool waiting, closing;
    const struct st_load *waited; // the load that is waited for; NULL: all of them
};

static ssize_t read_file(void *context, int file, void *to, size_t bytes, off_t offset) {
    (void)context;
    return pread(file, to, bytes, offset);
}

static bool ends_at(int file, uint64_t byte) {
    struct stat info;
    return fstat(file, &info) != 0 || (uint64_t)info.st_size <= byte;
}

// Whole blocks are asked for, so that direct reads are possible; the file may end in the last one.
static stint_status read_blocks(const struct st_loader *l, const struct open_file *f,
                                uint64_t offset, size_t wanted, unsigned char *to) {
    size_t done = 0, room = st_round_up(wanted, ST_LOAD_BLOCK);
    for (;;) {
        uint64_t at = offset + done;
        size_t bytes = st_min(room - done, l->max_bytes);
        ssize_t n = l->read(l->context, f->file, to + done, bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return st_fail(STINT_E_IO, "%s: cannot be read at byte %llu: %s", f->name,
                           (unsigned long long)at, strerror(errno));
        size_t got = done + (size_t)n;
        if (got >= wanted) break;
        if (n == 0 || ends_at(f->file, offset + got))
            return st_fail(STINT_E_IO, "%s: ends at byte %llu: it was cut short while in use",
                           f->name, (unsigned long long)(offset + got));
        // A read that stopped early goes on at a whole block, where direct reads begin.
        done = got / ST_LOAD_BLOCK * ST_LOAD_BLOCK;
    }
    if (!f->direct) posix_fadvise(f->file, (off_t)offset, (off_t)room, POSIX_FADV_DONTNEED);
    return STINT_OK;
}

static stint_status read_load(const struct st_loader *l, const struct st_load *load,
                              unsigned char *room) {
    const struct open_file *f = &l->files[load->file];
    if (!load->apart) return read_blocks(l, f, load->offset, load->bytes, load->to);
    for (size_t done = 0, n; done < load->bytes; done += n) {
        size_t skip = (size_t)((load->offset + done) % ST_LOAD_BLOCK);
        n = st_min(load->bytes - done, ST_LOAD_ROOM - skip);
        ST_TRY(read_blocks(l, f, load->offset + done - skip, skip + n, room));
        memcpy(load->to + done, room + skip, n);
    }
    return STINT_OK;
}

static struct st_load *pop(struct st_loader *l) {
    struct st_load *load = l->first;
    l->first = load->next;
    if (!l->first) l->last = &l->first;
    return load;
}

// Loads of one file, each of which begins close behind the one before: one read brings them all.
struct group {
    struct st_load *loads[MAX_TOGETHER];
    size_t n;
};

static uint64_t end_of(const struct group *g) {
    return g->loads[g->n - 1]->offset + g->loads[g->n - 1]->bytes;
}

// What is read of the file, from whole blocks on.
static uint64_t begin_of(const struct group *g) {
    return g->loads[0]->offset / ST_LOAD_BLOCK * ST_LOAD_BLOCK;
}

static bool fits(const struct group *g, const struct st_load *next) {
    const struct st_load *first = g->loads[0];
    uint64_t end = end_of(g);
    return g->n < MAX_TOGETHER && first->apart && next->apart && next->file == first->file &&
           next->offset >= end && next->offset - end <= MAX_GAP &&
           next->offset + next->bytes - begin_of(g) <= ST_LOAD_ROOM;
}

static struct group pop_group(struct st_loader *l) {
    struct group g = {.loads = {pop(l)}, .n = 1};
    while (l->first && fits(&g, l->first)) g.loads[g.n++] = pop(l);
    return g;
}

// Where they cannot be read together, each has its own fate.
static void read_group(const struct st_loader *l, const struct group *g, unsigned char *room,
                       stint_status *status) {
    const struct open_file *f = &l->files[g->loads[0]->file];
    uint64_t begin = begin_of(g);
    bool together =
        g->n > 1 && read_blocks(l, f, begin, (size_t)(end_of(g) - begin), room) == STINT_OK;
    for (size_t i = 0; i < g->n; i++) {
        struct st_load *load = g->loads[i];
        if (together) memcpy(load->to, room + (load->offset - begin), load->bytes);
        status[i] = together ? STINT_OK : read_load(l, load, room);
    }
}

static void *work(void *context) {
    struct st_loader *l = context;
    pthread_mutex_lock(&l->lock);
    unsigned char *room = l->rooms + l->n_rooms++ * ST_LOAD_ROOM;
    while (!l->closing) {
        if (!l->first) {
            l->n_idle++;
            pthread_cond_wait(&l->submitted, &l->lock);
            l->n_idle--;
            continue;
        }
        struct group g = pop_group(l);
        stint_status status[MAX_TOGETHER];
        pthread_mutex_unlock(&l->lock);
        read_group(l, &g, room, status);
        pthread_mutex_lock(&l->lock);
        l->counts.bytes += end_of(&g) - g.loads[0]->offset;
        l->counts.reads++;
        l->n_pending -= g.n;
        if (l->n_pending == 0) l->counts.busy_ns += st_now_ns() - l->busy_since;
        for (size_t i = 0; i < g.n; i++) {
            if (status[i] != STINT_OK) st_error_save(&l->why);
            // From here on the load is the caller's again.
            atomic_store_explicit(&g.loads[i]->state,
                                  status[i] == STINT_OK ? ST_LOAD_THERE : ST_LOAD_FAILED,
                                  memory_order_release);
        }
        // After another load's end the waiting thread would only go back to sleep.
        bool answered = l->waited ? st_load_is_done(l->waited) : l->n_pending == 0;
        if (l->waiting && answered) pthread_cond_signal(&l->answered);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static stint_status start_threads(struct st_loader *l, size_t n) {
    l->threads = calloc(n, sizeof *l->threads);
    l->rooms = aligned_alloc(ST_LOAD_BLOCK, n * ST_LOAD_ROOM);
    if (!l->threads || !l->rooms)
        return st_fail(STINT_E_NOMEM, "%s: no memory to read it", l->files->name);
    for (; l->n_threads < n; l->n_threads++) {
        int error = pthread_create(&l->threads[l->n_threads], NULL, work, l);
        if (error && l->n_threads == 0)
            return st_fail(STINT_E_NOMEM, "%s: no thread to read it: %s", l->files->name,
                           strerror(error));
        if (error) break;
    }
    return STINT_OK;
}

static stint_status open_files(const struct st_loader_options *options, struct st_loader *l) {
    l->files = calloc(options->n_files, sizeof *l->files);
    if (!l->files) return st_fail(STINT_E_NOMEM, "%s: no memory to read it", options->files->name);
    for (; l->n_files < options->n_files; l->n_files++) {
        struct open_file *f = &l->files[l->n_files];
        f->name = options->files[l->n_files].name;
        f->file = st_direct_open(options->files[l->n_files].file, &f->direct);
        if (f->file < 0) return st_fail(STINT_E_IO, "%s: %s", f->name, strerror(errno));
    }
    return STINT_OK;
}

stint_status st_loader_open(const struct st_loader_options *options, struct st_loader **loader) {
    struct st_loader *l = calloc(1, sizeof *l);
    if (!l) return st_fail(STINT_E_NOMEM, "%s: no memory to read it", options->files->name);
    size_t n = options->n_threads ? options->n_threads : ST_LOADER_THREADS;
    l->read = options->read ? options->read : read_file;
    l->context = options->context;
    size_t max = options->max_bytes / ST_LOAD_BLOCK * ST_LOAD_BLOCK;
    l->max_bytes = max ? max : SIZE_MAX;
    l->last = &l->first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->submitted, NULL);
    pthread_cond_init(&l->answered, NULL);
    stint_status status = open_files(options, l);
    if (status == STINT_OK) status = start_threads(l, st_min(n, ST_LOADER_MAX_THREADS));
    if (status != STINT_OK) {
        st_loader_close(l);
        return status;
    }
    *loader = l;
    return STINT_OK;
}

void st_loader_close(struct st_loader *loader) {
    if (!loader) return;
    pthread_mutex_lock(&loader->lock);
    loader->closing = true;
    pthread_cond_broadcast(&loader->submitted);
    pthread_mutex_unlock(&loader->lock);
    for (size_t i = 0; i < loader->n_threads; i++) pthread_join(loader->threads[i], NULL);
    for (size_t i = 0; i < loader->n_files; i++) close(loader->files[i].file);
    pthread_cond_destroy(&loader->answered);
    pthread_cond_destroy(&loader->submitted);
    pthread_mutex_destroy(&loader->lock);
    free(loader->threads);
    free(loader->rooms);
    free(loader->files);
    free(loader);
}

void st_loader_prefetch(struct st_loader *l, struct st_load *load) {
    atomic_store_explicit(&load->state, ST_LOAD_PENDING, memory_order_relaxed);
    load->next = NULL;
    pthread_mutex_lock(&l->lock);
    *l->last = load;
    l->last = &load->next;
    if (l->n_pending++ == 0) l->busy_since = st_now_ns();
    bool idle = l->n_idle > 0;
    pthread_mutex_unlock(&l->lock);
    if (idle) pthread_cond_signal(&l->submitted);
}

stint_status st_loader_wait(struct st_loader *l, struct st_load *load) {
    if (!st_load_is_done(load)) {
        uint64_t begun = st_now_ns();
        pthread_mutex_lock(&l->lock);
        l->waiting = true;
        l->waited = load;
        while (!st_load_is_done(load)) pthread_cond_wait(&l->answered, &l->lock);
        l->waiting = false;
        l->waited = NULL;
        l->counts.waited_ns += st_now_ns() - begun;
        pthread_mutex_unlock(&l->lock);
    }
    if (atomic_load_explicit(&load->state, memory_order_relaxed) == ST_LOAD_THERE) return STINT_OK;
    pthread_mutex_lock(&l->lock);
    struct st_error why = l->why;
    pthread_mutex_unlock(&l->lock);
    return st_error_restore(&why);
}

void st_loader_drain(struct st_loader *l) {
    pthread_mutex_lock(&l->lock);
    l->waiting = true;
    while (l->n_pending) pthread_cond_wait(&l->answered, &l->lock);
    l->waiting = false;
    pthread_mutex_unlock(&l->lock);
}

bool st_loader_is_direct(const struct st_loader *loader) {
    bool direct = true;
    for (size_t i = 0; i < loader->n_files; i++) direct = direct && loader->files[i].direct;
    return direct;
}

void st_loader_count(struct st_loader *l, struct st_loader_counts *counts) {
    pthread_mutex_lock(&l->lock);
    *counts = l->counts;
    if (l->n_pending) counts->busy_ns += st_now_ns() - l->busy_since;
    pthread_mutex_unlock(&l->lock);
}
