// SPDX-License-Identifier: Apache-2.0
// Attention of a prompt. For each key-value head, blocks of queries (of all heads that share it)
// lie in vector lanes and meet the keys in tiles, with an online softmax (FlashAttention, Dao et
// al. 2022), so that no more than a tile of scores exists. Several blocks meet a tile together,
// because a tile of the cache must be converted to floats first. Key tiles begin at multiples of
// ST_KEY_TILE, and what a tile adds to a lane that sees none of its keys is nothing, so a token's
// result depends neither on how its prompt was cut into batches nor on the blocks beside its own.
// A package's prompts compute both products with pairs of BF16 where the CPU gains by it; softmax
// and sums are floats everywhere.
#include "session/pass.h"

#include "base/size.h"

#include <math.h>
#include <string.h>

enum { ITEMS_PER_THREAD = 4 }; // so that every thread gets its share

// Rows of a batch that follow each other in a text.
struct job {
    const struct st_run *run;
    struct st_heads heads;
    size_t row;            // the first of the batch's rows
    struct st_place place; // of it
    size_t group;          // query heads per key-value head
    size_t n_lanes;        // queries per key-value head: lane l is token l / group, head l % group
    size_t lane_block;     // lanes of a block
    size_t item_lanes;     // lanes of an item, whole blocks
    size_t n_items;        // per key-value head
};

// Lanes [lane0, lane0 + width) of one key-value head, rounded up to whole vectors.
struct block {
    size_t lane0, width, padded;
    int32_t low[ST_TILE_MAX_WIDTH], high[ST_TILE_MAX_WIDTH]; // a lane sees keys [low, high)
    float maximum[ST_TILE_MAX_WIDTH], sum[ST_TILE_MAX_WIDTH], factor[ST_TILE_MAX_WIDTH];
    float *queries;      // packed
    float *bias_factors; // the same (kv/key_bias.h)
    uint32_t *query_pairs;
    float *out; // [head_dim, padded]
};

struct item {
    const struct job *job;
    struct st_worker *worker;
    const float *rotations; // of biases that the cache lacks, by position; or NULL
    size_t head, n_blocks;
    struct block blocks[ST_LANE_BLOCKS];
};

// Its row of base [tokens, n_heads, n].
static float *lane_row(const struct item *item, const struct block *block, float *base, size_t n,
                       size_t l) {
    const struct job *job = item->job;
    size_t lane = block->lane0 + l, t = job->row + lane / job->group;
    size_t h = item->head * job->group + lane % job->group;
    return base + (t * job->run->s->model->config.n_heads + h) * n;
}

// Rows of base as above, packed; returns their number, rounded up to whole vectors.
static size_t pack_lanes(const struct item *item, const struct block *block, float *base, size_t n,
                         float *to) {
    float *rows = item->worker->rows;
    for (size_t l = 0; l < block->width; l++)
        memcpy(rows + l * n, lane_row(item, block, base, n, l), n * sizeof(float));
    return st_tile_pack(item->job->run->s->kernels.tile, rows, n, block->width, n, to);
}

// A sink is what a lane has seen before its first key: a score without a value.
static void begin_with_sinks(const struct item *item, struct block *block) {
    const struct job *job = item->job;
    const float *sinks = job->run->s->model->weights.layers[job->run->layer].sinks;
    for (size_t l = 0; l < block->width && sinks; l++) {
        block->maximum[l] = sinks[item->head * job->group + (block->lane0 + l) % job->group];
        block->sum[l] = 1.0f;
    }
}

static void load_block(const struct item *item, struct block *block) {
    const struct st_run *r = item->job->run;
    const struct stint_session *s = r->s;
    size_t hd = item->job->heads.dim, out_rows = st_round_up(hd, ST_PAIRS_MAX_M);
    for (size_t l = 0; l < block->width; l++) {
        size_t position = item->job->place.position + (block->lane0 + l) / item->job->group;
        block->low[l] = (int32_t)st_session_first_key(s, r->layer, position);
        block->high[l] = (int32_t)position + 1;
    }
    block->padded = pack_lanes(item, block, r->buffers->q, hd, block->queries);
    if (item->rotations)
        pack_lanes(item, block, r->buffers->bias_factors, item->job->heads.rope_dims,
                   block->bias_factors);
    if (s->kernels.pairs)
        s->kernels.pairs->zip(block->queries, hd, block->padded, block->query_pairs);
    for (size_t l = 0; l < block->padded; l++) {
        if (l >= block->width) block->low[l] = block->high[l] = 0;
        block->maximum[l] = -INFINITY;
        block->sum[l] = 0.0f;
    }
    begin_with_sinks(item, block);
    memset(block->out, 0, out_rows * block->padded * sizeof(float));
}

// A tile of the cache, in floats and perhaps in pairs.
struct tile {
    size_t key0, n_keys;
    const struct st_pairs *pairs; // NULL: floats
    const float *keys, *values;
    const uint32_t *key_pairs, *value_pairs;
};

