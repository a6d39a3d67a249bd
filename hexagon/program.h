// SPDX-License-Identifier: Apache-2.0
// The program that runs on the DSP: it takes jobs from the queue and computes them.
#ifndef DSP_PROGRAM_H
#define DSP_PROGRAM_H

#include "device/hexagon/wire.h"

#include <stdbool.h>

struct dsp {
    uint8_t *memory; // shared; the queue lies at its begin
    uint32_t memory_bytes;
    const volatile struct wire_host *host;
    volatile struct wire_dsp *own;
};

// job.c: computes one job. False if it was canceled, or does not fit the memory.
bool dsp_run_job(struct dsp *dsp, const struct wire_job *job, uint32_t *n_clipped);

#endif
