// SPDX-License-Identifier: Apache-2.0
#include "prepare/nested.h"

#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#include "kernels/dequantize.h"
#include "prepare/refine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Share of the mean importance that is added to every channel, so that channels which were 0 in the
// calibration text count a little too.
static const double damp = 0.05;

enum { ROWS = ST_PANEL_ROWS, PANELS = ROWS / ST_NESTED_PANEL };

struct worker {
    float *row;      // [k]
    float *w;        // [k, ROWS]
    float *scratch;  // st_panel_scratch()
    uint8_t *code;   // [k, ROWS]
    uint8_t *one;    // [k] codes of a row
    uint8_t *groups; // [precisions, PANELS] of the rows
    float *outliers; // [ROWS, n_outliers] values
};

struct st_nested_packer {
    const struct st_config *config;
    const struct st_quantizer *quantizer;
    const struct st_dequantize *dequantize;
    const struct st_tile *tile;
    st_panel_quantize_fn *quantize;
    struct st_nested_range range;
    const struct st_allocation *linears;
    uint32_t next; // linear to pack
    struct st_pool *pool;
    struct st_arena arena;
    struct worker *workers;
    float *importance; // [widest k]
    float *ones;       // [groups of the widest k]
    double outlier_share;
    unsigned low, high; // bits of the current linear, like the next ones
    uint8_t *codes;
    uint8_t *groups;            // [high - low + 1, st_nested_group_bytes()]
    struct st_nested_row *rows; // [high - low + 1, padded rows]
    unsigned stored;            // bits of codes that are INT8 weights too; 0: they are not
    int32_t *sums;              // [padded rows] of these
    size_t n_outliers;          // per row
    int32_t *outlier_columns;
    float *outliers;
};

static size_t max_outliers(const struct st_nested_packer *p, size_t k) {
    return (size_t)(p->outlier_share * (double)k);
}

static void lay_out(struct st_nested_packer *p, struct st_arena *arena) {
    size_t k = st_nested_widest(p->config);
    unsigned most = st_allocation_most(p->range.high);
    size_t groups = ST_PANEL_PRECISIONS * PANELS * st_nested_group_panel_bytes(k);
    p->workers = ST_TAKE(arena, struct worker, st_pool_threads(p->pool));
    for (size_t i = 0; i < st_pool_threads(p->pool); i++) {
        size_t scratch = st_max(st_panel_scratch(p->tile, k, ST_NESTED_LOWEST, most),
                                st_refine_scratch(p->tile, k));
        struct worker w = {.row = ST_TAKE(arena, float, k),
                           .w = ST_TAKE(arena, float, k *ROWS),
                           .scratch = ST_TAKE(arena, float, scratch),
                           .code = ST_TAKE(arena, uint8_t, k * ROWS),
                           .one = ST_TAKE(arena, uint8_t, k),
                           .groups = ST_TAKE(arena, uint8_t, groups),
                           .outliers = ST_TAKE(arena, float, ROWS *max_outliers(p, k) + 1)};
        if (p->workers) p->workers[i] = w;
    }
    p->importance = ST_TAKE(arena, float, k);
    p->ones = ST_TAKE(arena, float, st_ceil_div(k, ST_NESTED_GROUP));
}

static stint_status fail_unknown(const char *quantizer) {
    char known[128] = "";
    for (const struct st_quantizer *q = st_quantizers; q->name; q++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", q->name);
    }
    return st_fail(STINT_E_ARG, "quantizer '%.64s' is not known; known are: %s", quantizer, known);
}

static stint_status open_in(struct st_nested_packer *p, uint32_t n_threads) {
    ST_TRY(st_pool_open(n_threads, &p->pool));
    struct st_arena measure = st_arena_measure();
    lay_out(p, &measure);
    ST_TRY(st_arena_check(&measure, "nested weights"));
    ST_TRY(st_arena_open(&p->arena, measure.used));
    lay_out(p, &p->arena);
    return st_arena_check(&p->arena, "nested weights");
}

