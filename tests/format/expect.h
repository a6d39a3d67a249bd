// SPDX-License-Identifier: Apache-2.0
// What the format tests assert of a failure. Include after <cmocka.h>.
#ifndef TESTS_FORMAT_EXPECT_H
#define TESTS_FORMAT_EXPECT_H

#include "base/status.h"

#include <string.h>

// The status, and a piece that the error text must hold.
#define assert_failure(call, expected, piece)                                                      \
    do {                                                                                           \
        assert_int_equal((call), (expected));                                                      \
        if (!strstr(st_error_text(), (piece)))                                                     \
            fail_msg("the text '%s' lacks '%s'", st_error_text(), (piece));                        \
    } while (0)

#endif
