// SPDX-License-Identifier: Apache-2.0
// Which blocks a measurement reads, and how; never how long it takes.
#include "neuron/storage.h"
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { BLOCK = 2 * ST_LOAD_BLOCK, BLOCKS = 10, DEPTH = 4 };

// A disk that keeps a record.
struct disk {
    unsigned char *memory; // of the reader
    atomic_int reads[BLOCKS];
    atomic_int under_way, max_in_flight, n, last; // last: read that still works
    bool ordered;
    off_t next;
};

static ssize_t read_disk(void *context, int file, void *to, size_t bytes, off_t offset) {
    struct disk *d = context;
    (void)file;
    int now = atomic_fetch_add(&d->under_way, 1) + 1, max = atomic_load(&d->max_in_flight);
    while (now > max && !atomic_compare_exchange_weak(&d->max_in_flight, &max, now)) {
    }
    assert_true(bytes == BLOCK && offset % BLOCK == 0 && offset / BLOCK < BLOCKS);
    assert_true(((unsigned char *)to - d->memory) % BLOCK == 0);
    assert_true((unsigned char *)to - d->memory < DEPTH * BLOCK);
    if (d->ordered) assert_int_equal(offset, d->next);
    if (d->ordered) d->next = (d->next + BLOCK) % (BLOCKS * BLOCK);
    atomic_fetch_add(&d->reads[offset / BLOCK], 1);
    atomic_fetch_sub(&d->under_way, 1);
    if (atomic_fetch_add(&d->n, 1) >= atomic_load(&d->last)) return errno = EIO, -1;
    return (ssize_t)bytes;
}

static stint_status measure(struct disk *d, bool random, size_t n_threads, uint64_t file_bytes,
                            double *rate) {
    bool direct = false;
    struct st_reading reading = {BLOCK, DEPTH, n_threads, random};
    struct st_loader_file file = {open(ts_write_text("disk", "x"), O_RDONLY), "disk"};
    struct st_loader_options o = {.files = &file, .n_files = 1, .read = read_disk, .context = d};
    d->memory = calloc(DEPTH, BLOCK);
    stint_status status = st_storage_rate(&o, file_bytes, &reading, 0.02, d->memory, rate, &direct);
    close(file.file);
    free(d->memory);
    return status;
}

static void blocks_come_in_order(void **state) {
    (void)state;
    struct disk d = {.last = INT32_MAX, .ordered = true};
    double rate = 0;
    assert_int_equal(measure(&d, false, 1, BLOCKS * BLOCK + 100, &rate), STINT_OK);
    assert_true(rate > 0 && d.n >= DEPTH && d.max_in_flight == 1);
}

static void or_at_random_all_of_them(void **state) {
    (void)state;
    struct disk d = {.last = INT32_MAX};
    double rate = 0;
    while (d.n < 1000) assert_int_equal(measure(&d, true, 3, BLOCKS * BLOCK, &rate), STINT_OK);
    for (int i = 0; i < BLOCKS; i++) assert_true(d.reads[i] > 0);
    assert_true(d.max_in_flight <= 3);
}

static void what_cannot_be_read(void **state) {
    (void)state;
    struct disk d = {.last = 2};
    double rate = 5;
    assert_int_equal(measure(&d, true, 1, BLOCKS * BLOCK, &rate), STINT_E_IO);
    assert_true(rate == 5); // untouched
    struct disk small = {.last = INT32_MAX};
    assert_int_equal(measure(&small, true, 1, BLOCK - 1, &rate), STINT_OK);
    assert_true(rate == 0 && small.n == 0);
}

static void times_between_the_measured_blocks(void **state) {
    (void)state;
    const uint32_t blocks[] = {1000, 2000, 4000};
    const double rates[] = {1000, 500, 400}; // 1, 2 and 2.5 ms
    assert_true(fabs(st_storage_seconds(blocks, rates, 3, 10) - 1e-3) < 1e-9);
    assert_true(fabs(st_storage_seconds(blocks, rates, 3, 1500) - 1.5e-3) < 1e-9);
    assert_true(fabs(st_storage_seconds(blocks, rates, 3, 3000) - 2.25e-3) < 1e-9);
    assert_true(fabs(st_storage_seconds(blocks, rates, 3, 8000) - 5e-3) < 1e-9);
    assert_true(st_storage_seconds(blocks, (const double[]){0, 0, 0}, 3, 1) == 0);
    assert_true(fabs(st_storage_seconds(blocks, (const double[]){1000, 0, 0}, 3, 3000) - 3e-3) <
                1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_in_order),
        cmocka_unit_test(or_at_random_all_of_them),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(times_between_the_measured_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