stint_status st_nested_packer_open(const struct st_config *config, struct st_nested_range range,
                                   const char *quantizer, float outliers, uint32_t n_threads,
                                   struct st_nested_packer **packer) {
    if (!st_quantizer_find(quantizer)) return fail_unknown(quantizer);
    struct st_nested_packer *p = calloc(1, sizeof *p);
    if (!p) return st_fail(STINT_E_NOMEM, "no memory to quantize weights");
    p->config = config;
    p->range = range;
    p->outlier_share = (double)outliers;
    p->quantizer = st_quantizer_find(quantizer);
    p->dequantize = st_dequantize_select(st_cpu_flags());
    p->tile = st_tile_select(st_cpu_flags());
    p->quantize = st_panel_quantizer_select(st_cpu_flags())->quantize;
    stint_status status = open_in(p, n_threads);
    if (status != STINT_OK) {
        st_nested_packer_close(p);
        return status;
    }
    *packer = p;
    return STINT_OK;
}

void st_nested_packer_close(struct st_nested_packer *packer) {
    if (!packer) return;
    st_pool_close(packer->pool);
    st_arena_close(&packer->arena);
    free(packer);
}

bool st_nested_packer_wants_moments(const struct st_nested_packer *packer) {
    return packer->quantizer->moments;
}

stint_status st_nested_pack_range(const struct st_nested_packer *packer,
                                  struct st_package_writer *writer) {
    const int32_t range[2] = {packer->range.low, packer->range.high};
    return st_pack_section(writer, "", ST_NESTED_PRECISIONS, ST_SECTION_I32, range, 2);
}

// ---- One part

struct job {
    struct st_nested_packer *p;
    const struct st_linear_weight *weight;
    const struct st_pack_source *source;
    const float *scales; // [n_out] of INT8 weights; or NULL
};

static unsigned code_bits(const struct st_nested_packer *p) {
    return p->stored ? p->stored : p->high;
}

// Selects the outliers of a row: the weights with the largest effect, as many as are allowed. The
// codes are computed without them: they leave zeros.
static void take_outliers(const struct job *j, struct worker *w, size_t row, size_t r) {
    size_t n = j->p->n_outliers, k = j->weight->n_in;
    for (size_t i = 0; i < n; i++) {
        size_t best = 0;
        double max = -1.0;
        for (size_t c = 0; c < k; c++) {
            double counts = (double)j->p->importance[c] * (double)w->row[c] * (double)w->row[c];
            if (counts <= max) continue;
            max = counts;
            best = c;
        }
        j->p->outlier_columns[row * n + i] = (int32_t)best;
        w->outliers[r * n + i] = w->row[best];
        w->row[best] = 0.0f;
    }
}

// The current linear as it is so far.
static struct st_nested_weight weight_of(const struct job *j) {
    const struct st_nested_packer *p = j->p;
    struct st_nested_weight w = {.codes = p->codes,
                                 .rows = p->rows,
                                 .n_out = j->weight->n_out,
                                 .n_in = j->weight->n_in,
                                 .low = (uint8_t)p->low,
                                 .high = (uint8_t)p->high,
                                 .stored = (uint8_t)p->stored};
    for (unsigned b = p->low; b <= p->high; b++)
        w.groups[b] = p->groups + (b - p->low) * st_nested_group_bytes(w.n_out, w.n_in);
    return w;
}

// The differences between a row's outliers and their codes, for each precision.
static void put_outliers(const struct job *j, const struct worker *w, size_t row, size_t r) {
    const struct st_nested_packer *p = j->p;
    size_t n = p->n_outliers, all = n * j->weight->n_out;
    struct st_nested_weight weight = weight_of(j);
    for (size_t i = 0; i < n; i++) {
        size_t column = (size_t)p->outlier_columns[row * n + i];
        for (unsigned b = p->low; b <= p->high; b++)
            p->outliers[(b - p->low) * all + row * n + i] =
                w->outliers[r * n + i] - st_nested_value(&weight, row, column, b);
    }
}

