# SPDX-License-Identifier: Apache-2.0
# Writes text files as a C table of {name, text} rows that a zero row ends: `declaration` (e.g.
# "struct x y") is the table's, `header` declares it, `key` (NAME or NAME_WE) is what of a file's
# name stands in its row. A literal may hold any character but quote, backslash and newline; an @
# would be CMake's, two question marks may begin a trigraph.
function(stint_embed_texts output header declaration key)
  set(table "#include \"${header}\"\n\nconst ${declaration}[] = {\n")
  foreach(file ${ARGN})
    get_filename_component(name ${file} ${key})
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "??" "?\\?" text "${text}")
    string(REPLACE "@" "\\100" text "${text}")
    string(REPLACE "\n" "\\n\"\n\"" text "${text}")
    string(APPEND table "{\"${name}\", \"${text}\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  string(APPEND table "{0, 0}};\n")
  file(CONFIGURE OUTPUT ${output} CONTENT "${table}" @ONLY)
endfunction()
