// SPDX-License-Identifier: Apache-2.0
#include "prepare/nested.h"

#include "base/cpu.h"
#include "base/size.h"
#include "base/thread.h"
#include "kernels/dequantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Share of the mean importance that is added to every channel, so that channels which were 0 in the
// calibration text count a little too.
static const double damp = 0.01;

struct worker {
    struct st_row_scratch scratch;
    float *w;           // [k]
    uint8_t *code;      // [k]
    float *centroids;   // for all precisions
    float *kept;        // [k] the original weights
    float *importance;  // [k] 0 for the row's outliers
    uint32_t *outliers; // [k]
};

struct st_nested_packer {
    const struct st_config *config;
    const struct st_quantizer *quantizer;
    const struct st_dequantize *dequantize;
    struct st_nested_range range;
    struct st_pool *pool;
    struct st_arena arena;
    struct worker *workers;
    float *importance; // [widest k]
    float *inverse;    // [k, k] for the widest k, if the quantizer needs a factor
    double outlier_share;
    uint8_t *codes; // of the current linear, like the next ones
    int8_t *tables;
    float *scale;
    size_t n_outliers; // per row
    int32_t *outlier_columns;
    float *outliers;
};

static size_t centroid_count(struct st_nested_range r) {
    return ((size_t)2 << r.high) - ((size_t)1 << r.low);
}

