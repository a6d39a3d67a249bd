// SPDX-License-Identifier: Apache-2.0
#include "base/loader.h"
#include "base/size.h"
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { BLOCKS = 64, BYTES = BLOCKS * ST_LOAD_BLOCK + 123, LOADS = 300, ROOM = 8 * ST_LOAD_BLOCK };

struct disk {
    struct st_loader *loader;
    int file;
    const char *path;
    unsigned char *data;
};

// How the disk of a test behaves.
static struct behaviour {
    unsigned short_every, interrupt_every; // reads; 0: never
    uint64_t broken_from;                  // this byte on cannot be read; 0: all can
    unsigned delay_us;
    bool closed; // no read begins while `gate` is held
} behaviour;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static ssize_t strange_read(void *context, int file, void *to, size_t bytes, off_t offset) {
    static atomic_uint n;
    const struct behaviour *b = context;
    unsigned now = atomic_fetch_add(&n, 1);
    if (b->delay_us) usleep(b->delay_us);
    if (b->closed) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    if (b->interrupt_every && now % b->interrupt_every == 0) return errno = EINTR, -1;
    if (b->broken_from && (uint64_t)offset + bytes > b->broken_from) return errno = EIO, -1;
    if (b->short_every && now % b->short_every == 0 && bytes > 1) bytes /= 2;
    return pread(file, to, bytes, offset);
}

static struct disk open_disk(const struct behaviour *b) {
    struct disk d = {.data = malloc(BYTES)};
    ts_random_bytes(d.data, BYTES);
    d.path = ts_write("disk", d.data, BYTES);
    d.file = open(d.path, O_RDONLY);
    behaviour = b ? *b : (struct behaviour){0};
    struct st_loader_options options = {.files = &(struct st_loader_file){d.file, "disk"},
                                        .n_files = 1,
                                        .n_threads = 4,
                                        .read = b ? strange_read : NULL,
                                        .context = &behaviour};
    assert_int_equal(st_loader_open(&options, &d.loader), STINT_OK);
    return d;
}

static void close_disk(struct disk *d) {
    st_loader_close(d->loader);
    close(d->file);
    free(d->data);
}

static void make_load(struct st_load *load, size_t first, size_t bytes) {
    *load = (struct st_load){
        .offset = first * ST_LOAD_BLOCK, .bytes = bytes, .to = aligned_alloc(ST_LOAD_BLOCK, ROOM)};
}

static void read_at_random(const struct behaviour *b) {
    struct disk d = open_disk(b);
    struct st_load loads[LOADS];
    uint64_t bytes = 0;
    for (size_t i = 0; i < LOADS; i++) {
        size_t first = ts_random_below(BLOCKS), left = BYTES - first * ST_LOAD_BLOCK;
        size_t n = 1 + ts_random_below(left < ROOM ? left : ROOM);
        make_load(&loads[i], first, n);
        bytes += n;
        st_loader_prefetch(d.loader, &loads[i]);
    }
    for (size_t i = LOADS; i-- > 0;) { // in another order than they were asked for
        assert_int_equal(st_loader_wait(d.loader, &loads[i]), STINT_OK);
        assert_true(st_load_is_done(&loads[i]));
        assert_memory_equal(loads[i].to, d.data + loads[i].offset, loads[i].bytes);
        free(loads[i].to);
    }
    struct st_loader_counts counts;
    st_loader_count(d.loader, &counts);
    assert_int_equal(counts.bytes, bytes);
    assert_int_equal(counts.reads, LOADS);
    close_disk(&d);
}

// Anywhere, to anywhere, and nothing is written beside it.
static void read_apart(const struct behaviour *b) {
    struct disk d = open_disk(b);
    unsigned char *room = malloc(BYTES + 2);
    for (int round = 0; round < 100; round++) {
        size_t at = ts_random_below(BYTES), shift = ts_random_below(64);
        size_t most = BYTES - st_max(at, shift), n = 1 + ts_random_below(round % 4 ? 9000 : most);
        n = st_min(n, most);
        struct st_load load = {.offset = at, .bytes = n, .to = room + 1 + shift, .apart = true};
        load.to[-1] = load.to[n] = 0xa5;
        st_loader_prefetch(d.loader, &load);
        assert_int_equal(st_loader_wait(d.loader, &load), STINT_OK);
        assert_memory_equal(load.to, d.data + at, n);
        assert_true(load.to[-1] == 0xa5 && load.to[n] == 0xa5);
    }
    free(room);
    close_disk(&d);
}

enum { NEIGHBOURS = 200, PIECE = 700 };