static void load_row(const struct job *j, struct worker *w, size_t row, size_t r) {
    const struct st_linear_weight *l = j->weight;
    if (row < l->n_out)
        st_linear_dequantize_row(j->p->dequantize, l, row, 0, l->n_in, w->row);
    else
        memset(w->row, 0, l->n_in * sizeof *w->row);
    if (row < l->n_out) take_outliers(j, w, row, r);
    for (size_t i = 0; i < l->n_in; i++) w->w[i * ROWS + r] = w->row[i];
}

// Gives the codes of rows [first, first + ROWS) their lower bits.
static void refine_rows(const struct job *j, struct worker *w, size_t first) {
    struct st_nested_weight weight = weight_of(j);
    size_t n = st_min(ROWS, weight.n_out - first);
    struct st_refined panel = {.weight = &weight,
                               .row = first,
                               .n_rows = n,
                               .scales = j->scales + first,
                               .slopes = j->source->nearest ? NULL : j->source->slopes,
                               .max = j->source->max,
                               .w = w->w,
                               .code = w->code,
                               .sums = j->p->sums + first};
    st_refine_panel(&panel, w->scratch);
}

// Precision b of rows [first, first + ROWS), as far as there are panels.
static void put_grids(const struct job *j, const struct st_panel *panel, unsigned b, size_t first) {
    const struct st_nested_packer *p = j->p;
    size_t n_out = j->weight->n_out, k = j->weight->n_in, at = b - p->low;
    size_t rows = st_nested_padded_rows(n_out), n_rows = st_min(ROWS, rows - first);
    size_t panel_bytes = st_nested_group_panel_bytes(k);
    memcpy(p->rows + at * rows + first, panel->rows[at], n_rows * sizeof *p->rows);
    memcpy(p->groups + at * st_nested_group_bytes(n_out, k) + first / ST_NESTED_PANEL * panel_bytes,
           panel->groups[b], n_rows / ST_NESTED_PANEL * panel_bytes);
}

static void quantize_panels(void *context, size_t index, size_t worker) {
    const struct job *j = context;
    struct st_nested_packer *p = j->p;
    const struct st_linear_weight *l = j->weight;
    struct worker *w = &p->workers[worker];
    size_t first = index * ROWS, group_bytes = PANELS * st_nested_group_panel_bytes(l->n_in);
    struct st_panel one = {.w = w->w,
                           .k = l->n_in,
                           .importance = p->importance,
                           .slopes = j->source->slopes,
                           .ones = p->ones,
                           .low = p->low,
                           .high = p->high,
                           .code = w->code};
    memset(w->groups, 0, (p->high - p->low + 1) * group_bytes);
    for (unsigned b = p->low; b <= p->high; b++)
        one.groups[b] = w->groups + (b - p->low) * group_bytes;
    for (size_t r = 0; r < ROWS; r++) load_row(j, w, first + r, r);
    p->quantize(&one, w->scratch);
    for (unsigned b = p->low; b <= p->high; b++) put_grids(j, &one, b, first);
    if (j->scales) refine_rows(j, w, first);
    for (size_t r = 0; r < ROWS && first + r < l->n_out; r++) {
        for (size_t i = 0; i < l->n_in; i++) w->one[i] = w->code[i * ROWS + r];
        st_nested_put_row(w->one, l->n_out, l->n_in, code_bits(p), first + r, p->codes);
        put_outliers(j, w, first + r, r);
    }
}

static stint_status write_outliers(const struct job *j, const char *name,
                                   struct st_package_writer *writer) {
    const struct st_nested_packer *p = j->p;
    size_t n_out = j->weight->n_out, n = p->n_outliers * n_out;
    uint64_t precisions = p->high - p->low + 1u;
    char full[ST_INT8_NAME_BYTES + 32];
    struct st_section s = {.name = full,
                           .type = ST_SECTION_F32,
                           .n_dims = 2,
                           .dims = {precisions, n, 1, 1},
                           .data = p->outliers,
                           .bytes = precisions * n * sizeof(float)};
    int32_t *rows = malloc((n_out + 1) * sizeof *rows);
    if (!rows) return st_fail(STINT_E_NOMEM, "no memory for the outliers of '%s'", name);
    for (size_t r = 0; r <= n_out; r++) rows[r] = (int32_t)(r * p->n_outliers);
    stint_status status =
        st_pack_section(writer, name, ST_NESTED_OUTLIER_ROWS, ST_SECTION_I32, rows, n_out + 1);
    free(rows);
    ST_TRY(status);
    ST_TRY(st_pack_section(writer, name, ST_NESTED_OUTLIER_COLUMNS, ST_SECTION_I32,
                           p->outlier_columns, n));
    snprintf(full, sizeof full, "%s%s", name, ST_NESTED_OUTLIERS);
    return st_package_add(writer, &s);
}

