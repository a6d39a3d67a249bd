// SPDX-License-Identifier: Apache-2.0
// Tensors of GGUF files and folders that change while a bounded session runs, kind by kind: either
// nothing of them is read any more, or there is an error that names one of them. With
// STINT_CI_LONG=1 of all golden checkpoints.
#include "session/session.h"
#include "session/weights/bounded.h"
#include "support/support.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 6, MAX_KINDS = 96, MAX_NAME = 200 };

// Families with parts of their own.
static const char *const some[] = {"deepseek-v3", "falcon_h1",  "gemma3n",  "gemma4-moe",
                                   "gpt-oss",     "lfm2moe",    "opt-post", "qwen35moe",
                                   "bitnet",      "nemotron_h", "qwen2moe"};

static struct subject {
    char path[700], folder[600]; // of the weights; of the copy
    stint_model *model;
    stint_session *session;
    float *wanted, *got; // [N_IDS, vocab]
    size_t n_found;
} subject;

static size_t logits_bytes(void) {
    return N_IDS * subject.model->config.vocab * sizeof(float);
}

static stint_status eval(void) {
    int32_t ids[N_IDS];
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)(5 * i + 1);
    ST_TRY(stint_session_truncate(subject.session, 0, 0));
    ST_TRY(stint_session_eval(subject.session, 0, ids, N_IDS - 1, true, subject.got));
    return stint_session_eval(subject.session, 0, ids + N_IDS - 1, 1, true,
                              subject.got + (N_IDS - 1) * subject.model->config.vocab);
}

// ---- A copy under the least bound

static void copy(const char *from, const char *name) {
    char path[700], to[800];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", from, name);
    if (access(path, R_OK) != 0) return;
    unsigned char *data = ts_read(path, &n);
    snprintf(to, sizeof to, "%s/%s", strrchr(subject.folder, '/') + 1, name);
    ts_write(to, data, n);
    free(data);
}

// False of a folder whose tensors cannot be read on demand.
static bool open_model(const char *name, const char *file) {
    stint_model_options o = {.size = sizeof o, .no_tokenizer = true, .lazy = true};
    char from[600];
    static int n;
    snprintf(from, sizeof from, "%s", ts_source("tests/golden/models"));
    snprintf(from + strlen(from), sizeof from - strlen(from), "/%s", name);
    snprintf(subject.folder, sizeof subject.folder, "%s/%d", ts_temp_folder(), n++);
    assert_int_equal(mkdir(subject.folder, 0700), 0);
    copy(from, "config.json");
    copy(from, file);
    snprintf(subject.path, sizeof subject.path, "%s/%s", subject.folder, file);
    bool gguf = strcmp(file, "model.gguf") == 0;
    stint_status status =
        stint_model_open(gguf ? subject.path : subject.folder, &o, &subject.model);
    if (status != STINT_OK && status != STINT_E_UNSUPPORTED)
        fail_msg("%s: %s", name, stint_error_text());
    return status == STINT_OK;
}

static void open_session(const char *name) {
    stint_session_options o = {.size = sizeof o, .n_threads = 1, .n_context = 32, .memory = 1};
    unsigned long long mib = 0;
    assert_int_equal(stint_session_open(subject.model, &o, &subject.session), STINT_E_LIMIT);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %llu MiB", &mib), 1);
    o.memory = mib << 20;
    if (stint_session_open(subject.model, &o, &subject.session) != STINT_OK)
        fail_msg("%s: %s", name, stint_error_text());
    struct st_slices *slices = &subject.session->bounded->slices;
    for (uint32_t r = 0; r < ST_N_REGIONS; r++)
        st_slices_resize(slices, r, st_min(ST_SLICES_FEWEST, slices->regions[r].n_entries));
    subject.wanted = malloc(logits_bytes());
    subject.got = malloc(logits_bytes());
    if (eval() != STINT_OK) fail_msg("%s: %s", name, stint_error_text());
    memcpy(subject.wanted, subject.got, logits_bytes());
}

static void close_all(void) {
    stint_session_close(subject.session);
    stint_model_close(subject.model);
    free(subject.wanted);
    free(subject.got);
    subject = (struct subject){.n_found = subject.n_found};
}

// ---- Kinds: names without numbers

