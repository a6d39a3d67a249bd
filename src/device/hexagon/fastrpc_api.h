// SPDX-License-Identifier: Apache-2.0
// What we call of libcdsprpc.so, the library of Snapdragon devices that reaches their compute DSP.
// These declarations are our own, of the parts we use, from the public description of FastRPC
// (github.com/qualcomm/fastrpc). The library is looked for at run time.
//
// A *domain* is a DSP. A *handle* is a shared object that was loaded there, into a process of ours
// (a *session*); its functions have numbers. An *rpcmem* buffer is memory that the DSP can map. A
// *queue* carries small messages both ways without a call of a function.
#ifndef ST_DEVICE_HEXAGON_FASTRPC_API_H
#define ST_DEVICE_HEXAGON_FASTRPC_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FASTRPC_OK = 0,
    FASTRPC_EXPIRED = 0x0c, // nothing came in time
    FASTRPC_INTERRUPTED = 46,
    FASTRPC_WOULD_BLOCK = 516,
};

enum {
    FASTRPC_COMPUTE_DOMAIN = 3,
    FASTRPC_SYSTEM_HEAP = 25,
    FASTRPC_CACHED = 1,      // memory that this processor caches
    FASTRPC_MAP_BY_FILE = 2, // the DSP finds it by its file; caches are the users' care
    FASTRPC_HAS_MESSAGE = 1, // of a packet
};

// Requests about sessions, with what they take.
enum {
    FASTRPC_ALLOW_UNSIGNED = 2, // struct fastrpc_switch: before the first handle is opened
    FASTRPC_KILL_SESSION = 6,   // struct fastrpc_domain
};

struct fastrpc_switch {
    int32_t domain, enable;
};

struct fastrpc_domain {
    int32_t domain;
};

// One argument of a function: bytes, or a handle.
union fastrpc_argument {
    struct {
        void *data;
        size_t bytes;
    } buffer;
    uint64_t handle;
};

// Which function, and how many buffers go in and come back.
static inline uint32_t fastrpc_call(uint32_t function, uint32_t n_in, uint32_t n_out) {
    return function << 24 | n_in << 16 | n_out << 8;
}

struct fastrpc_queue;
struct fastrpc_buffer; // of a packet that names memory; ours name none
typedef void fastrpc_queue_fn(struct fastrpc_queue *queue, int error, void *context);

// name, type of the result, arguments
#define FASTRPC_FUNCTIONS(X)                                                                       \
    X(rpcmem_alloc, void *, (int heap, uint32_t flags, int bytes))                                 \
    X(rpcmem_free, void, (void *data))                                                             \
    X(rpcmem_to_fd, int, (void *data))                                                             \
    X(fastrpc_mmap, int, (int domain, int file, void *data, int offset, size_t bytes, int how))    \
    X(fastrpc_munmap, int, (int domain, int file, void *data, size_t bytes))                       \
    X(remote_session_control, int, (uint32_t request, void *data, uint32_t bytes))                 \
    X(remote_handle64_open, int, (const char *name, uint64_t *handle))                             \
    X(remote_handle64_invoke, int,                                                                 \
      (uint64_t handle, uint32_t call, union fastrpc_argument * arguments))                        \
    X(remote_handle64_close, int, (uint64_t handle))                                               \
    X(dspqueue_create, int,                                                                        \
      (int domain, uint32_t flags, uint32_t request_bytes, uint32_t response_bytes,                \
       fastrpc_queue_fn *on_packet, fastrpc_queue_fn *on_error, void *context,                     \
       struct fastrpc_queue **queue))                                                              \
    X(dspqueue_close, int, (struct fastrpc_queue * queue))                                         \
    X(dspqueue_export, int, (struct fastrpc_queue * queue, uint64_t * id))                         \
    X(dspqueue_write, int,                                                                         \
      (struct fastrpc_queue * queue, uint32_t flags, uint32_t n_buffers,                           \
       struct fastrpc_buffer * buffers, uint32_t bytes, const uint8_t *message,                    \
       uint32_t timeout_us))                                                                       \
    X(dspqueue_read, int,                                                                          \
      (struct fastrpc_queue * queue, uint32_t * flags, uint32_t max_buffers, uint32_t * n_buffers, \
       struct fastrpc_buffer * buffers, uint32_t max_bytes, uint32_t * bytes, uint8_t * message,   \
       uint32_t timeout_us))

struct fastrpc_api {
#define X(name, result, arguments) result(*name) arguments;
    FASTRPC_FUNCTIONS(X)
#undef X
};

// False where this machine has no such library, or one that lacks a function. The library stays.
// The file that STINT_CDSPRPC names is taken in its place.
bool st_fastrpc_load(struct fastrpc_api *api);

// ---- What our program on the DSP understands (hexagon/skel.c)

#define FASTRPC_PROGRAM "file:///libstint_skel.so?stint_skel_handle_invoke&_modver=1.0&_dom=cdsp"

enum {
    FASTRPC_OPEN = 0, // by the library itself, as FASTRPC_CLOSE
    FASTRPC_CLOSE = 1,
    FASTRPC_START = 2, // one buffer in: struct fastrpc_start
};

struct fastrpc_start {
    uint64_t queue; // its exported name
    int32_t file;   // of the memory
    uint32_t bytes;
};

enum { FASTRPC_BELL = 0x6c6c6562 }; // the one message, both ways: 4 bytes

_Static_assert(sizeof(struct fastrpc_start) == 16, "both sides have this layout");

#endif
