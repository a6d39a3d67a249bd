// SPDX-License-Identifier: Apache-2.0
// Jobs in the queue, from their submit to their end. A thread waits for the last command of the
// oldest one: NVIDIA's driver takes up to 20 ms until it calls back.
#include "base/clock.h"
#include "device/opencl/opencl.h"

// ---- Ends

static void release_events(struct opencl_ticket *t) {
    const struct opencl_device *d = t->device;
    if (t->first) d->cl.clReleaseEvent(t->first);
    if (t->last) d->cl.clReleaseEvent(t->last);
    t->first = t->last = NULL;
}

// From the begin of its first command to the end of its last; 0 where the device does not say.
static uint64_t device_ns(const struct opencl_ticket *t) {
    const struct opencl_device *d = t->device;
    cl_ulong begun = 0, ended = 0;
    if (!t->first ||
        d->cl.clGetEventProfilingInfo(t->first, CL_PROFILING_COMMAND_START, sizeof begun, &begun,
                                      NULL) != CL_SUCCESS ||
        d->cl.clGetEventProfilingInfo(t->last ? t->last : t->first, CL_PROFILING_COMMAND_END,
                                      sizeof ended, &ended, NULL) != CL_SUCCESS)
        return 0;
    return ended > begun ? ended - begun : 0;
}

// With the mutex held: the oldest job, if it has ended.
static struct opencl_ticket *take_ended(struct opencl_device *d) {
    if (d->n_pending == 0 || !d->order[0]->ended) return NULL;
    struct opencl_ticket *t = d->order[0];
    d->n_pending--;
    for (unsigned i = 0; i < d->n_pending; i++) d->order[i] = d->order[i + 1];
    return t;
}

// One thread at a time, so that jobs end in their order.
static void end_jobs(struct opencl_device *d) {
    struct opencl_ticket *t;
    pthread_mutex_lock(&d->base.mutex);
    if (d->ending) {
        pthread_mutex_unlock(&d->base.mutex);
        return;
    }
    d->ending = true;
    while ((t = take_ended(d)) != NULL) {
        struct st_job *job = t->job;
        enum st_job_failure failure = t->failure;
        if (failure == ST_FAILURE_NONE && (d->closing || st_job_is_ready(job) == ST_READY_NEVER))
            failure = ST_FAILURE_CANCELED;
        pthread_mutex_unlock(&d->base.mutex);
        size_t n_clipped = failure == ST_FAILURE_NONE ? t->n_clipped : 0;
        job->device_ns = failure == ST_FAILURE_NONE ? device_ns(t) : 0;
        release_events(t);
        st_job_finish(job, failure, n_clipped);
        pthread_mutex_lock(&d->base.mutex);
    }
    d->ending = false;
    pthread_cond_broadcast(&d->base.changed);
    pthread_mutex_unlock(&d->base.mutex);
}

// ---- The thread that waits

// What the wait was for, if it is still pending: another thread may have given it up.
static struct opencl_ticket *still_pending(struct opencl_device *d, cl_event event) {
    struct opencl_ticket *t = d->n_pending ? d->order[0] : NULL;
    return t && (t->first == event || t->last == event) ? t : NULL;
}

// With the mutex held, as before and after; not while it waits.
static void wait_for_oldest(struct opencl_device *d) {
    const struct opencl_ticket *oldest = d->order[0];
    cl_event event = oldest->last ? oldest->last : oldest->first;
    cl_int status = CL_COMPLETE;
    d->cl.clRetainEvent(event);
    d->waiting = true;
    pthread_mutex_unlock(&d->base.mutex);
    cl_int error = st_opencl_wait_for(d, event);
    d->cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    enum st_job_failure failure = st_opencl_failure(d, status < 0 ? status : error);
    pthread_mutex_lock(&d->base.mutex);
    struct opencl_ticket *t = still_pending(d, event);
    if (t && t->failure == ST_FAILURE_NONE) t->failure = failure;
    if (t) t->ended = true;
    d->waiting = false;
    pthread_cond_broadcast(&d->base.changed);
    pthread_mutex_unlock(&d->base.mutex);
    d->cl.clReleaseEvent(event);
    end_jobs(d);
    pthread_mutex_lock(&d->base.mutex);
}

void *st_opencl_wait(void *device) {
    struct opencl_device *d = device;
    pthread_mutex_lock(&d->base.mutex);
    while (!d->stopping) {
        if (d->n_pending && !d->order[0]->ended)
            wait_for_oldest(d);
        else
            pthread_cond_wait(&d->base.changed, &d->base.mutex);
    }
    pthread_mutex_unlock(&d->base.mutex);
    return NULL;
}

// ---- Submits

void st_opencl_start(struct st_device *device, struct st_job *job) {
    struct opencl_device *d = (struct opencl_device *)device;
    struct opencl_ticket *t = &d->tickets[job - device->jobs];
    pthread_mutex_lock(&d->submitting);
    *t = (struct opencl_ticket){.device = d, .job = job};
    cl_int error = job->ready == ST_READY_NEVER ? CL_SUCCESS : st_opencl_enqueue(t);
    cl_int flushed = t->first ? OPENCL_CALL(d, clFlush, st_opencl_queue_of(t)) : CL_SUCCESS;
    t->failure = st_opencl_failure(d, error ? error : flushed);
    pthread_mutex_lock(&device->mutex);
    t->ended = t->first == NULL;
    d->order[d->n_pending++] = t;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
    pthread_mutex_unlock(&d->submitting);
    end_jobs(d);
}

// ---- The end of waiting

// With the mutex held: whether all is over in time.
static bool wait_until(struct opencl_device *d, const struct st_job *job, uint64_t until) {
    for (;;) {
        bool over = job ? job->state != ST_JOB_PENDING : !d->waiting && !d->n_pending;
        if (over && (job || !d->ending)) return true;
        if (!st_cond_wait_until(&d->base.changed, &d->base.mutex, until)) return false;
    }
}

static uint64_t patience(void) {
    return st_now_ns() + ST_OPENCL_CANCEL_MS * UINT64_C(1000000);
}

// A queue takes nothing back.
void st_opencl_cancel(struct st_device *device, struct st_job *job) {
    struct opencl_device *d = (struct opencl_device *)device;
    pthread_mutex_lock(&device->mutex);
    bool over = wait_until(d, job, patience());
    pthread_mutex_unlock(&device->mutex);
    if (over) return;
    st_device_lose(device, "it does not end a job");
    pthread_mutex_lock(&device->mutex);
    for (unsigned i = 0; i < d->n_pending; i++) {
        d->order[i]->ended = true;
        d->order[i]->failure = ST_FAILURE_LOST;
    }
    pthread_mutex_unlock(&device->mutex);
    end_jobs(d);
}

bool st_opencl_drain(struct opencl_device *d) {
    if (d->hold) d->cl.clSetUserEventStatus(d->hold, CL_COMPLETE);
    pthread_mutex_lock(&d->base.mutex);
    d->closing = true;
    bool over = wait_until(d, NULL, patience());
    while (!over && !d->base.lost) over = wait_until(d, NULL, patience());
    d->stopping = over;
    pthread_cond_broadcast(&d->base.changed);
    pthread_mutex_unlock(&d->base.mutex);
    if (over && d->has_waiter) pthread_join(d->waiter, NULL);
    return over;
}
