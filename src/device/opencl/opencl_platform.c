// SPDX-License-Identifier: Apache-2.0
// Which OpenCL device is taken, and what it can do.
#include "base/cpu.h"
#include "device/opencl/opencl.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PLATFORMS = 8, MAX_DEVICES = 16, NAME_BYTES = 256 };

struct candidates {
    cl_device_id ids[MAX_DEVICES];
    cl_uint n;
};

// Whether bits of floats are the host's.
static bool computes_exactly(const struct opencl_api *cl, cl_device_id id) {
    const cl_device_fp_config needed = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN | CL_FP_FMA;
    cl_device_fp_config has = 0;
    return cl->clGetDeviceInfo(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof has, &has, NULL) ==
               CL_SUCCESS &&
           (has & needed) == needed;
}

static bool is_yes(const struct opencl_api *cl, cl_device_id id, cl_device_info what) {
    cl_bool yes = CL_FALSE;
    return cl->clGetDeviceInfo(id, what, sizeof yes, &yes, NULL) == CL_SUCCESS && yes;
}

static bool is_new_enough(const struct opencl_api *cl, cl_device_id id) {
    char version[NAME_BYTES] = "";
    unsigned major = 0, minor = 0;
    if (cl->clGetDeviceInfo(id, CL_DEVICE_OPENCL_C_VERSION, sizeof version - 1, version, NULL) !=
        CL_SUCCESS)
        return false;
    return sscanf(version, "OpenCL C %u.%u", &major, &minor) == 2 &&
           (major > 1 || (major == 1 && minor >= 2));
}

static bool is_suitable(const struct opencl_api *cl, cl_device_id id) {
    return is_yes(cl, id, CL_DEVICE_AVAILABLE) && is_yes(cl, id, CL_DEVICE_COMPILER_AVAILABLE) &&
           is_yes(cl, id, CL_DEVICE_ENDIAN_LITTLE) && is_new_enough(cl, id) &&
           computes_exactly(cl, id);
}

static void add_devices(const struct opencl_api *cl, cl_platform_id platform, cl_device_type type,
                        struct candidates *c) {
    cl_device_id ids[MAX_DEVICES];
    cl_uint n = 0;
    if (cl->clGetDeviceIDs(platform, type, MAX_DEVICES, ids, &n) != CL_SUCCESS) return;
    for (cl_uint i = 0; i < st_min(n, MAX_DEVICES) && c->n < MAX_DEVICES; i++)
        if (is_suitable(cl, ids[i])) c->ids[c->n++] = ids[i];
}

// All suitable devices, GPUs first.
static struct candidates find_devices(const struct opencl_api *cl) {
    static const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                           CL_DEVICE_TYPE_CPU};
    struct candidates c = {.n = 0};
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n = 0;
    if (cl->clGetPlatformIDs(MAX_PLATFORMS, platforms, &n) != CL_SUCCESS) return c;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (cl_uint i = 0; i < st_min(n, MAX_PLATFORMS); i++)
            add_devices(cl, platforms[i], types[t], &c);
    return c;
}

bool st_opencl_present(void) {
    struct opencl_api cl;
    return st_opencl_load(&cl) && find_devices(&cl).n > 0;
}

// What the device says of itself; a call that fails leaves what is there.
#define ASK(d, id, what, value)                                                                    \
    OPENCL_CALL(d, clGetDeviceInfo, id, what, sizeof *(value), value, NULL)

