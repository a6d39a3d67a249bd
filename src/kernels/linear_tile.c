// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_tile.h"

#include "base/size.h"
#include "kernels/prefetch.h"

#include <assert.h>
#include <string.h>

// K_BLOCK x m floats of weights stay in the first-level cache, K_BLOCK x width of the input pass
// through it from the second; a multiple of every block_items, as are BF16_BLOCK, whose elements
// take half the room, and ST_INT16_BLOCK. Rows of pairs are a line more than a power of two apart,
// or they would fall into the same sets of that cache.
enum {
    K_BLOCK = 512,
    BF16_BLOCK = 2 * K_BLOCK,
    BF16_PANEL = 32 * K_BLOCK, // elements, of more rows fewer each
    BF16_ROW = BF16_BLOCK / 2 + 16,
    INT16_ROW = ST_INT16_BLOCK / 2 + 16,
    MAX_M = ST_PAIRS_MAX_M
};
static_assert(BF16_ROW >= K_BLOCK && BF16_ROW >= INT16_ROW, "the widest row of a panel");

// From the sums of one row to those of the next. Rows a power of two apart would fall into the same
// sets of a cache.
static size_t sum_row_of(const struct st_tile *tile, size_t n_tokens) {
    return st_tile_padded(tile, n_tokens) + 16;
}

// Sums of two linears, as one may gate the other.
size_t st_linear_tile_scratch_floats(const struct st_tile *tile, size_t n_tokens) {
    return K_BLOCK + MAX_M * BF16_ROW + 2 * st_linear_whole_rows(tile) * sum_row_of(tile, n_tokens);
}

size_t st_linear_tile_packed_floats(const struct st_tile *tile, size_t n_tokens, size_t k) {
    return st_tile_padded(tile, n_tokens) * (k + st_ceil_div(k, ST_INT16_BLOCK));
}

size_t st_linear_tile_block_tokens(const struct st_linear_kernels *kernels) {
    return kernels->tile->vectors * kernels->tile->lanes;
}

// The rows of weights of one call, elements [k0, k0 + n).
struct panel {
    float *floats;  // [K_BLOCK] of a row that is to be rounded
    float *weights; // [m, form->row]
    float scales[MAX_M];
    size_t k0, n;
};

struct columns;
// What weights and inputs are converted to.
struct form {
    size_t m, k_block, row; // row: floats from one row of a panel to the next
    // The first n rows of the panel from row `row` of the weights on.
    void (*read)(const struct columns *c, size_t row, size_t n, struct panel *panel);
    // sums[m, width] += panel * x[k0.., t..]
    void (*add_tile)(const struct columns *c, const struct panel *panel, size_t t, size_t width,
                     float *sums, size_t sum_row);
    // Elements k and, if n is 2, k + 1 of `width` tokens, x [n, width], into a packed input; k is
    // even. NULL: an element's bits depend on others.
    void (*pack_two)(const struct st_linear_kernels *kernels, const float *x, size_t n,
                     size_t width, size_t k, float *out);
};

// What meets the rows of one linear: the packed input.
struct columns {
    const struct st_linear_kernels *kernels;
    const struct st_linear_args *args;
    const struct form *form;
};

// Rows from `row` on; those past row1 are zeros.
static void read_rows(const struct columns *c, size_t row, size_t row1, struct panel *panel) {
    size_t rows = st_min(c->form->m, row1 - row), others = c->form->m - rows;
    c->form->read(c, row, rows, panel);
    memset(panel->scales + rows, 0, others * sizeof *panel->scales);
    memset(panel->weights + rows * c->form->row, 0, others * c->form->row * sizeof(float));
}

// What read_rows reads next comes from memory while tokens meet what it wrote: rows lie too
// far apart for the processor's own prefetchers. Nothing of nested weights is prefetched, whose
// rows lie eight and eight together.
static void prefetch_rows(const struct columns *c, size_t row, size_t row1, size_t k0) {
    const struct st_linear_args *a = c->args;
    if (a->nested) return;
    const struct st_dtype_traits *type = st_dtype_traits(a->dtype);
    size_t n = st_min(c->form->k_block, a->k - k0);
    size_t first = k0 / type->block_items * type->block_bytes;
    size_t bytes = st_ceil_div(n, type->block_items) * type->block_bytes;
    for (size_t end = st_min(row + c->form->m, row1); row < end; row++)
        st_prefetch_soon((const char *)a->w + row * a->row_bytes + first, bytes);
}

