// SPDX-License-Identifier: Apache-2.0
// Rows of the tables that tokens index (model/embedding.h), read when a token needs them. Each
// strip of an entry has a hash. Those of a package are taken when a session opens: the whole table
// goes by once, as only the hash of the whole is in the file. Tensors of a checkpoint have none, so
// there it is what an entry was when it was first read.
#include "session/weights/bounded.h"

#include "base/size.h"
#include "device/weight_set.h"
#include "neuron/section.h"
#include "session/session.h"

#include <xxhash.h>

enum { KEPT_STRIPS = 64 }; // of a table that stay in memory

// ---- Memory

static size_t room(const struct st_embedding *e) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < e->n_strips; i++)
        bytes += st_round_up(e->strips[i].bytes + ST_LOAD_BLOCK, ST_LOAD_BLOCK);
    return bytes;
}

static size_t n_entries(const struct st_embedding *e) {
    return e->n_strips ? st_ceil_div(e->n_rows, e->entry_rows) : 0;
}

void st_token_rows_lay_out(const struct stint_model *m, struct st_bounded *r, struct st_arena *a) {
    for (int i = 0; i < ST_N_TABLES; i++) {
        const struct st_embedding e = st_embedding_of(m, (enum st_table)i);
        r->rows[i] = (struct st_cache){.entry_bytes = room(&e),
                                       .n_entries = e.n_strips ? KEPT_STRIPS / e.n_strips : 0,
                                       .n_ids = e.n_rows,
                                       .max_loads = e.n_strips};
        st_cache_lay_out(&r->rows[i], a);
        r->row_checks[i] = ST_TAKE(a, uint64_t, n_entries(&e) * e.n_strips);
    }
}

// ---- Hashes

// The number 0 stands for what is not known.
static uint64_t known(uint64_t hash) {
    return hash ? hash : 1;
}

// The section that some bytes of a package lie in.
static const struct st_section *section_at(const struct st_package *package, const void *data) {
    uintptr_t at = (uintptr_t)data;
    for (size_t i = 0; i < st_package_count(package); i++) {
        const struct st_section *s = st_package_at(package, i);
        if (at >= (uintptr_t)s->data && at - (uintptr_t)s->data < s->bytes) return s;
    }
    return NULL;
}

static stint_status damaged(const struct stint_model *m, const struct st_embedding *e,
                            uint32_t strip) {
    const struct st_checkpoint *c = &m->checkpoint;
    const unsigned char *data = e->strips[strip].data;
    uint32_t file = 0;
    uint64_t offset;
    if (c->package) return st_section_damaged(c->path, section_at(c->package, data)->name);
    st_checkpoint_find(c, data, e->strips[strip].bytes, &file, &offset);
    return st_fail(STINT_E_FORMAT, "%s: tensor '%s' was changed while in use: open the model again",
                   c->files[file].name, st_file_tensor_at(m, data));
}

// A whole strip and its hash: that of a section, or of a plane of one.
static struct st_section_part whole(const struct stint_model *m, const struct st_embedding *e,
                                    uint32_t strip) {
    const struct st_section *s = section_at(m->checkpoint.package, e->strips[strip].data);
    const struct st_weight_set *set = e->tensor ? NULL : m->int8.head.weight.set;
    struct st_section_part part = {.bytes = n_entries(e) * e->strips[strip].bytes};
    if (set && strip + 1 < e->n_strips && set->codes->checks) {
        const int32_t *check = set->codes->checks + 2 * (size_t)strip;
        part.hash = (uint64_t)(uint32_t)check[1] << 32 | (uint32_t)check[0];
    } else {
        part.hash = st_package_section_hash(m->checkpoint.package, s);
    }
    return part;
}

struct checks {
    uint64_t *first;
    size_t step; // from one entry to the next
};

static void note_entry(void *context, size_t entry, uint64_t hash) {
    const struct checks *c = context;
    c->first[entry * c->step] = known(hash);
}

static stint_status pass_strip(const struct stint_model *m, struct st_bounded *r, int table,
                               const struct st_embedding *e, uint32_t strip) {
    struct st_section_part part = whole(m, e, strip);
    struct checks checks = {r->row_checks[table] + strip, e->n_strips};
    const struct st_section_pieces entries = {part.bytes, e->strips[strip].bytes, note_entry,
                                              &checks};
    uint64_t offset = (uint64_t)(e->strips[strip].data - m->checkpoint.maps->data);
    bool same;
    ST_TRY(st_section_pass_pieces(r->loader, offset, &part, &entries, &same));
    return same ? STINT_OK : damaged(m, e, strip);
}

