# SPDX-License-Identifier: Apache-2.0
# The command, and what it has beside the library: the folder of models, what fetches models, the
# server. A build for phones (docs/PHONES.md) has no network and no line editor; other files with
# the same functions stand in for them.
set(cli ${CMAKE_SOURCE_DIR}/src/cli)
set(STINT_NETWORK_FILES ${cli}/serve.c ${cli}/serve_models.c ${cli}/pull.c)
set(STINT_SLIM_FILES ${cli}/offline.c ${cli}/edit_absent.c)
file(GLOB STINT_CLI_SOURCES CONFIGURE_DEPENDS ${cli}/*.c)
list(REMOVE_ITEM STINT_CLI_SOURCES ${STINT_NETWORK_FILES} ${STINT_SLIM_FILES} ${cli}/edit.c)
add_library(stint_cli OBJECT ${STINT_CLI_SOURCES})
target_include_directories(stint_cli PRIVATE src)
target_link_libraries(stint_cli PUBLIC stint PRIVATE stint_flags)

# The folder of models, without what fetches them.
stint_embed_texts(${CMAKE_CURRENT_BINARY_DIR}/hub_texts.c hub/catalog.h
  "struct st_hub_text st_hub_texts" NAME_WE ${CMAKE_SOURCE_DIR}/share/models/tested.ini)
file(GLOB STINT_HUB_SOURCES CONFIGURE_DEPENDS src/hub/*.c)
set(STINT_STORE_SOURCES ${STINT_HUB_SOURCES})
list(FILTER STINT_STORE_SOURCES INCLUDE REGEX "/(catalog|source|store)\\.c$")
list(REMOVE_ITEM STINT_HUB_SOURCES ${STINT_STORE_SOURCES})
add_library(stint_store OBJECT ${STINT_STORE_SOURCES} ${CMAKE_CURRENT_BINARY_DIR}/hub_texts.c)
target_include_directories(stint_store PRIVATE src)
target_link_libraries(stint_store PUBLIC stint PRIVATE stint_flags)

add_executable(stint_command)
set_target_properties(stint_command PROPERTIES OUTPUT_NAME stint)
target_include_directories(stint_command PRIVATE src)
if(STINT_NETWORK)
  file(GLOB_RECURSE STINT_SERVER_SOURCES CONFIGURE_DEPENDS src/server/*.c)
  file(GLOB STINT_PAGE CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/server/page/*)
  stint_page_libraries(${CMAKE_CURRENT_BINARY_DIR}/page STINT_PAGE_LIBRARIES)
  stint_embed_texts(${CMAKE_CURRENT_BINARY_DIR}/page_files.c server/http/page.h
    "struct st_page_file st_page_files" NAME ${STINT_PAGE} ${STINT_PAGE_LIBRARIES})
  add_library(stint_server OBJECT ${STINT_SERVER_SOURCES}
    ${CMAKE_CURRENT_BINARY_DIR}/page_files.c)
  target_include_directories(stint_server PRIVATE src)
  target_link_libraries(stint_server
    PUBLIC stint PkgConfig::HTTP PkgConfig::WEB PRIVATE stint_flags)

  add_library(stint_hub OBJECT ${STINT_HUB_SOURCES})
  target_include_directories(stint_hub PRIVATE src)
  target_link_libraries(stint_hub PUBLIC stint PkgConfig::WEB PRIVATE stint_flags)
  target_sources(stint_command PRIVATE ${STINT_NETWORK_FILES})
  target_link_libraries(stint_command PRIVATE stint_server stint_hub)
else()
  target_sources(stint_command PRIVATE ${cli}/offline.c)
endif()
if(STINT_EDIT)
  find_library(EDIT_LIBRARY edit REQUIRED)
  target_sources(stint_command PRIVATE ${cli}/edit.c)
  target_link_libraries(stint_command PRIVATE ${EDIT_LIBRARY})
else()
  target_sources(stint_command PRIVATE ${cli}/edit_absent.c)
endif()
target_link_libraries(stint_command PRIVATE stint_cli stint_store stint stint_flags)
