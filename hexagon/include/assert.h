// SPDX-License-Identifier: Apache-2.0
#ifndef DSP_ASSERT_H
#define DSP_ASSERT_H

#define static_assert _Static_assert

#endif
