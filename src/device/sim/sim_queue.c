// SPDX-License-Identifier: Apache-2.0
// The device's thread. Of the jobs that are ready it takes the newest, so that a user who forgets
// to say what a job comes after is found out.
#include "device/sim/sim.h"

#include "base/clock.h"

void st_sim_start(struct st_device *device, struct st_job *job) {
    struct sim_device *d = (struct sim_device *)device;
    pthread_mutex_lock(&device->mutex);
    job->next = d->queue;
    d->queue = job;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
}

// One that waits in the queue ends here, even where another keeps the thread.
void st_sim_cancel(struct st_device *device, struct st_job *job) {
    struct sim_device *d = (struct sim_device *)device;
    pthread_mutex_lock(&device->mutex);
    struct st_job **at = &d->queue;
    while (*at && *at != job) at = &(*at)->next;
    bool queued = *at != NULL;
    if (queued) *at = job->next;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
    if (queued) st_job_finish(job, ST_FAILURE_CANCELED, 0);
}

// With the mutex held: out of the queue, the newest job that can run or never will; NULL: none.
static struct st_job *next_job(struct sim_device *d, enum st_job_ready *ready) {
    for (struct st_job **at = &d->queue; *at; at = &(*at)->next) {
        struct st_job *job = *at;
        *ready = d->closing ? ST_READY_NEVER : st_job_is_ready(job);
        if (*ready == ST_READY_WAIT) continue;
        *at = job->next;
        return job;
    }
    return NULL;
}

static bool is_over(const struct sim_device *d, const struct st_job *job) {
    return job->canceled || d->closing || d->base.lost;
}

// With the mutex held: until then, or until the job is over.
static void wait_until(struct sim_device *d, const struct st_job *job, uint64_t until) {
    while (!is_over(d, job))
        if (!st_cond_wait_until(&d->base.changed, &d->base.mutex, until)) return;
}

// With the mutex held: what happens before the work. ST_FAILURE_NONE: nothing.
static enum st_job_failure meet_fault(struct sim_device *d, const struct st_job *job) {
    const struct sim_settings *s = &d->settings;
    wait_until(d, job, st_now_ns() + s->delay * UINT64_C(1000));
    while (job->number == s->hang && !is_over(d, job))
        pthread_cond_wait(&d->base.changed, &d->base.mutex);
    if (is_over(d, job)) return ST_FAILURE_CANCELED;
    if (job->number == s->lose) return ST_FAILURE_LOST;
    if (job->number == s->oom) return ST_FAILURE_NOMEM;
    return job->number == s->fail ? ST_FAILURE_FAULT : ST_FAILURE_NONE;
}

static uint64_t weights_of(const struct st_job *job) {
    if (job->kind == ST_JOB_QUANTIZE) return 0;
    if (job->kind == ST_JOB_MULTIPLY)
        return (uint64_t)st_multiply_rows(job->stored, &job->multiply) * job->stored->linear.n_in;
    const struct st_device_subgraph *s = &job->graph->subgraph;
    uint64_t weights = 0;
    for (uint32_t i = 0; i < s->n_linear_ops; i++)
        weights += (uint64_t)st_linear_op_rows(&s->linear_ops[i]) * s->linear_ops[i].weight.n_in;
    return weights;
}

// How long the device says that a job takes; 0: it does not say.
static uint64_t stated_ns(const struct sim_device *d, const struct st_job *job) {
    return d->settings.speed ? weights_of(job) * 1000 / d->settings.speed : 0;
}

static void run_job(struct sim_device *d, struct st_job *job) {
    size_t n_clipped = 0;
    uint64_t begun;
    pthread_mutex_lock(&d->base.mutex);
    enum st_job_failure failure = meet_fault(d, job);
    pthread_mutex_unlock(&d->base.mutex);
    begun = st_now_ns();
    job->device_ns = stated_ns(d, job);
    if (failure == ST_FAILURE_LOST) st_device_lose(&d->base, NULL);
    if (failure == ST_FAILURE_NONE && !st_sim_run(d, job, &n_clipped))
        failure = ST_FAILURE_CANCELED;
    if (failure == ST_FAILURE_NONE && job->device_ns) {
        pthread_mutex_lock(&d->base.mutex);
        wait_until(d, job, begun + job->device_ns);
        pthread_mutex_unlock(&d->base.mutex);
    }
    st_job_finish(job, failure, n_clipped);
}

void *st_sim_thread(void *device) {
    struct sim_device *d = device;
    for (;;) {
        enum st_job_ready ready;
        pthread_mutex_lock(&d->base.mutex);
        struct st_job *job = next_job(d, &ready);
        while (!job && !d->closing) {
            pthread_cond_wait(&d->base.changed, &d->base.mutex);
            job = next_job(d, &ready);
        }
        pthread_mutex_unlock(&d->base.mutex);
        if (!job) return NULL;
        if (ready == ST_READY_RUN)
            run_job(d, job);
        else
            st_job_finish(job, ST_FAILURE_CANCELED, 0);
    }
}