static void kind_of(const char *tensor, char kind[MAX_NAME]) {
    size_t n = 0;
    for (; *tensor && n + 1 < MAX_NAME; tensor++)
        if (!isdigit((unsigned char)*tensor)) kind[n++] = *tensor;
    kind[n] = 0;
}

static const struct st_tensor *tensor_at(size_t i, char kind[MAX_NAME]) {
    const struct st_tensor *t = st_tensors_at(subject.model->checkpoint.tensors, i);
    kind_of(t->name, kind);
    return t;
}

// Turns over a bit of every byte of a kind's tensors; the file's time stays.
static void turn_over(const char *kind) {
    struct stat before;
    int file = open(subject.path, O_RDWR);
    assert_int_equal(fstat(file, &before), 0);
    for (size_t i = 0; i < st_tensors_count(subject.model->checkpoint.tensors); i++) {
        char name[MAX_NAME];
        const struct st_tensor *t = tensor_at(i, name);
        uint32_t which;
        uint64_t at;
        if (strcmp(name, kind) != 0 ||
            !st_checkpoint_find(&subject.model->checkpoint, t->data, t->bytes, &which, &at))
            continue;
        unsigned char *bytes = malloc(t->bytes);
        assert_int_equal(pread(file, bytes, t->bytes, (off_t)at), t->bytes);
        for (size_t b = 0; b < t->bytes; b++) bytes[b] ^= 16;
        assert_int_equal(pwrite(file, bytes, t->bytes, (off_t)at), t->bytes);
        free(bytes);
    }
    assert_int_equal(futimens(file, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
    close(file);
}

static void assert_names(const char *model, const char *kind) {
    for (size_t i = 0; i < st_tensors_count(subject.model->checkpoint.tensors); i++) {
        char name[MAX_NAME], quoted[MAX_NAME + 3];
        const struct st_tensor *t = tensor_at(i, name);
        snprintf(quoted, sizeof quoted, "'%s'", t->name);
        if (strcmp(name, kind) == 0 && strstr(stint_error_text(), quoted)) return;
    }
    fail_msg("%s: %s is damaged, the error says: %s", model, kind, stint_error_text());
}

static bool is_wanted(void) {
    return memcmp(subject.got, subject.wanted, logits_bytes()) == 0;
}

static void try_kind(const char *model, const char *kind) {
    turn_over(kind);
    for (int again = 0; again < 2; again++) {
        stint_status status = eval();
        if (status == STINT_OK && !is_wanted())
            fail_msg("%s: %s is damaged: another answer", model, kind);
        if (status == STINT_OK) continue;
        if (status != STINT_E_FORMAT) fail_msg("%s: %s: %s", model, kind, stint_error_text());
        assert_names(model, kind);
        subject.n_found++;
    }
    turn_over(kind);
    if (eval() != STINT_OK && eval() != STINT_OK) // it was read ahead meanwhile
        fail_msg("%s: %s is whole again: %s", model, kind, stint_error_text());
    assert_true(is_wanted());
}

static void try_all(const char *model, const char *file) {
    static char tried[MAX_KINDS][MAX_NAME];
    size_t n = 0;
    if (!open_model(model, file)) return;
    open_session(model);
    for (size_t i = 0; i < st_tensors_count(subject.model->checkpoint.tensors); i++) {
        char kind[MAX_NAME];
        bool known = false;
        tensor_at(i, kind);
        for (size_t k = 0; k < n && !known; k++) known = strcmp(tried[k], kind) == 0;
        if (known) continue;
        assert_true(n < MAX_KINDS);
        strcpy(tried[n++], kind);
        try_kind(model, kind);
    }
    close_all();
}

static void try_model(const char *name) {
    static const char *const files[] = {"model.safetensors", "model.gguf"};
    for (size_t i = 0; i < 2; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s", ts_source("tests/golden/models"));
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%s/%s", name, files[i]);
        if (access(path, R_OK) == 0) try_all(name, files[i]);
    }
}

static void a_changed_tensor_is_found_or_not_read(void **state) {
    (void)state;
    if (!ts_is_long()) {
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) try_model(some[i]);
    } else {
        DIR *folder = opendir(ts_source("tests/golden/models"));
        assert_non_null(folder);
        for (struct dirent *e; (e = readdir(folder));)
            if (e->d_name[0] != '.') try_model(e->d_name);
        closedir(folder);
    }
    assert_true(subject.n_found > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_changed_tensor_is_found_or_not_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