static stint_status write_groups(const struct job *j, const char *name,
                                 struct st_package_writer *writer) {
    const struct st_nested_packer *p = j->p;
    char full[ST_INT8_NAME_BYTES + 32];
    size_t bytes = st_nested_group_bytes(j->weight->n_out, j->weight->n_in);
    for (unsigned b = p->low; b <= p->high; b++) {
        st_nested_groups_name(name, b, full);
        struct st_section s = {.name = full,
                               .type = ST_SECTION_I8,
                               .n_dims = 1,
                               .dims = {bytes, 1, 1, 1},
                               .data = p->groups + (b - p->low) * bytes,
                               .bytes = bytes};
        ST_TRY(st_package_add(writer, &s));
    }
    return STINT_OK;
}

static stint_status write_part(const struct job *j, const char *name, size_t code_bytes,
                               struct st_package_writer *writer) {
    const struct st_linear_weight *l = j->weight;
    const struct st_nested_packer *p = j->p;
    char full[ST_INT8_NAME_BYTES + 32];
    size_t rows = st_nested_padded_rows(l->n_out), precisions = p->high - p->low + 1;
    struct st_section s = {.name = full,
                           .type = ST_SECTION_NESTED,
                           .n_dims = 3,
                           .dims = {l->n_out, l->n_in, code_bits(p), 1},
                           .data = p->codes,
                           .bytes = code_bytes};
    snprintf(full, sizeof full, "%s%s", name, ST_NESTED_CODES);
    ST_TRY(st_package_add(writer, &s));
    struct st_nested_weight codes = weight_of(j);
    ST_TRY(st_nested_pack_checks(&codes, name, writer));
    ST_TRY(write_groups(j, name, writer));
    s = (struct st_section){.name = full,
                            .type = ST_SECTION_F32,
                            .n_dims = 3,
                            .dims = {precisions, rows, 2, 1},
                            .data = p->rows,
                            .bytes = precisions * rows * sizeof *p->rows};
    snprintf(full, sizeof full, "%s%s", name, ST_NESTED_ROWS);
    ST_TRY(st_package_add(writer, &s));
    if (p->n_outliers) ST_TRY(write_outliers(j, name, writer));
    if (!l->bias) return STINT_OK;
    return st_pack_section(writer, name, ST_NESTED_BIAS, ST_SECTION_F32, l->bias, l->n_out);
}

static stint_status pack_part(struct job *j, const char *name, struct st_package_writer *writer) {
    struct st_nested_packer *p = j->p;
    size_t n_out = j->weight->n_out, rows = st_nested_padded_rows(n_out);
    size_t precisions = p->high - p->low + 1;
    size_t code_bytes = st_nested_code_bytes(n_out, j->weight->n_in, code_bits(p));
    p->codes = calloc(code_bytes, 1);
    p->groups = calloc(precisions, st_nested_group_bytes(n_out, j->weight->n_in));
    p->rows = malloc(precisions * rows * sizeof *p->rows);
    p->n_outliers = max_outliers(p, j->weight->n_in);
    size_t outliers = st_max(1, p->n_outliers * n_out);
    p->outlier_columns = malloc(outliers * sizeof *p->outlier_columns);
    p->outliers = malloc(outliers * precisions * sizeof *p->outliers);
    stint_status status = STINT_OK;
    if (!p->codes || !p->groups || !p->rows || !p->outlier_columns || !p->outliers)
        status = st_fail(STINT_E_NOMEM, "no memory for the codes of '%s'", name);
    if (status == STINT_OK) {
        st_pool_run(p->pool, quantize_panels, j, st_ceil_div(rows, ROWS));
        status = write_part(j, name, code_bytes, writer);
    }
    free(p->codes);
    free(p->groups);
    free(p->rows);
    free(p->outlier_columns);
    free(p->outliers);
    return status;
}

