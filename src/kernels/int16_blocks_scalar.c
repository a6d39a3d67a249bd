// SPDX-License-Identifier: Apache-2.0
// The definition, part by part.
#include "kernels/block_parts.h"
#include "kernels/int16_codes.h"
#include "kernels/int16_rows.h"
#include "kernels/quantize_float.h"

#include <math.h>
#include <stdbool.h>

typedef void part_fn(const unsigned char *b, int part, struct st_block_part *p);

struct codes {
    part_fn *part;
    int least, span;
};

// Of half h of a part.
static float middle_of(const struct codes *c, const struct st_block_part *p, size_t h) {
    return ((float)c->least + (float)c->span / 2.0f) * p->scale[h] - p->minimum[h];
}

static float limit_of(const struct codes *c, const unsigned char *b, size_t n_parts) {
    float end[ST_INT16_BLOCK / 16] = {0};
    for (size_t i = 0; i < 2 * n_parts; i++) {
        struct st_block_part p;
        c->part(b, (int)(i / 2), &p);
        end[i] = fabsf(middle_of(c, &p, i % 2)) + (float)c->span / 2.0f * fabsf(p.scale[i % 2]);
    }
    return st_max_magnitude(end, 2 * n_parts);
}

static void put(const struct codes *c, const struct st_block_part *p, float by, int16_t *out) {
    int shift = st_int16_shift(c->span);
    for (size_t i = 0; i < 32; i++) {
        int q = 2 * (p->code[i] - c->least) - c->span;
        int step = st_round_to_int(p->scale[i / 16] * (by / 2.0f * (float)(1 << (15 - shift))));
        int from = st_round_to_int(middle_of(c, p, i / 16) * by);
        int product = (q * (1 << shift) * step + (1 << 14)) >> 15;
        out[i] = (int16_t)((product + from + 4) >> 3);
    }
}

static float convert(const struct codes *c, const unsigned char *b, size_t n, int16_t *out) {
    float limit = limit_of(c, b, n / 32);
    float by = st_quantize_factor(limit, 8 * ST_INT16_MAX_WEIGHT);
    if (!(by > 0.0f)) memset(out, 0, n * sizeof *out);
    for (size_t part = 0; part < n / 32 && by > 0.0f; part++) {
        struct st_block_part p;
        c->part(b, (int)part, &p);
        put(c, &p, by, out + 32 * part);
    }
    return limit / ST_INT16_MAX_WEIGHT;
}

#define CONVERT(id, type, by_16, least, span)                                                      \
    void st_int16_##type##_scalar(const void *src, size_t row_bytes, size_t n_rows, size_t first,  \
                                  size_t n, int16_t *out, size_t out_row, float *scales) {         \
        const struct codes codes = {st_part_##type, least, span};                                  \
        const unsigned char *b =                                                                   \
            (const unsigned char *)src + first / ST_##id##_ITEMS * ST_##id##_BYTES;                \
        for (size_t r = 0; r < n_rows; r++)                                                        \
            scales[r] = convert(&codes, b + r * row_bytes, n, out + r * out_row);                  \
    }
ST_INT16_CODES(CONVERT)
