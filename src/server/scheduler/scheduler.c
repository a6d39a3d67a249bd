// SPDX-License-Identifier: Apache-2.0
// The queue of requests and the thread that runs the slots.
#include "server/scheduler/state.h"

#include "base/clock.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

// ---- Ends

static void look_at_memory(struct st_scheduler *s) {
    stint_memory_info memory = {.size = sizeof memory};
    if (stint_session_memory(s->slots.session, &memory) == STINT_OK) s->stats.memory = memory;
}

static void count_end(struct st_scheduler *s, const struct st_job *job) {
    const struct st_scheduler_usage *u = &job->usage;
    const struct st_record *r = &job->record;
    s->stats.prompt_tokens += u->prompt_tokens;
    s->stats.reused_tokens += u->reused_tokens;
    s->stats.generated_tokens += u->generated_tokens;
    s->stats.drafted_tokens += u->drafted_tokens;
    s->stats.accepted_tokens += u->accepted_tokens;
    s->stats.self_drafted_tokens += u->self_drafted_tokens;
    s->stats.self_accepted_tokens += u->self_accepted_tokens;
    s->stats.prefill_seconds += u->prefill_seconds;
    s->stats.decode_seconds += u->decode_seconds;
    if (u->prefill_seconds > 0.0) s->stats.bubble_rate = r->bubble_seconds / u->prefill_seconds;
    look_at_memory(s);
}

