// SPDX-License-Identifier: Apache-2.0
// Errors of OpenCL: their names, what they mean, and those that tests ask for.
#include "device/opencl/opencl.h"

#define CODES(X)                                                                                   \
    X(CL_DEVICE_NOT_FOUND)                                                                         \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                     \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                   \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                            \
    X(CL_OUT_OF_RESOURCES)                                                                         \
    X(CL_OUT_OF_HOST_MEMORY)                                                                       \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)                                                             \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                    \
    X(CL_MAP_FAILURE)                                                                              \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                \
    X(CL_INVALID_VALUE)                                                                            \
    X(CL_INVALID_CONTEXT)                                                                          \
    X(CL_INVALID_COMMAND_QUEUE)                                                                    \
    X(CL_INVALID_HOST_PTR)                                                                         \
    X(CL_INVALID_MEM_OBJECT)                                                                       \
    X(CL_INVALID_BUILD_OPTIONS)                                                                    \
    X(CL_INVALID_KERNEL_ARGS)                                                                      \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                  \
    X(CL_INVALID_WORK_ITEM_SIZE)                                                                   \
    X(CL_INVALID_OPERATION)                                                                        \
    X(CL_INVALID_BUFFER_SIZE)

static const char *name_of(cl_int error) {
    switch (error) {
#define X(code)                                                                                    \
    case code:                                                                                     \
        return #code;
        CODES(X)
#undef X
    default:
        return "an error";
    }
}

cl_int st_opencl_fault(struct opencl_device *d) {
    unsigned n = atomic_fetch_add_explicit(&d->n_calls, 1, memory_order_relaxed) + 1;
    if (n == d->settings.lose) return CL_DEVICE_NOT_AVAILABLE;
    return n == d->settings.error ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int st_opencl_wait_for(struct opencl_device *d, cl_event event) {
    cl_int error = OPENCL_CALL(d, clWaitForEvents, 1, &event);
    if (error) d->cl.clWaitForEvents(1, &event); // it was only said to have failed, or fails again
    return error;
}

enum st_job_failure st_opencl_failure(struct opencl_device *d, cl_int error) {
    switch (error) {
    case CL_SUCCESS:
        return ST_FAILURE_NONE;
    case CL_OUT_OF_HOST_MEMORY:
    case CL_OUT_OF_RESOURCES:
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_INVALID_BUFFER_SIZE:
        return ST_FAILURE_NOMEM;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_CONTEXT: // what drivers say after a GPU was reset
    case CL_INVALID_COMMAND_QUEUE:
        st_device_lose(&d->base, name_of(error));
        return ST_FAILURE_LOST;
    default:
        return ST_FAILURE_FAULT;
    }
}

stint_status st_opencl_status(struct opencl_device *d, cl_int error, const char *call) {
    enum st_job_failure failure = st_opencl_failure(d, error);
    if (failure == ST_FAILURE_NONE) return STINT_OK;
    return st_fail(failure == ST_FAILURE_NOMEM ? STINT_E_NOMEM : STINT_E_DEVICE,
                   "device 'opencl': %s: %s (%d)", call, name_of(error), (int)error);
}
