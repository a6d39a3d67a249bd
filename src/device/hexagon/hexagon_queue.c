// SPDX-License-Identifier: Apache-2.0
// Jobs go into the ring as they are submitted, and the program takes them in this order. One thread
// takes their ends from the shared memory. It also decides that the program is lost: when it has
// ended, does not get on, leaves a canceled job unfinished, or writes what cannot be.
#include "device/hexagon/hexagon.h"

#include "base/clock.h"

static uint32_t slot_of(const struct hexagon_device *d, const struct st_job *job) {
    return (uint32_t)(job - d->base.jobs);
}

// A word that the other side writes, or reads. What is stored is seen before what is loaded next.
static uint32_t load(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}
static void store(uint32_t *word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

// With the mutex held.
static void put(struct hexagon_device *d, struct st_job *job) {
    struct wire_host *host = &d->queue->host;
    uint32_t slot = slot_of(d, job), head = host->head;
    st_hexagon_write_job(d, job, &host->jobs[slot]);
    host->ring[head % WIRE_SLOTS] = slot;
    store(&host->head, head + 1);
    d->running[slot] = job;
    if (d->n_running++ == 0) pthread_cond_signal(&d->work);
}

static void ring(struct hexagon_device *d) {
    atomic_fetch_add_explicit(&d->n_bells, 1, memory_order_relaxed);
    d->transport->ops->ring(d->transport);
}

// A bell that has not woken the program yet will.
static void ring_if_asleep(struct hexagon_device *d) {
    if (!load(&d->queue->dsp.sleeps)) return;
    uint32_t wakes = load(&d->queue->dsp.wakes) + 1;
    if (atomic_exchange(&d->rung_for, wakes) != wakes) ring(d);
}

void st_hexagon_start(struct st_device *device, struct st_job *job) {
    struct hexagon_device *d = (struct hexagon_device *)device;
    pthread_mutex_lock(&device->mutex);
    bool runs = !d->gone && st_job_is_ready(job) != ST_READY_NEVER;
    if (runs) put(d, job);
    pthread_mutex_unlock(&device->mutex);
    if (runs)
        ring_if_asleep(d);
    else
        st_job_finish(job, ST_FAILURE_CANCELED, 0);
}

// The program looks at the flag with every block of a job, and when it takes one from the ring.
void st_hexagon_cancel(struct st_device *device, struct st_job *job) {
    struct hexagon_device *d = (struct hexagon_device *)device;
    pthread_mutex_lock(&device->mutex);
    if (d->running[slot_of(d, job)] == job) {
        store(&d->queue->host.canceled[slot_of(d, job)], job->number);
        if (!d->cancel_until_ns)
            d->cancel_until_ns = st_now_ns() + ST_HEXAGON_CANCEL_MS * UINT64_C(1000000);
    }
    pthread_mutex_unlock(&device->mutex);
}

// With the mutex held: takes a job out of those that run; NULL: none of them has ended. The program
// runs them in order, and so they end: who has joined one may drop what those before it used.
static struct st_job *take_ended(struct hexagon_device *d, struct wire_result *result) {
    struct st_job *oldest = NULL;
    uint32_t at = 0;
    bool canceled = false;
    for (uint32_t slot = 0; slot < WIRE_SLOTS; slot++) {
        struct st_job *job = d->running[slot];
        if (!job) continue;
        canceled = canceled || job->canceled;
        if (oldest && (int32_t)(job->number - oldest->number) > 0) continue;
        oldest = job;
        at = slot;
    }
    const struct wire_result *written = &d->queue->dsp.results[at];
    if (oldest && (d->gone || load(&written->sequence) == oldest->number)) {
        *result = *written;
        d->running[at] = NULL;
        d->n_running--;
        return oldest;
    }
    if (!canceled) d->cancel_until_ns = 0;
    return NULL;
}

// Not while it closes: what waits then is told that the program is gone, which may serve others.
static void lose(struct hexagon_device *d, const char *why) {
    pthread_mutex_lock(&d->base.mutex);
    bool known = d->gone || d->closing;
    d->gone = true;
    pthread_mutex_unlock(&d->base.mutex);
    if (known) return;
    st_device_lose(&d->base, why);
    d->transport->ops->kill(d->transport);
}

// 0: it has no clock.
static uint64_t device_ns(const struct hexagon_device *d, const struct wire_result *result) {
    uint32_t hz = load(&d->queue->dsp.clock_hz);
    return hz ? result->ticks * UINT64_C(1000000000) / hz : 0;
}

static void end_jobs(struct hexagon_device *d) {
    static const enum st_job_failure failures[] = {[WIRE_DONE] = ST_FAILURE_NONE,
                                                   [WIRE_FAILED] = ST_FAILURE_FAULT,
                                                   [WIRE_CANCELED] = ST_FAILURE_CANCELED};
    for (;;) {
        struct wire_result result;
        pthread_mutex_lock(&d->base.mutex);
        struct st_job *job = take_ended(d, &result);
        bool gone = d->gone;
        pthread_mutex_unlock(&d->base.mutex);
        if (!job) return;
        bool sane = gone || st_hexagon_job_is_sane(d, job, &result);
        if (!sane) lose(d, "its program wrote what cannot be");
        if (!gone && sane) job->device_ns = device_ns(d, &result);
        if (gone || !sane)
            st_job_finish(job, ST_FAILURE_CANCELED, 0);
        else
            st_job_finish(job, failures[result.status], result.n_clipped);
    }
}

// NULL: all is well.
static const char *what_is_wrong(struct hexagon_device *d) {
    const struct wire_dsp *dsp = &d->queue->dsp;
    uint32_t pending = load(&d->queue->host.head) - load(&dsp->tail);
    if (load(&dsp->ready) != WIRE_READY || load(&dsp->sleeps) > 1 || pending > WIRE_SLOTS + 1)
        return "its program wrote what cannot be";
    if (d->transport->ops->is_stuck(d->transport, load(&dsp->progress), d->patience_ms))
        return "its program does not get on";
    pthread_mutex_lock(&d->base.mutex);
    bool late = d->cancel_until_ns && st_now_ns() > d->cancel_until_ns;
    pthread_mutex_unlock(&d->base.mutex);
    return late ? "its program left a canceled job unfinished" : NULL;
}

// With work to wait for.
static void wait_for_ends(struct hexagon_device *d) {
    const struct st_hexagon_transport_ops *ops = d->transport->ops;
    store(&d->queue->host.waits, 1);
    end_jobs(d);
    enum st_hexagon_event event = ops->wait(d->transport, ST_HEXAGON_TICK_MS);
    store(&d->queue->host.waits, 0);
    end_jobs(d);
    const char *wrong = event == ST_HEXAGON_GONE ? "its program has ended" : what_is_wrong(d);
    if (wrong) lose(d, wrong);
    if (event == ST_HEXAGON_NOTHING && load(&d->queue->dsp.sleeps))
        ring(d); // should one have been missed
    if (wrong) end_jobs(d);
}

void *st_hexagon_thread(void *device) {
    struct hexagon_device *d = device;
    for (;;) {
        pthread_mutex_lock(&d->base.mutex);
        bool idle = d->n_running == 0;
        while (d->n_running == 0 && !d->closing) pthread_cond_wait(&d->work, &d->base.mutex);
        bool closing = d->closing;
        if (closing) d->gone = true;
        pthread_mutex_unlock(&d->base.mutex);
        if (closing) break;
        if (idle) d->transport->ops->watch(d->transport, load(&d->queue->dsp.progress));
        wait_for_ends(d);
    }
    end_jobs(d);
    return NULL;
}