// sums[rows, padded] += w[row0.., k0..k0 + n) * x
static void add_k_block(const struct columns *c, size_t row0, size_t row1, struct panel *panel,
                        float *sums, size_t sum_row) {
    const struct st_tile *tile = c->kernels->tile;
    size_t padded = st_tile_padded(tile, c->args->n_tokens), m = c->form->m;
    for (size_t row = row0; row < row1; row += m) {
        read_rows(c, row, row1, panel);
        if (row + m < row1)
            prefetch_rows(c, row + m, row1, panel->k0);
        else if (panel->k0 + panel->n < c->args->k)
            prefetch_rows(c, row0, row1, panel->k0 + panel->n);
        else
            prefetch_rows(c, row1, row1 + m, 0); // where a thread usually goes on
        for (size_t t = 0; t < padded;) {
            size_t width = st_tile_width(tile, c->args->n_tokens, t);
            c->form->add_tile(c, panel, t, width, sums + (row - row0) * sum_row + t, sum_row);
            t += width;
        }
    }
}

static void store(const struct columns *c, size_t row0, size_t row1, const float *sums,
                  size_t sum_row) {
    const struct st_linear_args *a = c->args;
    st_tile_transpose(c->kernels->tile, sums, sum_row, row1 - row0, a->n_tokens, a->y + row0,
                      a->y_row);
    for (size_t t = 0; t < a->n_tokens && a->bias; t++)
        for (size_t row = row0; row < row1; row++) a->y[t * a->y_row + row] += a->bias[row];
}

static float *first_sums(float *scratch) {
    return scratch + K_BLOCK + MAX_M * BF16_ROW;
}

// sums[row1 - row0, padded], as many rows as one call takes or fewer
static void sum_rows(const struct columns *c, size_t row0, size_t row1, float *scratch,
                     float *sums) {
    const struct st_linear_args *a = c->args;
    struct panel panel = {.floats = scratch, .weights = scratch + K_BLOCK};
    size_t sum_row = sum_row_of(c->kernels->tile, a->n_tokens);
    memset(sums, 0, st_round_up(row1 - row0, c->form->m) * sum_row * sizeof *sums);
    for (; panel.k0 < a->k; panel.k0 += panel.n) {
        panel.n = st_min(c->form->k_block, a->k - panel.k0);
        add_k_block(c, row0, row1, &panel, sums, sum_row);
    }
}

static void multiply_block(const struct columns *c, size_t row0, size_t row1, float *scratch) {
    float *sums = first_sums(scratch);
    sum_rows(c, row0, row1, scratch, sums);
    store(c, row0, row1, sums, sum_row_of(c->kernels->tile, c->args->n_tokens));
}

static void multiply(const struct columns *c, size_t row0, size_t row1, float *scratch) {
    size_t n = st_linear_whole_rows(c->kernels->tile);
    for (size_t row = row0; row < row1; row += n)
        multiply_block(c, row, st_min(row + n, row1), scratch);
}

// n rows, one or two, from `row` on.
static void pack_gated(const struct st_linear_kernels *kernels, const struct st_linear_gated *g,
                       const struct form *form, size_t row, size_t n, const float *up,
                       const float *gate) {
    const struct st_tile *tile = kernels->tile;
    size_t n_tokens = g->up->n_tokens, sum_row = sum_row_of(tile, n_tokens), width;
    for (size_t t = 0; t < n_tokens; t += width) {
        float x[2 * ST_TILE_MAX_WIDTH];
        width = st_tile_width(tile, n_tokens, t);
        for (size_t i = 0; i < n; i++)
            kernels->elementwise->act_gated(g->act, gate + i * sum_row + t, up + i * sum_row + t,
                                            width, x + i * width);
        form->pack_two(kernels, x, n, width, row, g->packed + t * g->n_rows);
    }
}

// Two linears, whose sums have tokens in lanes already, as packed inputs do.
static void multiply_gated(const struct st_linear_kernels *kernels, const struct st_linear_gated *g,
                           const struct form *form, size_t row0, size_t row1, float *scratch) {
    const struct columns up = {kernels, g->up, form}, gate = {kernels, g->gate, form};
    const struct st_tile *tile = kernels->tile;
    size_t n_tokens = g->up->n_tokens, sum_row = sum_row_of(tile, n_tokens);
    size_t n = st_linear_whole_rows(tile);
    float *sums = first_sums(scratch), *gates = sums + n * sum_row;
    for (size_t row = row0; row < row1; row += n) {
        size_t end = st_min(row + n, row1);
        sum_rows(&up, row, end, scratch, sums);
        sum_rows(&gate, row, end, scratch, gates);
        for (size_t r = row; r < end; r += 2)
            pack_gated(kernels, g, form, r, st_min(2, end - r), sums + (r - row) * sum_row,
                       gates + (r - row) * sum_row);
    }
}

// The tokens of one block.
struct tokens {
    size_t first, n, width;
};

