# SPDX-License-Identifier: Apache-2.0
# Writes text files as a C table of {name, text} rows that a zero row ends: `declaration` (e.g.
# "struct x y") is the table's, `header` declares it, `key` (NAME or NAME_WE) is what of a file's
# name stands in its row. A literal may hold any character but quote, backslash and newline; an @
# would be CMake's, two question marks may begin a trigraph, and compilers warn of U+202A to U+202E,
# which change the direction of writing.
set(last_bytes 170 171 172 173 174)
set(last_bytes_octal 252 253 254 255 256)
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
    foreach(byte octal IN ZIP_LISTS last_bytes last_bytes_octal)
      string(ASCII 226 128 ${byte} mark)
      string(REPLACE "${mark}" "\\342\\200\\${octal}" text "${text}")
    endforeach()
    string(APPEND table "{\"${name}\", \"${text}\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  string(APPEND table "{0, 0}};\n")
  file(CONFIGURE OUTPUT ${output} CONTENT "${table}" @ONLY)
endfunction()