static stint_status read_limits(struct opencl_device *d) {
    cl_ulong memory = 0, allocation = 0, local = 0;
    cl_bool unified = CL_FALSE;
    cl_uint bits = 0;
    cl_device_fp_config floats = 0;
    cl_int error = ASK(d, d->id, CL_DEVICE_GLOBAL_MEM_SIZE, &memory);
    if (!error) error = ASK(d, d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &allocation);
    if (!error) error = ASK(d, d->id, CL_DEVICE_LOCAL_MEM_SIZE, &local);
    if (!error) error = ASK(d, d->id, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified);
    if (!error) error = ASK(d, d->id, CL_DEVICE_SINGLE_FP_CONFIG, &floats);
    if (!error) error = ASK(d, d->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &bits);
    ST_TRY(st_opencl_status(d, error, "clGetDeviceInfo"));
    d->alignment = st_max(ST_DEVICE_ALIGNMENT, bits / 8);
    d->base.caps = (struct st_device_caps){
        .own_processor = true, .memory_limit = memory, .max_rows = UINT32_MAX};
    d->max_allocation = allocation;
    d->local_memory = local;
    d->unified = unified && !d->settings.copy;
    d->base.caps.reads_host = d->unified;
    const struct st_elementwise *host = st_elementwise_select(st_cpu_flags());
    d->exact_acts = host->isa != 0;
    d->norm_lanes = host->sum_lanes;
    d->base.caps.row_norms = d->norm_lanes > 0 && !d->settings.host_norms;
    if (!(floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)) d->settings.steps = 1;
    return STINT_OK;
}

// Whether it is NVIDIA's and has the instruction dp4a, since compute capability 6.1. Others do not
// know the question.
static bool has_dp4a(const struct opencl_device *d) {
    enum { MAJOR = 0x4000, MINOR = 0x4001 }; // cl_nv_device_attribute_query
    cl_uint major = 0, minor = 0;
    return d->cl.clGetDeviceInfo(d->id, MAJOR, sizeof major, &major, NULL) == CL_SUCCESS &&
           d->cl.clGetDeviceInfo(d->id, MINOR, sizeof minor, &minor, NULL) == CL_SUCCESS &&
           10 * major + minor >= 61;
}

// A score has up to four items (step_attend.cl).
enum { FEWEST_DECODE_ITEMS = 4 };

static stint_status tune(struct opencl_device *d) {
    char device[NAME_BYTES] = "", platform[NAME_BYTES] = "";
    struct opencl_tuning tuning;
    cl_platform_id of = NULL;
    size_t most = 1;
    cl_int error = ASK(d, d->id, CL_DEVICE_NAME, &device);
    if (!error) error = ASK(d, d->id, CL_DEVICE_PLATFORM, &of);
    if (!error)
        error = OPENCL_CALL(d, clGetPlatformInfo, of, CL_PLATFORM_NAME, sizeof platform, platform,
                            NULL);
    if (!error) error = ASK(d, d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &most);
    ST_TRY(st_opencl_status(d, error, "clGetDeviceInfo"));
    device[NAME_BYTES - 1] = platform[NAME_BYTES - 1] = 0;
    ST_TRY(st_opencl_tuning(platform, device, &tuning));
    if (!d->settings.items) d->settings.items = tuning.items;
    if (!d->settings.tokens) d->settings.tokens = tuning.tokens;
    if (d->settings.attention == OPENCL_UNSET) d->settings.attention = tuning.attention;
    if (d->settings.decode == OPENCL_UNSET) d->settings.decode = tuning.decode;
    if (!d->settings.decode_items) d->settings.decode_items = tuning.decode_items;
    if (!d->settings.decode_items) d->settings.decode_items = d->settings.items;
    d->settings.items = (uint32_t)st_min(d->settings.items, most);
    d->settings.decode_items =
        (uint32_t)st_min(st_max(d->settings.decode_items, FEWEST_DECODE_ITEMS), most);
    d->dp4a = has_dp4a(d);
    d->stored = most >= OCL_STORED_ROWS;
    d->base.caps.programs = d->settings.decode && d->stored && d->exact_acts && d->norm_lanes;
    d->lanes =
        (uint32_t)st_max(1, st_min(d->settings.items / OCL_STORED_ROWS, ST_OPENCL_MAX_LANES));
    return STINT_OK;
}

stint_status st_opencl_select(struct opencl_device *d) {
    if (!st_opencl_load(&d->cl))
        return st_fail(STINT_E_DEVICE, "device 'opencl': this machine has no libOpenCL.so.1");
    struct candidates c = find_devices(&d->cl);
    uint32_t number = d->settings.device ? d->settings.device : 1;
    if (number > c.n)
        return st_fail(d->settings.device ? STINT_E_ARG : STINT_E_DEVICE,
                       "device 'opencl': there is no device %u: OpenCL has %u that can be used",
                       number, c.n);
    d->id = c.ids[number - 1];
    ST_TRY(read_limits(d));
    return tune(d);
}
