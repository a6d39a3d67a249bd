// SPDX-License-Identifier: Apache-2.0
// The table of what sessions read on demand: every linear once, in the order of a pass, where its
// bytes lie, whatever the files are; and what happens to a session when a file changes.
#include "model/file_pieces.h"
#include "model/model.h"
#include "support/kinds.h"
#include "support/support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 6 };

static stint_model *open_lazy(const char *path) {
    stint_model_options o = {.size = sizeof o, .no_tokenizer = true, .lazy = true};
    stint_model *m = NULL;
    if (stint_model_open(path, &o, &m) != STINT_OK) fail_msg("%s", stint_error_text());
    return m;
}

static stint_model *open_source(size_t i) {
    static const char *const shared[] = {"mixtral", "qwen2", "opt", "llama-q/q4_k_m.gguf",
                                         "mixtral/model.gguf"};
    char path[100];
    if (i == sizeof shared / sizeof *shared) // with fused linears
        return open_lazy(ts_source("tests/golden/models/phi3-short"));
    snprintf(path, sizeof path, "fixtures/models/%s", shared[i]);
    return open_lazy(ts_shared(path));
}
enum { N_SOURCES = 6 };

struct walk {
    const stint_model *model;
    size_t next, n_weights; // places in the table; linears
};

static void check_part(struct walk *w, const struct st_file_piece *p,
                       const struct st_linear_weight *linear) {
    const struct st_checkpoint *c = &w->model->checkpoint;
    assert_int_equal(p->strips->bytes, linear->n_out * linear->row_bytes);
    assert_int_equal(p->strips->group_bytes, ST_PIECE_ROWS * linear->row_bytes);
    assert_int_equal(linear->piece, p - w->model->pieces.at + 1);
    assert_false(p->strips->hashed);
    unsigned char *bytes = malloc(p->strips->bytes);
    assert_int_equal(
        pread(c->files[p->file].file, bytes, p->strips->bytes, (off_t)p->strips->offset),
        p->strips->bytes);
    assert_memory_equal(bytes, linear->data, p->strips->bytes);
    free(bytes);
    const struct st_tensor *t = st_tensors_find(c->tensors, st_file_piece_tensor(w->model, p));
    assert_non_null(t);
    assert_int_equal(t->dtype, linear->dtype);
    w->n_weights++;
}

static stint_status check_linear(void *context, struct st_linear_id id) {
    struct walk *w = context;
    const struct st_linear_weight *parts[ST_LINEAR_OP_PARTS];
    size_t n = st_linear_parts(&w->model->weights, id, parts);
    assert_int_equal(st_file_piece_place(w->model, id), w->next);
    for (size_t i = 0; i < n; i++, w->next++)
        check_part(w, &w->model->pieces.at[w->next], parts[i]);
    // Parts that a linear lacks have places without bytes.
    for (; w->next < w->model->pieces.n; w->next++) {
        const struct st_file_piece *p = &w->model->pieces.at[w->next];
        if (p->n_strips || memcmp(&p->linear, &id, sizeof id) != 0) break;
        assert_int_equal(st_file_piece_groups(p), 0);
    }
    return STINT_OK;
}

static void every_linear_of_a_checkpoint_is_found(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOURCES; i++) {
        stint_model *m = open_source(i);
        struct walk w = {.model = m};
        uint32_t experts = m->config.n_experts ? m->config.n_experts : 1;
        assert_int_equal(st_linears_each(&m->config, experts, check_linear, &w), STINT_OK);
        assert_int_equal(w.next, m->pieces.n);
        assert_true(w.n_weights > (size_t)m->config.n_layers * 5);
        assert_int_equal(m->weights.embed.piece, 0); // rows of it are read, nothing else
        for (uint32_t l = 0; l < m->config.n_layers; l++)
            assert_int_equal(m->weights.layers[l].router.piece, 0);
        stint_model_close(m);
    }
}

static void packed_linears_are_hashed(void **state) {
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/m.stint", ts_temp_folder());
    stint_prepare_options o = {.size = sizeof o, .n_tokens = 100, .outliers = STINT_OUTLIERS_NONE};
    ts_prepare(ts_shared("fixtures/models/mixtral"), path, &o);
    stint_model *m = open_lazy(path);
    size_t per_layer = 2 + 2 * m->config.n_experts;
    assert_int_equal(m->pieces.n, per_layer * m->config.n_layers + 1);
    for (const struct st_file_piece *p = m->pieces.at; p < m->pieces.at + m->pieces.n; p++) {
        const struct st_section *s = st_package_find(m->checkpoint.package, p->strips->section);
        assert_non_null(s);
        assert_true(p->strips->hashed && p->strips->bytes == s->bytes &&
                    p->strips->bytes % p->strips->group_bytes == 0);
        assert_int_equal(st_file_piece_place(m, p->linear), p - m->pieces.at);
    }
    stint_model_close(m);
}

// ---- Files that change under a session

struct session {
    char folder[600], path[700]; // path: of the weights
    struct timespec times[2];
    unsigned char *bytes;
    size_t n_bytes;
    stint_model *model;
    stint_session *session;
    float *wanted, *got; // [N_IDS, vocab]
};

