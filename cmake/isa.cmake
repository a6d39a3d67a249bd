# SPDX-License-Identifier: Apache-2.0
# The one table: which compiler flags a source file gets from the end of its name, and on which
# processor it exists.
# A file without such an ending is built for the baseline, so wide instructions cannot leak into it.
set(avx512 "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mfma -mf16c")
set(STINT_ISA_TABLE
  # suffix|processor|flags
  "_avx2|x86_64|-mavx2 -mfma -mf16c"
  "_avxvnni|x86_64|-mavx2 -mfma -mf16c -mavxvnni"
  "_avx512|x86_64|${avx512} -mprefer-vector-width=512"
  "_avx512vnni|x86_64|${avx512} -mavx512vnni"
  "_avx512vbmi|x86_64|${avx512} -mavx512vnni -mavx512vbmi"
  "_avx512bf16|x86_64|${avx512} -mavx512bf16"
  "_amx|x86_64|${avx512} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16"
  "_neon|aarch64|" # part of the baseline
  "_dotprod|aarch64|-march=armv8.2-a+dotprod"
  "_i8mm|aarch64|-march=armv8.2-a+i8mm+dotprod")

# Unrolled over many rows and columns, these take minutes to compile with all checks. Their scalar
# twins have them all; here the bounds of memory are checked.
set(STINT_UNROLLED "(attention|blocks|gemv)_")
set(STINT_UNROLLED_FLAGS -fno-sanitize=undefined -fno-sanitize-address-use-after-scope)

# Removes the files of other processors from the list and gives the rest their flags.
function(stint_filter_isa list_name)
  set(files ${${list_name}})
  foreach(row ${STINT_ISA_TABLE})
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 suffix)
    list(GET cells 1 processor)
    list(GET cells 2 row_flags)
    foreach(file ${files})
      if(file MATCHES "${suffix}\\.c$")
        separate_arguments(flags UNIX_COMMAND "${row_flags}")
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL processor)
          if(STINT_SANITIZE AND file MATCHES "${STINT_UNROLLED}")
            list(APPEND flags ${STINT_UNROLLED_FLAGS})
          endif()
          set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${flags}")
        else()
          list(REMOVE_ITEM files ${file})
        endif()
      endif()
    endforeach()
  endforeach()
  set(${list_name} ${files} PARENT_SCOPE)
endfunction()