static stint_status pass_table(const struct stint_model *m, struct st_bounded *r, int table) {
    const struct st_embedding e = st_embedding_of(m, (enum st_table)table);
    for (uint32_t i = 0; i < e.n_strips; i++) ST_TRY(pass_strip(m, r, table, &e, i));
    return STINT_OK;
}

stint_status st_token_rows_open(const struct stint_model *m, struct st_bounded *r) {
    for (int i = 0; i < ST_N_TABLES; i++) st_cache_open(&r->rows[i], r->loader);
    if (!m->checkpoint.package) return STINT_OK;
    for (int i = 0; i < ST_N_TABLES; i++) ST_TRY(pass_table(m, r, i));
    return STINT_OK;
}

// ---- Reading

// The strips of an entry: where they lie in the files, and in the cache's entry.
struct places {
    struct st_extent extents[ST_EMBEDDING_STRIPS];
    size_t at[ST_EMBEDDING_STRIPS];
};

static struct places places_of(const struct stint_session *s, const struct st_embedding *e,
                               size_t id) {
    struct places p;
    size_t at = 0;
    for (uint32_t i = 0; i < e->n_strips; i++) {
        struct st_extent x = {.bytes = e->strips[i].bytes, .at = at};
        const unsigned char *row = st_embedding_at(e, i, id / e->entry_rows);
        st_checkpoint_find(&s->model->checkpoint, row, x.bytes, &x.file, &x.offset);
        size_t skip = (size_t)(x.offset % ST_LOAD_BLOCK);
        x.offset -= skip;
        x.bytes += skip;
        p.at[i] = at + skip;
        p.extents[i] = x;
        at = st_round_up(at + x.bytes, ST_LOAD_BLOCK);
    }
    return p;
}

// Finds or requests the entry of a token's row.
static int32_t take(const struct stint_session *s, const struct st_embedding *e,
                    struct st_cache *cache, size_t id, struct places *places) {
    *places = places_of(s, e, id);
    return st_cache_take_all(cache, (uint32_t)id, places->extents, e->n_strips);
}

// Waits for an entry, and checks it if it was read for this.
static stint_status await(const struct stint_session *s, enum st_table table,
                          const struct st_embedding *e, size_t id, int32_t entry,
                          const struct places *places,
                          const unsigned char *strips[ST_EMBEDDING_STRIPS]) {
    struct st_cache *cache = &s->bounded->rows[table];
    uint64_t *checks = s->bounded->row_checks[table] + id / e->entry_rows * e->n_strips;
    bool fresh;
    ST_TRY(st_cache_wait(cache, entry, &fresh));
    for (uint32_t i = 0; i < e->n_strips; i++) {
        strips[i] = st_cache_data(cache, entry) + places->at[i];
        if (!fresh) continue;
        uint64_t now = known(XXH3_64bits(strips[i], e->strips[i].bytes));
        if (checks[i] == 0) checks[i] = now;
        if (checks[i] == now) continue;
        st_cache_discard(cache, entry);
        return damaged(s->model, e, i);
    }
    return STINT_OK;
}

stint_status st_token_rows(const struct st_run *run, enum st_table table, const int32_t *ids,
                           float *rows) {
    const struct stint_session *s = run->s;
    const struct st_embedding e = st_embedding_of(s->model, table);
    struct st_cache *cache = &s->bounded->rows[table];
    struct places places;
    for (size_t t = 0, asked = 0; t < run->batch->n; t++) {
        const unsigned char *strips[ST_EMBEDDING_STRIPS];
        for (; asked < run->batch->n; asked++)
            if (take(s, &e, cache, st_embedding_id(&e, ids[asked]), &places) == ST_CACHE_NONE)
                break;
        bool again = false; // a row that occurs again stays
        size_t id = st_embedding_id(&e, ids[t]);
        int32_t entry = take(s, &e, cache, id, &places);
        ST_TRY(await(s, table, &e, id, entry, &places, strips));
        st_embedding_row(s->model, &e, s->kernels.dequantize, strips, id, rows + t * e.width);
        for (size_t i = t + 1; i < asked && !again; i++) again = st_embedding_id(&e, ids[i]) == id;
        if (!again) st_cache_give(cache, entry, ST_EVICT_LAST);
    }
    return STINT_OK;
}