// Runs on the scheduler's thread.
static void end_slot(struct st_scheduler *s, uint32_t slot, enum st_scheduler_end end,
                     stint_status status) {
    struct st_job *job = s->slots.slots[slot].job;
    char why[512] = "";
    if (status != STINT_OK) stint_error_copy(why, sizeof why);
    st_slots_end(&s->slots, slot, status);
    pthread_mutex_lock(&s->lock);
    count_end(s, job);
    st_record_free(&s->record);
    s->record = job->record;
    s->record.usage = job->usage;
    s->record.memory = s->stats.memory;
    job->record = (struct st_record){0};
    s->slots.slots[slot].state = ST_SLOT_FREE;
    s->slots.slots[slot].job = NULL;
    s->ending = true;
    pthread_mutex_unlock(&s->lock);
    // The event comes last: its receiver finds the slot free and the request counted.
    st_job_end(job, end, status, why);
    st_job_free(job);
    pthread_mutex_lock(&s->lock);
    s->ending = false;
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

// ---- The thread

static bool is_canceled(struct st_scheduler *s, uint32_t slot) {
    pthread_mutex_lock(&s->lock);
    bool canceled = s->closing || s->slots.slots[slot].job->canceled;
    pthread_mutex_unlock(&s->lock);
    return canceled;
}

static bool is_running(const struct st_scheduler *s, uint32_t slot) {
    enum st_slot_state state = s->slots.slots[slot].state;
    return state == ST_SLOT_PROMPT || state == ST_SLOT_ANSWER;
}

static void end_canceled(struct st_scheduler *s) {
    for (uint32_t i = 0; i < s->slots.n; i++)
        if (is_running(s, i) && is_canceled(s, i))
            end_slot(s, i, ST_SCHEDULER_CANCELED, STINT_E_CANCELED);
}

// While this is set, a cancel stops the computation itself.
static void set_computing(struct st_scheduler *s, int32_t slot) {
    pthread_mutex_lock(&s->lock);
    s->computing = slot;
    pthread_mutex_unlock(&s->lock);
}

// Before whoever waits is told of a failure.
static void look_at_files(const struct st_scheduler *s, stint_status status) {
    if (status == STINT_OK || status == STINT_E_CANCELED || !s->lost) return;
    if (st_checkpoint_changed(&s->slots.session->model->checkpoint)) s->lost(s->context);
}

static void run_prompt(struct st_scheduler *s) {
    enum st_scheduler_end end;
    pthread_mutex_lock(&s->lock); // other slots may be read
    int32_t slot = st_slots_next_prompt(&s->slots);
    pthread_mutex_unlock(&s->lock);
    if (slot < 0) return;
    set_computing(s, slot);
    stint_status status = st_slots_prompt(&s->slots, (uint32_t)slot, &end);
    set_computing(s, -1);
    look_at_files(s, status);
    // A cancel may come too late for its own piece, and stop the next one: that is run again.
    if (status == STINT_E_CANCELED) return;
    if (status != STINT_OK) end = ST_SCHEDULER_FAILED;
    if (end != ST_SCHEDULER_GOES_ON) end_slot(s, (uint32_t)slot, end, status);
}

static void run_step(struct st_scheduler *s) {
    uint64_t steps = 0;
    uint32_t n = st_slots_step(&s->slots, s->ends, &steps);
    for (uint32_t i = 0; i < n; i++) look_at_files(s, s->ends[i].status);
    for (uint32_t i = 0; i < n; i++)
        if (s->ends[i].status != STINT_E_CANCELED) // as above
            end_slot(s, s->ends[i].slot, s->ends[i].end, s->ends[i].status);
    pthread_mutex_lock(&s->lock);
    s->stats.decode_steps += steps;
    pthread_mutex_unlock(&s->lock);
}

// With the lock held. False where nothing runs.
static bool admit(struct st_scheduler *s) {
    while (s->first) {
        struct st_slot_choice choice;
        struct st_job *job = s->first;
        if (!st_slots_select(&s->slots, job, &choice)) break;
        bool fetches = st_slots_fetches(&s->slots, job, &choice);
        if (fetches && s->fetching) break;
        s->first = job->next;
        if (!s->first) s->last = NULL;
        s->stats.queued--;
        if (fetches)
            st_scheduler_fetch(s, job, &choice);
        else
            st_slots_give(&s->slots, &choice, job);
    }
    for (uint32_t i = 0; i < s->slots.n; i++)
        if (is_running(s, i)) return true;
    return false;
}

static void *run(void *context) {
    struct st_scheduler *s = context;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        bool any = admit(s);
        if (!any && s->closing && !s->fetching) break;
        if (!any) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        end_canceled(s);
        run_prompt(s);
        run_step(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

// ---- Opening and closing

stint_status st_scheduler_open(const struct st_scheduler_options *options,
                               struct st_scheduler **scheduler) {
    struct st_scheduler *s = calloc(1, sizeof *s);
    if (!s) return st_fail(STINT_E_NOMEM, "no memory for a request scheduler");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->disk_work, NULL);
    st_cond_init(&s->idle);
    s->n_queue = options->n_queue;
    s->lost = options->lost;
    s->context = options->context;
    s->computing = -1;
    stint_status status = st_slots_open(options->model, options->session, &s->slots);
    if (status == STINT_OK) {
        look_at_memory(s);
        s->ends = calloc(s->slots.n, sizeof *s->ends);
        s->running = s->ends && pthread_create(&s->thread, NULL, run, s) == 0;
        if (!s->running)
            status = st_fail(STINT_E_NOMEM, "no memory for a request scheduler's thread");
    }
    if (status != STINT_OK) {
        st_scheduler_close(s);
        return status;
    }
    *scheduler = s;
    return STINT_OK;
}

static void end_waiting(struct st_job *first) {
    for (struct st_job *job = first, *next; job; job = next) {
        next = job->next;
        st_job_end(job, ST_SCHEDULER_CANCELED, STINT_E_CANCELED, "the scheduler is closed");
        st_job_free(job);
    }
}

void st_scheduler_close(struct st_scheduler *s) {
    if (!s) return;
    if (s->running) {
        pthread_mutex_lock(&s->lock);
        s->closing = s->draining = true;
        struct st_job *waiting = s->first;
        s->first = s->last = NULL;
        s->stats.queued = 0;
        if (s->computing >= 0) stint_session_cancel(s->slots.session);
        pthread_cond_signal(&s->work);
        pthread_mutex_unlock(&s->lock);
        end_waiting(waiting);
        pthread_join(s->thread, NULL);
    }
    st_scheduler_disk_close(s);
    st_slots_close(&s->slots);
    st_record_free(&s->record);
    pthread_cond_destroy(&s->disk_work);
    pthread_cond_destroy(&s->idle);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s->ends);
    free(s);
}

static bool is_idle(const struct st_scheduler *s) {
    for (uint32_t i = 0; i < s->slots.n; i++)
        if (s->slots.slots[i].state != ST_SLOT_FREE) return false;
    return !s->ending && !s->first;
}

bool st_scheduler_drain(struct st_scheduler *s, double seconds) {
    uint64_t until = st_now_ns() + (uint64_t)(seconds * 1e9);
    pthread_mutex_lock(&s->lock);
    s->draining = true;
    while (!is_idle(s) && st_cond_wait_until(&s->idle, &s->lock, until)) continue;
    bool idle = is_idle(s);
    pthread_mutex_unlock(&s->lock);
    return idle;
}

// ---- Requests

static stint_status check_ids(const struct st_scheduler *s, const struct st_scheduler_request *r) {
    const struct stint_session *session = s->slots.session;
    for (size_t i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] < 0 || (uint32_t)r->prompt[i] >= session->model->config.vocab)
            return st_fail(STINT_E_ARG, "token %zu is %d: the model's vocabulary has %u", i,
                           (int)r->prompt[i], session->model->config.vocab);
    return STINT_OK;
}

