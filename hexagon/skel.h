// SPDX-License-Identifier: Apache-2.0
// What the system of a phone's DSP has for skel.c, in declarations of our own
// (device/hexagon/fastrpc_api.h), and what it calls there.
#ifndef DSP_SKEL_H
#define DSP_SKEL_H

#include "device/hexagon/fastrpc_api.h"

int dspqueue_import(uint64_t id, fastrpc_queue_fn *on_packet, fastrpc_queue_fn *on_error,
                    void *context, struct fastrpc_queue **queue);
int dspqueue_close(struct fastrpc_queue *queue);
int dspqueue_read_noblock(struct fastrpc_queue *queue, uint32_t *flags, uint32_t max_buffers,
                          uint32_t *n_buffers, struct fastrpc_buffer *buffers, uint32_t max_bytes,
                          uint32_t *bytes, uint8_t *message);
int dspqueue_write(struct fastrpc_queue *queue, uint32_t flags, uint32_t n_buffers,
                   struct fastrpc_buffer *buffers, uint32_t bytes, const uint8_t *message,
                   uint32_t timeout_us);
int HAP_mmap_get(int file, void **data, uint64_t *physical);
int HAP_mmap_put(int file);

// The one function of skel.c.
int stint_skel_handle_invoke(uint64_t handle, uint32_t call, union fastrpc_argument *arguments);

enum { OPEN_CALL = 0x00020001, CLOSE_CALL = 0x01000010 }; // with handles out and in

#endif