static struct tokens tokens_of(const struct st_tile *tile, size_t n_tokens, size_t block) {
    size_t t = st_tile_block_start(tile, n_tokens, block), width = st_tile_width(tile, n_tokens, t);
    return (struct tokens){t, st_min(width, n_tokens - t), width};
}

// ---- Floats

static const void *stored_row(const struct st_linear_args *a, size_t row) {
    return (const unsigned char *)a->w + row * a->row_bytes;
}

static void read_row(const struct columns *c, size_t row, const struct panel *p, float *to) {
    const struct st_linear_args *a = c->args;
    if (a->nested)
        c->kernels->nested->floats(a->nested, a->bits, row, p->k0, p->n, to);
    else
        c->kernels->dequantize->fn[a->dtype](stored_row(a, row), p->k0, p->n, to);
}

static void read_floats(const struct columns *c, size_t row, size_t n, struct panel *p) {
    for (size_t m = 0; m < n; m++) read_row(c, row + m, p, p->weights + m * K_BLOCK);
}

static void add_floats(const struct columns *c, const struct panel *p, size_t t, size_t width,
                       float *sums, size_t sum_row) {
    const struct st_tile *tile = c->kernels->tile;
    tile->fn[width / tile->lanes - 1](p->n, p->weights, K_BLOCK, 1,
                                      c->args->x + t * c->args->k + p->k0 * width, sums, sum_row);
}

void st_linear_tile_pack(const struct st_linear_kernels *kernels, const float *x, size_t n_tokens,
                         size_t k, size_t block, float *out) {
    struct tokens t = tokens_of(kernels->tile, n_tokens, block);
    st_tile_pack(kernels->tile, x + t.first * k, k, t.n, k, out + t.first * k);
}

static void pack_two_floats(const struct st_linear_kernels *kernels, const float *x, size_t n,
                            size_t width, size_t k, float *out) {
    (void)kernels;
    memcpy(out + k * width, x, n * width * sizeof *out);
}

static struct form float_form(const struct st_linear_kernels *kernels) {
    return (struct form){kernels->tile->m, K_BLOCK,    K_BLOCK,
                         read_floats,      add_floats, pack_two_floats};
}

void st_linear_tile_rows(const struct st_linear_kernels *kernels, const struct st_linear_args *a,
                         size_t row0, size_t row1, float *scratch) {
    const struct form floats = float_form(kernels);
    multiply(&(struct columns){kernels, a, &floats}, row0, row1, scratch);
}

void st_linear_tile_gated(const struct st_linear_kernels *kernels,
                          const struct st_linear_gated *gated, size_t row0, size_t row1,
                          float *scratch) {
    const struct form floats = float_form(kernels);
    multiply_gated(kernels, gated, &floats, row0, row1, scratch);
}

// ---- Pairs: 32 bits, which are packed like floats and take half the room. Until then those of a
// block lie as rows behind the place where they go.

static const uint32_t *packed_pairs(const struct columns *c, const struct panel *p, size_t t,
                                    size_t width) {
    return (const uint32_t *)(const void *)(c->args->x + t * c->args->k) + p->k0 / 2 * width;
}

static void pack_pairs(const struct st_linear_kernels *kernels, struct tokens t, size_t k,
                       float *packed) {
    st_tile_pack(kernels->tile, packed + t.width * (k / 2), k / 2, t.n, k / 2, packed);
}

// ---- BF16

static void read_bf16(const struct columns *c, size_t row, size_t n, struct panel *p) {
    const struct st_linear_args *a = c->args;
    for (size_t m = 0; m < n; m++) {
        uint16_t *to = (uint16_t *)(void *)(p->weights + m * BF16_ROW);
        if (a->nested)
            c->kernels->nested->bf16(a->nested, a->bits, row + m, p->k0, p->n, to);
        else
            c->kernels->dequantize_bf16->fn[a->dtype](stored_row(a, row + m), p->k0, p->n, to);
    }
}

static void add_bf16(const struct columns *c, const struct panel *p, size_t t, size_t width,
                     float *sums, size_t sum_row) {
    const struct st_pairs *pairs = c->kernels->pairs;
    pairs->fn[width / pairs->lanes - 1](p->n / 2, (const uint32_t *)(const void *)p->weights,
                                        BF16_ROW, 1, packed_pairs(c, p, t, width), sums, sum_row);
}

void st_linear_tile_bf16_pack(const struct st_linear_kernels *kernels, const float *x,
                              size_t n_tokens, size_t k, size_t block, float *out) {
    struct tokens t = tokens_of(kernels->tile, n_tokens, block);
    float *packed = out + t.first * k, *rows = packed + t.width * (k / 2);
    for (size_t i = 0; i < t.n; i++)
        kernels->pairs->join(x + (t.first + i) * k, k / 2,
                             (uint32_t *)(void *)(rows + i * (k / 2)));
    pack_pairs(kernels, t, k, packed);
}

