// SPDX-License-Identifier: Apache-2.0
#ifndef DSP_MATH_H
#define DSP_MATH_H

#define fabsf __builtin_fabsf

#endif
