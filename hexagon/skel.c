// SPDX-License-Identifier: Apache-2.0
// The program as a shared object that FastRPC loads into a process on a phone's DSP
// (device/hexagon/fastrpc_api.h). Its one function is called with the number of what is wanted.
// Jobs run in the queue's own thread, which calls on_packet. Never run on such a DSP;
// tests/mock_system.c stands in for its system.
#include "program.h"
#include "skel.h"

enum { LINE = 32, UNSUPPORTED = 0x14, BAD_PARAMETER = 0xe };

static struct {
    struct dsp dsp;
    struct fastrpc_queue *queue; // NULL: not started
    int file;
} skel;

void dsp_ring(void) {
    const uint32_t bell = FASTRPC_BELL;
    (void)dspqueue_write(skel.queue, FASTRPC_HAS_MESSAGE, 0, NULL, sizeof bell,
                         (const uint8_t *)&bell, 0);
}

// The counter that all processors of the chip share.
const uint32_t dsp_clock_hz = 19200000;

uint32_t dsp_ticks(void) {
    uint32_t ticks;
    __asm__ volatile("%0 = utimerlo" : "=r"(ticks) : : "memory");
    return ticks;
}

void dsp_die(void) {
    __builtin_trap();
}

void dsp_sleep(void) {
    for (;;) __asm__ volatile("pause(#255)");
}

// A line that is clean is dropped, so what the host has written is read next.
void dsp_sync(const volatile void *data, uint32_t bytes) {
    const volatile uint8_t *end = (const volatile uint8_t *)data + bytes;
    const volatile uint8_t *line =
        (const volatile uint8_t *)((uintptr_t)data & ~(uintptr_t)(LINE - 1));
    for (; line < end; line += LINE) __asm__ volatile("dccleaninva(%0)" : : "r"(line) : "memory");
    __asm__ volatile("syncht" : : : "memory");
}

// Bells are read first, lest one that comes during the jobs is lost.
static void on_packet(struct fastrpc_queue *queue, int error, void *context) {
    uint32_t flags, n_buffers, bytes, message;
    (void)error, (void)context;
    while (dspqueue_read_noblock(queue, &flags, 0, &n_buffers, NULL, sizeof message, &bytes,
                                 (uint8_t *)&message) == FASTRPC_OK)
        continue;
    skel.dsp.own->wakes++;
    dsp_drain(&skel.dsp);
}

static void on_error(struct fastrpc_queue *queue, int error, void *context) {
    (void)queue, (void)error, (void)context; // the host ends the session
}

static void stop(void) {
    if (!skel.queue) return;
    dspqueue_close(skel.queue);
    HAP_mmap_put(skel.file);
    skel.queue = NULL;
}

static int start(const struct fastrpc_start *what) {
    void *memory = NULL;
    if (skel.queue) return BAD_PARAMETER;
    int error = HAP_mmap_get(what->file, &memory, NULL);
    if (error != FASTRPC_OK) return error;
    skel.file = what->file;
    error = dspqueue_import(what->queue, on_packet, on_error, NULL, &skel.queue);
    if (error != FASTRPC_OK) {
        HAP_mmap_put(skel.file);
        return error;
    }
    if (!dsp_attach(&skel.dsp, memory, what->bytes)) {
        stop();
        return BAD_PARAMETER;
    }
    dsp_drain(&skel.dsp); // says that it sleeps; the host has no job before this call ends
    return FASTRPC_OK;
}

__attribute__((visibility("default"))) int
stint_skel_handle_invoke(uint64_t handle, uint32_t call, union fastrpc_argument *arguments) {
    (void)handle;
    switch (call) {
    case OPEN_CALL:
        arguments[2].handle = 1;
        return FASTRPC_OK;
    case CLOSE_CALL:
        stop();
        return FASTRPC_OK;
    }
    if (call != fastrpc_call(FASTRPC_START, 1, 0)) return UNSUPPORTED;
    if (arguments[0].buffer.bytes != sizeof(struct fastrpc_start)) return BAD_PARAMETER;
    return start(arguments[0].buffer.data);
}
