// SPDX-License-Identifier: Apache-2.0
// Rows of the embedding that are read one by one: a row of a checkpoint that changed is an error
// until it is what it was. Those of packages are in test_damage.c.
#include "model/model.h"
#include "session/session.h"
#include "support/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { VOCAB = 320, N_IDS = 6, ROW = 9 };

static const int32_t ids[N_IDS] = {5, ROW, 2, 7, 1, 3};
static stint_model *model;
static stint_session *session;
static char path[600];

static int open_session(void **state) {
    (void)state;
    size_t n;
    unsigned char *bytes = ts_read(ts_shared("fixtures/models/llama2/model.gguf"), &n);
    strcpy(path, ts_write("rows.gguf", bytes, n));
    free(bytes);
    stint_model_options lazy = {.size = sizeof lazy, .no_tokenizer = true, .lazy = true};
    stint_session_options o = {.size = sizeof o, .n_context = 32, .memory = 64 << 20};
    assert_int_equal(stint_model_open(path, &lazy, &model), STINT_OK);
    assert_int_equal(model->config.vocab, VOCAB);
    assert_int_equal(stint_session_open(model, &o, &session), STINT_OK);
    return 0;
}

static int close_session(void **state) {
    (void)state;
    stint_session_close(session);
    stint_model_close(model);
    return 0;
}

static stint_status eval(float *logits) {
    assert_int_equal(stint_session_truncate(session, 0, 0), STINT_OK);
    return stint_session_eval(session, 0, ids, N_IDS, true, logits);
}

// Rows of other tokens, until those of the text have left memory.
static void read_other_rows(void) {
    for (int32_t first = 20; first < VOCAB; first += 20) {
        int32_t others[20];
        for (int32_t i = 0; i < 20; i++) others[i] = first + i;
        assert_int_equal(stint_session_truncate(session, 0, 0), STINT_OK);
        assert_int_equal(stint_session_eval(session, 0, others, 20, false, NULL), STINT_OK);
    }
}

static void turn_over(uint64_t at) {
    unsigned char byte;
    int file = open(path, O_RDWR);
    struct stat before;
    assert_int_equal(fstat(file, &before), 0);
    assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
    assert_int_equal(futimens(file, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
    close(file);
}

static void a_changed_row_is_an_error_until_it_is_whole(void **state) {
    (void)state;
    static float wanted[N_IDS * VOCAB], got[N_IDS * VOCAB];
    const struct st_linear_weight *embed = &model->weights.embed;
    const unsigned char *row = (const unsigned char *)embed->data + ROW * embed->row_bytes;
    uint32_t file;
    uint64_t at;
    assert_true(st_checkpoint_find(&model->checkpoint, row, embed->row_bytes, &file, &at));
    assert_int_equal(eval(wanted), STINT_OK);
    turn_over(at);
    assert_int_equal(eval(got), STINT_OK); // from memory
    assert_memory_equal(got, wanted, sizeof got);
    read_other_rows();
    for (int again = 0; again < 3; again++) {
        assert_int_equal(eval(got), STINT_E_FORMAT);
        assert_non_null(strstr(stint_error_text(), "rows.gguf: tensor 'token_embd.weight'"));
        assert_int_equal(stint_session_length(session, 0), 0);
    }
    turn_over(at);
    assert_int_equal(eval(got), STINT_OK);
    assert_memory_equal(got, wanted, sizeof got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_row_is_an_error_until_it_is_whole)};
    return cmocka_run_group_tests(tests, open_session, close_session);
}
