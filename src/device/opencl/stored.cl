// SPDX-License-Identifier: Apache-2.0
// Products with linears as they are stored (device/stored.h), for up to COLUMNS inputs at a time.
// A work group has 8 rows, and LANES items of each: these share a row's parts, and one of them adds
// what a part gives in the order of the scalar kernel, which makes the floats its bits.
enum { ROWS = OCL_STORED_ROWS, COLUMNS = OCL_STORED_COLUMNS };
#define GROUP __attribute__((reqd_work_group_size(ROWS * LANES, 1, 1)))

// ---- Nested codes (kernels/nested.h): neighbouring items read neighbouring rows of a panel

enum { VECTORS = 8, PANEL = 8 }; // of 16 elements in a block; rows

struct regions {
    global const uchar *plane[8], *groups;
};

// A row in block b.
struct nested_place {
    ulong top, plane, group; // bytes from the begin of each region
    uint vectors, further;   // further: the bit of a plane that vector 0 begins with
    uint minimum;            // bytes behind the scales
    bool whole;
};

INLINE struct nested_place place_of(uint k, uint row, uint b) {
    const uint halves = (k + 63) / 64, r = row % PANEL;
    const ulong panel = (ulong)(row / PANEL) * halves;
    const bool whole = b < halves / 2;
    const uint own = whole ? r : r % 4; // two rows share the bytes of half a block
    struct nested_place p = {.top = panel * 128 + b * 256 + 16 * r,
                             .plane = panel * 64 + b * 128 + 16 * own,
                             .group = panel * 32 + b * 64 + 4 * own + (whole ? 0 : r / 4 * 2),
                             .vectors = whole ? VECTORS : VECTORS / 2,
                             .further = whole ? 0 : r / 4,
                             .minimum = whole ? 32 : 16,
                             .whole = whole};
    return p;
}

// 16 bytes of a region, four in each number.
INLINE uint4 codes_at(global const uchar *region, ulong at) {
    return *(global const uint4 *)(region + at);
}

INLINE void nested_codes(const struct regions *w, const struct nested_place *p, uint bits,
                         uint4 *code) {
    for (uint v = 0; v < VECTORS; v++)
        if (v < p->vectors)
            code[v] = codes_at(w->plane[2], p->top + v / 4 * 128) >> v % 4 * 2 & 0x03030303u;
    for (uint bit = 3; bit < 8; bit++) {
        if (bit > bits) continue;
        uint4 plane = codes_at(w->plane[bit], p->plane);
        for (uint v = 0; v < VECTORS; v++) {
            uint at = v % 4 * 2 + v / 4 + p->further;
            if (v < p->vectors) code[v] = code[v] << 1 | (plane >> at & 0x01010101u);
        }
    }
}

INLINE int dot16(uint4 codes, int4 q) { // codes have 7 bits
    int4 c = as_int4(codes);
    int sum = add_dot4(0, c.x, q.x);
    sum = add_dot4(sum, c.y, q.y);
    sum = add_dot4(sum, c.z, q.z);
    return add_dot4(sum, c.w, q.w);
}

// The exact sums of a row and n columns over a block: of codes, of minima.
INLINE void nested_sums(const struct regions *w, uint k, uint row, uint b, uint bits,
                        global const char *q, global const short *sums, uint n, int *codes,
                        int *minima) {
    const struct nested_place p = place_of(k, row, b);
    global const uchar *group = w->groups + p.group;
    uint4 code[VECTORS];
    nested_codes(w, &p, bits, code);
    // Constant bounds keep what is indexed in registers.
    for (uint c = 0; c < COLUMNS; c++) codes[c] = minima[c] = 0;
    for (uint v = 0; v < VECTORS; v++)
        for (uint c = 0; c < COLUMNS; c++)
            if (c < n && v < p.vectors)
                codes[c] +=
                    group[v / 2] * dot16(code[v], *(global const int4 *)(q + c * 128 + v * 16));
    for (uint g = 0; g < VECTORS / 2; g++)
        for (uint c = 0; c < COLUMNS; c++)
            if (c < n && g < p.vectors / 2)
                minima[c] += (char)group[p.minimum + g] * sums[c * 4 + g];
}

