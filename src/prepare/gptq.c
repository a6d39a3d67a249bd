// SPDX-License-Identifier: Apache-2.0
// GPTQ (Frantar et al. 2023): rounds column after column and compensates the error of each in the
// columns that follow, according to the correlations of the inputs.
#include "prepare/quantize.h"

#include <math.h>
#include <string.h>

// Replaces a [k, k], of which only the lower triangle is read, by its lower Cholesky factor, with
// zeros above the diagonal. False if the matrix is not positive definite.
static bool cholesky(float *a, size_t k) {
    for (size_t i = 0; i < k; i++) {
        float *row = a + i * k;
        for (size_t j = 0; j <= i; j++) {
            const float *other = a + j * k;
            double sum = (double)row[j];
            for (size_t c = 0; c < j; c++) sum -= (double)row[c] * (double)other[c];
            if (j < i)
                row[j] = (float)(sum / (double)other[j]);
            else if (sum > 0.0)
                row[i] = (float)sqrt(sum);
            else
                return false;
        }
        memset(row + i + 1, 0, (k - i - 1) * sizeof *row);
    }
    return true;
}

// inverse [k, k] = (l l^T)^-1, column by column: l y = e, l^T x = y.
static void invert(const float *l, size_t k, float *inverse) {
    for (size_t c = 0; c < k; c++) {
        float *x = inverse + c * k;
        memset(x, 0, k * sizeof *x);
        for (size_t i = c; i < k; i++) {
            double sum = i == c ? 1.0 : 0.0;
            for (size_t j = c; j < i; j++) sum -= (double)l[i * k + j] * (double)x[j];
            x[i] = (float)(sum / (double)l[i * k + i]);
        }
        for (size_t i = k; i-- > 0;) {
            x[i] /= l[i * k + i];
            for (size_t j = 0; j < i; j++) x[j] -= l[i * k + j] * x[i];
        }
    }
}

bool st_gptq_factor(float *h, size_t k, double damp, float *inverse) {
    double mean = 0.0;
    for (size_t i = 0; i < k; i++) mean += (double)h[i * k + i] / (double)k;
    for (size_t i = 0; i < k; i++) {
        h[i * k + i] += (float)(mean > 0.0 ? damp * mean : 1.0);
        for (size_t j = 0; j < i; j++) h[i * k + j] = h[j * k + i];
    }
    if (!cholesky(h, k)) return false;
    invert(h, k, inverse);
    if (!cholesky(inverse, k)) return false;
    for (size_t i = 0; i < k; i++) // upper: its transpose
        for (size_t j = 0; j < k; j++) h[i * k + j] = j >= i ? inverse[j * k + i] : 0.0f;
    return true;
}

void st_gptq_row(const struct st_row *row, struct st_row_scratch *scratch) {
    struct st_steps s = st_row_steps(row);
    (void)scratch;
    for (size_t i = 0; i < row->k; i++) {
        const float *f = row->factor + i * row->k;
        row->code[i] = st_steps_code(&s, row->w[i]);
        if (row->importance[i] == 0.0f) continue; // without error
        float value = s.min + (float)row->code[i] * s.size;
        float error = (row->w[i] - value) / f[i];
        for (size_t j = i + 1; j < row->k; j++) row->w[j] -= error * f[j];
        row->w[i] = value;
    }
}
