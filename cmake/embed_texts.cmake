# SPDX-License-Identifier: Apache-2.0
# Writes the .ini files of share/soc as a C table (src/sched/soc_texts.h). C allows any character in
# a literal but these four.
function(stint_embed_socs output)
  set(table "#include \"sched/soc_texts.h\"\n\nconst struct st_soc_text st_soc_texts[] = {\n")
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/share/soc/*.ini)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n\"" text "${text}")
    string(APPEND table "{\"${name}\", \"${text}\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  string(APPEND table "{0, 0}};\n")
  file(CONFIGURE OUTPUT ${output} CONTENT "${table}" @ONLY)
endfunction()