// ---- A linear

void st_nested_importance(const struct st_input_stats *stats, float *importance) {
    double mean = 0.0;
    for (size_t i = 0; i < stats->n; i++) mean += (double)stats->squares[i] / (double)stats->n;
    float floor = (float)(mean > 0.0 ? damp * mean : 1.0);
    for (size_t i = 0; i < stats->n; i++) importance[i] = stats->squares[i] + floor;
}

static stint_status pack_parts(struct job *j, const struct st_pack_source *source,
                               const struct st_refined_parts *parts,
                               struct st_package_writer *writer) {
    struct st_nested_packer *p = j->p;
    for (uint32_t part = 0; part < ST_LINEAR_OP_PARTS && source->parts[part]; part++) {
        char name[ST_INT8_NAME_BYTES];
        st_nested_name(source->role, part, p->config, source->layer, source->expert, name);
        j->weight = source->parts[part];
        j->scales = parts->scales ? parts->scales + parts->begin[part] : NULL;
        p->sums = parts->sums ? parts->sums + parts->begin[part] : NULL;
        const struct st_allocation *linear = &p->linears[p->next++];
        p->low = linear->bits[p->range.low];
        p->high = linear->bits[p->range.high];
        ST_TRY(pack_part(j, name, writer));
    }
    return parts->sums ? st_refined_parts_write(parts, writer) : STINT_OK;
}

stint_status st_nested_finish_moments(struct st_input_stats *stats, uint32_t layer) {
    if (!stats->products || st_moments_finish(stats->products, stats->n, stats->n_seen, damp))
        return STINT_OK;
    return st_fail(STINT_E_FORMAT, "layer %u: its inputs are not finite numbers", layer);
}

stint_status st_nested_pack(struct st_nested_packer *p, const struct st_pack_source *source,
                            const struct st_input_stats *stats, const float *scales,
                            struct st_package_writer *writer) {
    struct job j = {.p = p, .source = source};
    struct st_refined_parts parts;
    st_nested_importance(stats, p->importance);
    if (source->slopes) st_moments_ones(source->slopes->moments, stats->n, p->ones);
    ST_TRY(st_refined_parts_open(p->config, source, scales, &parts));
    stint_status status = pack_parts(&j, source, &parts, writer);
    st_refined_parts_close(&parts);
    return status;
}

stint_status st_nested_pack_stored(struct st_nested_packer *p, unsigned bits,
                                   struct st_package_writer *writer) {
    const int32_t stored = (int32_t)bits;
    p->stored = bits;
    return st_pack_section(writer, "", ST_NESTED_STORED_BITS, ST_SECTION_I32, &stored, 1);
}

stint_status st_nested_pack_bits(struct st_nested_packer *p, const struct st_allocation *linears,
                                 uint32_t n_linears, struct st_package_writer *writer) {
    uint64_t precisions = p->range.high - p->range.low + 1u;
    int32_t *bits = malloc(precisions * n_linears * sizeof *bits);
    if (!bits) return st_fail(STINT_E_NOMEM, "no memory for the bits of %u linears", n_linears);
    for (uint64_t at = 0; at < precisions; at++)
        for (uint32_t i = 0; i < n_linears; i++)
            bits[at * n_linears + i] = linears[i].bits[p->range.low + at];
    struct st_section s = {.name = ST_NESTED_BITS,
                           .type = ST_SECTION_I32,
                           .n_dims = 2,
                           .dims = {precisions, n_linears, 1, 1},
                           .data = bits,
                           .bytes = precisions * n_linears * sizeof *bits};
    stint_status status = st_package_add(writer, &s);
    free(bits);
    p->linears = linears;
    return status;
}
