// SPDX-License-Identifier: Apache-2.0
// The description of a system on a chip (share/soc/*.ini): the rates of its processors, from which
// virtual time predicts how a model would run on it.
#ifndef ST_SCHED_SOC_H
#define ST_SCHED_SOC_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { ST_SOC_CLASSES = 4, ST_SOC_NAME = 96 };

// Operations per second (a multiply-add counts as two) of matrix products with up to so many rows.
// The last class also holds for more rows.
struct st_soc_rates {
    uint32_t n, rows[ST_SOC_CLASSES];
    double rate[ST_SOC_CLASSES];
};

struct st_soc_processor {
    bool present;
    struct st_soc_rates int8; // per-tensor INT8 products
    struct st_soc_rates fp16; // FP16 products; n 0: not supported
    double attention;         // operations per second of attention in float; 0: not supported
    double elementwise;       // elements per second of norm and quantize
    double dispatch;          // seconds to start a subgraph
    double watts;             // while busy; 0: unknown
};

struct st_soc {
    char name[ST_SOC_NAME];
    double bytes_per_second; // of memory; 0: unknown
    struct st_soc_processor npu, cpu, gpu;
    double group_slowdown;  // of the NPU's INT8 products with a scale per group; at least 1
    double build, optimize; // seconds to make NPU graphs, per parameter
    double npu_memory;      // bytes that the NPU can address; 0: all
};

// Reads a description; error texts contain `name`. STINT_E_FORMAT names section, key and line.
stint_status st_soc_read(const char *text, const char *name, struct st_soc *soc);
// Takes the name of a description that ships with stint, or a file. STINT_E_ARG lists the names.
stint_status st_soc_open(const char *name, struct st_soc *soc);
const char *st_soc_builtin(size_t i); // its name; NULL past the last

// The rate of a product with so many rows.
double st_soc_rate(const struct st_soc_rates *rates, uint32_t rows);

#endif
