// SPDX-License-Identifier: Apache-2.0
// The hash of a whole model: any byte of its files changes it, and nothing else does.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/expect.h"
#include "model/fingerprint.h"
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_BYTES = 6 }; // that are changed, one after another

static char folder[600], weights[700];

static void copy_file(const char *name) {
    char from[100], to[100];
    size_t n;
    snprintf(from, sizeof from, "models/novels-2/%s", name);
    snprintf(to, sizeof to, "model/%s", name);
    unsigned char *data = ts_read(ts_built(from), &n);
    ts_write(to, data, n);
    free(data);
}

static int copy_model(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/model", ts_temp_folder());
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    copy_file("config.json");
    copy_file("model.safetensors");
    return 0;
}

static stint_model *open_model(bool lazy) {
    const stint_model_options o = {.size = sizeof o, .lazy = lazy, .no_tokenizer = true};
    stint_model *m = NULL;
    if (stint_model_open(folder, &o, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

static uint64_t hash_of(bool lazy) {
    uint64_t hash = 0, again = 0;
    stint_model *m = open_model(lazy);
    assert_int_equal(st_model_hash(m, &hash), STINT_OK);
    assert_int_equal(st_model_hash(m, &again), STINT_OK);
    assert_int_equal(hash, again);
    stint_model_close(m);
    return hash;
}

static void flip(const char *path, off_t at) {
    int file = open(path, O_RDWR);
    unsigned char byte;
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static off_t first_weight(void) {
    stint_model *m = open_model(false);
    const struct st_tensor *tensor = st_tensors_at(m->checkpoint.tensors, 0);
    off_t at = (const unsigned char *)tensor->data - m->checkpoint.maps->data;
    stint_model_close(m);
    return at;
}

static void any_byte_of_any_weight_changes_it(void **state) {
    (void)state;
    uint64_t whole = hash_of(false);
    struct stat info;
    assert_int_equal(stat(weights, &info), 0);
    off_t first = first_weight();
    for (int i = 0; i < N_BYTES; i++) {
        off_t at = first + (off_t)ts_random_below((size_t)(info.st_size - first));
        if (i == 0) at = info.st_size - 1;
        flip(weights, at);
        assert_int_not_equal(hash_of(i % 2), whole);
        flip(weights, at);
    }
    assert_int_equal(hash_of(false), whole);
    assert_int_equal(hash_of(true), whole);
}

static void so_does_the_configuration(void **state) {
    (void)state;
    uint64_t whole = hash_of(false);
    size_t n;
    char *config = (char *)ts_read(ts_built("models/novels-2/config.json"), &n);
    char *at = strstr(config, "\"rope_theta\": ");
    assert_non_null(at);
    at[strlen("\"rope_theta\": ")] ^= 2; // another digit
    ts_write("model/config.json", config, n);
    free(config);
    assert_int_not_equal(hash_of(false), whole);
    copy_file("config.json");
    assert_int_equal(hash_of(false), whole);
}

// What was opened is another model then.
static void a_file_that_was_written_since_is_refused(void **state) {
    (void)state;
    uint64_t hash = 7;
    ts_make_old(weights);
    stint_model *m = open_model(false);
    flip(weights, 5000);
    assert_failure(st_model_hash(m, &hash), STINT_E_IO, "was written or cut while it was in use");
    stint_model_close(m);
    flip(weights, 5000);
    m = open_model(true);
    struct stat info;
    assert_int_equal(stat(weights, &info), 0);
    assert_int_equal(truncate(weights, info.st_size / 2 + 1), 0);
    assert_failure(st_model_hash(m, &hash), STINT_E_IO, "was cut while it was read");
    assert_int_equal(hash, 7);
    stint_model_close(m);
    copy_file("model.safetensors");
}

static void failing_allocations_are_told(void **state) {
    (void)state;
    uint64_t hash = 0;
    bool failed = true;
    stint_model *m = open_model(false);
    for (size_t n = 1; failed; n++) {
        ts_fail_allocation(n);
        stint_status status = st_model_hash(m, &hash);
        failed = ts_allocation_failed();
        ts_fail_allocation(0);
        assert_int_equal(status, failed ? STINT_E_NOMEM : STINT_OK);
    }
    assert_int_equal(hash, hash_of(false));
    stint_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_byte_of_any_weight_changes_it),
        cmocka_unit_test(so_does_the_configuration),
        cmocka_unit_test(a_file_that_was_written_since_is_refused),
        cmocka_unit_test(failing_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, copy_model, NULL);
}
