// SPDX-License-Identifier: Apache-2.0
// Packages for tests; the bundled model as it is executed in three ways, opened once for the tests
// of a group.
#ifndef TESTS_KINDS_H
#define TESTS_KINDS_H

#include "stint.h"

#include <stdbool.h>

// Makes a package of `source`, or fails the test. Unless options->quantizer is named, the package
// is for what any one shows: its nested weights are rounded, and an emulator calibrates on few
// tokens and trains predictors of low rank. options may be NULL.
void ts_prepare(const char *source, const char *path, const stint_prepare_options *options);

// A package of `source`, made as <name>.stint in ts_temp_folder() and opened; fails the test where
// it cannot be.
stint_model *ts_package(const char *source, const char *name, const stint_prepare_options *options);
// Opens the package of that name once more, with its weights read on demand.
stint_model *ts_package_on_demand(const char *name);

// The same of a checkpoint in shared/, with shadow execution in seven tenths of the linears.
// target: NULL for the CPU.
stint_model *ts_shadow_package(const char *source, const char *target, bool neurons,
                               const int32_t *ids, size_t n_ids);

enum { TS_KINDS = 3 };

extern stint_model *ts_kinds[TS_KINDS]; // float; INT8; the same with shadows and nested weights
extern const char *const ts_kind_names[TS_KINDS];

// Set-up and tear-down of a cmocka group.
int ts_kinds_open(void **state);
int ts_kinds_close(void **state);

#endif
