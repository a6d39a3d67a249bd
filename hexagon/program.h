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

// queue.c: takes the memory into use, and says so to the host. False: it is not what was expected.
bool dsp_attach(struct dsp *dsp, void *memory, uint32_t bytes);
// Runs all jobs of the ring; then the host rings for the next one.
void dsp_drain(struct dsp *dsp);

// What main.c or skel.c has: a bell for the host; a clock that wraps; and for tests, an end of all
// work and of the program.
void dsp_ring(void);
extern const uint32_t dsp_clock_hz;
uint32_t dsp_ticks(void);
void dsp_sleep(void) __attribute__((noreturn));
void dsp_die(void) __attribute__((noreturn));
// What the host has written is seen, what was written here is shown to it. The range must not share
// lines of the cache with what the host writes meanwhile.
void dsp_sync(const volatile void *data, uint32_t bytes);

#endif
