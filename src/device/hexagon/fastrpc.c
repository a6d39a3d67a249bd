// SPDX-License-Identifier: Apache-2.0
// The DSP of a Snapdragon, through FastRPC: a shared object runs there in a process of ours. The
// memory is an rpcmem buffer; the bells are packets of a dspqueue. Two calls of functions in all:
// open, and start with the memory and the queue. Never run on such a device (docs/HEXAGON.md);
// tests run it against a library of their own.
#include "device/hexagon/fastrpc_api.h"
#include "device/hexagon/transport.h"
#include "device/hexagon/wire.h"

#include "base/clock.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_BYTES = 4096, KEPT_BYTES = 1 << 30 };

struct fastrpc {
    struct st_hexagon_transport base;
    struct fastrpc_api api;
    size_t bytes;
    int file; // of the memory; -1: none
    uint64_t handle;
    struct fastrpc_queue *queue;
    bool opened, mapped;
    atomic_bool ended; // a wait is to say so
    atomic_bool killed;
    uint32_t progress; // when it last moved on
    uint64_t since_ns;
};

static struct fastrpc *fastrpc_of(struct st_hexagon_transport *t) {
    return (struct fastrpc *)t;
}

static bool is_present(void) {
    struct fastrpc_api api;
    return st_fastrpc_load(&api);
}

static stint_status failed(const char *what, int error) {
    return st_fail(STINT_E_DEVICE, "device 'hexagon': FastRPC: %s (error 0x%x)", what,
                   (unsigned)error);
}

// ---- Memory

static void close_transport(struct st_hexagon_transport *t);

static stint_status open_transport(size_t bytes, struct st_hexagon_transport **transport) {
    struct fastrpc *f = calloc(1, sizeof *f);
    if (!f) return st_fail(STINT_E_NOMEM, "device 'hexagon': no memory");
    f->base.ops = &st_hexagon_fastrpc;
    f->bytes = bytes;
    f->file = -1;
    if (!st_fastrpc_load(&f->api)) {
        free(f);
        return st_fail(STINT_E_DEVICE, "device 'hexagon': libcdsprpc.so cannot be loaded");
    }
    if (bytes <= INT_MAX)
        f->base.memory = f->api.rpcmem_alloc(FASTRPC_SYSTEM_HEAP, FASTRPC_CACHED, (int)bytes);
    if (f->base.memory) f->file = f->api.rpcmem_to_fd(f->base.memory);
    if (f->file < 0) {
        close_transport(&f->base);
        return st_fail(STINT_E_NOMEM,
                       "device 'hexagon': FastRPC has no %zu bytes of shared memory; ask for less "
                       "with --npu-memory",
                       bytes);
    }
    memset(f->base.memory, 0, WIRE_MEMORY);
    *transport = &f->base;
    return STINT_OK;
}

// ---- The program

static stint_status load_program(struct fastrpc *f) {
    struct fastrpc_switch unsigned_too = {FASTRPC_COMPUTE_DOMAIN, 1};
    // Devices that take signed programs alone refuse this; then the next call says what is wrong.
    (void)f->api.remote_session_control(FASTRPC_ALLOW_UNSIGNED, &unsigned_too, sizeof unsigned_too);
    int error = f->api.remote_handle64_open(FASTRPC_PROGRAM, &f->handle);
    if (error != FASTRPC_OK)
        return failed("libstint_skel.so does not load on the DSP; push it there and name its "
                      "folder in DSP_LIBRARY_PATH",
                      error);
    f->opened = true;
    error = f->api.fastrpc_mmap(FASTRPC_COMPUTE_DOMAIN, f->file, f->base.memory, 0, f->bytes,
                                FASTRPC_MAP_BY_FILE);
    if (error != FASTRPC_OK) return failed("the DSP cannot map the memory", error);
    f->mapped = true;
    return STINT_OK;
}

