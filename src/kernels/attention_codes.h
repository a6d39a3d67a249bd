// SPDX-License-Identifier: Apache-2.0
// Attention of a step over codes of 8 bits (kv_codecs.h), in whole numbers: queries, and the
// weights of values, are rounded to 16 bits, and products of these with codes are exact within a
// block of 32 codes or ST_KV_TILE keys: 127 * 32767 * 128 fits in 32 bits. For heads whose length
// is a multiple of 16, up to CODES_MAX_DIM.

enum {
    CODES_MAX_DIM = 256,
    CODES_MAX_BLOCKS = CODES_MAX_DIM / ST_KV_BLOCK,
    CODES_MAX_WORD = 32767,
    CODES_SPAN = 4 * VF_LANES, // values that are interleaved together
};

INLINE bool has_codes(enum st_kv_type type, size_t head_dim) {
    return type == ST_KV_Q8 && head_dim % 16 == 0 && head_dim <= CODES_MAX_DIM;
}

// Of VF_LANES rows, the scales of block b: a row ends with them.
INLINE vf block_scales(const vi tail[4], size_t n_blocks, size_t b) {
    size_t at = 16 - 2 * (n_blocks - b);
    return at % 4 ? vi_high_bf16(tail[at / 4]) : vi_low_bf16(tail[at / 4]);
}

// Of each four numbers, the order of those whose bytes vi_even_bytes() and vi_odd_bytes() widen.
struct words {
    int16_t of[CODES_MAX_DIM];
    float unit; // of a word
};

static struct words words_of(const float *x, size_t n) {
    struct words w;
    float max = vi_max_magnitude(x, n);
    const vf factor = vf_set1(st_quantize_factor(max, CODES_MAX_WORD));
    w.unit = max / CODES_MAX_WORD;
    for (size_t d = 0; d < n; d += VF_LANES)
        vi_store_words(w.of + d, vf_mul(vf_load(x + d), factor));
    return w;
}

// Scores of the VF_LANES keys at `keys`, one in each lane; the first `real` are stored from j on.
INLINE void score_codes(const struct decoding *c, const struct words *words, const struct part *p,
                        const char *keys, size_t j, size_t real) {
    const size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    const size_t n_blocks = st_ceil_div(c->head_dim, ST_KV_BLOCK);
    const size_t share = VF_LANES * row_bytes / (c->head_dim / 16);
    vf sum[ST_KV_QUERIES];
    vi tail[4];
    UNROLLED for (size_t i = 0; i < c->n_queries; i++) sum[i] = vf_zero();
    vi_columns(keys + row_bytes - 16, row_bytes, tail);
    for (size_t b = 0; b < n_blocks; b++) {
        vi dot[ST_KV_QUERIES];
        UNROLLED for (size_t i = 0; i < c->n_queries; i++) dot[i] = vi_zero();
        size_t end = st_min((b + 1) * ST_KV_BLOCK, c->head_dim);
        for (size_t d = b * ST_KV_BLOCK; d < end; d += 16) {
            vi column[4];
            if (real == VF_LANES) prefetch_part(p, keys + d / 16 * share, share);
            vi_columns(keys + d, row_bytes, column);
            UNROLLED for (size_t g = 0; g < 4; g++) {
                vi even = vi_even_bytes(column[g]), odd = vi_odd_bytes(column[g]);
                UNROLLED for (size_t i = 0; i < c->n_queries; i++) {
                    const int16_t *q = words[i].of + d + 4 * g;
                    dot[i] = vi_dot(vi_dot(dot[i], even, vi_pair(q)), odd, vi_pair(q + 2));
                }
            }
        }
        vf scale = block_scales(tail, n_blocks, b);
        UNROLLED for (size_t i = 0; i < c->n_queries; i++) sum[i] =
            vf_fma(vi_floats(dot[i]), scale, sum[i]);
    }
    UNROLLED for (size_t i = 0; i < c->n_queries; i++) {
        float *to = c->scores + i * c->n_keys + j;
        vf unit = vf_set1(words[i].unit);
        if (real == VF_LANES)
            vf_store(to, c->begun ? vf_fma(sum[i], unit, vf_load(to)) : vf_mul(sum[i], unit));
        else
            vf_store_n(to,
                       c->begun ? vf_fma(sum[i], unit, vf_load_n(to, real)) : vf_mul(sum[i], unit),
                       real);
    }
}