// The first tile is computed in floats: there are the positions that attract the most attention
// everywhere, with the largest keys (Xiao et al. 2023, attention sinks), and a prompt of one token
// stays what decoding makes of it. A rule of positions alone, so that chunks do not matter.
static const struct st_pairs *pairs_of(const struct stint_session *s, size_t key0) {
    return key0 ? s->kernels.pairs : NULL;
}

// Rows [key0, key0 + n) of the cache as floats, with room for a whole tile, in `to` unless they lie
// there as they are. What follows them in the cache may be written at this moment, for a later
// chunk, so part of a tile is copied.
static const float *cache_tile(const struct item *item, unsigned char *cache, size_t key0,
                               size_t n_keys, float *to) {
    const struct st_run *r = item->job->run;
    const struct stint_session *s = r->s;
    const unsigned char *rows =
        st_kv_row(&s->kv, cache, item->job->place.sequence, r->layer, item->head, key0);
    if (s->kv.type == ST_KV_F32 && n_keys == ST_KEY_TILE) return (const float *)(const void *)rows;
    st_session_kv_kernel(s)->load(rows, n_keys, item->job->heads.dim, to);
    return to;
}

// c[rows, width] += a . b over k, rows rounded up to whole tiles.
static void tile_rows(const struct st_tile *tile, size_t rows, size_t k, const float *a,
                      size_t a_row, size_t a_col, const float *b, size_t width, float *c) {
    st_tile_fn *fn = tile->fn[width / tile->lanes - 1];
    for (size_t r = 0; r < rows; r += tile->m)
        fn(k, a + r * a_row, a_row, a_col, b, c + r * width, width);
}

static void pair_rows(const struct st_pairs *pairs, size_t rows, size_t k, const uint32_t *a,
                      size_t a_row, size_t a_col, const uint32_t *b, size_t width, float *c) {
    st_pair_tile_fn *fn = pairs->fn[width / pairs->lanes - 1];
    for (size_t r = 0; r < rows; r += pairs->m)
        fn(k, a + r * a_row, a_row, a_col, b, c + r * width, width);
}

static struct tile load_tile(const struct item *item, size_t key0, size_t n_keys) {
    const struct stint_session *s = item->job->run->s;
    const struct st_pairs *pairs = pairs_of(s, key0);
    struct st_worker *w = item->worker;
    size_t hd = item->job->heads.dim;
    struct tile tile = {.key0 = key0, .n_keys = n_keys, .pairs = pairs};
    tile.keys = cache_tile(item, s->kv.keys, key0, n_keys, w->keys);
    tile.values = cache_tile(item, s->kv.values, key0, n_keys, w->values);
    if (pairs) {
        pairs->join(tile.keys, n_keys * hd / 2, w->key_pairs);
        pairs->zip(tile.values, n_keys, hd, w->value_rows);
        st_tile_transpose(s->kernels.tile, (const float *)(const void *)w->value_rows, hd,
                          st_ceil_div(n_keys, 2), hd, (float *)(void *)w->value_pairs,
                          ST_KEY_TILE / 2);
        tile.key_pairs = w->key_pairs;
        tile.value_pairs = w->value_pairs;
    }
    return tile;
}

// scores [n_keys, padded] = keys . queries
static void score(const struct item *item, const struct block *b, const struct tile *tile,
                  size_t n_keys) {
    const struct stint_session *s = item->job->run->s;
    size_t hd = item->job->heads.dim, width = b->padded;
    float *scores = item->worker->scores;
    memset(scores, 0, st_round_up(n_keys, ST_PAIRS_MAX_M) * width * sizeof(float));
    if (tile->pairs)
        pair_rows(tile->pairs, n_keys, hd / 2, tile->key_pairs, hd / 2, 1, b->query_pairs, width,
                  scores);
    else
        tile_rows(s->kernels.tile, n_keys, hd, tile->keys, hd, 1, b->queries, width, scores);
    size_t dims = item->job->heads.rope_dims;
    if (item->rotations)
        tile_rows(s->kernels.tile, n_keys, dims, item->rotations + tile->key0 * dims, dims, 1,
                  b->bias_factors, width, scores);
}

// out += weights . values
static void weigh(const struct item *item, struct block *b, const struct tile *tile,
                  size_t n_keys) {
    const struct stint_session *s = item->job->run->s;
    const struct st_pairs *pairs = tile->pairs;
    size_t hd = item->job->heads.dim, width = b->padded;
    float *weights = item->worker->scores;
    if (pairs) {
        uint32_t *weight_pairs = item->worker->weight_pairs;
        pairs->zip(weights, n_keys, width, weight_pairs);
        pair_rows(pairs, hd, st_ceil_div(n_keys, 2), tile->value_pairs, ST_KEY_TILE / 2, 1,
                  weight_pairs, width, b->out);
    } else {
        tile_rows(s->kernels.tile, hd, n_keys, tile->values, 1, hd, weights, width, b->out);
    }
}

