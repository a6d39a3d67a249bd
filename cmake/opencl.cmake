# SPDX-License-Identifier: Apache-2.0
# The device `opencl` (docs/OPENCL.md), where OpenCL's headers are; its functions are looked for at
# run time. The library carries the program's texts and the device files; without the headers it has
# a row that says so. The thread sanitizer would report what drivers, which are not built for it, do
# among themselves.
include(CheckIncludeFile)
option(STINT_OPENCL "Have the device 'opencl' where OpenCL's headers are found" ON)
check_include_file(CL/cl.h STINT_OPENCL_HEADERS)

if(STINT_OPENCL AND STINT_OPENCL_HEADERS AND NOT STINT_SANITIZE MATCHES thread)
  set(STINT_HAS_OPENCL TRUE)
  list(FILTER STINT_SOURCES EXCLUDE REGEX "/device/opencl/absent\\.c$")
  set(opencl ${CMAKE_SOURCE_DIR}/src/device/opencl)
  set(kernels ${CMAKE_SOURCE_DIR}/src/kernels)
  stint_embed_texts(${CMAKE_CURRENT_BINARY_DIR}/opencl_program.c device/opencl/opencl.h
    "struct st_opencl_text st_opencl_program" NAME ${opencl}/args.h ${opencl}/floats.cl
    ${kernels}/vec_exp.h ${kernels}/activations.h ${opencl}/quantize.cl ${opencl}/product.cl
    ${opencl}/attend.cl ${opencl}/types.cl ${kernels}/vec_norm.h ${opencl}/norm.cl
    ${kernels}/dequantize_layout.h ${kernels}/block_types.h ${kernels}/block_parts.h
    ${opencl}/stored.cl ${opencl}/steps.cl ${opencl}/step_attend.cl)
  file(GLOB opencl_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/share/opencl/*.ini)
  stint_embed_texts(${CMAKE_CURRENT_BINARY_DIR}/opencl_files.c device/opencl/opencl.h
    "struct st_opencl_text st_opencl_device_files" NAME_WE ${opencl_files})
  set(STINT_OPENCL_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/opencl_program.c
    ${CMAKE_CURRENT_BINARY_DIR}/opencl_files.c)
else()
  message(STATUS "no OpenCL headers: no device 'opencl'")
  list(FILTER STINT_SOURCES EXCLUDE REGEX "/device/opencl/opencl[^/]*\\.c$")
  set(STINT_OPENCL_SOURCES "")
endif()
