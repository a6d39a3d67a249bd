// SPDX-License-Identifier: Apache-2.0
// The outlier channels of a run are processed in ascending order, in waves: while one wave is
// added, the cold columns of the next are read. Every product is added to its output separately, so
// that neither waves nor chunks nor the origin of a column changes a bit.
#include "session/session.h"

#include "base/size.h"
#include "neuron/section.h"

#include <string.h>

enum {
    BLOCK_ROWS = 512,
    SMALLEST_WAVE = 16,
    WAVE_BYTES = 4 << 20,
    FEW_READS = 32,
    MAX_LOAD = 64 << 10, // bytes: longer runs of columns are divided among the loader's threads
};

// ---- Memory

// Maxima over the shadowed linears of a model.
struct extent {
    size_t k, rows, up_rows; // widest input, most packed rows, and of those with an activation
    uint32_t n_linears;
    uint64_t hot_bytes, float_bytes;
};

static void add_linear(const struct st_linear_op *linear_op, struct extent *e) {
    const struct st_int8_weight *w = &linear_op->weight;
    size_t rows = (size_t)w->n_panels * ST_INT8_PANEL;
    if (!w->shadowed) return;
    e->n_linears++;
    e->k = st_max(e->k, w->n_in);
    e->rows = st_max(e->rows, rows);
    if (linear_op->epilogue != ST_EPILOGUE_FLOAT) e->up_rows = st_max(e->up_rows, rows);
    e->float_bytes += (uint64_t)rows * w->n_in * sizeof(float);
    for (uint32_t c = 0; c < w->n_in && w->hot; c++) e->hot_bytes += w->hot[c] >= 0 ? rows : 0;
}

static struct extent measure(const struct stint_model *model) {
    const struct st_weights_int8 *w = &model->int8;
    struct extent extent = {0};
    if (!w->layers) return extent;
    for (uint32_t i = 0; i < model->config.n_layers; i++) {
        add_linear(&w->layers[i].qkv, &extent);
        add_linear(&w->layers[i].o, &extent);
        for (uint32_t e = 0; e < st_config_blocks(&model->config, i); e++) {
            add_linear(&w->layers[i].ffn[e].up, &extent);
            add_linear(&w->layers[i].ffn[e].down, &extent);
        }
    }
    add_linear(&w->head, &extent);
    return extent;
}

void st_shadow_lay_out(struct st_shadow *s, const struct stint_model *model, size_t chunk_len,
                       struct st_arena *arena) {
    struct extent extent = measure(model);
    size_t k = extent.k;
    s->n_linears = extent.n_linears;
    s->hot_bytes = extent.hot_bytes;
    s->float_bytes = extent.float_bytes;
    s->any = s->n_linears > 0;
    if (!s->any) return;
    s->capacity = chunk_len * k;
    s->in = (struct st_outliers *)(void *)ST_TAKE(arena, char, st_outliers_bytes(s->capacity));
    s->middle = (struct st_outliers *)(void *)ST_TAKE(arena, char, st_outliers_bytes(s->capacity));
    s->sorted = ST_TAKE(arena, struct st_outlier, s->capacity);
    s->first = ST_TAKE(arena, uint32_t, chunk_len + 1);
    s->next = ST_TAKE(arena, uint32_t, chunk_len);
    s->channels = ST_TAKE(arena, uint32_t, k);
    s->seen = ST_TAKE(arena, uint8_t, k);
    bool lazy = model->checkpoint.lazy;
    s->slot_bytes = lazy ? st_round_up(extent.rows, ST_LOAD_BLOCK) + ST_LOAD_BLOCK : extent.rows;
    s->wave = st_min(ST_SHADOW_WAVE, st_max(SMALLEST_WAVE, WAVE_BYTES / s->slot_bytes));
    s->column = ST_TAKE(arena, const int8_t *, s->wave);
    s->cold = (int8_t *)st_section_room(arena, 2 * s->wave * s->slot_bytes);
    s->loads = ST_TAKE(arena, struct st_load, lazy ? 2 * s->wave : 0);
    s->load_of = ST_TAKE(arena, uint32_t, lazy ? 2 * s->wave : 0);
    s->add = ST_TAKE(arena, float, chunk_len *extent.up_rows);
    s->add_row = ST_TAKE(arena, int32_t, chunk_len);
}

