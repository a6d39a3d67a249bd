// SPDX-License-Identifier: Apache-2.0
// The program: texts of this folder, and of src/kernels what the host computes with too, built for
// one device when it is opened.
#include "device/opencl/opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXTS = 20, LOG_BYTES = 400, FEWEST_LANES = 4 };

static_assert((int)OCL_PANEL == ST_INT8_PANEL && (int)OCL_GROUP == ST_DEVICE_GROUP &&
                  (int)OCL_PARTS == ST_LINEAR_OP_PARTS,
              "both sides know the layout");
static_assert(sizeof(struct ocl_quantized) == 40 && sizeof(struct ocl_outliers) == 24 &&
                  sizeof(struct ocl_quantize) == 96 && sizeof(struct ocl_norm) == 56 &&
                  sizeof(struct ocl_attend) == 88 && sizeof(struct ocl_linear) == 248 &&
                  sizeof(struct ocl_multiply) == 104,
              "no padding, so that two compilers agree");

#define STORED(id, type, ...) [OPENCL_MULTIPLY + ST_DTYPE_##id] = "multiply_" type,
static const char *const kernel_names[OPENCL_N_KERNELS] = {
    [OPENCL_QUANTIZE_STATIC] = "quantize_static",
    [OPENCL_QUANTIZE_ROWS] = "quantize_rows",
    [OPENCL_NORM_ROWS] = "norm_rows",
    [OPENCL_LINEAR_FLOAT] = "linear_float",
    [OPENCL_LINEAR_ACTIVATED] = "linear_activated",
    [OPENCL_ATTEND + ST_KV_F32] = "attend_f32",
    [OPENCL_ATTEND + ST_KV_F16] = "attend_f16",
    [OPENCL_MULTIPLY_NESTED] = "multiply_nested",
    ST_DTYPE_LIST(STORED)};
#undef STORED

// Numbers that the texts take from headers with more in them than OpenCL C understands.
static const char definitions[] = "enum {"
#define X(id, name) "ST_ACT_" #id ","
    ST_ACT_LIST(X)
#undef X
        "};\n";

// The compiler's first complaint, or what there is of it.
static stint_status say_why(struct opencl_device *d, cl_int error) {
    char log[LOG_BYTES] = "";
    size_t bytes = 0;
    if (error != CL_BUILD_PROGRAM_FAILURE) return st_opencl_status(d, error, "clBuildProgram");
    d->cl.clGetProgramBuildInfo(d->program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *all = bytes ? malloc(bytes + 1) : NULL;
    if (all && d->cl.clGetProgramBuildInfo(d->program, d->id, CL_PROGRAM_BUILD_LOG, bytes, all,
                                           NULL) == CL_SUCCESS) {
        all[bytes] = 0;
        const char *first = strstr(all, "error:");
        snprintf(log, sizeof log, "%s", first ? first : all);
        log[strcspn(log, "\n")] = 0;
    }
    free(all);
    return st_fail(STINT_E_DEVICE, "device 'opencl': the program cannot be built: %s", log);
}

static stint_status make_program(struct opencl_device *d) {
    const char *texts[MAX_TEXTS] = {definitions};
    cl_uint n = 1;
    char options[300];
    cl_int error;
    for (; st_opencl_program[n - 1].name && n < MAX_TEXTS; n++)
        texts[n] = st_opencl_program[n - 1].text;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -DITEMS=%u -DSTEP_ITEMS=%u -DSTEP_TILE=%u -DTOKENS=%u -DLANES=%u "
             "-DHOST_LANES=%u "
             "-DST_TERM_STEPS=%af %s %s",
             d->settings.items, d->settings.decode_items, st_opencl_step_tile(d),
             d->settings.tokens, d->lanes, d->norm_lanes ? d->norm_lanes : FEWEST_LANES,
             (double)ST_TERM_STEPS, d->dp4a ? "-DDP4A" : "",
             d->settings.steps ? "-DDIVIDE_IN_STEPS" : "-cl-fp32-correctly-rounded-divide-sqrt");
    d->program = OPENCL_MAKE(d, &error, clCreateProgramWithSource, d->context, n, texts, NULL);
    ST_TRY(st_opencl_status(d, error, "clCreateProgramWithSource"));
    error = OPENCL_CALL(d, clBuildProgram, d->program, 1, &d->id, options, NULL, NULL);
    return error ? say_why(d, error) : STINT_OK;
}

static stint_status make_kernels(struct opencl_device *d) {
    ST_TRY(make_program(d));
    for (size_t i = 0; i < OPENCL_N_KERNELS; i++) {
        cl_int error;
        if (!kernel_names[i]) continue; // of a type of the cache that has none
        d->kernels[i] = OPENCL_MAKE(d, &error, clCreateKernel, d->program, kernel_names[i]);
        ST_TRY(st_opencl_status(d, error, kernel_names[i]));
    }
    return STINT_OK;
}

stint_status st_opencl_build(struct opencl_device *d) {
    cl_int error;
    d->context = OPENCL_MAKE(d, &error, clCreateContext, NULL, 1, &d->id, NULL, NULL);
    ST_TRY(st_opencl_status(d, error, "clCreateContext"));
    d->queue =
        OPENCL_MAKE(d, &error, clCreateCommandQueue, d->context, d->id, CL_QUEUE_PROFILING_ENABLE);
    ST_TRY(st_opencl_status(d, error, "clCreateCommandQueue"));
    d->transfers = OPENCL_MAKE(d, &error, clCreateCommandQueue, d->context, d->id, 0);
    ST_TRY(st_opencl_status(d, error, "clCreateCommandQueue"));
    d->programs = OPENCL_MAKE(d, &error, clCreateCommandQueue, d->context, d->id, 0);
    ST_TRY(st_opencl_status(d, error, "clCreateCommandQueue"));
    d->counters = OPENCL_MAKE(d, &error, clCreateBuffer, d->context, CL_MEM_READ_WRITE,
                              ST_DEVICE_JOBS * sizeof(cl_uint), NULL);
    ST_TRY(st_opencl_status(d, error, "clCreateBuffer"));
    return make_kernels(d);
}
