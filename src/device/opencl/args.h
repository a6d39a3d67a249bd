// SPDX-License-Identifier: Apache-2.0
// Arguments of the OpenCL program's kernels, for both sides: C and OpenCL C. Offsets and distances
// are bytes; buffers are arguments of their own.
#ifndef ST_DEVICE_OPENCL_ARGS_H
#define ST_DEVICE_OPENCL_ARGS_H

#ifdef __OPENCL_VERSION__
typedef uint ocl_u32;
typedef ulong ocl_u64;
#else
#include <stdint.h>
typedef uint32_t ocl_u32;
typedef uint64_t ocl_u64;
#endif

// stored.cl; planes of two bits, then of each further one
enum { OCL_STORED_ROWS = 8, OCL_STORED_COLUMNS = 4, OCL_PLANES = 6 };
enum { OCL_ATTEND_LANES = 8, OCL_KEY_TILE = 64 };       // attend.cl
enum { OCL_PANEL = 16, OCL_GROUP = 64, OCL_PARTS = 3 }; // kernels/int8.h, device/subgraph.h

struct ocl_rows {
    ocl_u64 offset, row;
};

// Quantized rows of k signed bytes, a multiple of 4. In two terms the rest of row t lies `rest`
// behind its q; its scale, where it has one of its own, `scale` behind.
struct ocl_quantized {
    struct ocl_rows rows;
    ocl_u64 rest, scale;
    ocl_u32 k, two_term;
};

// Where outliers go, and where they are counted.
struct ocl_outliers {
    ocl_u64 list; // struct st_outliers
    ocl_u32 capacity, has_list;
    ocl_u32 counter, unused; // its index
};

// out [n_rows, n] floats -> quantized with this scale; 0: each row has its own.
struct ocl_quantize {
    struct ocl_rows x;
    struct ocl_quantized to;
    struct ocl_outliers outliers;
    ocl_u32 n_rows, n;
    float scale;
    ocl_u32 unused;
};

// Rows of n floats and the weights of their norm.
struct ocl_norm {
    struct ocl_rows x, y;
    ocl_u64 weight;
    ocl_u32 n, lanes; // of the host's vectors
    float epsilon;
    ocl_u32 unused;
};

// Queries of n tokens at positions from `position` on, rows of token_bytes, and what they attend
// to; `shared` heads of them have the same keys. window 0: there is none.
struct ocl_attend {
    ocl_u64 q, out, keys, values;
    ocl_u64 key_head, value_head; // distances of key-value heads
    ocl_u32 row_bytes, token_bytes;
    ocl_u32 n, position, window, shared, dim;
    float scale, softcap, to_cap; // 2 / softcap
};

// The values of a linear are [packed_rows] factors, then as many biases where has_bias.
struct ocl_linear {
    struct ocl_quantized x;
    struct ocl_rows out[OCL_PARTS]; // floats; with `sums` int32, in two terms two rows of each
    ocl_u32 n_parts, rows[OCL_PARTS];
    ocl_u32 n_rows, packed_rows;
    ocl_u32 row_scales, has_bias;
    // Of a linear before another:
    ocl_u32 gated, act; // enum st_act
    ocl_u32 has_add, to_floats;
    struct ocl_quantized next;
    struct ocl_rows floats; // in place of `next`
    struct ocl_rows add;
    ocl_u64 add_row;
    struct ocl_outliers outliers;
    float next_scale;
    ocl_u32 sums; // of the last linear
};

// A stored linear and its inputs, one behind the other from x on.
struct ocl_multiply {
    ocl_u64 x, y, y_row;
    ocl_u64 scale, sums;  // of nested inputs; `scale` also of a chunk of blocks' input
    ocl_u64 w, row_bytes; // of floats and blocks
    ocl_u32 n_out, k, n_columns, terms;
    ocl_u32 bits, first_row; // of nested codes; of their rows' floats
    // Of blocks: bytes of 256 elements of a row, of an input; and where in these parts lie.
    ocl_u32 chunk_bytes, chunk, high, low, half_sums, unused;
};

// ---- Programs (steps.cl)

// struct st_program_place
struct ocl_place {
    ocl_u64 cache;
    ocl_u32 position, unused;
};

struct ocl_step_quantize {
    ocl_u64 x, add, sum, norm, up, to;
    ocl_u64 scale, sums; // behind `to`
    ocl_u32 n, terms, act;
    ocl_u32 has_add, has_norm, has_up;
    float epsilon;
    ocl_u32 unused;
};

// A linear's regions begin so far behind their buffers; it has n_groups groups of OCL_STORED_ROWS
// rows.
struct ocl_step_linear {
    ocl_u64 planes[OCL_PLANES], groups, rows, y;
    ocl_u32 bits, n_out, first_row, n_groups;
};

struct ocl_step_multiply {
    struct ocl_step_linear linear[OCL_PARTS];
    ocl_u64 x, scale, sums;
    ocl_u32 k, terms;
};

struct ocl_step_rotate {
    ocl_u64 x[OCL_PARTS], bias[OCL_PARTS], norm[2];
    ocl_u64 place, cosine, sine, keys, values, key_head, value_head, rows;
    ocl_u32 has_bias[OCL_PARTS], has_norm[2], per_head[2];
    ocl_u32 n_heads, n_kv, dim, half_dims, interleaved, half_floats, row_bytes;
    float epsilon;
    ocl_u32 unused;
};

// `position` of the attention is the place's.
struct ocl_step_attend {
    struct ocl_attend attention;
    ocl_u64 place, scores, scores_row;
};

#endif
