// SPDX-License-Identifier: Apache-2.0
// The queue before the slots, and the thread that runs them. `lock` guards the queue, the states of
// slots, what jobs share with other threads, and the counts; sequences and jobs that have a slot
// belong to the thread.
#include "server/scheduler/engine.h"

#include "base/clock.h"
#include "base/size.h"
#include "server/scheduler/slots.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct st_engine {
    struct st_slots slots;
    uint32_t n_queue;
    pthread_t thread;
    bool running; // the thread is
    pthread_mutex_t lock;
    pthread_cond_t work, idle; // for the thread; for who waits until nothing is left
    struct st_job *first, *last;
    uint64_t n_tickets;
    bool closing, draining;
    bool telling;             // an end, whose slot is free already
    int32_t computing;        // the slot whose prompt goes in at the moment; -1: none
    struct st_slot_end *ends; // [n slots]
    struct st_engine_stats stats;
    struct st_record record; // of the last request that ended
};

// ---- Ends

static void look_at_memory(struct st_engine *e) {
    stint_memory_info memory = {.size = sizeof memory};
    if (stint_session_memory(e->slots.session, &memory) == STINT_OK) e->stats.memory = memory;
}

static void count_end(struct st_engine *e, const struct st_job *job) {
    const struct st_engine_usage *u = &job->usage;
    const struct st_record *r = &job->record;
    e->stats.prompt_tokens += u->prompt_tokens;
    e->stats.reused_tokens += u->reused_tokens;
    e->stats.generated_tokens += u->generated_tokens;
    e->stats.prefill_seconds += u->prefill_seconds;
    e->stats.decode_seconds += u->decode_seconds;
    if (u->prefill_seconds > 0.0) e->stats.bubble_rate = r->bubble_seconds / u->prefill_seconds;
    look_at_memory(e);
}

// Of the engine's thread.
static void end_slot(struct st_engine *e, uint32_t slot, enum st_engine_end end,
                     stint_status status) {
    struct st_job *job = e->slots.slots[slot].job;
    char why[512] = "";
    if (status != STINT_OK) stint_error_copy(why, sizeof why);
    pthread_mutex_lock(&e->lock);
    count_end(e, job);
    st_record_free(&e->record);
    e->record = job->record;
    e->record.usage = job->usage;
    e->record.memory = e->stats.memory;
    job->record = (struct st_record){0};
    e->slots.slots[slot].state = ST_SLOT_FREE;
    e->slots.slots[slot].job = NULL;
    e->telling = true;
    pthread_mutex_unlock(&e->lock);
    // Told last: who hears of it finds the slot free and the request counted.
    st_job_end(job, end, status, why);
    st_job_free(job);
    pthread_mutex_lock(&e->lock);
    e->telling = false;
    pthread_cond_broadcast(&e->idle);
    pthread_mutex_unlock(&e->lock);
}

// ---- The thread

static bool is_canceled(struct st_engine *e, uint32_t slot) {
    pthread_mutex_lock(&e->lock);
    bool canceled = e->closing || e->slots.slots[slot].job->canceled;
    pthread_mutex_unlock(&e->lock);
    return canceled;
}

static bool is_running(const struct st_engine *e, uint32_t slot) {
    enum st_slot_state state = e->slots.slots[slot].state;
    return state == ST_SLOT_PROMPT || state == ST_SLOT_ANSWER;
}

static void end_canceled(struct st_engine *e) {
    for (uint32_t i = 0; i < e->slots.n; i++)
        if (is_running(e, i) && is_canceled(e, i))
            end_slot(e, i, ST_ENGINE_CANCELED, STINT_E_CANCELED);
}

// While this is set, a cancel stops the computation itself.
static void set_computing(struct st_engine *e, int32_t slot) {
    pthread_mutex_lock(&e->lock);
    e->computing = slot;
    pthread_mutex_unlock(&e->lock);
}

static void run_prompt(struct st_engine *e) {
    int32_t slot = st_slots_next_prompt(&e->slots);
    enum st_engine_end end;
    if (slot < 0) return;
    set_computing(e, slot);
    stint_status status = st_slots_prompt(&e->slots, (uint32_t)slot, &end);
    set_computing(e, -1);
    // A cancel may come too late for its own piece, and stop the next one: that is run again.
    if (status == STINT_E_CANCELED) return;
    if (status != STINT_OK) end = ST_ENGINE_FAILED;
    if (end != ST_ENGINE_GOES_ON) end_slot(e, (uint32_t)slot, end, status);
}

static void run_step(struct st_engine *e) {
    uint64_t steps = 0;
    uint32_t n = st_slots_step(&e->slots, e->ends, &steps);
    for (uint32_t i = 0; i < n; i++)
        if (e->ends[i].status != STINT_E_CANCELED) // as above
            end_slot(e, e->ends[i].slot, e->ends[i].end, e->ends[i].status);
    pthread_mutex_lock(&e->lock);
    e->stats.decode_steps += steps;
    pthread_mutex_unlock(&e->lock);
}

