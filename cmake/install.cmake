# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where. Both pkg-config and CMake find the prefix from where their file
# lies, so an installed tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS stint_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS stint_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stint ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/stint.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

list(JOIN STINT_REQUIRES " " STINT_REQUIRES_WORDS)
file(RELATIVE_PATH STINT_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/stint.pc.in stint.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stint.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(STINT_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/stint)
configure_package_config_file(cmake/stint-config.cmake.in stint-config.cmake
  INSTALL_DESTINATION ${STINT_CMAKE_FOLDER}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a minor version may change what was there.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/stint-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stint-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/stint-config-version.cmake DESTINATION ${STINT_CMAKE_FOLDER})
