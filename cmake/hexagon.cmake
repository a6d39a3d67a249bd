# SPDX-License-Identifier: Apache-2.0
# Programs for the Hexagon DSP, by a compiler of their own (docs/HEXAGON.md). The library carries
# the one that its device starts; without the compiler it carries none, and there is no such device.
find_program(HEXAGON_CLANG clang)
find_program(HEXAGON_LLD ld.lld)
find_program(HEXAGON_QEMU qemu-hexagon)

set(hexagon_flags --target=hexagon-unknown-linux-musl -mcpu=hexagonv67 -mhvx -mhvx-length=128b -G0
  -std=c17 -O2 -ffreestanding -ffp-contract=off -nostdlib
  -Wall -Wextra -Wshadow -Wundef -Wvla -Wmissing-prototypes -Wstrict-prototypes
  $<$<BOOL:${STINT_WERROR}>:-Werror>
  -I${CMAKE_SOURCE_DIR}/hexagon -I${CMAKE_SOURCE_DIR}/hexagon/include
  -I${CMAKE_SOURCE_DIR}/hexagon/tests -I${CMAKE_SOURCE_DIR}/src)
# For tests/hexagon/test_product.py.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/hexagon_flags.txt CONTENT "$<JOIN:${hexagon_flags},\n>\n")
file(GLOB hexagon_headers CONFIGURE_DEPENDS hexagon/*.h hexagon/*/*.h src/base/size.h
  src/base/half.h src/kernels/elementwise*.h src/kernels/vec*.h src/kernels/int8.h src/device/*.h
  src/device/hexagon/*.h)
set(HEXAGON_KERNELS hexagon/runtime.c hexagon/divide.c hexagon/norm.c hexagon/elementwise.c
  hexagon/product_hvx.c)
set(HEXAGON_QUEUE hexagon/queue.c hexagon/job.c ${HEXAGON_KERNELS} src/device/epilogue.c
  src/device/outliers.c)

# A program from all its sources, or a shared object (lib*.so).
function(stint_hexagon_program name)
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
  set(kind -fno-pic -static)
  if(name MATCHES "\\.so$")
    set(kind -fPIC -shared -fvisibility=hidden -Wl,-soname=${name})
  endif()
  add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}
    COMMAND ${HEXAGON_CLANG} ${hexagon_flags} ${kind} -fuse-ld=lld ${sources}
      -o ${CMAKE_CURRENT_BINARY_DIR}/${name}
    DEPENDS ${sources} ${hexagon_headers} COMMENT "Building ${name} for Hexagon" VERBATIM)
endfunction()

set(hexagon_program "")
if(HEXAGON_CLANG AND HEXAGON_LLD)
  stint_hexagon_program(stint-hexagon hexagon/main.c hexagon/system.c ${HEXAGON_QUEUE})
  set(hexagon_program ${CMAKE_CURRENT_BINARY_DIR}/stint-hexagon)
  # What FastRPC loads on a phone's DSP.
  stint_hexagon_program(libstint_skel.so hexagon/skel.c ${HEXAGON_QUEUE})
  add_custom_target(stint_skel ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/libstint_skel.so)
else()
  message(STATUS "no clang with lld: no program for Hexagon DSPs")
endif()
configure_file(cmake/hexagon_program.c.in hexagon_program.c @ONLY)
set(STINT_HEXAGON_SOURCE ${CMAKE_CURRENT_BINARY_DIR}/hexagon_program.c)
set_source_files_properties(${STINT_HEXAGON_SOURCE} PROPERTIES OBJECT_DEPENDS "${hexagon_program}")

# How the program is reached: by FastRPC where there can be a phone's library, by a process where
# there can be an emulator.
set(absent ${CMAKE_SOURCE_DIR}/src/device/hexagon)
if(STINT_STATIC)
  list(REMOVE_ITEM STINT_SOURCES ${absent}/fastrpc.c ${absent}/fastrpc_api.c)
else()
  list(REMOVE_ITEM STINT_SOURCES ${absent}/fastrpc_absent.c)
endif()
if(ANDROID)
  list(REMOVE_ITEM STINT_SOURCES ${absent}/process.c)
else()
  list(REMOVE_ITEM STINT_SOURCES ${absent}/process_absent.c)
endif()