// With the lock held. False where nothing runs.
static bool admit(struct st_engine *e) {
    while (e->first) {
        size_t reused = 0;
        int32_t slot = st_slots_choose(&e->slots, e->first, &reused);
        if (slot < 0) break;
        struct st_job *job = e->first;
        e->first = job->next;
        if (!e->first) e->last = NULL;
        e->stats.queued--;
        st_slots_give(&e->slots, (uint32_t)slot, job, reused);
    }
    for (uint32_t i = 0; i < e->slots.n; i++)
        if (is_running(e, i)) return true;
    return false;
}

static void *run(void *context) {
    struct st_engine *e = context;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        bool any = admit(e);
        if (!any && e->closing) break;
        if (!any) {
            pthread_cond_wait(&e->work, &e->lock);
            continue;
        }
        pthread_mutex_unlock(&e->lock);
        end_canceled(e);
        run_prompt(e);
        run_step(e);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

// ---- Opening and closing

stint_status st_engine_open(const struct st_engine_options *options, struct st_engine **engine) {
    struct st_engine *e = calloc(1, sizeof *e);
    if (!e) return st_fail(STINT_E_NOMEM, "no memory for an engine");
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->idle, NULL);
    e->n_queue = options->n_queue;
    e->computing = -1;
    stint_status status = st_slots_open(options->model, options->session, &e->slots);
    if (status == STINT_OK) {
        look_at_memory(e);
        e->ends = calloc(e->slots.n, sizeof *e->ends);
        e->running = e->ends && pthread_create(&e->thread, NULL, run, e) == 0;
        if (!e->running) status = st_fail(STINT_E_NOMEM, "no memory for an engine's thread");
    }
    if (status != STINT_OK) {
        st_engine_close(e);
        return status;
    }
    *engine = e;
    return STINT_OK;
}

static void end_waiting(struct st_job *first) {
    for (struct st_job *job = first, *next; job; job = next) {
        next = job->next;
        st_job_end(job, ST_ENGINE_CANCELED, STINT_E_CANCELED, "the engine is closed");
        st_job_free(job);
    }
}

void st_engine_close(struct st_engine *e) {
    if (!e) return;
    if (e->running) {
        pthread_mutex_lock(&e->lock);
        e->closing = e->draining = true;
        struct st_job *waiting = e->first;
        e->first = e->last = NULL;
        e->stats.queued = 0;
        if (e->computing >= 0) stint_session_cancel(e->slots.session);
        pthread_cond_signal(&e->work);
        pthread_mutex_unlock(&e->lock);
        end_waiting(waiting);
        pthread_join(e->thread, NULL);
    }
    st_slots_close(&e->slots);
    st_record_free(&e->record);
    pthread_cond_destroy(&e->idle);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    free(e->ends);
    free(e);
}

static bool is_idle(const struct st_engine *e) {
    for (uint32_t i = 0; i < e->slots.n; i++)
        if (e->slots.slots[i].state != ST_SLOT_FREE) return false;
    return !e->telling && !e->first;
}

bool st_engine_drain(struct st_engine *e, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&e->lock);
    e->draining = true;
    while (!is_idle(e) && pthread_cond_timedwait(&e->idle, &e->lock, &until) != ETIMEDOUT) {
    }
    bool idle = is_idle(e);
    pthread_mutex_unlock(&e->lock);
    return idle;
}

// ---- Requests

static stint_status check_ids(const struct st_engine *e, const struct st_engine_request *r) {
    const struct stint_session *s = e->slots.session;
    for (size_t i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] < 0 || (uint32_t)r->prompt[i] >= s->model->config.vocab)
            return st_fail(STINT_E_ARG, "token %zu is %d: the model's vocabulary has %u", i,
                           (int)r->prompt[i], s->model->config.vocab);
    return STINT_OK;
}

// With the lock held.
static stint_status enqueue(struct st_engine *e, struct st_job *job) {
    if (e->draining) return st_fail(STINT_E_CANCELED, "the engine takes no more requests");
    // Those that a free slot will take at once are in the queue for a moment, too.
    if (e->stats.queued >= e->n_queue + st_slots_count(&e->slots, ST_SLOT_FREE)) {
        e->stats.rejected++;
        return st_fail(STINT_E_LIMIT, "all %u slots are busy and %u requests wait already",
                       e->slots.n, e->stats.queued);
    }
    job->ticket = ++e->n_tickets;
    if (e->last)
        e->last->next = job;
    else
        e->first = job;
    e->last = job;
    e->stats.queued++;
    e->stats.requests++;
    pthread_cond_signal(&e->work);
    return STINT_OK;
}

static stint_status check_biases(const struct st_engine *e,
                                 const struct st_engine_request *request) {
    uint32_t vocab = e->slots.session->model->config.vocab;
    size_t n_banned = 0;
    for (size_t i = 0; i < request->n_biases; i++) {
        const struct st_engine_bias *bias = &request->biases[i];
        if (bias->id < 0 || (uint32_t)bias->id >= vocab)
            return st_fail(STINT_E_ARG, "bias of token %d: not in 0..%u", bias->id, vocab - 1);
        if (!(bias->value < INFINITY))
            return st_fail(STINT_E_ARG, "bias of token %d: not a number", bias->id);
        n_banned += bias->value == -INFINITY;
    }
    if (n_banned >= vocab) return st_fail(STINT_E_ARG, "biases ban all of %u tokens", vocab);
    return STINT_OK;
}

