# SPDX-License-Identifier: Apache-2.0
# Man pages and bash's completion, made from what the command prints with --help, so that they
# cannot say anything else.
include(GNUInstallDirs)
set(man_folder ${CMAKE_CURRENT_BINARY_DIR}/man)
set(completion ${CMAKE_CURRENT_BINARY_DIR}/completion/stint)
set(help_scripts ${CMAKE_SOURCE_DIR}/scripts/help_text.py
  ${CMAKE_SOURCE_DIR}/scripts/make_man.py ${CMAKE_SOURCE_DIR}/scripts/make_completion.py)
if(NOT STINT_SANITIZE AND NOT STINT_FUZZ)
  add_custom_command(OUTPUT ${man_folder}/stint.1 ${completion}
    COMMAND ${CMAKE_SOURCE_DIR}/scripts/make_man.py ${man_folder}
      ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:stint_command>
    COMMAND ${CMAKE_SOURCE_DIR}/scripts/make_completion.py ${completion}
      ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:stint_command>
    DEPENDS stint_command ${help_scripts} COMMENT "Man pages from --help" VERBATIM)
  add_custom_target(stint_man ALL DEPENDS ${man_folder}/stint.1 ${completion})
  # One page per command: which there are is known only now.
  install(DIRECTORY ${man_folder}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    FILES_MATCHING PATTERN "*.1")
  install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()
