// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/size.h"
#include "format/expect.h"
#include "format/package.h"
#include "format/package_layout.h"
#include "support/gguf_builder.h"
#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

static const float floats[6] = {1.0f, -2.0f, 3.5f, 0.0f, 1e-3f, 7.0f};
static const int32_t integers[3] = {-1, 0, 1 << 30};
static const unsigned char panels[16 * 64] = {1, 2, 3};

static const struct st_section sections[] = {
    {"config.json", ST_SECTION_BLOB, ST_DTYPE_F32, 1, {5, 1, 1, 1}, "hello", 5},
    {"empty", ST_SECTION_BLOB, ST_DTYPE_F32, 1, {0, 1, 1, 1}, "", 0},
    {"model.norm.weight", ST_SECTION_TENSOR, ST_DTYPE_F32, 2, {2, 3, 1, 1}, floats, 24},
    {"layers.0.o.scale", ST_SECTION_F32, ST_DTYPE_F32, 1, {6, 1, 1, 1}, floats, 24},
    {"layers.0.o.sums", ST_SECTION_I32, ST_DTYPE_F32, 1, {3, 1, 1, 1}, integers, 12},
    {"layers.0.o.weight", ST_SECTION_INT8_N16K4, ST_DTYPE_F32, 2, {3, 5, 1, 1}, panels, 1024},
    {"layers.0.o.nested", ST_SECTION_NESTED, ST_DTYPE_F32, 3, {3, 190, 2, 1}, panels, 384},
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

// A small package of all types; its path.
static const char *write_all(const char *folder) {
    static char path[512];
    struct st_package_writer *w = NULL;
    snprintf(path, sizeof path, "%s/a.stint", folder);
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    for (size_t i = 0; i < N_SECTIONS; i++)
        assert_int_equal(st_package_add(w, &sections[i]), STINT_OK);
    assert_true(st_package_written(w) > 3 * ST_PACKAGE_ALIGN);
    assert_int_equal(st_package_finish(w), STINT_OK);
    return path;
}

static stint_status open_bytes(const unsigned char *data, size_t bytes) {
    struct st_map map = ts_exact_map(data, bytes);
    struct st_package *p = NULL;
    stint_status status = st_package_open("x.stint", &map, &p);
    st_package_close(p);
    free((void *)map.data);
    return status;
}

static size_t files_in(const char *folder) {
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void what_was_written_is_read(void **state) {
    (void)state;
    struct st_map map;
    struct st_package *p = NULL;
    const char *folder = ts_temp_folder(), *path = write_all(folder);
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_true(st_package_is(&map));
    assert_int_equal(st_package_open(path, &map, &p), STINT_OK);
    assert_int_equal(st_package_count(p), N_SECTIONS);
    for (size_t i = 0; i < N_SECTIONS; i++) {
        const struct st_section *s = st_package_at(p, i), *wanted = &sections[i];
        assert_ptr_equal(st_package_find(p, wanted->name), s);
        assert_string_equal(s->name, wanted->name);
        assert_int_equal(s->type, wanted->type);
        assert_int_equal(s->n_dims, wanted->n_dims);
        assert_memory_equal(s->dims, wanted->dims, sizeof s->dims);
        assert_int_equal(s->bytes, wanted->bytes);
        assert_memory_equal(s->data, wanted->data, s->bytes);
        size_t align = st_section_align(s->type, ST_PACKAGE_VERSION);
        assert_int_equal((uintptr_t)s->data % align, 0);
    }
    assert_null(st_package_find(p, "layers.0.o"));
    assert_null(st_package_find(p, "zzz"));
    st_package_close(p);
    st_map_close(&map);
    assert_int_equal(files_in(folder), 1);
}

static void a_section_comes_in_pieces(void **state) {
    (void)state;
    const char *folder = ts_temp_folder();
    char path[512];
    struct st_package_writer *w = NULL;
    snprintf(path, sizeof path, "%s/pieces.stint", folder);
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    assert_int_equal(st_package_begin(w, &sections[5]), STINT_OK);
    for (size_t i = 0; i < sizeof panels; i += 128)
        assert_int_equal(st_package_append(w, panels + i, 128), STINT_OK);
    assert_failure(st_package_append(w, panels, 1), STINT_E_INTERNAL, "too many");
    // The first failure stays.
    assert_failure(st_package_add(w, &sections[0]), STINT_E_INTERNAL, "too many");
    assert_failure(st_package_finish(w), STINT_E_INTERNAL, "too many");
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    assert_int_equal(st_package_begin(w, &sections[5]), STINT_OK);
    assert_int_equal(st_package_append(w, panels, 1000), STINT_OK);
    assert_failure(st_package_add(w, &sections[0]), STINT_E_INTERNAL, "24 bytes are missing");
    st_package_abandon(w);
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    assert_int_equal(st_package_add(w, &sections[0]), STINT_OK);
    assert_failure(st_package_add(w, &sections[0]), STINT_E_INTERNAL, "is there twice");
    st_package_abandon(w);
    st_package_abandon(NULL);
    assert_int_equal(access(path, F_OK), -1);
    remove(path);
}

static void the_last_sections_can_be_taken_back(void **state) {
    (void)state;
    char path[512], plain[512];
    struct st_package_writer *w = NULL;
    struct st_map map, other;
    snprintf(plain, sizeof plain, "%s", write_all(ts_temp_folder()));
    snprintf(path, sizeof path, "%s/dropped.stint", ts_temp_folder());
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    for (size_t i = 0; i < N_SECTIONS; i++)
        assert_int_equal(st_package_add(w, &sections[i]), STINT_OK);
    assert_int_equal(st_package_drop(w, N_SECTIONS), STINT_OK);
    for (size_t n = 0; n < 6; n++) {
        assert_int_equal(st_package_drop(w, n), STINT_OK);
        assert_int_equal(st_package_add(w, &sections[5]), STINT_OK); // at pages, as others are not
        assert_int_equal(st_package_drop(w, n), STINT_OK);
        assert_int_equal(st_package_sections(w), n);
        for (size_t i = n; i < N_SECTIONS; i++)
            assert_int_equal(st_package_add(w, &sections[i]), STINT_OK);
    }
    assert_int_equal(st_package_finish(w), STINT_OK);
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_int_equal(st_map_open(plain, &other), STINT_OK);
    assert_int_equal(map.bytes, other.bytes);
    assert_memory_equal(map.data, other.data, map.bytes);
    st_map_close(&map);
    st_map_close(&other);
    remove(path);
}

// It can be opened while it is under way, and what is read then leaves no trace.
static void a_package_can_be_read_before_it_is_finished(void **state) {
    (void)state;
    char path[512], plain[512], *now = NULL;
    struct st_package_writer *w = NULL;
    struct st_package *package = NULL;
    struct st_map map, other;
    const struct st_section draft = {
        "draft", ST_SECTION_BLOB, ST_DTYPE_F32, 1, {5, 1, 1, 1}, "draft", 5};
    snprintf(plain, sizeof plain, "%s", write_all(ts_temp_folder()));
    snprintf(path, sizeof path, "%s/settled.stint", ts_temp_folder());
    assert_int_equal(st_package_create(path, &w), STINT_OK);
    for (size_t i = 0; i < N_SECTIONS; i++)
        assert_int_equal(st_package_add(w, &sections[i]), STINT_OK);
    assert_int_equal(st_package_add(w, &draft), STINT_OK);
    assert_int_equal(st_package_settle(w, &now), STINT_OK);
    assert_int_equal(st_map_open(now, &map), STINT_OK);
    assert_int_equal(st_package_open("settled", &map, &package), STINT_OK);
    assert_int_equal(st_package_count(package), N_SECTIONS + 1);
    assert_memory_equal(st_package_find(package, "draft")->data, "draft", 5);
    st_package_close(package);
    st_map_close(&map);
    free(now);
    assert_int_equal(st_package_drop(w, N_SECTIONS), STINT_OK);
    assert_int_equal(st_package_finish(w), STINT_OK);
    assert_int_equal(st_map_open(path, &map), STINT_OK);
    assert_int_equal(st_map_open(plain, &other), STINT_OK);
    assert_int_equal(map.bytes, other.bytes);
    assert_memory_equal(map.data, other.data, map.bytes);
    st_map_close(&map);
    st_map_close(&other);
    remove(path);
}

static void shapes_that_cannot_be_are_refused(void **state) {
    (void)state;
    const struct st_section wrong[] = {
        {"t", ST_SECTION_INT8_N16K4, ST_DTYPE_F32, 1, {16, 1, 1, 1}, NULL, 0},
        {"t", ST_SECTION_INT8_N16K4, ST_DTYPE_F32, 2, {0, 64, 1, 1}, NULL, 0},
        {"t", ST_SECTION_INT8_N16K4, ST_DTYPE_F32, 2, {16, 65537, 1, 1}, NULL, 0},
        {"t", ST_SECTION_INT8_N16K4, ST_DTYPE_F32, 2, {UINT64_MAX - 3, 64, 1, 1}, NULL, 0},
        {"t", ST_SECTION_INT8_N16K4, ST_DTYPE_F32, 2, {UINT64_MAX / 32, 64, 1, 1}, NULL, 0},
        {"t", ST_SECTION_I32, ST_DTYPE_F32, 2, {UINT64_MAX / 4, 2, 1, 1}, NULL, 0},
        {"t", ST_SECTION_I32, ST_DTYPE_F32, 1, {3, 2, 1, 1}, NULL, 0},
        {"t", ST_SECTION_BLOB, ST_DTYPE_F32, 2, {3, 2, 1, 1}, NULL, 0},
        {"t", ST_SECTION_TENSOR, ST_DTYPE_Q4_0, 1, {31, 1, 1, 1}, NULL, 0},
        {"t", ST_SECTION_TENSOR, ST_DTYPE_F32, 5, {1, 1, 1, 1}, NULL, 0},
        {"t", ST_N_SECTION_TYPES, ST_DTYPE_F32, 1, {1, 1, 1, 1}, NULL, 0},
    };
    size_t bytes;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(st_section_bytes(&wrong[i], &bytes), STINT_E_FORMAT);
    assert_int_equal(st_section_bytes(&sections[5], &bytes), STINT_OK);
    assert_int_equal(bytes, 16 * 64);
    assert_int_equal(st_section_check_name(""), STINT_E_FORMAT);
    assert_int_equal(st_section_check_name("a\nb"), STINT_E_FORMAT);
}

static void no_damaged_byte_goes_unseen(void **state) {
    (void)state;
    size_t bytes;
    unsigned char *data = ts_read(write_all(ts_temp_folder()), &bytes);
    assert_int_equal(open_bytes(data, bytes), STINT_OK);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char flip = (unsigned char)(1u << ts_random_below(8));
        data[i] ^= flip;
        if (open_bytes(data, bytes) == STINT_OK) fail_msg("byte %zu, bits %x", i, flip);
        assert_true(strncmp(st_error_text(), "x.stint: ", 9) == 0);
        data[i] ^= flip;
    }
    for (size_t n = 0; n < bytes; n += n < 5000 ? 1 : 97)
        assert_int_not_equal(open_bytes(data, n), STINT_OK);
    free(data);
}

// A package in memory whose table can be changed; seal() makes its hashes right again.
struct forged {
    unsigned char *data;
    size_t bytes;
    struct st_package_header *header;
    struct st_package_entry *entries;
};

static struct forged forge(void) {
    struct forged f;
    f.data = ts_read(write_all(ts_temp_folder()), &f.bytes);
    f.header = (void *)f.data;
    f.entries = (void *)(f.data + f.header->table_offset);
    return f;
}

static void seal(struct forged *f) {
    f->header->table_hash =
        XXH3_64bits(f->entries, f->header->n_sections * sizeof(struct st_package_entry));
    f->header->header_hash =
        XXH3_64bits(f->header, offsetof(struct st_package_header, header_hash));
}

#define assert_forged(change, status, piece)                                                       \
    do {                                                                                           \
        struct forged f = forge();                                                                 \
        change;                                                                                    \
        seal(&f);                                                                                  \
        assert_failure(open_bytes(f.data, f.bytes), status, piece);                                \
        free(f.data);                                                                              \
    } while (0)

static void swap_entries(struct forged *f) {
    struct st_package_entry first = f->entries[2];
    f->entries[2] = f->entries[4];
    f->entries[4] = first;
}

static void lies_with_right_hashes_are_refused(void **state) {
    (void)state;
    assert_forged(f.header->version = 3, STINT_E_UNSUPPORTED, "version 3");
    assert_forged(f.header->version = 0, STINT_E_UNSUPPORTED, "version 0");
    assert_forged(f.header->endian = 0x04030201, STINT_E_UNSUPPORTED, "byte order");
    assert_forged(f.header->endian = 7, STINT_E_FORMAT, "header");
    assert_forged(f.header->file_bytes += 9, STINT_E_FORMAT, "cut short");
    assert_forged(f.header->file_bytes -= 9, STINT_E_FORMAT, "too long");
    assert_forged(f.header->table_offset += 1u << 30, STINT_E_FORMAT, "table");
    assert_forged(f.header->table_offset = 0, STINT_E_FORMAT, "table");
    assert_forged(f.header->entry_bytes = 300, STINT_E_FORMAT, "table");
    assert_forged(f.entries[1].offset = UINT64_MAX - 4095, STINT_E_FORMAT, "lies at");
    assert_forged(f.entries[1].offset = f.entries[0].offset, STINT_E_FORMAT, "lies at");
    assert_forged(f.entries[2].bytes = 25, STINT_E_FORMAT, "its shape says 24");
    assert_forged(f.entries[2].dims[0] = UINT64_MAX / 2, STINT_E_FORMAT, "model.norm.weight");
    assert_forged(f.entries[2].n_dims = 77, STINT_E_FORMAT, "model.norm.weight");
    assert_forged(f.entries[2].unused = 1, STINT_E_FORMAT, "model.norm.weight");
    assert_forged(f.entries[0].dims[0] = 1u << 30, STINT_E_FORMAT, "its shape says 1073741824");
    assert_forged((f.entries[0].dims[0] = f.entries[0].bytes = 1u << 30), STINT_E_FORMAT,
                  "too long");
    assert_forged(strcpy(f.entries[4].name, "empty"), STINT_E_FORMAT, "is there twice");
    assert_forged(memset(f.entries[4].name, 'a', sizeof f.entries[4].name), STINT_E_FORMAT,
                  "no end");
    assert_forged(f.entries[4].name[0] = 0, STINT_E_FORMAT, "a name has 1 to");
    assert_forged(strcpy(f.entries[4].type, "int3"), STINT_E_UNSUPPORTED, "'int3'");
    assert_forged(memset(f.entries[4].type, 'a', 16), STINT_E_FORMAT, "not text");
    assert_forged(strcpy(f.entries[2].dtype, "f33"), STINT_E_UNSUPPORTED, "'f33'");
    assert_forged(f.entries[2].hash++, STINT_E_FORMAT, "'model.norm.weight' is damaged");
    assert_forged(swap_entries(&f), STINT_E_FORMAT, "lies at");
    assert_forged(f.data[ST_PACKAGE_ALIGN - 1] = 1, STINT_E_FORMAT, "before section");
}

// The same sections as version 1 has them: each in blocks of its own.
static struct forged spread(const struct forged *f) {
    size_t n = f->header->n_sections, at = ST_PACKAGE_ALIGN;
    struct forged to = {.bytes = (1 + n) * ST_PACKAGE_ALIGN + n * sizeof *f->entries};
    to.data = calloc(to.bytes, 1);
    assert_non_null(to.data);
    to.header = (void *)to.data;
    *to.header = *f->header;
    to.header->version = 1;
    to.header->table_offset = (1 + n) * ST_PACKAGE_ALIGN;
    to.header->file_bytes = to.bytes;
    to.entries = (void *)(to.data + to.header->table_offset);
    for (size_t i = 0; i < n; i++) {
        to.entries[i] = f->entries[i];
        to.entries[i].offset = at;
        memcpy(to.data + at, f->data + f->entries[i].offset, f->entries[i].bytes);
        at += st_round_up(f->entries[i].bytes, ST_PACKAGE_ALIGN);
    }
    to.header->table_offset = at;
    to.header->file_bytes = to.bytes = at + n * sizeof *f->entries;
    to.entries = memcpy(to.data + at, to.entries, n * sizeof *f->entries);
    seal(&to);
    return to;
}

static void older_versions_are_read_or_named(void **state) {
    (void)state;
    struct forged new = forge(), old = spread(&new);
    assert_int_equal(open_bytes(old.data, old.bytes), STINT_OK);
    old.header->version = 2;
    seal(&old);
    assert_failure(open_bytes(old.data, old.bytes), STINT_E_FORMAT, "lies at");
    free(new.data);
    free(old.data);
    assert_forged(f.entries[6].bytes = 512, STINT_E_UNSUPPORTED, "padded to 128");
    assert_forged(f.entries[6].bytes = 511, STINT_E_FORMAT, "its shape says 384");
    // 192 to 256 elements filled two whole blocks.
    assert_forged((f.entries[6].dims[1] = 250, f.entries[6].bytes = 640), STINT_E_FORMAT,
                  "its shape says 512");
}

static void nothing_is_left_of_a_package_that_failed(void **state) {
    (void)state;
    struct st_package_writer *w = NULL;
    const char *folder = ts_temp_folder();
    char path[512];
    snprintf(path, sizeof path, "%s/no/such/folder.stint", folder);
    assert_failure(st_package_create(path, &w), STINT_E_IO, "No such file");
    const char *good = write_all(folder);
    size_t bytes, after;
    unsigned char *before = ts_read(good, &bytes);
    // A full disk, as a bound on the size of a file.
    struct rlimit old, small = {10000, 10000};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    assert_int_equal(st_package_create(good, &w), STINT_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (size_t i = 0; i < N_SECTIONS; i++) st_package_add(w, &sections[i]);
    assert_failure(st_package_finish(w), STINT_E_IO, "a.stint: cannot be written");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    unsigned char *now = ts_read(good, &after);
    assert_int_equal(bytes, after);
    assert_memory_equal(before, now, bytes);
    free(before);
    free(now);
    assert_int_equal(files_in(folder), 1);
}

static void no_memory_is_an_error(void **state) {
    (void)state;
    size_t bytes;
    unsigned char *data = ts_read(write_all(ts_temp_folder()), &bytes);
    struct st_map map = ts_exact_map(data, bytes);
    for (size_t n = 1;; n++) {
        struct st_package *p = NULL;
        ts_fail_allocation(n);
        stint_status status = st_package_open("x.stint", &map, &p);
        bool failed = ts_allocation_failed();
        ts_fail_allocation(0);
        st_package_close(p);
        if (!failed) break;
        assert_int_equal(status, STINT_E_NOMEM);
    }
    free((void *)map.data);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_section_comes_in_pieces),
        cmocka_unit_test(the_last_sections_can_be_taken_back),
        cmocka_unit_test(a_package_can_be_read_before_it_is_finished),
        cmocka_unit_test(shapes_that_cannot_be_are_refused),
        cmocka_unit_test(no_damaged_byte_goes_unseen),
        cmocka_unit_test(lies_with_right_hashes_are_refused),
        cmocka_unit_test(older_versions_are_read_or_named),
        cmocka_unit_test(nothing_is_left_of_a_package_that_failed),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