stint_status st_engine_submit(struct st_engine *e, const struct st_engine_request *request,
                              st_engine_fn *fn, void *context, uint64_t *ticket) {
    struct st_job *job = NULL;
    if (request->n_prompt > e->slots.session->n_context)
        return st_fail(STINT_E_ARG, "the prompt has %zu tokens, the context has room for %zu",
                       request->n_prompt, e->slots.session->n_context);
    ST_TRY(check_ids(e, request));
    ST_TRY(check_biases(e, request));
    ST_TRY(st_job_open(request, &job));
    job->fn = fn;
    job->context = context;
    pthread_mutex_lock(&e->lock);
    stint_status status = enqueue(e, job);
    if (status == STINT_OK) *ticket = job->ticket; // it may be gone after the lock
    pthread_mutex_unlock(&e->lock);
    if (status != STINT_OK) st_job_free(job);
    return status;
}

// With the lock held. The job is taken out of the queue; NULL: it is not there.
static struct st_job *take_waiting(struct st_engine *e, uint64_t ticket) {
    for (struct st_job *job = e->first, *before = NULL; job; before = job, job = job->next) {
        if (job->ticket != ticket) continue;
        if (before)
            before->next = job->next;
        else
            e->first = job->next;
        if (e->last == job) e->last = before;
        e->stats.queued--;
        pthread_cond_broadcast(&e->idle);
        return job;
    }
    return NULL;
}

void st_engine_cancel(struct st_engine *e, uint64_t ticket) {
    pthread_mutex_lock(&e->lock);
    struct st_job *waiting = take_waiting(e, ticket);
    for (uint32_t i = 0; i < e->slots.n && !waiting; i++) {
        struct st_job *job = e->slots.slots[i].job;
        if (!job || job->ticket != ticket) continue;
        job->canceled = true;
        if (e->computing == (int32_t)i) stint_session_cancel(e->slots.session);
    }
    pthread_mutex_unlock(&e->lock);
    if (!waiting) return;
    st_job_end(waiting, ST_ENGINE_CANCELED, STINT_E_CANCELED, "canceled");
    st_job_free(waiting);
}

// ---- What there is to know

void st_engine_stats(struct st_engine *e, struct st_engine_stats *stats) {
    const struct stint_session *s = e->slots.session;
    pthread_mutex_lock(&e->lock);
    *stats = e->stats;
    stats->busy = e->slots.n - st_slots_count(&e->slots, ST_SLOT_FREE);
    pthread_mutex_unlock(&e->lock);
    stats->slots = e->slots.n;
    stats->queue_size = e->n_queue;
    stats->context = s->n_context;
    stats->chunk = s->chunk_len;
    stats->device = stint_session_device(s);
}

json_t *st_engine_last(struct st_engine *e) {
    pthread_mutex_lock(&e->lock);
    json_t *json = e->record.usage.prompt_tokens ? st_record_json(&e->record) : json_null();
    pthread_mutex_unlock(&e->lock);
    return json;
}

// ---- Slots on disk

static stint_status take_slot(struct st_engine *e, uint32_t slot) {
    stint_status status = STINT_OK;
    pthread_mutex_lock(&e->lock);
    if (slot >= e->slots.n)
        status = st_fail(STINT_E_ARG, "slot %u: there are %u", slot, e->slots.n);
    else if (e->slots.slots[slot].state != ST_SLOT_FREE)
        status =
            st_fail(STINT_E_ARG, "slot %u is busy: try again when its request has ended", slot);
    else
        e->slots.slots[slot].state = ST_SLOT_TAKEN;
    pthread_mutex_unlock(&e->lock);
    return status;
}

static void give_slot(struct st_engine *e, uint32_t slot) {
    pthread_mutex_lock(&e->lock);
    e->slots.slots[slot].state = ST_SLOT_FREE;
    pthread_cond_signal(&e->work);
    pthread_cond_broadcast(&e->idle);
    pthread_mutex_unlock(&e->lock);
}

stint_status st_engine_save(struct st_engine *e, uint32_t slot, const char *path,
                            size_t *n_tokens) {
    ST_TRY(take_slot(e, slot));
    stint_status status = stint_session_save(e->slots.session, slot, path);
    if (status == STINT_OK) *n_tokens = e->slots.session->sequences[slot].length;
    give_slot(e, slot);
    return status;
}

stint_status st_engine_restore(struct st_engine *e, uint32_t slot, const char *path,
                               size_t *n_tokens) {
    ST_TRY(take_slot(e, slot));
    stint_status status = stint_session_load(e->slots.session, slot, path);
    if (status == STINT_OK) *n_tokens = e->slots.session->sequences[slot].length;
    give_slot(e, slot);
    return status;
}
