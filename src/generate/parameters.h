// SPDX-License-Identifier: Apache-2.0
// The table of all sampling parameters. The command line, requests to the server, its report and
// the Python package walk it through stint_sampling_parameter(), so a new parameter is a member of
// stint_sampling, a row here, and its effect in sample.c.
#ifndef ST_GENERATE_PARAMETERS_H
#define ST_GENERATE_PARAMETERS_H

#include "stint.h"

// The value of a parameter as a number.
double st_parameter_get(const stint_parameter *parameter, const stint_sampling *sampling);
// pre: the value is in the parameter's range.
void st_parameter_set(const stint_parameter *parameter, stint_sampling *sampling, double value);

// STINT_E_ARG names the parameter that is out of its range.
stint_status st_sampling_check(const stint_sampling *sampling);

#endif
