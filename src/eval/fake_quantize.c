// SPDX-License-Identifier: Apache-2.0
#include "eval/fake_quantize.h"

#include "base/size.h"

#include <math.h>
#include <stdlib.h>

void st_fake_int8(const float *x, size_t n, float scale, float *y) {
    for (size_t i = 0; i < n; i++) {
        float q = rintf(x[i] / scale);
        q = q < -127.0f ? -127.0f : q;
        y[i] = scale * (q > 127.0f ? 127.0f : q);
    }
}

static float largest(const float *x, size_t n) {
    float max = 0.0f;
    for (size_t i = 0; i < n; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    return max;
}

void st_fake_int8_groups(const float *x, size_t n, size_t group, float *y) {
    for (size_t i = 0; i < n; i += group) {
        size_t here = st_min(group, n - i);
        float max = largest(x + i, here);
        st_fake_int8(x + i, here, max > 0.0f ? max / 127.0f : 1.0f, y + i);
    }
}

// ---- Rotation

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

// A sum of twelve is close enough to normal for a random direction.
static float random_normal(uint64_t *state) {
    float sum = -6.0f;
    for (int i = 0; i < 12; i++) sum += (float)next_random(state) * 0x1p-31f;
    return sum;
}

static float dot(const float *a, const float *b, size_t n) {
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// Gram-Schmidt, applied twice to each row, as rounding errors remain after the first time.
static void make_orthogonal(float *m, size_t n) {
    for (size_t r = 0; r < n; r++) {
        float *row = m + r * n;
        for (size_t other = 0; other < 2 * r; other++) {
            const float *before = m + other % r * n;
            float along = dot(row, before, n);
            for (size_t i = 0; i < n; i++) row[i] -= along * before[i];
        }
        float length = sqrtf(dot(row, row, n));
        for (size_t i = 0; i < n; i++) row[i] /= length;
    }
}

int st_rotation_open(size_t n, uint64_t seed, struct st_rotation *rotation) {
    struct st_rotation r = {.n = n, .odd = n};
    uint64_t state = seed;
    while (r.odd % 2 == 0) r.odd /= 2;
    r.signs = malloc(n * sizeof *r.signs);
    r.mixer = malloc(r.odd * r.odd * sizeof *r.mixer);
    if (!r.signs || !r.mixer) {
        st_rotation_close(&r);
        return -1;
    }
    for (size_t i = 0; i < n; i++) r.signs[i] = next_random(&state) % 2 ? 1.0f : -1.0f;
    for (size_t i = 0; i < r.odd * r.odd; i++) r.mixer[i] = random_normal(&state);
    make_orthogonal(r.mixer, r.odd);
    *rotation = r;
    return 0;
}

void st_rotation_close(struct st_rotation *rotation) {
    free(rotation->signs);
    free(rotation->mixer);
    *rotation = (struct st_rotation){0};
}

static void transform(float *x, size_t n) {
    for (size_t half = 1; half < n; half *= 2)
        for (size_t start = 0; start < n; start += 2 * half)
            for (size_t i = start; i < start + half; i++) {
                float a = x[i], b = x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
    float length = 1.0f / sqrtf((float)n);
    for (size_t i = 0; i < n; i++) x[i] *= length;
}

void st_rotation_apply(const struct st_rotation *r, float *x, float *scratch) {
    size_t two = r->n / r->odd;
    for (size_t i = 0; i < r->n; i++) x[i] *= r->signs[i];
    for (size_t i = 0; i < r->odd; i++) transform(x + i * two, two);
    if (r->odd == 1) return;
    for (size_t i = 0; i < two; i++) {
        for (size_t o = 0; o < r->odd; o++) scratch[o] = x[o * two + i];
        for (size_t o = 0; o < r->odd; o++)
            x[o * two + i] = dot(r->mixer + o * r->odd, scratch, r->odd);
    }
}
