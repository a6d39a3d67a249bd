// SPDX-License-Identifier: Apache-2.0
// Time per element of a state and token of every row of recurrences: one head of 128 keys and 128
// values, over a prompt's tokens and over one.
#include "kernels/recurrence.h"

#include "base/cpu.h"
#include "bench_rows.h"

enum { WIDTH = 128, N_TOKENS = 256 };

static float state[WIDTH * WIDTH], keys[N_TOKENS * WIDTH], values[N_TOKENS * WIDTH];
static float out[N_TOKENS * WIDTH], decays[N_TOKENS], rates[N_TOKENS];
static const struct st_recurrence *rows[BENCH_MAX_ROWS];

static void run(size_t row, void *context) {
    rows[row]->run(context);
}

int main(void) {
    const char *names[BENCH_MAX_ROWS];
    size_t n_rows = 0;
    for (const struct st_recurrence *const *row = st_recurrences; *row; row++) {
        if (((*row)->isa & st_cpu_flags()) != (*row)->isa) continue;
        rows[n_rows] = *row;
        names[n_rows++] = (*row)->name;
    }
    for (int i = 0; i < N_TOKENS * WIDTH; i++) keys[i] = (float)(i * 37 % 101) / 1010.0f - 0.05f;
    for (int i = 0; i < N_TOKENS; i++) decays[i] = rates[i] = 0.5f;
    for (int delta = 0; delta < 2; delta++)
        for (size_t n = 1; n <= N_TOKENS; n *= N_TOKENS) {
            struct st_recurrence_run r = {.n_tokens = n,
                                          .n_keys = WIDTH,
                                          .n_values = WIDTH,
                                          .state = state,
                                          .queries = keys,
                                          .keys = keys,
                                          .key_row = WIDTH,
                                          .values = values,
                                          .value_row = WIDTH,
                                          .decays = decays,
                                          .rates = delta ? rates : NULL,
                                          .gate_row = 1,
                                          .out = out,
                                          .out_row = WIDTH};
            char label[64];
            snprintf(label, sizeof label, "%s, %zu token%s", delta ? "delta rule" : "fading sum", n,
                     n > 1 ? "s" : "");
            bench_rows(label, names, n_rows, run, &r, (double)n * WIDTH * WIDTH,
                       2.0 * sizeof state);
        }
    return 0;
}
