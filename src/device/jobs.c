// SPDX-License-Identifier: Apache-2.0
// Jobs of a device come from a fixed set. One has a reference from whoever submitted it, one from
// the device until it has ended, and one from each job that comes after it.
#include "device/driver.h"

#include "base/clock.h"

static const char *const causes[] = {
    [ST_FAILURE_FAULT] = "failed",
    [ST_FAILURE_NOMEM] = "found no memory on the device",
    [ST_FAILURE_CANCELED] = "was canceled",
    [ST_FAILURE_LOST] = "ended because the device was lost",
};

// With the mutex held.
static void drop_reference(struct st_job *job) {
    struct st_device *d = job->device;
    if (--job->n_references > 0) return;
    job->next = d->free_jobs;
    d->free_jobs = job;
}

enum st_job_ready st_job_is_ready(const struct st_job *job) {
    enum st_job_ready ready = job->canceled || job->device->lost ? ST_READY_NEVER : ST_READY_RUN;
    for (size_t i = 0; i < job->n_after; i++) {
        if (job->after[i]->state == ST_JOB_FAILED) return ST_READY_NEVER;
        if (job->after[i]->state == ST_JOB_PENDING && ready == ST_READY_RUN) ready = ST_READY_WAIT;
    }
    return ready;
}

static void take_args(struct st_job *job, enum st_job_kind kind, void *subject, const void *args) {
    job->kind = kind;
    job->graph = NULL;
    switch (kind) {
    case ST_JOB_QUANTIZE:
        job->quantize = *(const struct st_quantize_args *)args;
        break;
    case ST_JOB_GRAPH:
        job->graph = subject;
        job->args = *(const struct st_graph_args *)args;
        break;
    case ST_JOB_MULTIPLY:
        job->stored = subject;
        job->multiply = *(const struct st_multiply_args *)args;
        break;
    case ST_JOB_ATTEND:
        job->attend = *(const struct st_attend_args *)args;
        break;
    case ST_JOB_PROGRAM:
        job->program = subject;
        break;
    }
}

static void set_up(struct st_job *job) {
    job->number = ++job->device->n_submits;
    job->n_references = 2;
    job->state = ST_JOB_PENDING;
    job->failure = ST_FAILURE_NONE;
    job->n_clipped = 0;
    job->device_ns = 0;
    job->canceled = job->timed_out = false;
}

// With the mutex held.
static stint_status take(struct st_device *d, struct st_job **job) {
    if (d->lost) return st_device_say_lost(d);
    if (!d->free_jobs)
        return st_fail(STINT_E_LIMIT, "device '%s': %d jobs are not released yet", d->ops->name,
                       ST_DEVICE_JOBS);
    *job = d->free_jobs;
    d->free_jobs = (*job)->next;
    (*job)->device = d;
    return STINT_OK;
}

// With the mutex held.
static void come_after(struct st_job *job, struct st_job *const *after, size_t n_after) {
    job->n_after = n_after;
    for (size_t i = 0; i < n_after; i++) {
        job->after[i] = after[i];
        after[i]->n_references++;
    }
    job->ready = st_job_is_ready(job);
}

stint_status st_job_start(struct st_device *device, enum st_job_kind kind, void *subject,
                          const void *args, struct st_job *const *after, size_t n_after,
                          struct st_job **job) {
    struct st_job *j = NULL;
    if (n_after > ST_JOB_AFTER)
        return st_fail(STINT_E_INTERNAL, "device '%s': a job after %zu others, at most %d",
                       device->ops->name, n_after, ST_JOB_AFTER);
    for (size_t i = 0; i < n_after; i++)
        if (after[i]->device != device)
            return st_fail(STINT_E_INTERNAL, "device '%s': a job after one of device '%s'",
                           device->ops->name, after[i]->device->ops->name);
    pthread_mutex_lock(&device->mutex);
    stint_status status = take(device, &j);
    if (status == STINT_OK) {
        take_args(j, kind, subject, args);
        set_up(j);
        come_after(j, after, n_after);
    }
    pthread_mutex_unlock(&device->mutex);
    if (status != STINT_OK) return status;
    *job = j;
    device->ops->start(device, j);
    return STINT_OK;
}

