// SPDX-License-Identifier: Apache-2.0
// The results of `stint bench`, as a table or as one JSON object.
#ifndef ST_CLI_BENCH_REPORT_H
#define ST_CLI_BENCH_REPORT_H

#include "cli/options.h"
#include "stint.h"

#include <jansson.h>
#include <stdbool.h>

// The results for one prompt length.
struct st_bench_prefill {
    uint32_t n_tokens, depth; // behind as many tokens
    double seconds;
    json_t *schedule; // execution order of the last pass; owned
};

// The results for one precision of decoding.
struct st_bench_decode {
    uint32_t bits, depth;
    uint64_t bytes;   // weight bytes per step
    double seconds;   // all steps together
    double read_rate; // bytes per second at which these weights can be read; 0: unknown
    double share;     // share of read_rate that decoding reached with the weights alone
};

struct st_bench_figures {
    const char *name; // name of the model
    const stint_session *session;
    stint_model_info info;
    stint_roofline roofline;             // zeros: not measured
    uint32_t n_threads, n_tokens, batch; // n_tokens: steps; each is a batch of sequences
    uint32_t depth; // tokens that each case is to be behind; 0: prompts none, steps a few
    size_t n_prefills, n_decodes;
    struct st_bench_prefill prefills[ST_CLI_UINTS_MAX];
    struct st_bench_decode decodes[ST_CLI_UINTS_MAX];
    uint64_t peak_bytes;
    bool bounded; // the session's memory is bounded
};

void st_bench_print_table(const struct st_bench_figures *figures);
bool st_bench_print_object(const char *command, const struct st_bench_figures *figures);

#endif
