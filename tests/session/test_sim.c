// SPDX-License-Identifier: Apache-2.0
// Sessions on `sim`, a device with memory of its own: the same bits as on the host's cores, in
// whatever its memory has room for, and whichever of its jobs fails.
#include "device/driver.h"
#include "session/session.h"
#include "support/kinds.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N_PROMPT = 11, N_STEPS = 2, N_IDS = N_PROMPT + N_STEPS, CHUNK = 8 };

static const struct kind {
    const char *source;
    bool neurons;
    uint32_t npu_threads; // not 0: prompts are split
} kinds[] = {
    {"fixtures/models/llama2", false, 0},
    {"fixtures/models/llama2", false, 1},
    {"fixtures/models/mixtral", false, 0},
    {"fixtures/models/bamboo", true, 0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static stint_model *models[N_KINDS];
static int32_t ids[N_IDS];
static float *wanted[N_KINDS]; // [N_IDS, vocab] on the host

static size_t vocab_of(int kind) {
    return models[kind]->config.vocab;
}

static stint_status open_session(int kind, const char *device, uint64_t npu_memory,
                                 stint_session **s) {
    stint_session_options o = {.size = sizeof o,
                               .n_threads = 1,
                               .n_context = 64,
                               .chunk_len = CHUNK,
                               .device = device,
                               .npu_memory = npu_memory,
                               .npu_threads = kinds[kind].npu_threads,
                               .cpu_threads = kinds[kind].npu_threads};
    return stint_session_open(models[kind], &o, s);
}

// All logits of a prompt, then of single steps.
static stint_status evaluate(stint_session *s, int kind, float *logits) {
    ST_TRY(stint_session_truncate(s, 0, 0));
    ST_TRY(stint_session_eval(s, 0, ids, N_PROMPT, true, logits));
    for (size_t i = N_PROMPT; i < N_IDS; i++)
        ST_TRY(stint_session_eval(s, 0, ids + i, 1, false, logits + i * vocab_of(kind)));
    return STINT_OK;
}

static void assert_same(stint_session *s, int kind, const char *what) {
    size_t bytes = N_IDS * vocab_of(kind) * sizeof(float);
    float *logits = malloc(bytes);
    if (evaluate(s, kind, logits) != STINT_OK) fail_msg("%s: %s", what, stint_error_text());
    if (memcmp(logits, wanted[kind], bytes) != 0)
        fail_msg("%s, %s: other bits than on the host", kinds[kind].source, what);
    free(logits);
}

static int open_models(void **state) {
    (void)state;
    for (size_t i = 0; i < N_IDS; i++) ids[i] = (int32_t)ts_random_below(40);
    for (int i = 0; i < N_KINDS; i++) {
        models[i] = ts_shadow_package(kinds[i].source, NULL, kinds[i].neurons, ids, N_IDS);
        stint_session *s = NULL;
        if (open_session(i, NULL, 0, &s) != STINT_OK) fail_msg("%s", stint_error_text());
        wanted[i] = malloc(N_IDS * vocab_of(i) * sizeof(float));
        if (evaluate(s, i, wanted[i]) != STINT_OK) fail_msg("%s", stint_error_text());
        stint_session_close(s);
    }
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        stint_model_close(models[i]);
        free(wanted[i]);
    }
    return 0;
}

static void other_memory_gives_the_same_bits(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        stint_session *s = NULL;
        assert_int_equal(open_session(i, "sim:delay=0", 0, &s), STINT_OK);
        assert_string_equal(stint_session_device(s), "sim");
        assert_same(s, i, "sim");
        assert_int_equal(s->npus.faults, 0);
        stint_session_close(s);
    }
}

// True if a job failed while a session was opened and used.
static bool survives(int kind, const char *fault, int n) {
    char device[64];
    stint_session *s = NULL;
    snprintf(device, sizeof device, "sim:delay=0,%s=%d", fault, n);
    if (open_session(kind, device, 0, &s) != STINT_OK)
        fail_msg("%s: %s", device, stint_error_text());
    assert_same(s, kind, device);
    bool struck = s->npus.faults > 0;
    stint_session_close(s);
    return struck;
}

// A fault at every job there is, in the long mode each fault: the host takes over, and no bit
// changes. How many jobs there are is seen from the first kind of fault, which needs no clock.
static void a_failed_job_is_done_by_the_host(void **state) {
    (void)state;
    static const char *const faults[] = {"oom", "lose", "timeout=5,hang"};
    for (int i = 0; i < N_KINDS; i++) {
        int n_jobs = 0;
        while (survives(i, "fail", n_jobs + 1)) n_jobs++;
        assert_true(n_jobs > N_STEPS);
        for (int n = 1; n <= n_jobs; n++)
            for (int fault = 0; fault < 3; fault++)
                if (ts_is_long() || (n + i) % 3 == fault)
                    assert_true(survives(i, faults[fault], n));
    }
}

