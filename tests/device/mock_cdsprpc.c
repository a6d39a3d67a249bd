// SPDX-License-Identifier: Apache-2.0
// A libcdsprpc.so for tests (test_fastrpc.c): FastRPC's functions over the process that QEMU runs.
// It checks how it is called. $STINT_MOCK_FAULT names the function that fails. The program in it is
// skel.c with a system of its own (hexagon/tests/mock_system.c).
#include "device/hexagon/fastrpc_api.h"
#include "device/hexagon/transport.h"
#include "device/hexagon/wire.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { FAILED = 1, BAD_STATE = 0x0d, FILE_NUMBER = 77, HANDLE = 5, QUEUE_NAME = 0x51 };

struct fastrpc_queue {
    int used;
};

// One session at a time, as the tests have it.
static struct {
    struct st_hexagon_transport *transport; // of the memory
    size_t bytes;
    bool unsigned_too, opened, mapped, exported, started;
    struct fastrpc_queue queue;
} mock;

// What the tests ask for: calls, and what was left open.
EXPORT atomic_int st_mock_calls, st_mock_kills;
EXPORT int st_mock_open(void);

int st_mock_open(void) {
    return (mock.transport != NULL) + mock.opened + mock.mapped + mock.queue.used;
}

static bool fails(const char *function) {
    const char *fault = getenv("STINT_MOCK_FAULT");
    atomic_fetch_add(&st_mock_calls, 1);
    return fault && strcmp(fault, function) == 0;
}

#define X(name, result, arguments) EXPORT result name arguments;
FASTRPC_FUNCTIONS(X)
#undef X

void *rpcmem_alloc(int heap, uint32_t flags, int bytes) {
    if (fails("rpcmem_alloc") || heap != FASTRPC_SYSTEM_HEAP || flags != FASTRPC_CACHED)
        return NULL;
    if (mock.transport || bytes <= 0) return NULL;
    if (st_hexagon_process.open((size_t)bytes, &mock.transport) != STINT_OK) return NULL;
    mock.bytes = (size_t)bytes;
    memset(mock.transport->memory, 0xa5, WIRE_MEMORY); // nobody says that it is zeroed
    return mock.transport->memory;
}

void rpcmem_free(void *data) {
    if (!mock.transport || data != mock.transport->memory) abort();
    st_hexagon_process.close(mock.transport);
    memset(&mock, 0, sizeof mock);
}

int rpcmem_to_fd(void *data) {
    return fails("rpcmem_to_fd") || data != mock.transport->memory ? -1 : FILE_NUMBER;
}

int fastrpc_mmap(int domain, int file, void *data, int offset, size_t bytes, int how) {
    if (fails("fastrpc_mmap") || domain != FASTRPC_COMPUTE_DOMAIN || file != FILE_NUMBER ||
        data != mock.transport->memory || offset != 0 || bytes != mock.bytes ||
        how != FASTRPC_MAP_BY_FILE || !mock.opened)
        return FAILED;
    mock.mapped = true;
    return FASTRPC_OK;
}

int fastrpc_munmap(int domain, int file, void *data, size_t bytes) {
    if (!mock.mapped || domain != FASTRPC_COMPUTE_DOMAIN || file != FILE_NUMBER ||
        data != mock.transport->memory || bytes != mock.bytes)
        abort();
    mock.mapped = false;
    return FASTRPC_OK;
}

int remote_session_control(uint32_t request, void *data, uint32_t bytes) {
    if (fails("remote_session_control")) return FAILED;
    if (request == FASTRPC_ALLOW_UNSIGNED && bytes == sizeof(struct fastrpc_switch)) {
        const struct fastrpc_switch *s = data;
        mock.unsigned_too = s->domain == FASTRPC_COMPUTE_DOMAIN && s->enable;
        return FASTRPC_OK;
    }
    if (request != FASTRPC_KILL_SESSION || bytes != sizeof(struct fastrpc_domain)) return FAILED;
    atomic_fetch_add(&st_mock_kills, 1);
    if (mock.started) st_hexagon_process.kill(mock.transport);
    return FASTRPC_OK;
}