// The last n < VF_LANES rows with rows of zeros behind them.
struct last_rows {
    char at[VF_LANES * (CODES_MAX_DIM + 2 * CODES_MAX_BLOCKS)];
};
INLINE void copy_last(const char *rows, size_t n, size_t row_bytes, struct last_rows *to) {
    memcpy(to->at, rows, n * row_bytes);
    memset(to->at + n * row_bytes, 0, (VF_LANES - n) * row_bytes);
}

INLINE void score_all_codes(const struct decoding *c) {
    const size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    struct words words[ST_KV_QUERIES];
    struct last_rows last;
    struct part p;
    for (size_t i = 0; i < c->n_queries; i++)
        words[i] = words_of(c->q + i * c->head_dim, c->head_dim);
    for (size_t j = 0; j < c->n_keys; j += p.n) {
        p = part_at(c, false, j);
        const char *keys = p.rows;
        size_t left = p.n;
        for (; left >= VF_LANES; left -= VF_LANES, keys += VF_LANES * row_bytes)
            score_codes(c, words, &p, keys, j + p.n - left, VF_LANES);
        if (left == 0) continue;
        copy_last(keys, left, row_bytes, &last);
        score_codes(c, words, &p, last.at, j + p.n - left, left);
    }
}

// ---- Values

// What weighs the values of a tile: scores times the scales of a block, in words in the order of
// struct words.
struct weights {
    int16_t of[ST_KV_QUERIES][CODES_MAX_BLOCKS][ST_KV_TILE];
    float unit[ST_KV_QUERIES][CODES_MAX_BLOCKS];
};

// Of n keys, a multiple of VF_LANES, of which there are `real`.
INLINE void weigh_scores(const struct decoding *c, const char *rows, size_t j, size_t n,
                         size_t real, struct weights *to) {
    const size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    const size_t n_blocks = st_ceil_div(c->head_dim, ST_KV_BLOCK);
    float scale[CODES_MAX_BLOCKS][ST_KV_TILE], product[ST_KV_TILE];
    for (size_t k = 0; k < n; k += VF_LANES) {
        vi tail[4];
        vi_columns(rows + (k + 1) * row_bytes - 16, row_bytes, tail);
        for (size_t b = 0; b < n_blocks; b++)
            vf_store(scale[b] + k, block_scales(tail, n_blocks, b));
    }
    UNROLLED for (size_t i = 0; i < c->n_queries; i++) for (size_t b = 0; b < n_blocks; b++) {
        const float *score = c->scores + i * c->n_keys + j;
        for (size_t k = 0; k < n; k += VF_LANES) {
            vf x = real < n ? vf_load_n(score + k, real) : vf_load(score + k);
            vf_store(product + k, vf_mul(x, vf_load(scale[b] + k)));
        }
        float max = vi_max_magnitude(product, n);
        const vf factor = vf_set1(st_quantize_factor(max, CODES_MAX_WORD));
        to->unit[i][b] = max / CODES_MAX_WORD;
        for (size_t k = 0; k < n; k += VF_LANES)
            vi_store_words(to->of[i][b] + k, vf_mul(vf_load(product + k), factor));
    }
}

