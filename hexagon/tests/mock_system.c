// SPDX-License-Identifier: Apache-2.0
// Stands in for the DSP's system around skel.c: FastRPC's end, a queue, shared memory. It runs
// under QEMU as the process that tests/device/mock_cdsprpc.c starts, with the memory as file 3 and
// the bells as file 0. The call that starts the program is made here, as the host made it there.
#include "program.h"
#include "runtime.h"
#include "skel.h"

enum { BELL = 0, MEMORY_FILE = 3, QUEUE_NAME = 0x51 };

struct fastrpc_queue {
    fastrpc_queue_fn *on_packet;
    void *context;
    uint32_t n_waiting; // messages that were not read yet
    bool open;
};

static struct fastrpc_queue only;
static uint32_t memory_bytes;
static void *mapped; // NULL: not

int dspqueue_import(uint64_t id, fastrpc_queue_fn *on_packet, fastrpc_queue_fn *on_error,
                    void *context, struct fastrpc_queue **queue) {
    (void)on_error;
    if (id != QUEUE_NAME || only.open) return 1;
    only = (struct fastrpc_queue){on_packet, context, 0, true};
    *queue = &only;
    return FASTRPC_OK;
}

int dspqueue_close(struct fastrpc_queue *queue) {
    queue->open = false;
    return FASTRPC_OK;
}

int dspqueue_read_noblock(struct fastrpc_queue *queue, uint32_t *flags, uint32_t max_buffers,
                          uint32_t *n_buffers, struct fastrpc_buffer *buffers, uint32_t max_bytes,
                          uint32_t *bytes, uint8_t *message) {
    const uint32_t bell = FASTRPC_BELL;
    (void)max_buffers, (void)buffers;
    if (queue->n_waiting == 0) return FASTRPC_WOULD_BLOCK;
    if (max_bytes < sizeof bell) return 1;
    queue->n_waiting--;
    *flags = FASTRPC_HAS_MESSAGE;
    *n_buffers = 0;
    *bytes = sizeof bell;
    memcpy(message, &bell, sizeof bell);
    return FASTRPC_OK;
}

int dspqueue_write(struct fastrpc_queue *queue, uint32_t flags, uint32_t n_buffers,
                   struct fastrpc_buffer *buffers, uint32_t bytes, const uint8_t *message,
                   uint32_t timeout_us) {
    const char bell = 1;
    (void)buffers, (void)timeout_us;
    if (!queue->open || flags != FASTRPC_HAS_MESSAGE || n_buffers || bytes != sizeof(uint32_t))
        return 1;
    uint32_t word;
    memcpy(&word, message, sizeof word);
    if (word != FASTRPC_BELL) return 1;
    return dsp_write(BELL, &bell, sizeof bell) == sizeof bell ? FASTRPC_OK : 1;
}

int HAP_mmap_get(int file, void **data, uint64_t *physical) {
    (void)physical;
    if (file != MEMORY_FILE || mapped) return 1;
    *data = mapped = dsp_map_shared(MEMORY_FILE, memory_bytes);
    return mapped ? FASTRPC_OK : 1;
}

int HAP_mmap_put(int file) {
    if (file != MEMORY_FILE || !mapped) return 1;
    dsp_unmap(mapped, memory_bytes);
    mapped = NULL;
    return FASTRPC_OK;
}

static bool open_program(void) {
    union fastrpc_argument arguments[3] = {{{NULL, 0}}};
    struct wire_queue *queue = dsp_map_shared(MEMORY_FILE, WIRE_MEMORY);
    if (!queue) return false;
    memory_bytes = queue->host.memory_bytes;
    dsp_unmap(queue, WIRE_MEMORY);
    if (stint_skel_handle_invoke(0, OPEN_CALL, arguments) != FASTRPC_OK) return false;
    struct fastrpc_start what = {QUEUE_NAME, MEMORY_FILE, memory_bytes};
    arguments[0].buffer.data = &what;
    arguments[0].buffer.bytes = sizeof what;
    uint32_t call = fastrpc_call(FASTRPC_START, 1, 0), unknown = call + (1u << 24);
    return stint_skel_handle_invoke(1, unknown, arguments) != FASTRPC_OK &&
           stint_skel_handle_invoke(1, call, arguments) == FASTRPC_OK &&
           stint_skel_handle_invoke(1, call, arguments) != FASTRPC_OK && // it runs already
           stint_skel_handle_invoke(1, CLOSE_CALL, NULL) == FASTRPC_OK && !mapped && !only.open &&
           stint_skel_handle_invoke(1, call, arguments) == FASTRPC_OK;
}

int dsp_main(int n_arguments, char **arguments, char **environment) {
    char bells[64];
    (void)n_arguments, (void)arguments, (void)environment;
    if (!open_program()) return 1;
    for (int32_t n; (n = dsp_read(BELL, bells, sizeof bells)) > 0;) {
        only.n_waiting += (uint32_t)n;
        only.on_packet(&only, FASTRPC_OK, only.context);
    }
    return stint_skel_handle_invoke(1, CLOSE_CALL, NULL);
}