int remote_handle64_open(const char *name, uint64_t *handle) {
    if (fails("remote_handle64_open") || strcmp(name, FASTRPC_PROGRAM) != 0) return FAILED;
    mock.opened = true;
    *handle = HANDLE;
    return FASTRPC_OK;
}

int remote_handle64_invoke(uint64_t handle, uint32_t call, union fastrpc_argument *arguments) {
    const struct fastrpc_start *what = arguments[0].buffer.data;
    if (fails("remote_handle64_invoke") || handle != HANDLE || !mock.mapped || !mock.exported ||
        call != 0x02010000 || arguments[0].buffer.bytes != sizeof *what ||
        what->queue != QUEUE_NAME || what->file != FILE_NUMBER || what->bytes != mock.bytes)
        return FAILED;
    if (st_hexagon_process.start(mock.transport) != STINT_OK) return FAILED;
    mock.started = true;
    return FASTRPC_OK;
}

// The process ends where its bell does, with rpcmem_free; here its work does.
int remote_handle64_close(uint64_t handle) {
    if (handle != HANDLE || !mock.opened) abort();
    if (mock.started) st_hexagon_process.kill(mock.transport);
    mock.opened = false;
    return FASTRPC_OK;
}

int dspqueue_create(int domain, uint32_t flags, uint32_t request_bytes, uint32_t response_bytes,
                    fastrpc_queue_fn *on_packet, fastrpc_queue_fn *on_error, void *context,
                    struct fastrpc_queue **queue) {
    (void)context;
    // Who has a callback must not read as we do.
    if (fails("dspqueue_create") || domain != FASTRPC_COMPUTE_DOMAIN || flags != 0 || on_packet ||
        on_error || request_bytes < 64 || response_bytes < 64)
        return FAILED;
    mock.queue.used = 1;
    *queue = &mock.queue;
    return FASTRPC_OK;
}

int dspqueue_close(struct fastrpc_queue *queue) {
    if (queue != &mock.queue || !queue->used) abort();
    queue->used = 0;
    return FASTRPC_OK;
}

int dspqueue_export(struct fastrpc_queue *queue, uint64_t *id) {
    if (fails("dspqueue_export") || !queue->used) return FAILED;
    mock.exported = true;
    *id = QUEUE_NAME;
    return FASTRPC_OK;
}

int dspqueue_write(struct fastrpc_queue *queue, uint32_t flags, uint32_t n_buffers,
                   struct fastrpc_buffer *buffers, uint32_t bytes, const uint8_t *message,
                   uint32_t timeout_us) {
    uint32_t word;
    if (fails("dspqueue_write") || !queue->used || flags != FASTRPC_HAS_MESSAGE || n_buffers ||
        buffers || bytes != sizeof word || timeout_us != 0)
        return FAILED;
    memcpy(&word, message, sizeof word);
    if (word != FASTRPC_BELL) return FAILED;
    st_hexagon_process.ring(mock.transport);
    return FASTRPC_OK;
}

int dspqueue_read(struct fastrpc_queue *queue, uint32_t *flags, uint32_t max_buffers,
                  uint32_t *n_buffers, struct fastrpc_buffer *buffers, uint32_t max_bytes,
                  uint32_t *bytes, uint8_t *message, uint32_t timeout_us) {
    const uint32_t bell = FASTRPC_BELL;
    if (fails("dspqueue_read") || !queue->used || max_buffers || buffers || max_bytes < sizeof bell)
        return BAD_STATE;
    switch (st_hexagon_process.wait(mock.transport, (int)(timeout_us / 1000))) {
    case ST_HEXAGON_NOTHING:
        return FASTRPC_EXPIRED;
    case ST_HEXAGON_GONE:
        return BAD_STATE;
    case ST_HEXAGON_BELL:
        break;
    }
    *flags = FASTRPC_HAS_MESSAGE;
    *n_buffers = 0;
    *bytes = sizeof bell;
    memcpy(message, &bell, sizeof bell);
    return FASTRPC_OK;
}