// Another thread's: waits for job `number`, then cancels it.
struct canceling {
    struct st_device *device;
    uint32_t number;
};

static struct st_job *pending(struct st_device *d, uint32_t number) {
    for (size_t i = 0; i < ST_DEVICE_JOBS; i++)
        if (d->jobs[i].number == number && d->jobs[i].state == ST_JOB_PENDING) return &d->jobs[i];
    return NULL;
}

static void *cancel_one(void *context) {
    const struct canceling *c = context;
    struct st_job *job;
    pthread_mutex_lock(&c->device->mutex);
    while (!(job = pending(c->device, c->number)))
        pthread_cond_wait(&c->device->changed, &c->device->mutex);
    pthread_mutex_unlock(&c->device->mutex);
    st_job_cancel(job);
    return NULL;
}

// As one that came after a job that failed.
static void a_canceled_job_is_done_by_the_host(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 6; n++) {
        char device[64];
        stint_session *s = NULL;
        pthread_t thread;
        snprintf(device, sizeof device, "sim:delay=0,hang=%u", n);
        assert_int_equal(open_session(0, device, 0, &s), STINT_OK);
        struct canceling c = {s->group.npu[ST_NPU_DEVICE]->device, n};
        assert_int_equal(pthread_create(&thread, NULL, cancel_one, &c), 0);
        assert_same(s, 0, device);
        pthread_join(thread, NULL);
        assert_int_equal(s->npus.faults, 1);
        stint_session_close(s);
    }
}

static void without_memory_there_is_one_clear_error(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        stint_status status = STINT_E_NOMEM;
        int n = 1;
        for (; status != STINT_OK; n++) {
            char device[64];
            stint_session *s = NULL;
            snprintf(device, sizeof device, "sim:delay=0,nomem=%d", n);
            status = open_session(i, device, 0, &s);
            if (status != STINT_OK) {
                assert_int_equal(status, STINT_E_NOMEM);
                assert_non_null(strstr(stint_error_text(), "sim"));
                assert_null(s);
            } else {
                assert_same(s, i, device);
            }
            stint_session_close(s);
        }
        assert_true(n > 10);
    }
}

// Feed-forward blocks first, the head last, nothing where there is no room for the buffers.
static void a_limit_divides_the_model(void **state) {
    (void)state;
    stint_session *s = NULL;
    uint32_t all = 0, parts = 0;
    assert_int_equal(open_session(0, "sim:delay=0", 0, &s), STINT_OK);
    const struct st_npu *npu = s->group.npu[ST_NPU_DEVICE];
    uint64_t bytes = st_device_used_bytes(npu->device);
    all = (uint32_t)s->npus.n_units;
    stint_session_close(s);
    assert_int_equal(open_session(0, "sim", 100, &s), STINT_E_LIMIT);
    assert_non_null(strstr(stint_error_text(), "sim"));
    for (uint64_t limit = bytes; limit > bytes / 2; limit -= bytes / 50) {
        stint_graph_info info = {.size = sizeof info};
        s = NULL;
        if (open_session(0, "sim:delay=0", limit, &s) == STINT_E_LIMIT) break;
        assert_non_null(s);
        assert_int_equal(stint_session_graphs(s, &info), STINT_OK);
        assert_true(info.n_graphs <= all);
        assert_same(s, 0, "a limit");
        bool head = s->npus.placed[all - 1] == ST_NPU_DEVICE;
        if (head) assert_int_equal(info.n_graphs, all);
        parts += info.n_graphs > 0 && info.n_graphs < all;
        stint_session_close(s);
    }
    assert_true(parts > 0);
}

static void what_cannot_be_had_is_refused(void **state) {
    (void)state;
    stint_session *s = NULL;
    assert_int_equal(open_session(0, "sim:often=3", 0, &s), STINT_E_ARG);
    assert_non_null(strstr(stint_error_text(), "often=3"));
    assert_null(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_memory_gives_the_same_bits),
        cmocka_unit_test(a_failed_job_is_done_by_the_host),
        cmocka_unit_test(a_canceled_job_is_done_by_the_host),
        cmocka_unit_test(without_memory_there_is_one_clear_error),
        cmocka_unit_test(a_limit_divides_the_model),
        cmocka_unit_test(what_cannot_be_had_is_refused),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
