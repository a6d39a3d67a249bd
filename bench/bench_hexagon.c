// SPDX-License-Identifier: Apache-2.0
// What a job costs beyond its work on the device `hexagon`: the smallest there is, one by one and
// in rows of 64. Host side; under emulation the DSP's side says nothing of hardware.
#include "base/clock.h"
#include "device/hexagon/hexagon.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 141, JOBS = 64, N = 8 };

struct figures {
    double submit_us, total_us, bells;
};

static stint_status submit(struct st_buffer *buffer, struct st_job *after, struct st_job **job) {
    const struct st_quantize_args args = {.x = {.buffer = buffer},
                                          .quantized = {.buffer = buffer, .offset = 64},
                                          .n_rows = 1,
                                          .n = N,
                                          .scale = 1.0f};
    return st_device_quantize(buffer->device, &args, &after, after != NULL, job);
}

// JOBS jobs, each after the one before it; waits for each `at_once` of them.
static struct figures run(struct st_buffer *b, int at_once) {
    atomic_uint *bells = &((struct hexagon_device *)b->device)->n_bells;
    unsigned before = atomic_load(bells);
    uint64_t begun = st_now_ns(), submitting = 0;
    for (int i = 0; i < JOBS; i += at_once) {
        struct st_job *jobs[JOBS];
        uint64_t from = st_now_ns();
        for (int j = 0; j < at_once; j++)
            if (submit(b, j ? jobs[j - 1] : NULL, &jobs[j]) != STINT_OK) exit(1);
        submitting += st_now_ns() - from;
        for (int j = 0; j < at_once; j++)
            if (st_job_join(jobs[j], NULL) != STINT_OK) exit(1);
    }
    return (struct figures){(double)submitting * 1e-3 / JOBS,
                            (double)(st_now_ns() - begun) * 1e-3 / JOBS,
                            (double)(atomic_load(bells) - before) / JOBS};
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

int main(void) {
    const int sizes[] = {1, 8, JOBS};
    const struct st_device_options options = {.name = "hexagon"};
    struct st_device *device;
    struct st_buffer *b;
    if (st_device_open(&options, &device) != STINT_OK ||
        st_buffer_allocate(device, 1024, &b) != STINT_OK) {
        fprintf(stderr, "%s\n", st_error_text());
        return 1;
    }
    printf("jobs at once   submit, us   whole job, us   bells a job\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double submits[ROUNDS], totals[ROUNDS], bells[ROUNDS];
        for (int r = 0; r < ROUNDS; r++) {
            struct figures f = run(b, sizes[i]);
            submits[r] = f.submit_us;
            totals[r] = f.total_us;
            bells[r] = f.bells;
        }
        printf("%12d %12.2f %15.1f %13.3f\n", sizes[i], median(submits), median(totals),
               median(bells));
    }
    st_buffer_free(b);
    st_device_close(device);
    return 0;
}