void st_job_finish(struct st_job *job, enum st_job_failure failure, size_t n_clipped) {
    struct st_device *d = job->device;
    pthread_mutex_lock(&d->mutex);
    if (failure != ST_FAILURE_NONE && d->lost) failure = ST_FAILURE_LOST;
    if (failure == ST_FAILURE_CANCELED && job->timed_out) failure = ST_FAILURE_TIMEOUT;
    job->state = failure == ST_FAILURE_NONE ? ST_JOB_DONE : ST_JOB_FAILED;
    job->failure = failure;
    job->n_clipped = n_clipped;
    job->ended_ns = st_now_ns();
    for (size_t i = 0; i < job->n_after; i++) drop_reference(job->after[i]);
    job->n_after = 0;
    drop_reference(job);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->mutex);
}

enum st_job_state st_job_poll(struct st_job *job) {
    pthread_mutex_lock(&job->device->mutex);
    enum st_job_state state = job->state;
    pthread_mutex_unlock(&job->device->mutex);
    return state;
}

// With the mutex held: until the job ends, or the time-out. True if it has ended.
static bool wait_a_while(struct st_job *job) {
    struct st_device *d = job->device;
    if (job->state != ST_JOB_PENDING) return true;
    uint64_t until = st_now_ns() + d->timeout_ms * UINT64_C(1000000);
    while (job->state == ST_JOB_PENDING)
        if (!st_cond_wait_until(&d->changed, &d->mutex, until)) break;
    return job->state != ST_JOB_PENDING;
}

static void ask_to_end(struct st_job *job, bool timed_out) {
    struct st_device *d = job->device;
    pthread_mutex_lock(&d->mutex);
    bool pending = job->state == ST_JOB_PENDING;
    job->canceled = true;
    if (timed_out) job->timed_out = true;
    pthread_mutex_unlock(&d->mutex);
    if (pending && d->ops->cancel) d->ops->cancel(d, job);
}

static stint_status say(const struct st_device *d, uint32_t number, enum st_job_failure failure) {
    stint_status status = failure == ST_FAILURE_NOMEM      ? STINT_E_NOMEM
                          : failure == ST_FAILURE_CANCELED ? STINT_E_CANCELED
                                                           : STINT_E_DEVICE;
    if (failure == ST_FAILURE_TIMEOUT)
        return st_fail(status, "device '%s': job %u took longer than %u ms", d->ops->name, number,
                       d->timeout_ms);
    const char *why = failure == ST_FAILURE_LOST ? d->lost_why : NULL; // set once, before this
    return st_fail(status, "device '%s': job %u %s%s%s", d->ops->name, number, causes[failure],
                   why ? ": " : "", why ? why : "");
}

static stint_status wait_for(struct st_job *job, bool release, struct st_job_result *result) {
    struct st_device *d = job->device;
    uint32_t number = job->number;
    pthread_mutex_lock(&d->mutex);
    if (!wait_a_while(job)) {
        pthread_mutex_unlock(&d->mutex);
        ask_to_end(job, true);
        pthread_mutex_lock(&d->mutex);
        while (job->state == ST_JOB_PENDING) pthread_cond_wait(&d->changed, &d->mutex);
    }
    struct st_job_result now = {job->failure, job->n_clipped, job->device_ns, job->ended_ns};
    if (release) drop_reference(job);
    pthread_mutex_unlock(&d->mutex);
    if (result) *result = now;
    return now.failure == ST_FAILURE_NONE ? STINT_OK : say(d, number, now.failure);
}

stint_status st_job_wait(struct st_job *job, struct st_job_result *result) {
    return wait_for(job, false, result);
}

stint_status st_job_join(struct st_job *job, struct st_job_result *result) {
    return wait_for(job, true, result);
}

void st_job_cancel(struct st_job *job) {
    ask_to_end(job, false);
}

void st_job_release(struct st_job *job) {
    if (!job) return;
    struct st_device *d = job->device;
    pthread_mutex_lock(&d->mutex);
    drop_reference(job);
    pthread_mutex_unlock(&d->mutex);
}
