// SPDX-License-Identifier: Apache-2.0
// The counters of a server, in Prometheus' text format (0.0.4). For any thread.
#ifndef ST_SERVER_METRICS_H
#define ST_SERVER_METRICS_H

#include "server/api/json_text.h"
#include "server/models/models.h"

struct st_metrics;

// `label`: the name of the i-th of n classes of requests; static.
typedef const char *st_metrics_label_fn(size_t i);
stint_status st_metrics_open(st_metrics_label_fn *label, size_t n, struct st_metrics **metrics);
void st_metrics_close(struct st_metrics *metrics); // accepts NULL

// Counts a request of label `i` that ended with this status; i >= n: without a label. 499: the
// client disconnected.
void st_metrics_request(struct st_metrics *metrics, size_t i, int status);
// Counts an answer that has ended.
void st_metrics_answer(struct st_metrics *metrics, const struct st_scheduler_usage *usage);

// Also what the n models say.
void st_metrics_write(struct st_metrics *metrics, const struct st_model_view *views, size_t n,
                      struct st_json_text *out);

#endif
