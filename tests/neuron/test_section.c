// SPDX-License-Identifier: Apache-2.0
// Sections that stay in memory: any part of a section of any size is there as it was written, and
// a change anywhere in it is noticed.
#include "neuron/section.h"
#include "support/support.h"

#include "base/size.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <cmocka.h>

static const size_t sizes[] = {1, 4095, 4096, 100001, (1 << 20) + 1, (11 << 20) + 77};
enum { N = sizeof sizes / sizeof *sizes };

static char path[600];
static unsigned char *written[N];
static stint_model model;
static struct st_map map;
static struct st_loader *loader;

static void name_of(size_t i, char name[16]) {
    snprintf(name, 16, "part.%zu", i);
}

static int open_package(void **state) {
    (void)state;
    struct st_package_writer *w = NULL;
    snprintf(path, sizeof path, "%s/sections.stint", ts_temp_folder());
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    for (size_t i = 0; i < N; i++) {
        char name[16];
        name_of(i, name);
        written[i] = malloc(sizes[i]);
        for (size_t b = 0; b < sizes[i]; b++) written[i][b] = (unsigned char)ts_random_below(256);
        struct st_section s = {.name = name,
                               .type = ST_SECTION_I8,
                               .n_dims = 1,
                               .dims = {sizes[i], 1, 1, 1},
                               .data = written[i],
                               .bytes = sizes[i]};
        assert_int_equal(st_package_add(w, &s), STINT_OK);
    }
    assert_int_equal(st_package_finish(w), STINT_OK);
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_int_equal(st_package_open(path, &map, &model.checkpoint.package), STINT_OK);
    model.checkpoint.path = path;
    int file = open(path, O_RDONLY);
    struct st_loader_options o = {
        .files = &(struct st_loader_file){file, path}, .n_files = 1, .n_threads = 3};
    assert_int_equal(st_loader_open(&o, &loader), STINT_OK);
    close(file);
    return 0;
}

static int close_package(void **state) {
    (void)state;
    st_loader_close(loader);
    st_package_close(model.checkpoint.package);
    st_map_close(&map);
    for (size_t i = 0; i < N; i++) free(written[i]);
    return 0;
}

static stint_status keep(size_t i, size_t bytes) {
    char name[16];
    name_of(i, name);
    unsigned char *to = aligned_alloc(ST_LOAD_BLOCK, st_round_up(bytes, ST_LOAD_BLOCK));
    stint_status status = st_section_keep(&model, loader, name, bytes, to);
    if (status == STINT_OK) assert_memory_equal(to, written[i], bytes);
    free(to);
    return status;
}

struct gathering {
    unsigned char *to;
    size_t n;
};

static void gather(void *context, const unsigned char *data, size_t bytes) {
    struct gathering *g = context;
    memcpy(g->to + g->n, data, bytes);
    g->n += bytes;
}

// Wherever it begins, its bytes go by in order.
static void any_part_goes_by(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) {
        char name[16];
        name_of(i, name);
        const struct st_package *p = model.checkpoint.package;
        size_t first = ts_random_below(sizes[i]), n = sizes[i] - first;
        struct st_section_part part = {n, XXH3_64bits(written[i] + first, n)};
        struct gathering g = {malloc(n), 0};
        uint64_t offset = st_package_offset(p, st_package_find(p, name)) + first;
        bool same = false;
        assert_int_equal(st_section_pass(loader, offset, &part, gather, &g, &same), STINT_OK);
        assert_true(same && g.n == n);
        assert_memory_equal(g.to, written[i] + first, n);
        part.hash++;
        g.n = 0;
        assert_int_equal(st_section_pass(loader, offset, &part, gather, &g, &same), STINT_OK);
        assert_false(same);
        free(g.to);
    }
}

struct pieces {
    const unsigned char *data;
    size_t bytes, piece_bytes, n;
};

static void compare_piece(void *context, size_t piece, uint64_t hash) {
    struct pieces *p = context;
    size_t begin = piece * p->piece_bytes, n = p->bytes - begin;
    assert_int_equal(piece, p->n++);
    if (n > p->piece_bytes) n = p->piece_bytes;
    assert_int_equal(hash, XXH3_64bits(p->data + begin, n));
}