// Pieces one after another, with gaps, asked for before any read begins. `broken_from`: what lies
// behind cannot be read; 0: all can. Returns how many reads there were for a hundred pieces.
static uint64_t read_neighbours(uint64_t broken_from) {
    struct disk d = open_disk(&(struct behaviour){.broken_from = broken_from, .closed = true});
    struct st_load loads[NEIGHBOURS];
    unsigned char *room = malloc(NEIGHBOURS * PIECE);
    size_t at = ts_random_below(5000), n = 0;
    pthread_mutex_lock(&gate);
    for (; n < NEIGHBOURS && at + PIECE <= BYTES; n++) {
        loads[n] = (struct st_load){
            .offset = at, .bytes = 1 + ts_random_below(PIECE), .to = room + n * PIECE};
        loads[n].apart = true;
        at += loads[n].bytes + ts_random_below(n % 8 ? 2000 : 20000);
        st_loader_prefetch(d.loader, &loads[n]);
    }
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < n; i++) {
        uint64_t blocks_end = st_round_up(loads[i].offset + loads[i].bytes, ST_LOAD_BLOCK);
        bool whole = !broken_from || blocks_end <= broken_from;
        assert_int_equal(st_loader_wait(d.loader, &loads[i]), whole ? STINT_OK : STINT_E_IO);
        if (whole) assert_memory_equal(loads[i].to, d.data + loads[i].offset, loads[i].bytes);
    }
    struct st_loader_counts counts;
    st_loader_count(d.loader, &counts);
    assert_true(counts.bytes <= at);
    free(room);
    close_disk(&d);
    return counts.reads * 100 / n;
}

static void neighbours_come_in_one_read(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) assert_in_range(read_neighbours(0), 1, 50);
}

static void a_neighbour_of_what_is_broken_arrives(void **state) {
    (void)state;
    for (size_t i = 0; i < 20; i++) read_neighbours((1 + ts_random_below(60)) * ST_LOAD_BLOCK);
}

static void what_lies_anywhere_arrives(void **state) {
    (void)state;
    read_apart(NULL);
    read_apart(&(struct behaviour){.short_every = 2, .interrupt_every = 3});
}

static void everything_asked_for_arrives(void **state) {
    (void)state;
    read_at_random(NULL);
}

static void short_and_interrupted_reads_are_finished(void **state) {
    (void)state;
    read_at_random(&(struct behaviour){.short_every = 2, .interrupt_every = 3});
}

static void a_slow_disk_is_waited_for(void **state) {
    (void)state;
    read_at_random(&(struct behaviour){.delay_us = 200});
}

static void what_cannot_be_read_is_an_error(void **state) {
    (void)state;
    struct disk d = open_disk(&(struct behaviour){.broken_from = 32 * ST_LOAD_BLOCK});
    struct st_load good, bad;
    make_load(&good, 3, ROOM);
    make_load(&bad, 40, 10);
    st_loader_prefetch(d.loader, &bad);
    st_loader_prefetch(d.loader, &good);
    assert_int_equal(st_loader_wait(d.loader, &good), STINT_OK);
    assert_memory_equal(good.to, d.data + good.offset, ROOM);
    assert_int_equal(st_loader_wait(d.loader, &bad), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "disk: cannot be read at byte 163840"));
    behaviour.broken_from = 0; // the disk recovers
    st_loader_prefetch(d.loader, &bad);
    assert_int_equal(st_loader_wait(d.loader, &bad), STINT_OK);
    free(good.to);
    free(bad.to);
    close_disk(&d);
}

static void a_file_cut_short_is_an_error(void **state) {
    (void)state;
    struct disk d = open_disk(NULL);
    struct st_load load;
    assert_int_equal(truncate(d.path, 10 * ST_LOAD_BLOCK + 7), 0);
    make_load(&load, 9, 2 * ST_LOAD_BLOCK);
    st_loader_prefetch(d.loader, &load);
    assert_int_equal(st_loader_wait(d.loader, &load), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "cut short"));
    st_loader_prefetch(d.loader, &load);
    st_loader_drain(d.loader); // whatever becomes of it
    assert_true(st_load_is_done(&load));
    free(load.to);
    close_disk(&d);
    st_loader_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_asked_for_arrives),
        cmocka_unit_test(what_lies_anywhere_arrives),
        cmocka_unit_test(neighbours_come_in_one_read),
        cmocka_unit_test(a_neighbour_of_what_is_broken_arrives),
        cmocka_unit_test(short_and_interrupted_reads_are_finished),
        cmocka_unit_test(a_slow_disk_is_waited_for),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
        cmocka_unit_test(a_file_cut_short_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