static void attend_tile(const struct item *item, struct block *b, const struct tile *tile,
                        size_t n_keys) {
    const struct stint_session *s = item->job->run->s;
    const struct st_config *c = &s->model->config;
    const struct st_attention *attention = s->kernels.attention;
    score(item, b, tile, n_keys);
    attention->softmax_tile(item->worker->scores, n_keys, b->padded, (int32_t)tile->key0, b->low,
                            b->high, c->attn_scale, c->attn_softcap, b->maximum, b->sum, b->factor);
    attention->rescale(b->out, item->job->heads.dim, b->padded, b->factor);
    weigh(item, b, tile, n_keys);
}

static void store_block(const struct item *item, const struct block *block) {
    const struct st_run *r = item->job->run;
    size_t hd = item->job->heads.dim;
    for (size_t l = 0; l < block->width; l++) {
        float *row = lane_row(item, block, r->buffers->attended, hd, l),
              scale = 1.0f / block->sum[l];
        for (size_t d = 0; d < hd; d++) row[d] = block->out[d * block->padded + l] * scale;
    }
}

// Positions ascend from block to block, so the first one begins and the last one ends.
static void attend_item(struct item *item) {
    const struct block *last = &item->blocks[item->n_blocks - 1];
    size_t end = (size_t)last->high[last->width - 1];
    for (size_t key0 = (size_t)item->blocks[0].low[0] / ST_KEY_TILE * ST_KEY_TILE; key0 < end;
         key0 += ST_KEY_TILE) {
        struct tile tile = load_tile(item, key0, st_min(ST_KEY_TILE, end - key0));
        for (size_t i = 0; i < item->n_blocks; i++) {
            struct block *b = &item->blocks[i];
            size_t first = (size_t)b->low[0], block_end = (size_t)b->high[b->width - 1];
            if (key0 >= block_end || key0 + ST_KEY_TILE <= first) continue;
            attend_tile(item, b, &tile, st_min(tile.n_keys, block_end - key0));
        }
    }
}

static void prompt_item(void *context, size_t i, size_t worker) {
    const struct job *job = context;
    size_t n_kv = job->heads.n_kv, dim = job->heads.dim, rope_dims = job->heads.rope_dims;
    struct st_worker *w = &job->run->group->workers[worker];
    // The last lanes see the most keys: begin with them, so that threads end together.
    size_t lane0 = (job->n_items - 1 - i / n_kv) * job->item_lanes;
    size_t lane1 = st_min(lane0 + job->item_lanes, job->n_lanes);
    struct item item = {.job = job, .worker = w, .head = i % n_kv};
    item.rotations =
        st_key_bias_rotations(&job->run->s->kv.bias, job->run->s->model, job->run->layer);
    for (; lane0 < lane1; lane0 += job->lane_block) {
        struct block *b = &item.blocks[item.n_blocks];
        b->lane0 = lane0;
        b->width = st_min(job->lane_block, lane1 - lane0);
        b->queries = w->queries + item.n_blocks * ST_TILE_MAX_WIDTH * dim;
        if (item.rotations)
            b->bias_factors = w->bias_factors + item.n_blocks * ST_TILE_MAX_WIDTH * rope_dims;
        if (w->query_pairs)
            b->query_pairs = w->query_pairs + item.n_blocks * ST_TILE_MAX_WIDTH * dim / 2;
        b->out = w->out + item.n_blocks * ST_TILE_MAX_WIDTH * (dim + ST_PAIRS_MAX_M);
        load_block(&item, b);
        item.n_blocks++;
    }
    if (job->run->s->kernels.pairs) job->run->s->kernels.pairs->begin();
    attend_item(&item);
    if (job->run->s->kernels.pairs) job->run->s->kernels.pairs->end();
    for (size_t b = 0; b < item.n_blocks; b++) store_block(&item, &item.blocks[b]);
}

// Rows [row, row + n) of the batch, which are of one text.
static void attend_text(const struct st_run *r, size_t row, size_t n) {
    const struct stint_session *s = r->s;
    const struct st_config *c = &s->model->config;
    struct job job = {.run = r,
                      .heads = st_config_heads(c, r->layer),
                      .row = row,
                      .place = st_batch_place(r->batch, row)};
    job.group = c->n_heads / job.heads.n_kv;
    job.n_lanes = n * job.group;
    job.lane_block = s->kernels.tile->vectors * s->kernels.tile->lanes;
    size_t n_blocks = st_ceil_div(job.n_lanes, job.lane_block) * job.heads.n_kv;
    size_t share = n_blocks / (ITEMS_PER_THREAD * st_pool_threads(r->group->pool));
    job.item_lanes = job.lane_block * st_max(1, st_min(ST_LANE_BLOCKS, share));
    job.n_items = st_ceil_div(job.n_lanes, job.item_lanes);
    st_pool_run(r->group->pool, prompt_item, &job, job.n_items * job.heads.n_kv);
}

void st_kv_attend_prompt(const struct st_run *r) {
    for (size_t row = 0, n; row < r->batch->n; row += n) {
        n = st_batch_same_text(r->batch, row);
        attend_text(r, row, n);
    }
}