// With the lock held.
static stint_status enqueue(struct st_scheduler *s, struct st_job *job) {
    if (s->draining) return st_fail(STINT_E_CANCELED, "the scheduler takes no more requests");
    // Requests that a free slot takes at once are in the queue for a moment, too.
    if (s->stats.queued >= s->n_queue + st_slots_count(&s->slots, ST_SLOT_FREE)) {
        s->stats.rejected++;
        return st_fail(STINT_E_LIMIT, "all %u slots are busy and %u requests wait already",
                       s->slots.n, s->stats.queued);
    }
    job->ticket = ++s->n_tickets;
    if (s->last)
        s->last->next = job;
    else
        s->first = job;
    s->last = job;
    s->stats.queued++;
    s->stats.requests++;
    pthread_cond_signal(&s->work);
    return STINT_OK;
}

stint_status st_scheduler_submit(struct st_scheduler *s, const struct st_scheduler_request *request,
                                 st_scheduler_fn *fn, void *context, uint64_t *ticket) {
    struct st_job *job = NULL;
    size_t n_context = s->slots.session->n_context;
    if (request->n_texts > 0)
        ST_TRY(st_scheduler_check_texts(request, n_context));
    else if (request->n_prompt > n_context)
        return st_fail(STINT_E_ARG, "the prompt has %zu tokens, the context has room for %zu",
                       request->n_prompt, n_context);
    ST_TRY(check_ids(s, request));
    ST_TRY(st_job_open(request, s->slots.session->model, &job));
    job->fn = fn;
    job->context = context;
    pthread_mutex_lock(&s->lock);
    stint_status status = enqueue(s, job);
    if (status == STINT_OK) *ticket = job->ticket; // it may be gone after the lock
    pthread_mutex_unlock(&s->lock);
    if (status != STINT_OK) st_job_free(job);
    return status;
}

// With the lock held. Takes the job out of the queue; NULL: it is not there.
static struct st_job *take_waiting(struct st_scheduler *s, uint64_t ticket) {
    for (struct st_job *job = s->first, *before = NULL; job; before = job, job = job->next) {
        if (job->ticket != ticket) continue;
        if (before)
            before->next = job->next;
        else
            s->first = job->next;
        if (s->last == job) s->last = before;
        s->stats.queued--;
        pthread_cond_broadcast(&s->idle);
        return job;
    }
    return NULL;
}

void st_scheduler_cancel(struct st_scheduler *s, uint64_t ticket) {
    pthread_mutex_lock(&s->lock);
    struct st_job *waiting = take_waiting(s, ticket);
    for (uint32_t i = 0; i < s->slots.n && !waiting; i++) {
        struct st_job *job = s->slots.slots[i].job;
        if (!job || job->ticket != ticket) continue;
        job->canceled = true;
        if (s->computing == (int32_t)i) stint_session_cancel(s->slots.session);
    }
    pthread_mutex_unlock(&s->lock);
    if (!waiting) return;
    st_job_end(waiting, ST_SCHEDULER_CANCELED, STINT_E_CANCELED, "canceled");
    st_job_free(waiting);
}

// ---- Statistics

void st_scheduler_stats(struct st_scheduler *s, struct st_scheduler_stats *stats) {
    const struct stint_session *session = s->slots.session;
    pthread_mutex_lock(&s->lock);
    *stats = s->stats;
    stats->busy = s->slots.n - st_slots_count(&s->slots, ST_SLOT_FREE);
    pthread_mutex_unlock(&s->lock);
    stats->slots = s->slots.n;
    stats->queue_size = s->n_queue;
    stats->context = session->n_context;
    stats->chunk = session->chunk_len;
    stats->device = stint_session_device(session);
}

void st_scheduler_stats_add(struct st_scheduler_stats *stats,
                            const struct st_scheduler_stats *other) {
    stats->requests += other->requests;
    stats->rejected += other->rejected;
    stats->prompt_tokens += other->prompt_tokens;
    stats->reused_tokens += other->reused_tokens;
    stats->generated_tokens += other->generated_tokens;
    stats->decode_steps += other->decode_steps;
    stats->drafted_tokens += other->drafted_tokens;
    stats->accepted_tokens += other->accepted_tokens;
    stats->self_drafted_tokens += other->self_drafted_tokens;
    stats->self_accepted_tokens += other->self_accepted_tokens;
    stats->prefix_loads += other->prefix_loads;
    stats->prefix_saves += other->prefix_saves;
    stats->prefill_seconds += other->prefill_seconds;
    stats->decode_seconds += other->decode_seconds;
    stats->memory.bytes_read += other->memory.bytes_read;
}

json_t *st_scheduler_last(struct st_scheduler *s) {
    pthread_mutex_lock(&s->lock);
    json_t *json = s->record.usage.prompt_tokens ? st_record_json(&s->record) : json_null();
    pthread_mutex_unlock(&s->lock);
    if (!json_is_object(json)) return json;
    stint_model_info info = {.size = sizeof info};
    stint_model_describe(s->slots.session->model, &info);
    json_object_set_new(json, "exec", json_string(stint_exec_name(info.exec)));
    json_object_set_new(json, "device", json_string(stint_session_device(s->slots.session)));
    return json;
}
