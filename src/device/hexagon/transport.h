// SPDX-License-Identifier: Apache-2.0
// What carries the queue of wire.h to a DSP program and back: memory that both see, a bell each
// way, and word of the program's end. FastRPC is one, on phones (fastrpc.c), a process under an
// emulator the other (process.c).
#ifndef ST_DEVICE_HEXAGON_TRANSPORT_H
#define ST_DEVICE_HEXAGON_TRANSPORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_hexagon_transport {
    const struct st_hexagon_transport_ops *ops;
    unsigned char *memory; // what the program sees too, aligned to a page; WIRE_MEMORY zeros first
};

enum st_hexagon_event { ST_HEXAGON_BELL, ST_HEXAGON_NOTHING, ST_HEXAGON_GONE };

struct st_hexagon_transport_ops {
    const char *name;
    size_t default_bytes; // what models may use where nobody says
    bool virtual_clock;   // the program's clock is not that of the host
    bool (*present)(void);
    // Reserves the memory. STINT_E_NOMEM, E_DEVICE.
    stint_status (*open)(size_t bytes, struct st_hexagon_transport **transport);
    // Starts the program, which finds the queue in the memory. STINT_E_DEVICE.
    stint_status (*start)(struct st_hexagon_transport *transport);
    // Any thread. Wakes a program that sleeps.
    void (*ring)(struct st_hexagon_transport *transport);
    // Waits for a bell of the program, or its end. One thread.
    enum st_hexagon_event (*wait)(struct st_hexagon_transport *transport, int timeout_ms);
    // Begins to watch the program's work, with a number that moves on as work is done.
    void (*watch)(struct st_hexagon_transport *transport, uint32_t progress);
    uint32_t start_ms; // patience with its start, at least
    // Called now and then while there is work: true if for so long the program has computed without
    // getting on, or has not wanted to compute. That others keep the processor does not count. The
    // same thread as wait and watch.
    bool (*is_stuck)(struct st_hexagon_transport *transport, uint32_t progress,
                     uint32_t patience_ms);
    // Any thread. Lets wait say that the program is gone. It may go on until close.
    void (*end_waits)(struct st_hexagon_transport *transport);
    // Any thread. Ends the program at once; wait then says so.
    void (*kill)(struct st_hexagon_transport *transport);
    // Ends the program and frees everything. Accepts NULL.
    void (*close)(struct st_hexagon_transport *transport);
};

extern const struct st_hexagon_transport_ops st_hexagon_fastrpc; // fastrpc.c
extern const struct st_hexagon_transport_ops st_hexagon_process; // process.c

// The one that this machine has; NULL: none.
const struct st_hexagon_transport_ops *st_hexagon_transport_find(void);

// The program, built with the library (cmake/hexagon.cmake); of no bytes where there was no
// compiler for it.
extern const unsigned char st_hexagon_program[];
extern const size_t st_hexagon_program_bytes;

#endif