// Only columns with hashes may be read on demand, as a damaged one would change results silently.
static stint_status must_have_checks(const struct stint_model *model) {
    const struct st_weights_int8 *w = &model->int8;
    bool missing = w->head.weight.shadowed && !w->head.weight.column_checks;
    for (uint32_t i = 0; i < model->config.n_layers; i++) {
        const struct st_layer_int8 *l = &w->layers[i];
        const struct st_int8_weight *of_layer[4] = {&l->qkv.weight, &l->o.weight};
        for (uint32_t e = 0; e < st_config_blocks(&model->config, i); e++) {
            of_layer[2] = &l->ffn[e].up.weight;
            of_layer[3] = &l->ffn[e].down.weight;
            for (size_t j = 0; j < 4; j++)
                missing = missing || (of_layer[j]->shadowed && !of_layer[j]->column_checks);
        }
    }
    if (!missing) return STINT_OK;
    return st_fail(
        STINT_E_UNSUPPORTED,
        "%s: has shadow columns without hashes, as an older stint wrote them: prepare it "
        "again, or run it without a memory bound",
        model->checkpoint.path);
}

stint_status st_shadow_open(struct st_shadow *s, const struct stint_model *model,
                            const struct st_elementwise *elementwise, struct st_loader *loader,
                            const struct st_columns *columns) {
    const struct st_checkpoint *c = &model->checkpoint;
    if (!s->any) return STINT_OK;
    s->columns = columns;
    s->elementwise = elementwise;
    if (!c->package) return STINT_OK;
    s->checkpoint = c;
    s->file_base = (uintptr_t)c->maps->data;
    s->loader = loader;
    return loader ? must_have_checks(model) : st_reader_open(c->files->file, c->path, &s->reader);
}

void st_shadow_close(struct st_shadow *shadow) {
    st_reader_close(shadow->reader);
    shadow->reader = NULL;
    shadow->loader = NULL; // the session's
}

stint_status stint_session_shadow(const stint_session *session, stint_shadow_info *info) {
    if (!session || !info || info->size == 0)
        return st_fail(STINT_E_ARG, "info->size must be set to sizeof(stint_shadow_info)");
    const struct st_shadow *first = &session->buffers->shadow;
    stint_shadow_info out = {.size = info->size,
                             .n_linears = first->n_linears,
                             .resident_bytes = first->hot_bytes,
                             .float_bytes = first->float_bytes};
    uint64_t runs = 0, channels = 0;
    for (size_t i = 0; i < session->n_buffers; i++) {
        const struct st_shadow_counts *c = &session->buffers[i].shadow.counts;
        runs += c->runs;
        channels += c->channels;
        out.hot_hits += c->hot_hits;
        out.cold_reads += c->cold_reads;
        out.cold_bytes += c->cold_bytes;
        out.seconds += (double)c->ns * 1e-9;
        out.device_seconds += (double)c->device_ns * 1e-9;
    }
    if (runs) out.outlier_channels = (double)channels / (double)runs;
    memcpy(info, &out, st_min(info->size, sizeof out));
    return STINT_OK;
}

// ---- Outliers

struct st_outliers *st_shadow_list(const struct st_shadow *s, const struct st_linear_op *linear_op,
                                   struct st_outliers *list) {
    return s->any && linear_op->weight.shadowed ? list : NULL;
}

