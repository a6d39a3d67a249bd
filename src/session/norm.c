// SPDX-License-Identifier: Apache-2.0
// The norm of every row of a batch, on all threads of the worker group.
#include "session/pass.h"

struct norm_job {
    const struct stint_session *s;
    const struct st_norm_weight *norm;
    const float *x;
    float *y;
};

static void norm_row(void *context, size_t t, size_t worker) {
    (void)worker;
    const struct norm_job *j = context;
    const struct st_config *c = &j->s->model->config;
    const struct st_elementwise *k = j->s->kernels.elementwise;
    size_t n = j->norm->n;
    const float *x = j->x + t * n;
    float *y = j->y + t * n;
    if (c->norm == ST_NORM_RMS)
        k->rmsnorm(x, j->norm->weight, c->norm_epsilon, n, y);
    else
        k->layernorm(x, j->norm->weight, j->norm->bias, c->norm_epsilon, n, y);
}

void st_pass_norm(const struct st_run *r, const struct st_norm_weight *norm, const float *x,
                  size_t n, float *y) {
    struct norm_job job = {r->s, norm, x, y};
    st_pool_run(r->group->pool, norm_row, &job, n);
}
