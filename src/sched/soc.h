// SPDX-License-Identifier: Apache-2.0
// A system on a chip as a few numbers (share/soc/*.ini): what its processors do in a second. Enough
// to say in virtual time how a model would run on it.
#ifndef ST_SCHED_SOC_H
#define ST_SCHED_SOC_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { ST_SOC_CLASSES = 4, ST_SOC_NAME = 96 };

// Operations (two for a multiply-add) a second in matrix products of up to so many rows; the last
// class also of more.
struct st_soc_rates {
    uint32_t n, rows[ST_SOC_CLASSES];
    double rate[ST_SOC_CLASSES];
};

struct st_soc_processor {
    bool present;
    struct st_soc_rates int8; // per-tensor INT8 products
    struct st_soc_rates fp16; // FP16 products; n 0: it has none
    double attention;         // operations a second in attention, in float; 0: it does none
    double elementwise;       // elements a second that norm and quantize take
    double dispatch;          // seconds to start a subgraph
    double watts;             // while busy; 0: not known
};

struct st_soc {
    char name[ST_SOC_NAME];
    double bytes_per_second; // of memory; 0: not known
    struct st_soc_processor npu, cpu, gpu;
    double group_slowdown;  // of INT8 products with a scale per group on the NPU; at least 1
    double build, optimize; // seconds to make NPU graphs, per parameter
    double npu_memory;      // bytes that the NPU can reach; 0: all
};

// Reads a description; `name` stands in error texts. STINT_E_FORMAT names section, key and line.
stint_status st_soc_read(const char *text, const char *name, struct st_soc *soc);
// By name of one that ships with stint, or by path of a file. STINT_E_ARG lists the known names.
stint_status st_soc_open(const char *name, struct st_soc *soc);
const char *st_soc_builtin(size_t i); // names; NULL past the last

// The rate for a product of so many rows.
double st_soc_rate(const struct st_soc_rates *rates, uint32_t rows);

#endif
