# SPDX-License-Identifier: Apache-2.0
# For Android's NDK, which ANDROID_NDK names; its own toolchain file does the work. The libraries
# that stint needs (docs/DEPENDENCIES.md), built for Android, are below STINT_ANDROID_LIBRARIES.
foreach(name ANDROID_NDK STINT_ANDROID_LIBRARIES)
  if(NOT DEFINED ${name})
    set(${name} "$ENV{${name}}")
  endif()
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${name})
endforeach()
set(ndk_file ${ANDROID_NDK}/build/cmake/android.toolchain.cmake)
if(NOT EXISTS ${ndk_file})
  message(FATAL_ERROR "no NDK at '${ANDROID_NDK}': set ANDROID_NDK to the folder of one")
endif()
if(NOT STINT_ANDROID_LIBRARIES OR NOT EXISTS ${STINT_ANDROID_LIBRARIES}/lib/pkgconfig)
  message(FATAL_ERROR "no lib/pkgconfig in '${STINT_ANDROID_LIBRARIES}': set "
    "STINT_ANDROID_LIBRARIES to the prefix of libraries that were built for Android")
endif()

set(ANDROID_ABI arm64-v8a)
if(NOT ANDROID_PLATFORM)
  set(ANDROID_PLATFORM android-30) # memfd_create
endif()
include(${ndk_file})
list(APPEND CMAKE_FIND_ROOT_PATH ${STINT_ANDROID_LIBRARIES})
set(ENV{PKG_CONFIG_LIBDIR} ${STINT_ANDROID_LIBRARIES}/lib/pkgconfig)
