// SPDX-License-Identifier: Apache-2.0
// Programs: what one token passes through on its way through layers, as a list of operations that a
// device runs one after the other in one job (caps.programs). It is compiled once; what changes
// from token to token, struct st_program_place and rotations, the operations read from a buffer.
// They know neither models nor layers. Integers are exact, and floats those of the host's vector
// kernels, in their order, but for sums of products, which are added as by the scalar kernel.
#ifndef ST_DEVICE_PROGRAM_H
#define ST_DEVICE_PROGRAM_H

#include "device/device.h"
#include "kernels/elementwise.h"

enum { ST_PROGRAM_PARTS = 3 };

struct st_program;

// Where the token stands: `cache` bytes are added to where keys and values begin.
struct st_program_place {
    uint64_t cache;
    uint32_t position, unused;
};

// [n] floats -> a nested input (struct st_stored_nested) of one or two terms. In this order, each
// where its buffer is not NULL: x + add, which is also written to `sum`, a place that is not x's;
// the RMSNorm with these weights; act(x) times up.
struct st_program_quantize {
    struct st_slice x, add, sum, norm, up, to;
    float epsilon;
    enum st_act act;
    size_t n, terms;
};

// y[i] = W[i] x of nested linears with the same inputs.
struct st_program_multiply {
    struct st_slice x, y[ST_PROGRAM_PARTS];
    struct st_device_stored *stored[ST_PROGRAM_PARTS];
    unsigned bits[ST_PROGRAM_PARTS];
    size_t n_parts, terms;
};

// Of a token's q, k and v (heads of shape.dim floats) adds biases, normalises and rotates q and k
// by their heads, and appends k and v to the cache; what was appended goes to `rows` too: the keys
// of all heads, then the values.
struct st_program_rotate {
    struct st_device_attention shape;
    struct st_slice q, k, v;
    struct st_slice bias[3], norm[2]; // of q, k, v; or NULL
    bool per_head[2];                 // norms are [heads, dim]
    float epsilon;
    struct st_slice place, cosine, sine; // [rope_dims / 2]
    uint32_t rope_dims;                  // 0: no rotation
    bool interleaved;
    struct st_slice keys, values; // as in struct st_attend_args
    struct st_slice rows;
};

// What a rotated query attends to, in a cache that holds the token's own rows. q and the cache's
// rows are aligned to four values, and so is what is added to where they begin.
struct st_program_attend {
    struct st_device_attention shape;
    struct st_slice q, out, place;
    struct st_slice keys, values;
    struct st_slice scores; // room for [heads, positions] floats, row_bytes apart
};

enum st_program_kind {
    ST_PROGRAM_QUANTIZE,
    ST_PROGRAM_MULTIPLY,
    ST_PROGRAM_ROTATE,
    ST_PROGRAM_ATTEND
};

struct st_program_op {
    enum st_program_kind kind;
    union {
        struct st_program_quantize quantize;
        struct st_program_multiply multiply;
        struct st_program_rotate rotate;
        struct st_program_attend attend;
    };
};

// Keys and values lie in `cache`, everything else in `memory`, since each buffer costs a command
// time. Positions are below `positions`, and `cache` of a place is at most `caches`; there is room
// for all of them. Buffers and linears must outlive the program.
struct st_program_options {
    const struct st_program_op *ops;
    size_t n_ops;
    struct st_buffer *memory, *cache;
    size_t positions;
    uint64_t caches;
};
// Whether rotate and attend may have this shape; false also where it runs no programs.
bool st_device_attends_steps(const struct st_device *device,
                             const struct st_device_attention *attention);
// STINT_E_UNSUPPORTED, E_NOMEM, E_DEVICE.
stint_status st_device_compile_program(struct st_device *device,
                                       const struct st_program_options *options,
                                       struct st_program **program);
void st_device_free_program(struct st_program *program); // accepts NULL
// A job that comes after none; nothing else may use the program's buffers until it has ended.
stint_status st_device_run_program(struct st_program *program, struct st_job **job);

#endif