static stint_status start(struct st_hexagon_transport *t) {
    struct fastrpc *f = fastrpc_of(t);
    struct fastrpc_start what = {.file = f->file, .bytes = (uint32_t)f->bytes};
    ST_TRY(load_program(f));
    int error = f->api.dspqueue_create(FASTRPC_COMPUTE_DOMAIN, 0, QUEUE_BYTES, QUEUE_BYTES, NULL,
                                       NULL, NULL, &f->queue);
    if (error == FASTRPC_OK) error = f->api.dspqueue_export(f->queue, &what.queue);
    if (error != FASTRPC_OK) return failed("there is no queue to the DSP", error);
    union fastrpc_argument in = {.buffer = {&what, sizeof what}};
    error = f->api.remote_handle64_invoke(f->handle, fastrpc_call(FASTRPC_START, 1, 0), &in);
    return error == FASTRPC_OK ? STINT_OK : failed("the program does not start", error);
}

// ---- Bells

static void ring(struct st_hexagon_transport *t) {
    struct fastrpc *f = fastrpc_of(t);
    const uint32_t bell = FASTRPC_BELL;
    // Where the queue is full, bells are on their way.
    (void)f->api.dspqueue_write(f->queue, FASTRPC_HAS_MESSAGE, 0, NULL, sizeof bell,
                                (const uint8_t *)&bell, 0);
}

static enum st_hexagon_event wait_for_bell(struct st_hexagon_transport *t, int timeout_ms) {
    struct fastrpc *f = fastrpc_of(t);
    uint32_t flags, n_buffers = 0, bytes = 0, message = 0;
    int error = f->api.dspqueue_read(f->queue, &flags, 0, &n_buffers, NULL, sizeof message, &bytes,
                                     (uint8_t *)&message, (uint32_t)timeout_ms * 1000);
    if (atomic_load(&f->ended)) return ST_HEXAGON_GONE;
    if (error == FASTRPC_EXPIRED || error == FASTRPC_INTERRUPTED || error == FASTRPC_WOULD_BLOCK)
        return ST_HEXAGON_NOTHING;
    return error == FASTRPC_OK ? ST_HEXAGON_BELL : ST_HEXAGON_GONE;
}

// ---- Watching. Nobody else computes on the DSP for long, so its time is ours.

static void watch(struct st_hexagon_transport *t, uint32_t progress) {
    struct fastrpc *f = fastrpc_of(t);
    f->progress = progress;
    f->since_ns = st_now_ns();
}

static bool is_stuck(struct st_hexagon_transport *t, uint32_t progress, uint32_t patience_ms) {
    struct fastrpc *f = fastrpc_of(t);
    if (progress != f->progress) watch(t, progress);
    return st_now_ns() - f->since_ns >= patience_ms * UINT64_C(1000000);
}

// ---- The end

static void end_waits(struct st_hexagon_transport *t) {
    atomic_store(&fastrpc_of(t)->ended, true);
}

static void kill_session(struct st_hexagon_transport *t) {
    struct fastrpc *f = fastrpc_of(t);
    struct fastrpc_domain where = {FASTRPC_COMPUTE_DOMAIN};
    end_waits(t);
    if (f->opened && !atomic_exchange(&f->killed, true))
        (void)f->api.remote_session_control(FASTRPC_KILL_SESSION, &where, sizeof where);
}

// Errors are those of a session that has gone. Closing the handle ends the program.
static void close_transport(struct st_hexagon_transport *t) {
    struct fastrpc *f = fastrpc_of(t);
    if (!t) return;
    if (f->opened) (void)f->api.remote_handle64_close(f->handle);
    if (f->queue) (void)f->api.dspqueue_close(f->queue);
    if (f->mapped)
        (void)f->api.fastrpc_munmap(FASTRPC_COMPUTE_DOMAIN, f->file, f->base.memory, f->bytes);
    if (f->base.memory) f->api.rpcmem_free(f->base.memory);
    free(f);
}

const struct st_hexagon_transport_ops st_hexagon_fastrpc = {
    .name = "fastrpc",
    .default_bytes = KEPT_BYTES,
    .start_ms = 20000, // the program is loaded first, and a busy core counts as its time
    .present = is_present,
    .open = open_transport,
    .start = start,
    .ring = ring,
    .wait = wait_for_bell,
    .watch = watch,
    .is_stuck = is_stuck,
    .end_waits = end_waits,
    .kill = kill_session,
    .close = close_transport,
};
