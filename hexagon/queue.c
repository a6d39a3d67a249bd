// SPDX-License-Identifier: Apache-2.0
// The queue's other end (device/hexagon/wire.h), for the process (main.c) and for a phone's DSP
// (skel.c).
#include "program.h"
#include "runtime.h"

// A barrier for both processors: the program's own, and the emulator's host.
static void fence(void) {
    static uint32_t word;
    __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}

bool dsp_attach(struct dsp *dsp, void *memory, uint32_t bytes) {
    struct wire_queue *queue = memory;
    dsp_sync(queue, sizeof *queue);
    if (queue->host.magic != WIRE_MAGIC || queue->host.version != WIRE_VERSION ||
        queue->host.queue_bytes != sizeof *queue || queue->host.memory_bytes != bytes ||
        bytes < WIRE_MEMORY)
        return false;
    *dsp = (struct dsp){memory, bytes, &queue->host, &queue->dsp};
    dsp->own->clock_hz = dsp_clock_hz;
    dsp->own->ready = WIRE_READY;
    dsp_sync(dsp->own, sizeof *dsp->own);
    dsp_ring();
    return true;
}

// Says how a job ended: its sequence is written last.
static void finish(struct dsp *dsp, uint32_t slot, uint32_t status, uint32_t n_clipped,
                   uint32_t ticks) {
    volatile struct wire_result *result = &dsp->own->results[slot];
    result->status = status;
    result->n_clipped = n_clipped;
    result->ticks = ticks;
    fence();
    dsp_sync(result, sizeof *result); // seen before its sequence
    result->sequence = dsp->host->jobs[slot].sequence;
    fence();
    dsp_sync(dsp->own, sizeof *dsp->own);
    dsp_sync(dsp->host, sizeof *dsp->host);
    if (dsp->host->waits) dsp_ring();
}

static void write_garbage(struct dsp *dsp) {
    volatile uint32_t *words = (volatile uint32_t *)dsp->own;
    uint32_t word = 0x12345679;
    for (uint32_t i = 0; i < sizeof *dsp->own / sizeof *words; i++)
        words[i] = word = word * 1664525u + 1013904223u;
    dsp_sync(dsp->own, sizeof *dsp->own);
    dsp_ring();
}

static void write_list(struct dsp *dsp, const volatile struct wire_job *job) {
    volatile uint32_t *list = (volatile uint32_t *)(dsp->memory + job->outliers.offset);
    list[0] = list[1] = job->outliers.capacity;
    for (uint32_t i = 0; i < 3 * job->outliers.capacity; i++) list[2 + i] = 0xfffffff0u - i;
}

// What a test has asked for in place of the job. True: the job is not to run.
static bool meet_fault(struct dsp *dsp, uint32_t slot) {
    const volatile struct wire_job *job = &dsp->host->jobs[slot];
    bool list = dsp->host->fault == WIRE_LIST && job->sequence > dsp->host->fault_at &&
                job->outliers.offset && job->outliers.capacity; // the first that has one
    if (dsp->host->fault_at != job->sequence && !list) return false;
    switch ((enum wire_fault)dsp->host->fault) {
    case WIRE_NO_FAULT:
        return false;
    case WIRE_FAIL:
        finish(dsp, slot, WIRE_FAILED, 0, 0);
        return true;
    case WIRE_DIE:
        dsp_die();
    case WIRE_SPIN:
        for (;;) fence();
    case WIRE_SLEEP:
        dsp_sleep();
    case WIRE_GARBAGE:
        write_garbage(dsp);
        return true;
    case WIRE_LIST:
        if (!job->outliers.offset) return false;
        write_list(dsp, job);
        finish(dsp, slot, WIRE_DONE, 0, 0);
        return true;
    }
    return false;
}

static bool follows_failure(const struct dsp *dsp, const volatile struct wire_job *job) {
    for (uint32_t i = 0; i < job->n_after && i < WIRE_AFTER; i++)
        if (dsp->own->results[job->after[i] % WIRE_SLOTS].status != WIRE_DONE) return true;
    return false;
}

static void run_slot(struct dsp *dsp, uint32_t slot) {
    const struct wire_job *job = (const struct wire_job *)&dsp->host->jobs[slot];
    uint32_t n_clipped = 0, begun = dsp_ticks();
    if (meet_fault(dsp, slot)) return;
    bool runs = dsp->host->canceled[slot] != job->sequence && !follows_failure(dsp, job);
    if (runs && !dsp_run_job(dsp, job, &n_clipped)) runs = false;
    finish(dsp, slot, runs ? WIRE_DONE : WIRE_CANCELED, n_clipped, dsp_ticks() - begun);
}

static void run_all(struct dsp *dsp) {
    while (dsp->own->tail != dsp->host->head) {
        fence();
        dsp_sync(dsp->host, sizeof *dsp->host);
        uint32_t slot = dsp->host->ring[dsp->own->tail % WIRE_SLOTS] % WIRE_SLOTS;
        dsp->own->progress++;
        run_slot(dsp, slot);
        dsp->own->tail++;
    }
}

void dsp_drain(struct dsp *dsp) {
    do {
        dsp->own->sleeps = 0;
        fence();
        run_all(dsp);
        dsp->own->sleeps = 1;
        fence();
        dsp_sync(dsp->own, sizeof *dsp->own);
        dsp_sync(dsp->host, sizeof *dsp->host);
    } while (dsp->own->tail != dsp->host->head);
}