// total[i, d from ...] += n rows times their weights: `some` of the vectors of a span of values,
// from vector `first` on.
INLINE void weigh_span(const struct decoding *c, const struct weights *weights,
                       const struct part *p, const char *rows, size_t n, size_t d, size_t first,
                       size_t some, bool begun, float (*total)[CODES_MAX_DIM]) {
    const size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    const size_t bytes = st_min(c->head_dim - d, CODES_SPAN);
    vi sum[ACCUMULATORS];
    UNROLLED for (size_t i = 0; i < some * c->n_queries; i++) sum[i] = vi_zero();
    for (size_t j = 0; j < n; j += 4) {
        const char *row = rows + j * row_bytes;
        vi v[4], code[4];
        if (p && d == 0 && first == 0) prefetch_part(p, row, 4 * row_bytes);
        UNROLLED for (size_t i = 0; i < 4; i++) v[i] = vi_bytes(row + i * row_bytes + d, bytes);
        vi_interleave(v, code);
        UNROLLED for (size_t s = 0; s < some; s++) {
            vi even = vi_even_bytes(code[first + s]), odd = vi_odd_bytes(code[first + s]);
            size_t block = (d + vi_byte_at(first + s, 0)) / ST_KV_BLOCK;
            UNROLLED for (size_t i = 0; i < c->n_queries; i++) {
                const int16_t *w = weights->of[i][block] + j;
                vi *to = &sum[s * c->n_queries + i];
                *to = vi_dot(vi_dot(*to, even, vi_pair(w)), odd, vi_pair(w + 2));
            }
        }
    }
    UNROLLED for (size_t s = 0; s < some; s++) {
        size_t block = (d + vi_byte_at(first + s, 0)) / ST_KV_BLOCK;
        UNROLLED for (size_t i = 0; i < c->n_queries; i++) {
            float *to = total[i] + d + (first + s) * VF_LANES;
            vf v = vi_floats(sum[s * c->n_queries + i]), unit = vf_set1(weights->unit[i][block]);
            vf_store(to, begun ? vf_fma(v, unit, vf_load(to)) : vf_mul(v, unit));
        }
    }
}

// Of n keys from j on, at most ST_KV_TILE, which lie one after another.
INLINE void weigh_tile(const struct decoding *c, const struct part *p, const char *rows, size_t j,
                       size_t n, float (*total)[CODES_MAX_DIM]) {
    const size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    const size_t some = 4 * c->n_queries <= ACCUMULATORS ? 4 : 2;
    size_t padded = st_round_up(n, VF_LANES);
    struct weights weights;
    struct last_rows last;
    if (n < VF_LANES) {
        copy_last(rows, n, row_bytes, &last);
        rows = last.at;
        p = NULL;
    }
    weigh_scores(c, rows, j, padded, n, &weights);
    for (size_t d = 0; d < c->head_dim; d += CODES_SPAN)
        for (size_t first = 0; first < 4; first += some)
            weigh_span(c, &weights, p, rows, padded, d, first, some, j > 0, total);
}

// Tiles begin at multiples of ST_KV_TILE rows, wherever stretches do. Of the last one whole vectors
// of keys come first.
INLINE void weigh_codes(const struct decoding *c, float *out) {
    const size_t row_bytes = st_kv_row_bytes(c->type, c->head_dim);
    float total[ST_KV_QUERIES][CODES_MAX_DIM];
    struct part p;
    for (size_t j = 0; j < c->n_keys; j += p.n) {
        p = part_at(c, true, j);
        for (size_t k = 0, n; k < p.n; k += n) {
            n = st_min(p.n - k, ST_KV_TILE - (c->rows->first + j + k) % ST_KV_TILE);
            if (n > VF_LANES) n = n / VF_LANES * VF_LANES;
            weigh_tile(c, &p, p.rows + k * row_bytes, j + k, n, total);
        }
    }
    for (size_t i = 0; i < c->n_queries; i++)
        for (size_t v = 0; v < st_ceil_div(c->head_dim, CODES_SPAN) * 4; v++)
            for (size_t e = 0; e < VF_LANES; e += 4) {
                size_t d = v / 4 * CODES_SPAN + vi_byte_at(v % 4, e);
                if (d < c->head_dim)
                    memcpy(out + i * c->head_dim + d, total[i] + v * VF_LANES + e, 4 * sizeof *out);
            }
}

INLINE void decode_codes(const struct decoding *c, float scale, float softcap,
                         struct st_attended *attended, float *out) {
    score_all_codes(c);
    for (size_t i = 0; i < c->n_queries; i++)
        attended[i] = softmax(c->scores + i * c->n_keys, c->n_keys, scale, softcap);
    weigh_codes(c, out);
}
