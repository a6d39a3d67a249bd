// SPDX-License-Identifier: Apache-2.0
// The program as a process under QEMU. The memory is file 3; the bell is file 0, both ways. Where
// the host has gone, the bell's end is read and the program ends.
#include "program.h"
#include "runtime.h"

enum { BELL = 0, MEMORY_FILE = 3 };

// Waits for a bell; false where the host has gone.
static bool wait_for_bell(void) {
    char bells[64];
    return dsp_read(BELL, bells, sizeof bells) > 0;
}

void dsp_ring(void) {
    const char bell = 1;
    (void)dsp_write(BELL, &bell, sizeof bell);
}

// Packets that QEMU has executed, which it shows in a control register of its own (c20, which the
// assembler does not know). One is taken for a nanosecond: a packet a cycle at 1 GHz.
const uint32_t dsp_clock_hz = 1000000000;

uint32_t dsp_ticks(void) {
    register uint32_t ticks __asm__("r0");
    __asm__ volatile(".word 0x6a14c000 // r0 = c20" : "=r"(ticks) : : "memory");
    return ticks;
}

void dsp_sleep(void) {
    while (wait_for_bell()) continue;
    dsp_exit(1);
}

void dsp_die(void) {
    dsp_exit(1);
}

void dsp_sync(const volatile void *data, uint32_t bytes) {
    (void)data, (void)bytes; // the emulated processor has the host's cache
}

int dsp_main(int n_arguments, char **arguments, char **environment) {
    struct dsp dsp;
    (void)n_arguments, (void)arguments, (void)environment;
    struct wire_queue *queue = dsp_map_shared(MEMORY_FILE, WIRE_MEMORY);
    if (!queue) return 1;
    uint32_t bytes = queue->host.memory_bytes;
    dsp_unmap(queue, WIRE_MEMORY);
    void *memory = dsp_map_shared(MEMORY_FILE, bytes);
    if (!memory || !dsp_attach(&dsp, memory, bytes)) return 1;
    for (;;) {
        dsp_drain(&dsp);
        if (!wait_for_bell()) return 0;
        dsp.own->wakes++;
    }
}
