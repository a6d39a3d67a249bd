// SPDX-License-Identifier: Apache-2.0
// What `stint bench` found, in a table or as one object.
#ifndef ST_CLI_BENCH_REPORT_H
#define ST_CLI_BENCH_REPORT_H

#include "cli/options.h"
#include "stint.h"

#include <jansson.h>
#include <stdbool.h>

// One length of prompt.
struct st_bench_prefill {
    uint32_t n_tokens;
    double seconds;
    json_t *schedule; // of the last pass; owned
};

// One precision of decoding.
struct st_bench_decode {
    uint32_t bits;
    uint64_t bytes;   // of weights, per step
    double seconds;   // of all steps
    double read_rate; // bytes per second at which these weights can be read at all; 0: unknown
    double share;     // of it
};

struct st_bench_figures {
    const char *name; // of the model
    const stint_session *session;
    stint_model_info info;
    stint_roofline roofline; // zeros: not measured
    uint32_t n_threads, n_tokens, batch; // n_tokens: steps; each of a batch of sequences
    size_t n_prefills, n_decodes;
    struct st_bench_prefill prefills[ST_CLI_UINTS_MOST];
    struct st_bench_decode decodes[ST_CLI_UINTS_MOST];
    uint64_t peak_bytes;
    bool bounded; // the session has a bound of memory
};

void st_bench_print_table(const struct st_bench_figures *figures);
bool st_bench_print_object(const char *command, const struct st_bench_figures *figures);

#endif