// Rows of a group and up to COLUMNS columns of an input. terms: of the group.
INLINE void multiply_nested_group(const struct ocl_multiply *a, global const char *x,
                                  const struct regions *w, global const float *rows, global char *y,
                                  uint group, uint column,
                                  local float (*terms)[LANES][ROWS][COLUMNS]) {
    const uint r = get_local_id(0) % ROWS, lane = get_local_id(0) / ROWS;
    const uint row = group * ROWS + r, blocks = (a->k + 127) / 128;
    const uint n = min((uint)COLUMNS, a->n_columns - column);
    float sums[2][COLUMNS] = {{0.0f}, {0.0f}};
    x += a->x;
    for (uint first = 0; first < blocks; first += LANES) {
        uint b = first + lane;
        if (b < blocks) {
            ulong at = (ulong)column * blocks + b * n; // tokens of four side by side
            global const float *scale = (global const float *)(x + a->scale) + at;
            int codes[COLUMNS], minima[COLUMNS];
            nested_sums(w, a->k, row, b, a->bits, x + at * 128,
                        (global const short *)(x + a->sums) + at * 4, n, codes, minima);
            for (uint c = 0; c < COLUMNS; c++) {
                if (c >= n) continue;
                terms[0][lane][r][c] = scale[c] * (float)codes[c];
                terms[1][lane][r][c] = scale[c] * (float)minima[c];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint c = lane; c < n; c += LANES)
            for (uint l = 0; l < min((uint)LANES, blocks - first); l++) {
                sums[0][c] += terms[0][l][r][c];
                sums[1][c] += terms[1][l][r][c];
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    global const float *factors = rows + 2 * (a->first_row + row);
    for (uint c = lane; c < n; c += LANES)
        terms[0][0][r][c] = sums[0][c] * factors[0] + sums[1][c] * factors[1];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint t = lane; t < n / a->terms && row < a->n_out; t += LANES) {
        float value = terms[0][0][r][t * a->terms];
        if (a->terms == 2) value += terms[0][0][r][t * a->terms + 1];
        *(global float *)(y + a->y + (column / a->terms + t) * a->y_row + row * 4ul) = value;
    }
}

kernel GROUP void multiply_nested(const struct ocl_multiply a, global const char *x,
                                  global const uchar *plane2, global const uchar *plane3,
                                  global const uchar *plane4, global const uchar *plane5,
                                  global const uchar *plane6, global const uchar *plane7,
                                  global const uchar *groups, global const float *rows,
                                  global char *y) {
    local float terms[2][LANES][ROWS][COLUMNS];
    const struct regions w = {{plane2, plane2, plane2, plane3, plane4, plane5, plane6, plane7},
                              groups};
    multiply_nested_group(&a, x, &w, rows, y, get_group_id(0), get_global_id(1) * COLUMNS, terms);
}

// ---- Quantized blocks and floats: neighbouring items read neighbouring parts of a row

// Its item's row of the weights; the last one where the linear ends.
INLINE global const uchar *row_of(const struct ocl_multiply *a, global const uchar *w, uint row) {
    return w + a->w + min(row, a->n_out - 1) * a->row_bytes;
}

// One part of 32 elements times that of an input (kernels/blocks_scalar.c).
INLINE float part_product(const struct ocl_multiply *a, const struct st_block_part *p,
                          global const char *chunk, uint part) {
    global const char *high = chunk + a->high + part * 32, *low = chunk + a->low + part * 32;
    global const float *half_sums = (global const float *)(chunk + a->half_sums) + 2 * part;
    float scale = ((global const float *)(chunk + a->scale))[part], sum = 0.0f;
    for (uint h = 0; h < 2; h++) {
        int product = 0;
        for (uint i = h * 16; i < h * 16 + 16; i++)
            product += p->code[i] * (128 * high[i] + low[i]);
        sum += p->scale[h] * scale * (float)product;
        sum -= p->minimum[h] * half_sums[h];
    }
    return sum;
}

// Writes the sums of its item's columns.
INLINE void put(const struct ocl_multiply *a, global char *y, uint row, uint column, uint n,
                uint lane, const float *sums) {
    for (uint c = lane; c < n && row < a->n_out; c += LANES)
        *(global float *)(y + a->y + (column + c) * a->y_row + row * 4ul) = sums[c];
}

#define BLOCKS(id, type, isa)                                                                      \
    kernel GROUP void multiply_##type(const struct ocl_multiply a, global const char *x,           \
                                      global const uchar *w, global char *y) {                     \
        local float terms[LANES][ROWS][COLUMNS];                                                   \
        const uint lane = get_local_id(0) % LANES, r = get_local_id(0) / LANES;                    \
        const uint row = get_group_id(0) * ROWS + r, parts = a.k / 32,                             \
                   column = get_global_id(1) * COLUMNS;                                            \
        const uint n = min((uint)COLUMNS, a.n_columns - column);                                   \
        const ulong input_bytes = (ulong)(a.k + 255) / 256 * a.chunk;                              \
        float sums[COLUMNS] = {0.0f};                                                              \
        global const uchar *from = row_of(&a, w, row);                                             \
        for (uint first = 0; first < parts; first += LANES) {                                      \
            uint part = first + lane;                                                              \
            if (part < parts) {                                                                    \
                struct st_block_part p;                                                            \
                st_part_##type(from + part / 8 * a.chunk_bytes, part % 8, &p);                     \
                for (uint c = 0; c < n; c++)                                                       \
                    terms[lane][r][c] = part_product(                                              \
                        &a, &p, x + a.x + (column + c) * input_bytes + part / 8 * a.chunk,         \
                        part % 8);                                                                 \
            }                                                                                      \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (uint c = lane; c < n; c += LANES)                                                 \
                for (uint l = 0; l < min((uint)LANES, parts - first); l++)                         \
                    sums[c] += terms[l][r][c];                                                     \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
        }                                                                                          \
        put(&a, y, row, column, n, lane, sums);                                                    \
    }

ST_BLOCK_TYPES(BLOCKS, opencl)

INLINE float f32_at(global const uchar *row, uint k) {
    return ((global const float *)row)[k];
}
INLINE float f16_at(global const uchar *row, uint k) {
    return st_f32_from_f16(((global const ushort *)row)[k]);
}
INLINE float bf16_at(global const uchar *row, uint k) {
    return as_float((uint)((global const ushort *)row)[k] << 16);
}

#define FLOATS(type)                                                                               \
    kernel GROUP void multiply_##type(const struct ocl_multiply a, global const char *x,           \
                                      global const uchar *w, global char *y) {                     \
        local float terms[LANES][ROWS][COLUMNS];                                                   \
        const uint lane = get_local_id(0) % LANES, r = get_local_id(0) / LANES;                    \
        const uint row = get_group_id(0) * ROWS + r, column = get_global_id(1) * COLUMNS;          \
        const uint n = min((uint)COLUMNS, a.n_columns - column);                                   \
        float sums[COLUMNS] = {0.0f};                                                              \
        global const uchar *from = row_of(&a, w, row);                                             \
        global const float *inputs = (global const float *)(x + a.x) + (ulong)column * a.k;        \
        for (uint k = lane; k < a.k; k += LANES) {                                                 \
            float weight = type##_at(from, k);                                                     \
            for (uint c = 0; c < n; c++)                                                           \
                sums[c] = fma(weight, inputs[(ulong)c * a.k + k], sums[c]);                        \
        }                                                                                          \
        for (uint c = 0; c < n; c++) terms[lane][r][c] = sums[c];                                  \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        for (uint c = lane; c < n; c += LANES) {                                                   \
            sums[c] = 0.0f;                                                                        \
            for (uint l = 0; l < LANES; l++) sums[c] += terms[l][r][c];                            \
        }                                                                                          \
        put(&a, y, row, column, n, lane, sums);                                                    \
    }

FLOATS(f32)
FLOATS(f16)
FLOATS(bf16)
