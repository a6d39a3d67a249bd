# SPDX-License-Identifier: Apache-2.0
# Cross build for 64-bit Arm with Debian's compiler; tests run under qemu. The libraries are those
# that `scripts/bootstrap arm` unpacks.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

get_filename_component(arm_root ${CMAKE_CURRENT_LIST_DIR}/../../build/arm64-root ABSOLUTE)
set(arm_libraries ${arm_root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${arm_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_LIBRARY_PATH ${arm_libraries})
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${arm_root})
set(ENV{PKG_CONFIG_LIBDIR} ${arm_libraries}/pkgconfig)
# Libraries that those libraries need themselves.
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-Wl,-rpath-link,${arm_libraries} -Wl,-rpath-link,${arm_root}/lib/aarch64-linux-gnu")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")

set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-cpu;max;-L;/usr/aarch64-linux-gnu;-E;\
LD_LIBRARY_PATH=${arm_libraries}:${arm_root}/lib/aarch64-linux-gnu")
