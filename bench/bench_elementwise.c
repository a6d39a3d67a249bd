// SPDX-License-Identifier: Apache-2.0
// Time per element of every row of elementwise, on rows of a model's width that stay in the cache.
#include "kernels/elementwise.h"

#include "base/cpu.h"
#include "bench_rows.h"

enum { N = 4096, HEAD = 128 };

static float x[N], y[N], z[N], cosine[N], sine[N];
static const struct st_elementwise *rows[BENCH_MAX_ROWS];
static volatile size_t sink;

static void rmsnorm(size_t row, void *context) {
    (void)context;
    rows[row]->rmsnorm(x, z, 1e-5f, N, y);
}
static void layernorm(size_t row, void *context) {
    (void)context;
    rows[row]->layernorm(x, z, z, 1e-5f, N, y);
}
static void act(size_t row, void *context) {
    rows[row]->act(*(enum st_act *)context, x, N, y);
}
static void act_gated(size_t row, void *context) {
    rows[row]->act_gated(*(enum st_act *)context, x, z, N, y);
}
static void add(size_t row, void *context) {
    (void)context;
    rows[row]->add(z, N, y);
}
static void axpy(size_t row, void *context) {
    (void)context;
    rows[row]->axpy(1e-3f, x, N, y);
}
static void scale(size_t row, void *context) {
    (void)context;
    rows[row]->scale(0.5f, x, N, y);
}
static void softcap(size_t row, void *context) {
    (void)context;
    rows[row]->softcap(30.0f, x, N, y);
}
static void rope(size_t row, void *context) {
    for (size_t head = 0; head < N; head += HEAD)
        rows[row]->rope(x + head, cosine, sine, HEAD, *(bool *)context);
}
static void argmax(size_t row, void *context) {
    (void)context;
    sink = rows[row]->argmax(x, N);
}

// floats: read and written per element
static void run(const char *label, const char *const *names, size_t n_rows, bench_fn *fn,
                void *context, double floats) {
    bench_rows(label, names, n_rows, fn, context, N, floats * N * sizeof(float));
}

static void run_activations(const char *const *names, size_t n_rows) {
    static const char *const labels[] = {
#define X(id, name) name,
        ST_ACT_LIST(X)
#undef X
    };
    for (int kind = 0; kind < ST_N_ACTS; kind++) {
        enum st_act which = (enum st_act)kind;
        char gated[64];
        snprintf(gated, sizeof gated, "%s gated", labels[kind]);
        run(labels[kind], names, n_rows, act, &which, 2.0);
        run(gated, names, n_rows, act_gated, &which, 3.0);
    }
}

int main(void) {
    const char *names[BENCH_MAX_ROWS];
    size_t n_rows = 0;
    for (const struct st_elementwise *const *row = st_elementwises; *row; row++) {
        if (((*row)->isa & st_cpu_flags()) != (*row)->isa) continue;
        rows[n_rows] = *row;
        names[n_rows++] = (*row)->name;
    }
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i * 37 % 1001) / 100.0f - 5.0f;
        z[i] = (float)(i * 11 % 97) / 97.0f;
        cosine[i] = 0.8f;
        sine[i] = 0.6f;
    }
    run("rmsnorm", names, n_rows, rmsnorm, NULL, 3.0);
    run("layernorm", names, n_rows, layernorm, NULL, 4.0);
    run_activations(names, n_rows);
    run("add", names, n_rows, add, NULL, 3.0);
    run("axpy", names, n_rows, axpy, NULL, 3.0);
    run("scale", names, n_rows, scale, NULL, 2.0);
    run("softcap", names, n_rows, softcap, NULL, 2.0);
    for (int i = 0; i < 2; i++) {
        bool interleaved = i == 1;
        run(i ? "rope interleaved" : "rope", names, n_rows, rope, &interleaved, 3.0);
    }
    run("argmax", names, n_rows, argmax, NULL, 1.0);
    return 0;
}
