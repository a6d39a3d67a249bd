// SPDX-License-Identifier: Apache-2.0
// Messages to whoever embeds the library: nothing is printed here, a callback receives them
// (stint_log_set).
#ifndef ST_BASE_LOG_H
#define ST_BASE_LOG_H

#include "stint.h"

void st_log(stint_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
