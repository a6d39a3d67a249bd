// SPDX-License-Identifier: Apache-2.0
#include "check.h"

enum { N = 200 };

static bool same(float a, float b) { // of NaNs there is one
    return dsp_bits(a) == dsp_bits(b) || (a != a && b != b);
}

// Of any kind, among them many with few bits, whose quotients are exact or end in a long row of 0
// or 1.
static float random_float(void) {
    static const uint32_t edges[] = {0,          1,          0x7fffff,   0x800000,   0x3f800000,
                                     0x7f7fffff, 0x7f800000, 0x7fc00000, 0x3f7fffff, 0x3f800001};
    uint32_t kind = check_below(8), sign = check_random() << 31;
    if (kind == 0) return dsp_float(edges[check_below(10)] | sign);
    if (kind == 1) return (float)(int32_t)(check_below(2000)) - 1000.0f;
    if (kind == 2) return dsp_float((check_random() & 0xfff80000u) | sign);
    return dsp_float(check_random());
}

bool check_divide(check_divide_fn *divide) {
    bool holds = true;
    for (int i = 0; i < 60000; i++) {
        float a = random_float(), b = random_float();
        holds &= same(divide(a, b), dsp_divide_slowly(a, b));
    }
    return holds;
}

// A quotient of whole numbers whose product is exact, and bits that IEEE 754 gives.
bool check_digits(check_divide_fn *divide) {
    static const struct {
        uint32_t a, b, quotient;
    } known[] = {
        {0x3f800000, 0x40400000, 0x3eaaaaab}, // 1 / 3
        {0x40000000, 0x40400000, 0x3f2aaaab}, // 2 / 3
        {0x3f800000, 0x437e0000, 0x3b810204}, // 1 / 254
        {0x00000001, 0x40000000, 0x00000000}, // half of the smallest: to even
        {0x00000003, 0x40000000, 0x00000002}, // one and a half: to even
        {0x7f7fffff, 0x3f000000, 0x7f800000}, // too large
        {0x00800000, 0x40000000, 0x00400000}, // becomes subnormal
        {0x3f800000, 0x80000000, 0xff800000}, // 1 / -0
    };
    bool holds = true;
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++)
        holds &=
            dsp_bits(divide(dsp_float(known[i].a), dsp_float(known[i].b))) == known[i].quotient;
    for (int i = 0; i < 2000; i++) {
        float a = (float)(1 + check_below(4000)), b = (float)(1 + check_below(4000));
        holds &= divide(a * b, b) == a;
        // No other float is nearer: the remainder is at most half a unit of the last place.
        float q = divide(a, b), unit = dsp_float(dsp_bits(q) + 1) - q;
        holds &= __builtin_fabsf(__builtin_fmaf(-q, b, a)) <= unit * b * 0.5f;
    }
    return holds;
}

// clamp(round_half_even(x * (1 / step)), -127, 127), by comparison alone; NaN is -127 everywhere.
static int definition(float x, float step) {
    float v = x * dsp_divide_slowly(1.0f, step);
    if (!(v > -127.0f)) return -127;
    if (v >= 127.0f) return 127;
    int low = -127;
    while ((float)(low + 1) <= v) low++;
    float above = v - (float)low;
    return above > 0.5f || (above >= 0.5f && low % 2 != 0) ? low + 1 : low;
}

bool check_quantize(check_quantize_fn *quantize) {
    float x[N];
    uint8_t q[N + 1];
    bool holds = true;
    for (int round = 0; round < 72; round++) {
        float step = round % 3 ? (float)(1 + check_below(1000)) * 0x1.5p-12f : 0x1p-7f;
        size_t clipped = 0;
        for (int i = 0; i < N; i++) {
            uint32_t kind = check_below(4);
            x[i] = kind == 0   ? random_float()
                   : kind == 1 ? ((float)(int32_t)check_below(260) - 129.5f) * step
                               : ((float)check_below(1 << 20) - 524288.0f) * step * 0x1p-12f;
            clipped += __builtin_fabsf(x[i]) > 127.0f * step;
        }
        q[N] = 99;
        holds &= quantize(x, N, step, 0, q) == clipped && q[N] == 99;
        for (int i = 0; i < N; i++) holds &= (int8_t)q[i] == definition(x[i], step);
    }
    return holds;
}

// Between the squares of the two numbers half-way to the next ones: in whole numbers, exactly.
bool check_root(float (*root)(float x)) {
    bool holds = root(0.0f) == 0.0f && root(0x1p-140f) == 0x1p-70f && root(4.0f) == 2.0f;
    for (int i = 0; i < 20000; i++) {
        uint32_t mantissa = (check_random() & 0x7fffff) | 0x800000, odd = check_below(2);
        float x = (float)mantissa * (odd ? 2.0f : 1.0f) * 0x1p-24f; // in [1/2, 2)
        uint64_t y = (uint64_t)(root(x) * 0x1p25f);                 // a whole number
        uint64_t square = (uint64_t)mantissa << (odd ? 27 : 26);    // x 2^50
        uint64_t half = y >= (1u << 25) ? 2 : 1;                    // of its last place
        holds &= y % (2 * half) == 0 && (y - half) * (y - half) < square &&
                 square < (y + half) * (y + half);
    }
    return holds;
}

// Sum of what one lane of one of the four vectors gets.
static float lane_sum(const float *x, uint32_t n, uint32_t lanes, uint32_t vector, uint32_t lane) {
    float sum = 0.0f;
    for (uint32_t i = lane; i < n; i += lanes) {
        bool whole = i < n / (4 * lanes) * 4 * lanes;
        if ((whole ? i / lanes % 4 : 0) == vector) sum = __builtin_fmaf(x[i], x[i], sum);
    }
    return sum;
}

static float sum_of_lanes(const float *x, uint32_t n, uint32_t lanes, uint32_t lane,
                          uint32_t step) {
    if (step == lanes)
        return (lane_sum(x, n, lanes, 0, lane) + lane_sum(x, n, lanes, 1, lane)) +
               (lane_sum(x, n, lanes, 2, lane) + lane_sum(x, n, lanes, 3, lane));
    uint32_t other = lanes == 4 ? lane + 2 / step : lane + step;
    return sum_of_lanes(x, n, lanes, lane, 2 * step) + sum_of_lanes(x, n, lanes, other, 2 * step);
}

bool check_norm(dsp_rmsnorm_fn *norm) {
    static const uint8_t all_lanes[] = {4, 8, 16};
    float x[N], weight[N], y[N + 1];
    bool holds = true;
    for (uint32_t round = 0; round < 600; round++) {
        uint32_t lanes = all_lanes[round % 3], n = round < 6 ? 1 + round : 1 + check_below(N);
        float epsilon = round % 2 ? 1e-5f : 0.5f;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = ((float)check_below(1 << 20) - 524288.0f) * 0x1p-18f;
            weight[i] = (float)(1 + check_below(1 << 20)) * 0x1p-19f;
        }
        y[n] = 99.0f;
        norm(x, weight, epsilon, n, lanes, y);
        float sum = sum_of_lanes(x, n, lanes, 0, 1);
        float factor = 1.0f / dsp_root(sum / (float)n + epsilon);
        for (uint32_t i = 0; i < n; i++) holds &= same(y[i], x[i] * factor * weight[i]);
        holds &= same(y[n], 99.0f);
    }
    return holds;
}
