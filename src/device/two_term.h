// SPDX-License-Identifier: Apache-2.0
// Two-term INT8: inputs of INT8 linears as two numbers instead of one, for linears whose result
// must not depend on how single numbers were rounded (docs/NUMERICS.md). x is scale * (q + rest /
// ST_TERM_STEPS), both from -127 to 127 (kernels/elementwise.h). Each term is a row of its own to
// the kernels: two products with the same weights, or one of both (kernels/int8.h).
#ifndef ST_DEVICE_TWO_TERM_H
#define ST_DEVICE_TWO_TERM_H

enum { ST_TWO_TERMS = 2 }; // rows of the kernels' input that one row takes: q, then the rest

#endif