// Sorts by channel; the entries of a token are mostly in order already.
static void sort_token(struct st_outlier *entries, size_t n) {
    for (size_t i = 1; i < n; i++) {
        struct st_outlier entry = entries[i];
        size_t at = i;
        for (; at > 0 && entries[at - 1].channel > entry.channel; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

// Token by token into s->sorted.
static void sort(struct st_shadow *s, const struct st_outliers *list, size_t n) {
    memset(s->first, 0, (s->n_tokens + 1) * sizeof *s->first);
    for (size_t i = 0; i < n; i++) s->first[list->entries[i].row + 1]++;
    for (size_t t = 0; t < s->n_tokens; t++) {
        s->first[t + 1] += s->first[t];
        s->next[t] = s->first[t];
    }
    for (size_t i = 0; i < n; i++) s->sorted[s->next[list->entries[i].row]++] = list->entries[i];
    for (size_t t = 0; t < s->n_tokens; t++) {
        sort_token(s->sorted + s->first[t], s->first[t + 1] - s->first[t]);
        s->next[t] = s->first[t];
    }
}

static void list_channels(struct st_shadow *s, size_t n) {
    size_t k = s->linear_op->weight.n_in;
    memset(s->seen, 0, k);
    for (size_t i = 0; i < n; i++) s->seen[s->sorted[i].channel] = 1;
    s->n_channels = 0;
    for (size_t c = 0; c < k; c++)
        if (s->seen[c]) s->channels[s->n_channels++] = (uint32_t)c;
}

// ---- Columns

static size_t packed_rows(const struct st_linear_op *linear_op) {
    return (size_t)linear_op->weight.n_panels * ST_INT8_PANEL;
}

static int8_t *cold_slot(const struct st_shadow *s, size_t i) {
    return s->cold + i % (2 * s->wave) * s->slot_bytes;
}

// Where the column of the i-th channel begins in the file.
static uint64_t column_offset(const struct st_shadow *s, size_t i) {
    const struct st_int8_weight *w = &s->linear_op->weight;
    return (uintptr_t)(w->columns + s->channels[i] * packed_rows(s->linear_op)) - s->file_base;
}

// The column of a hot channel, or one that is kept; NULL: it must be read.
static const int8_t *find_column(const struct st_shadow *s, uint32_t channel) {
    const struct st_int8_weight *w = &s->linear_op->weight;
    if (w->hot && w->hot[channel] >= 0)
        return w->hot_columns + (size_t)w->hot[channel] * packed_rows(s->linear_op);
    return s->kept ? st_columns_find(s->kept, channel) : NULL;
}

// Adds the column of channel i to the load before it if their blocks are adjacent; else requests
// that load and begins a new one. The columns of a wave always fit into its slots.
static struct st_load *add_to_load(struct st_shadow *s, struct st_load *load, size_t i,
                                   size_t rows) {
    uint64_t offset = column_offset(s, i);
    uint64_t begin = offset / ST_LOAD_BLOCK * ST_LOAD_BLOCK;
    size_t slot = i % (2 * s->wave), first = load ? (size_t)(load - s->loads) : slot;
    uint64_t end = st_round_up(offset + rows, ST_LOAD_BLOCK);
    bool meets = load && first / s->wave == slot / s->wave && begin <= load->offset + load->bytes &&
                 end - load->offset <= MAX_LOAD;
    if (meets) {
        load->bytes = (size_t)(end - load->offset);
    } else {
        if (load) st_loader_prefetch(s->loader, load);
        load = &s->loads[slot];
        *load = (struct st_load){.offset = begin,
                                 .bytes = (size_t)(end - begin),
                                 .to = (unsigned char *)cold_slot(s, i)};
    }
    s->load_of[slot] = (uint32_t)(load - s->loads);
    return load;
}

// Requests the cold columns of the channels up to `end`.
static void ask(struct st_shadow *s, size_t end) {
    size_t rows = packed_rows(s->linear_op);
    uint64_t before = s->counts.cold_reads;
    struct st_load *load = NULL;
    for (; s->asked < end; s->asked++) {
        if (find_column(s, s->channels[s->asked])) {
            s->counts.hot_hits++;
            continue;
        }
        s->counts.cold_reads++;
        s->counts.cold_bytes += rows;
        if (s->reader)
            st_reader_prefetch(s->reader, column_offset(s, s->asked), rows, cold_slot(s, s->asked));
        if (s->loader) load = add_to_load(s, load, s->asked, rows);
    }
    if (load) st_loader_prefetch(s->loader, load);
    if (s->reader && s->counts.cold_reads - before > FEW_READS) st_reader_start(s->reader);
}

// The address to which the loader writes the column of channel i.
static const int8_t *loaded_column(const struct st_shadow *s, size_t i) {
    const struct st_load *load = &s->loads[s->load_of[i % (2 * s->wave)]];
    return (const int8_t *)load->to + (column_offset(s, i) - load->offset);
}

static stint_status damaged(const struct st_shadow *s) {
    const struct st_package *package = s->checkpoint->package;
    const struct st_section *section = NULL;
    for (size_t i = 0; i < st_package_count(package); i++)
        if (st_package_at(package, i)->data == s->linear_op->weight.columns)
            section = st_package_at(package, i);
    return st_section_damaged(s->checkpoint->path, section ? section->name : ST_INT8_COLUMNS);
}

// Waits for the columns that an abandoned run requested, because their buffers are used again.
static void settle(struct st_shadow *s) {
    if (s->reader) (void)st_reader_wait(s->reader);
    if (s->loader && s->loaded < s->asked) st_loader_drain(s->loader);
    s->loaded = s->asked;
}

// Waits for the columns of the channels up to `end`, and checks them.
static stint_status wait_for(struct st_shadow *s, size_t end) {
    const struct st_int8_weight *w = &s->linear_op->weight;
    for (; s->loaded < end; s->loaded++) {
        uint32_t channel = s->channels[s->loaded];
        if (find_column(s, channel)) continue;
        stint_status status =
            st_loader_wait(s->loader, &s->loads[s->load_of[s->loaded % (2 * s->wave)]]);
        if (status == STINT_OK && !st_int8_column_is_whole(w, channel, loaded_column(s, s->loaded),
                                                           packed_rows(s->linear_op)))
            status = damaged(s);
        if (status == STINT_OK) continue;
        settle(s);
        return status;
    }
    return STINT_OK;
}

void st_shadow_begin(struct st_shadow *s, const struct st_linear_op *linear_op,
                     const struct st_outliers *list, size_t n_tokens) {
    s->pending = false;
    if (!s->any || !linear_op->weight.shadowed) return;
    size_t n = st_min(list->count, list->capacity);
    s->counts.runs++;
    if (n == 0) return;
    settle(s);
    s->pending = true;
    s->linear_op = linear_op;
    s->n_tokens = n_tokens;
    sort(s, list, n);
    list_channels(s, n);
    s->kept = s->columns ? st_columns_of(s->columns, &linear_op->weight) : NULL;
    s->counts.channels += s->n_channels;
    s->asked = s->loaded = 0;
    ask(s, st_min(2 * s->wave, s->n_channels));
}

// ---- Products

// One wave: channels [wave, wave_end) of the list.
struct job {
    struct st_shadow *s;
    size_t wave, wave_end;
    float *const *out; // NULL: into s->add
    const size_t *out_row;
};

// y[row] of a token and how many rows lie there side by side; NULL: padding.
static float *output(const struct job *j, size_t token, size_t row, size_t *n) {
    const struct st_linear_op *linear_op = j->s->linear_op;
    if (!j->out) return j->s->add + (size_t)j->s->add_row[token] * packed_rows(linear_op) + row;
    size_t start = 0;
    for (uint32_t i = 0; i < linear_op->n_parts; i++) {
        size_t padded = st_round_up(linear_op->rows[i], ST_INT8_PANEL);
        if (row < start + padded) {
            *n = st_min(*n, row < start + linear_op->rows[i] ? start + linear_op->rows[i] - row
                                                             : start + padded - row);
            return row < start + linear_op->rows[i]
                       ? j->out[i] + token * j->out_row[i] + (row - start)
                       : NULL;
        }
        start += padded;
    }
    return NULL;
}

static void add_token(const struct job *j, size_t token, size_t row, size_t end) {
    const struct st_shadow *s = j->s;
    uint32_t last = s->channels[j->wave_end - 1];
    while (row < end) {
        size_t n = end - row, i = j->wave;
        float *y = output(j, token, row, &n);
        for (uint32_t e = s->next[token]; y && e < s->first[token + 1]; e++) {
            const struct st_outlier *entry = &s->sorted[e];
            if (entry->channel > last) break;
            while (s->channels[i] != entry->channel) i++;
            const struct st_int8_weight *w = &s->linear_op->weight;
            s->elementwise->axpy_int8(entry->value * w->column_scales[entry->channel],
                                      s->column[i - j->wave] + row, w->scale + row, n, y);
        }
        row += n;
    }
}

static void add_block(void *context, size_t block, size_t worker) {
    (void)worker;
    const struct job *j = context;
    size_t row = block * BLOCK_ROWS, end = st_min(row + BLOCK_ROWS, packed_rows(j->s->linear_op));
    for (size_t t = 0; t < j->s->n_tokens; t++)
        if (j->s->next[t] < j->s->first[t + 1]) add_token(j, t, row, end);
}

static void add_wave(struct st_shadow *s, const struct job *j) {
    const struct st_int8_weight *w = &s->linear_op->weight;
    size_t rows = packed_rows(s->linear_op);
    for (size_t i = j->wave; i < j->wave_end; i++) {
        uint32_t channel = s->channels[i];
        const int8_t *found = find_column(s, channel);
        s->column[i - j->wave] = found       ? found
                                 : s->loader ? loaded_column(s, i)
                                 : s->reader ? cold_slot(s, i)
                                             : w->columns + channel * rows;
    }
    st_pool_run(s->pool, add_block, (void *)(uintptr_t)j, st_ceil_div(rows, BLOCK_ROWS));
    uint32_t last = s->channels[j->wave_end - 1];
    for (size_t t = 0; t < s->n_tokens; t++)
        while (s->next[t] < s->first[t + 1] && s->sorted[s->next[t]].channel <= last) s->next[t]++;
}

// Keeps the columns of a wave that were read. A run of more of them than there is room for, as of
// a prompt, would only push out what steps use.
static void keep_columns(struct st_shadow *s, const struct job *j) {
    for (size_t i = j->wave; i < j->wave_end; i++) {
        bool is_full = s->kept->n_taken == s->kept->n_room;
        if (is_full && s->n_channels > s->kept->n_room) return;
        if (find_column(s, s->channels[i])) continue;
        st_columns_keep(s->kept, s->channels[i], s->column[i - j->wave], s->seen);
    }
}

static stint_status add_all(struct st_shadow *s, float *const *out, const size_t *out_row) {
    for (size_t wave = 0; wave < s->n_channels; wave += s->wave) {
        struct job j = {s, wave, st_min(wave + s->wave, s->n_channels), out, out_row};
        if (s->reader) ST_TRY(st_reader_wait(s->reader));
        if (s->loader) ST_TRY(wait_for(s, j.wave_end));
        if (wave > 0) ask(s, st_min(j.wave_end + s->wave, s->n_channels));
        add_wave(s, &j);
        if (s->kept) keep_columns(s, &j);
    }
    return STINT_OK;
}

stint_status st_shadow_finish(struct st_shadow *s, struct st_pool *pool, float *const *out,
                              const size_t *out_row) {
    if (!s->pending) return STINT_OK;
    s->pending = false;
    s->pool = pool;
    return add_all(s, out, out_row);
}

void st_shadow_abandon(struct st_shadow *s) {
    s->pending = false;
    settle(s);
}

stint_status st_shadow_finish_before(struct st_shadow *s, struct st_pool *pool) {
    if (!s->pending) return STINT_OK;
    size_t rows = packed_rows(s->linear_op), n = 0;
    s->pool = pool;
    for (size_t t = 0; t < s->n_tokens; t++) {
        s->add_row[t] = s->next[t] < s->first[t + 1] ? (int32_t)n : -1;
        n += s->next[t] < s->first[t + 1];
    }
    memset(s->add, 0, n * rows * sizeof *s->add);
    return add_all(s, NULL, NULL);
}