static void zip_two(const struct st_linear_kernels *kernels, const float *x, size_t n, size_t width,
                    size_t k, float *out) {
    kernels->pairs->zip(x, n, width, (uint32_t *)(void *)out + k / 2 * width);
}

static struct form bf16_form(const struct st_linear_kernels *kernels) {
    size_t m = kernels->pairs->m;
    return (struct form){m,      st_min(BF16_BLOCK, BF16_PANEL / m), BF16_ROW, read_bf16, add_bf16,
                         zip_two};
}

void st_linear_tile_bf16_rows(const struct st_linear_kernels *kernels,
                              const struct st_linear_args *a, size_t row0, size_t row1,
                              float *scratch) {
    const struct form bf16 = bf16_form(kernels);
    kernels->pairs->begin();
    multiply(&(struct columns){kernels, a, &bf16}, row0, row1, scratch);
    kernels->pairs->end();
}

void st_linear_tile_bf16_gated(const struct st_linear_kernels *kernels,
                               const struct st_linear_gated *gated, size_t row0, size_t row1,
                               float *scratch) {
    const struct form bf16 = bf16_form(kernels);
    kernels->pairs->begin();
    multiply_gated(kernels, gated, &bf16, row0, row1, scratch);
    kernels->pairs->end();
}

// ---- 16-bit integers. Scales of inputs, [blocks of k, width] for each block of tokens, follow the
// pairs of all.

static size_t input_scales(const struct st_tile *tile, size_t n_tokens, size_t k, size_t t) {
    return st_tile_padded(tile, n_tokens) * k + t * st_ceil_div(k, ST_INT16_BLOCK);
}

static void read_int16(const struct columns *c, size_t row, size_t n, struct panel *p) {
    const struct st_linear_args *a = c->args;
    const struct st_int16 *int16 = c->kernels->int16;
    int16_t *to = (int16_t *)(void *)p->weights;
    if (!a->nested && int16->blocks[a->dtype]) {
        int16->blocks[a->dtype](stored_row(a, row), a->row_bytes, n, p->k0, p->n, to, 2 * INT16_ROW,
                                p->scales);
        return;
    }
    for (size_t m = 0; m < n; m++, to += 2 * INT16_ROW) {
        read_row(c, row + m, p, p->floats);
        p->scales[m] = int16->quantize(p->floats, p->n, ST_INT16_MAX_WEIGHT, to);
    }
}

static void add_int16(const struct columns *c, const struct panel *p, size_t t, size_t width,
                      float *sums, size_t sum_row) {
    const struct st_int16 *int16 = c->kernels->int16;
    const struct st_linear_args *a = c->args;
    const float *scales = a->x + input_scales(c->kernels->tile, a->n_tokens, a->k, t);
    int16->fn[width / int16->lanes - 1](p->n / 2, (const uint32_t *)(const void *)p->weights,
                                        INT16_ROW, p->scales, packed_pairs(c, p, t, width),
                                        scales + p->k0 / ST_INT16_BLOCK * width, sums, sum_row);
}

void st_linear_tile_int16_pack(const struct st_linear_kernels *kernels, const float *x,
                               size_t n_tokens, size_t k, size_t block, float *out) {
    struct tokens t = tokens_of(kernels->tile, n_tokens, block);
    float *packed = out + t.first * k, *rows = packed + t.width * (k / 2);
    float *scales = out + input_scales(kernels->tile, n_tokens, k, t.first);
    memset(scales, 0, st_ceil_div(k, ST_INT16_BLOCK) * t.width * sizeof *scales);
    for (size_t k0 = 0; k0 < k; k0 += ST_INT16_BLOCK, scales += t.width)
        for (size_t i = 0; i < t.n; i++)
            scales[i] = kernels->int16->quantize(x + (t.first + i) * k + k0,
                                                 st_min(ST_INT16_BLOCK, k - k0), ST_INT16_MAX_INPUT,
                                                 (int16_t *)(void *)(rows + i * (k / 2) + k0 / 2));
    pack_pairs(kernels, t, k, packed);
}

void st_linear_tile_int16_rows(const struct st_linear_kernels *kernels,
                               const struct st_linear_args *a, size_t row0, size_t row1,
                               float *scratch) {
    const struct form int16 = {kernels->tile->m, ST_INT16_BLOCK, INT16_ROW,
                               read_int16,       add_int16,      NULL};
    multiply(&(struct columns){kernels, a, &int16}, row0, row1, scratch);
}