static void lay_out(struct st_nested_packer *p, struct st_arena *arena) {
    size_t k = st_nested_widest(p->config);
    p->workers = ST_TAKE(arena, struct worker, st_pool_threads(p->pool));
    for (size_t i = 0; i < st_pool_threads(p->pool); i++) {
        struct worker w = {.w = ST_TAKE(arena, float, k),
                           .code = ST_TAKE(arena, uint8_t, k),
                           .kept = ST_TAKE(arena, float, k),
                           .importance = ST_TAKE(arena, float, k),
                           .outliers = ST_TAKE(arena, uint32_t, k),
                           .centroids = ST_TAKE(arena, float, centroid_count(p->range))};
        st_row_scratch_take(&w.scratch, k, arena);
        if (p->workers) p->workers[i] = w;
    }
    p->importance = ST_TAKE(arena, float, k);
    p->inverse = ST_TAKE(arena, float, p->quantizer->factor ? k *k : 0);
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

bool st_nested_packer_wants_factor(const struct st_nested_packer *packer) {
    return packer->quantizer->factor;
}

stint_status st_nested_pack_range(const struct st_nested_packer *packer,
                                  struct st_package_writer *writer) {
    const int32_t range[2] = {packer->range.low, packer->range.high};
    return st_pack_section(writer, "", ST_NESTED_RANGE, ST_SECTION_I32, range, 2);
}

// ---- One part

struct job {
    struct st_nested_packer *p;
    const struct st_linear_weight *weight;
    const float *factor;
};

// Rounds the centroids to INT8 with one scale. The codes of a table are in the order of the
// centroids.
static void put_tables(const struct job *j, size_t row, const float *centroids) {
    struct st_nested_range range = j->p->range;
    float max = 0.0f;
    for (size_t i = 0; i < centroid_count(range); i++) max = fmaxf(max, fabsf(centroids[i]));
    float scale = max >= 0x1p-100f ? max / 127.0f : 1.0f;
    j->p->scale[row] = scale;
    struct st_nested_weight w = {.tables = j->p->tables, .low = range.low, .high = range.high};
    for (unsigned b = range.low; b <= range.high; b++) {
        int8_t *table = (int8_t *)(uintptr_t)st_nested_table(&w, row, b);
        for (size_t i = 0; i < (size_t)1 << b; i++) table[i] = (int8_t)lrintf(*centroids++ / scale);
    }
}

// Selects the outliers of a row: the weights with the largest effect, as many as are allowed, in
// descending order. The codes are computed for the other weights.
static void select_outliers(const struct job *j, struct worker *w, size_t k) {
    size_t n = j->p->n_outliers;
    memcpy(w->importance, j->p->importance, k * sizeof *w->importance);
    for (size_t i = 0; i < n; i++) {
        size_t best = k;
        double max = -1.0;
        for (size_t c = 0; c < k; c++) {
            double counts = (double)w->importance[c] * (double)w->kept[c] * (double)w->kept[c];
            if (w->importance[c] == 0.0f || counts <= max) continue;
            max = counts;
            best = c;
        }
        w->outliers[i] = (uint32_t)best;
        w->importance[best] = 0.0f;
    }
}

// The differences between the row's outliers and their codes, for each precision.
static void put_outliers(const struct job *j, const struct worker *w, size_t row) {
    const struct st_nested_packer *p = j->p;
    size_t n = p->n_outliers, all = n * j->weight->n_out;
    struct st_nested_weight tables = {
        .tables = p->tables, .low = p->range.low, .high = p->range.high};
    for (size_t i = 0; i < n; i++) {
        uint32_t column = w->outliers[i];
        p->outlier_columns[row * n + i] = (int32_t)column;
        for (unsigned b = p->range.low; b <= p->range.high; b++) {
            int8_t value = st_nested_table(&tables, row, b)[w->code[column] >> (p->range.high - b)];
            p->outliers[(b - p->range.low) * all + row * n + i] =
                w->kept[column] - (float)value * p->scale[row];
        }
    }
}

static void quantize_row(void *context, size_t row, size_t worker) {
    const struct job *j = context;
    const struct st_linear_weight *l = j->weight;
    struct worker *w = &j->p->workers[worker];
    struct st_row r = {.w = w->w,
                       .k = l->n_in,
                       .importance = w->importance,
                       .factor = j->factor,
                       .low = j->p->range.low,
                       .high = j->p->range.high,
                       .code = w->code};
    j->p->dequantize->fn[l->dtype]((const unsigned char *)l->data + row * l->row_bytes, 0, l->n_in,
                                   w->w);
    memcpy(w->kept, w->w, l->n_in * sizeof *w->kept);
    select_outliers(j, w, l->n_in);
    j->p->quantizer->row(&r, &w->scratch);
    st_row_centroids(&r, w->centroids);
    put_tables(j, row, w->centroids);
    put_outliers(j, w, row);
    st_nested_put_row(w->code, l->n_out, l->n_in, r.high, row, j->p->codes);
}

static stint_status write_outliers(const struct job *j, const char *name,
                                   struct st_package_writer *writer) {
    const struct st_nested_packer *p = j->p;
    size_t n_out = j->weight->n_out, n = p->n_outliers * n_out;
    uint64_t precisions = p->range.high - p->range.low + 1u;
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

static stint_status write_part(const struct job *j, const char *name, size_t code_bytes,
                               size_t table_bytes, struct st_package_writer *writer) {
    const struct st_linear_weight *l = j->weight;
    char full[ST_INT8_NAME_BYTES + 16];
    struct st_section s = {.name = full,
                           .type = ST_SECTION_NESTED,
                           .n_dims = 3,
                           .dims = {l->n_out, l->n_in, j->p->range.high, 1},
                           .data = j->p->codes,
                           .bytes = code_bytes};
    snprintf(full, sizeof full, "%s%s", name, ST_NESTED_CODES);
    ST_TRY(st_package_add(writer, &s));
    s = (struct st_section){.name = full,
                            .type = ST_SECTION_I8,
                            .n_dims = 1,
                            .dims = {table_bytes, 1, 1, 1},
                            .data = j->p->tables,
                            .bytes = table_bytes};
    snprintf(full, sizeof full, "%s%s", name, ST_NESTED_TABLES);
    ST_TRY(st_package_add(writer, &s));
    ST_TRY(st_pack_section(writer, name, ST_NESTED_SCALE, ST_SECTION_F32, j->p->scale,
                           st_nested_padded_rows(l->n_out)));
    if (j->p->n_outliers) ST_TRY(write_outliers(j, name, writer));
    if (!l->bias) return STINT_OK;
    return st_pack_section(writer, name, ST_NESTED_BIAS, ST_SECTION_F32, l->bias, l->n_out);
}

static stint_status pack_part(struct job *j, const char *name, struct st_package_writer *writer) {
    struct st_nested_packer *p = j->p;
    size_t n_out = j->weight->n_out, rows = st_nested_padded_rows(n_out);
    size_t code_bytes = st_nested_code_bytes(n_out, j->weight->n_in, p->range.high);
    size_t table_bytes = st_nested_tables_bytes(n_out, p->range.low, p->range.high);
    p->codes = calloc(code_bytes, 1);
    p->tables = calloc(table_bytes, 1);
    p->scale = malloc(rows * sizeof *p->scale);
    p->n_outliers = (size_t)(p->outlier_share * (double)j->weight->n_in);
    size_t outliers = st_max(1, p->n_outliers * n_out);
    p->outlier_columns = malloc(outliers * sizeof *p->outlier_columns);
    p->outliers = malloc(outliers * (p->range.high - p->range.low + 1u) * sizeof *p->outliers);
    stint_status status = STINT_OK;
    if (!p->codes || !p->tables || !p->scale || !p->outlier_columns || !p->outliers)
        status = st_fail(STINT_E_NOMEM, "no memory for the codes of '%s'", name);
    if (status == STINT_OK) {
        for (size_t r = n_out; r < rows; r++) p->scale[r] = 1.0f;
        st_pool_run(p->pool, quantize_row, j, n_out);
        status = write_part(j, name, code_bytes, table_bytes, writer);
    }
    free(p->codes);
    free(p->tables);
    free(p->scale);
    free(p->outlier_columns);
    free(p->outliers);
    return status;
}

// ---- A linear

static void set_importance(struct st_nested_packer *p, const struct st_input_stats *stats) {
    double mean = 0.0;
    for (size_t i = 0; i < stats->n; i++) mean += (double)stats->squares[i] / (double)stats->n;
    float floor = (float)(mean > 0.0 ? damp * mean : 1.0);
    for (size_t i = 0; i < stats->n; i++) p->importance[i] = stats->squares[i] + floor;
}

stint_status st_nested_pack(struct st_nested_packer *p, const struct st_pack_source *source,
                            struct st_input_stats *stats, struct st_package_writer *writer) {
    struct job j = {.p = p, .factor = stats->products};
    set_importance(p, stats);
    if (p->quantizer->factor && !st_gptq_factor(stats->products, stats->n, damp, p->inverse))
        return st_fail(STINT_E_FORMAT, "layer %u: its inputs are not finite numbers",
                       source->layer);
    for (uint32_t part = 0; part < ST_STAGE_PARTS && source->parts[part]; part++) {
        char name[ST_INT8_NAME_BYTES];
        st_nested_name(source->role, part, p->config, source->layer, source->expert, name);
        j.weight = source->parts[part];
        ST_TRY(pack_part(&j, name, writer));
    }
    return STINT_OK;
}