// Of a beginning of any length, also where the last piece is smaller.
static void pieces_have_their_hashes(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) {
        char name[16];
        name_of(i, name);
        const struct st_package *package = model.checkpoint.package;
        uint64_t offset = st_package_offset(package, st_package_find(package, name));
        struct st_section_part part = {sizes[i], XXH3_64bits(written[i], sizes[i])};
        for (int round = 0; round < 8; round++) {
            struct pieces p = {.data = written[i], .bytes = 1 + ts_random_below(sizes[i])};
            p.piece_bytes = 1 + p.bytes / (1 + ts_random_below(20));
            struct st_section_pieces pieces = {p.bytes, p.piece_bytes, compare_piece, &p};
            bool same = false;
            assert_int_equal(st_section_pass_pieces(loader, offset, &part, &pieces, &same),
                             STINT_OK);
            assert_true(same);
            assert_int_equal(p.n, (p.bytes - 1) / p.piece_bytes + 1);
        }
    }
}

static void any_beginning_is_there(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(keep(i, sizes[i]), STINT_OK);
        assert_int_equal(keep(i, 1), STINT_OK);
        for (int round = 0; round < 8; round++)
            assert_int_equal(keep(i, 1 + ts_random_below(sizes[i])), STINT_OK);
    }
}

// Some first parts, which have hashes of their own.
static stint_status keep_parts(size_t i, size_t n, struct st_section_part parts[2]) {
    char name[16];
    name_of(i, name);
    size_t bytes = parts[0].bytes + (n > 1 ? parts[1].bytes : 0);
    unsigned char *to = aligned_alloc(ST_LOAD_BLOCK, st_round_up(bytes, ST_LOAD_BLOCK));
    stint_status status = st_section_keep_parts(&model, loader, name, parts, n, to);
    if (status == STINT_OK) assert_memory_equal(to, written[i], bytes);
    free(to);
    return status;
}

static void flip(size_t i, size_t at) {
    char name[16];
    name_of(i, name);
    const struct st_section *s = st_package_find(model.checkpoint.package, name);
    off_t offset = (off_t)(st_package_offset(model.checkpoint.package, s) + at);
    unsigned char byte;
    int file = open(path, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    assert_int_equal(fsync(file), 0);
    close(file);
}

static void a_change_anywhere_is_noticed(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) {
        size_t at = ts_random_below(sizes[i]);
        flip(i, at);
        assert_int_equal(keep(i, sizes[i]), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), "part."));
        assert_non_null(strstr(stint_error_text(), "sections.stint"));
        assert_int_equal(keep(i, 1), STINT_E_FORMAT);
        flip(i, at);
        assert_int_equal(keep(i, 1), STINT_OK);
    }
}

// What follows the parts is not looked at.
static void parts_are_checked_alone(void **state) {
    (void)state;
    for (size_t i = 1; i < N; i++) {
        size_t first = 1 + ts_random_below(sizes[i] - 2);
        size_t second = 1 + ts_random_below(sizes[i] - first - 1);
        struct st_section_part parts[2] = {
            {first, XXH3_64bits(written[i], first)},
            {second, XXH3_64bits(written[i] + first, second)},
        };
        for (size_t n = 1; n <= 2; n++) assert_int_equal(keep_parts(i, n, parts), STINT_OK);
        const size_t at[] = {ts_random_below(first), first, first + second};
        for (size_t j = 0; j < 3; j++) {
            flip(i, at[j]);
            for (size_t n = 1; n <= 2; n++) {
                stint_status status = keep_parts(i, n, parts);
                assert_int_equal(status, j < n ? STINT_E_FORMAT : STINT_OK);
            }
            flip(i, at[j]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_checked_alone),      cmocka_unit_test(pieces_have_their_hashes),
        cmocka_unit_test(any_beginning_is_there),       cmocka_unit_test(any_part_goes_by),
        cmocka_unit_test(a_change_anywhere_is_noticed),
    };
    return cmocka_run_group_tests(tests, open_package, close_package);
}