static stint_status eval(struct session *s) {
    static const int32_t ids[N_IDS] = {5, 9, 2, 7, 1, 3};
    assert_int_equal(stint_session_truncate(s->session, 0, 0), STINT_OK);
    return stint_session_eval(s->session, 0, ids, N_IDS, true, s->got);
}

static void copy_file(const struct session *s, const char *name) {
    char from[100], to[700];
    size_t n;
    snprintf(from, sizeof from, "models/novels-10m/%s", name);
    snprintf(to, sizeof to, "%s/%s", strrchr(s->folder, '/') + 1, name);
    unsigned char *data = ts_read(ts_source(from), &n);
    ts_write(to, data, n);
    free(data);
}

// A model of 20 MB under the least bound.
static void open_session(const char *folder, struct session *s) {
    stint_session_options o = {.size = sizeof o, .n_threads = 2, .n_context = 32, .memory = 1};
    unsigned long long mib = 0;
    snprintf(s->folder, sizeof s->folder, "%s/%s", ts_temp_folder(), folder);
    assert_int_equal(mkdir(s->folder, 0700), 0);
    copy_file(s, "config.json");
    copy_file(s, "model.safetensors");
    snprintf(s->path, sizeof s->path, "%s/model.safetensors", s->folder);
    s->bytes = ts_read(s->path, &s->n_bytes);
    struct stat info;
    assert_int_equal(stat(s->path, &info), 0);
    s->times[0] = info.st_atim, s->times[1] = info.st_mtim;
    s->model = open_lazy(s->folder);
    assert_int_equal(stint_session_open(s->model, &o, &s->session), STINT_E_LIMIT);
    assert_int_equal(sscanf(stint_error_text(), "memory: at least %llu MiB", &mib), 1);
    o.memory = mib << 20;
    assert_int_equal(stint_session_open(s->model, &o, &s->session), STINT_OK);
    size_t bytes = N_IDS * s->model->config.vocab * sizeof(float);
    s->wanted = malloc(bytes);
    s->got = calloc(1, bytes);
    assert_int_equal(eval(s), STINT_OK);
    memcpy(s->wanted, s->got, bytes);
}

static void close_session(struct session *s) {
    stint_session_close(s->session);
    stint_model_close(s->model);
    free(s->bytes);
    free(s->wanted);
    free(s->got);
}

// As a disk changes bytes: the file's time stays.
static void write_at(const struct session *s, const void *data, size_t n, uint64_t at) {
    int file = open(s->path, O_WRONLY);
    assert_int_equal(pwrite(file, data, n, (off_t)at), n);
    assert_int_equal(futimens(file, s->times), 0);
    assert_int_equal(fsync(file), 0);
    close(file);
}

static void assert_same(struct session *s) {
    memset(s->got, 0, N_IDS * s->model->config.vocab * sizeof(float));
    if (eval(s) != STINT_OK) fail_msg("%s", stint_error_text());
    assert_memory_equal(s->got, s->wanted, N_IDS * s->model->config.vocab * sizeof(float));
}

static void a_change_is_an_error_that_names_the_tensor(void **state) {
    (void)state;
    struct session s;
    open_session("changed", &s);
    size_t n_found = 0, n_tried = 0, step = s.model->pieces.n / 8;
    for (size_t i = step; i < s.model->pieces.n; i += step, n_tried++) {
        const struct st_file_piece *p = &s.model->pieces.at[i];
        uint64_t at = p->strips->offset + p->strips->bytes / 2;
        unsigned char changed = s.bytes[at] ^ 16;
        write_at(&s, &changed, 1, at);
        stint_status status = eval(&s); // OK for what is still in memory
        if (status != STINT_OK) {
            assert_int_equal(status, STINT_E_FORMAT);
            assert_non_null(strstr(stint_error_text(), st_file_piece_tensor(s.model, p)));
            assert_non_null(strstr(stint_error_text(), s.path));
            n_found++;
        }
        write_at(&s, s.bytes + at, 1, at);
        assert_same(&s);
    }
    assert_true(n_tried > 6 && n_found > n_tried / 2);
    close_session(&s);
}

static void a_file_cut_short_is_an_error(void **state) {
    (void)state;
    struct session s;
    open_session("cut", &s);
    uint64_t cut = s.model->pieces.at[s.model->pieces.n / 2].strips->offset;
    assert_int_equal(truncate(s.path, (off_t)cut), 0);
    assert_int_equal(eval(&s), STINT_E_IO);
    assert_non_null(strstr(stint_error_text(), "cut short"));
    assert_int_equal(stint_session_length(s.session, 0), 0);
    write_at(&s, s.bytes + cut, s.n_bytes - cut, cut);
    assert_same(&s);
    close_session(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_linear_of_a_checkpoint_is_found),
        cmocka_unit_test(packed_linears_are_hashed),
        cmocka_unit_test(a_change_is_an_error_that_names_the_tensor),
        cmocka_unit_test(a_file_cut_short_is_an_error),
    };
    return cmocka_run_group_tests_name("file pieces", tests, NULL, NULL);
}
