// SPDX-License-Identifier: Apache-2.0
// OpenCL's functions, from the loader that this machine has. They are looked for when the device is
// used, not linked: a program runs where there is no OpenCL too, and may be static.
#ifndef ST_DEVICE_OPENCL_API_H
#define ST_DEVICE_OPENCL_API_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdbool.h>

#define OPENCL_FUNCTIONS(X)                                                                        \
    X(clBuildProgram)                                                                              \
    X(clCreateBuffer)                                                                              \
    X(clCreateCommandQueue)                                                                        \
    X(clCreateContext)                                                                             \
    X(clCreateKernel)                                                                              \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateSubBuffer)                                                                           \
    X(clCreateUserEvent)                                                                           \
    X(clEnqueueBarrierWithWaitList)                                                                \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clFlush)                                                                                     \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clGetEventInfo)                                                                              \
    X(clGetEventProfilingInfo)                                                                     \
    X(clGetMemObjectInfo)                                                                          \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetProgramBuildInfo)                                                                       \
    X(clReleaseCommandQueue)                                                                       \
    X(clReleaseContext)                                                                            \
    X(clReleaseEvent)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clReleaseMemObject)                                                                          \
    X(clReleaseProgram)                                                                            \
    X(clRetainEvent)                                                                               \
    X(clSetKernelArg)                                                                              \
    X(clSetUserEventStatus)                                                                        \
    X(clWaitForEvents)

struct opencl_api {
#define X(name) __typeof__(name) *name;
    OPENCL_FUNCTIONS(X)
#undef X
};

// False where this machine has no loader, or one that lacks a function. The loader stays.
bool st_opencl_load(struct opencl_api *api);

#endif
