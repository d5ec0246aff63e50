# SPDX-License-Identifier: MIT
# What `make install` puts where: the program, the libraries, the headers, man pages, a pkg-config file and a CMake
# package. The pkg-config file and the package find their prefix from where they lie, so `--prefix` at install time,
# DESTDIR and a moved tree all work.

include(CMakePackageConfigHelpers)

install(TARGETS leanstep_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS leanstep leanstep_static EXPORT leanstepTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/leanstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md CHANGELOG.md LICENSE docs/numerics.md docs/formats.md docs/architecture.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

file(RELATIVE_PATH LEANSTEP_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/leanstep.pc.in leanstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/leanstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(LEANSTEP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/leanstep)
install(EXPORT leanstepTargets NAMESPACE leanstep:: DESTINATION ${LEANSTEP_CMAKE_DIR})
configure_package_config_file(cmake/leanstepConfig.cmake.in leanstepConfig.cmake
                              INSTALL_DESTINATION ${LEANSTEP_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/leanstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/leanstepConfig.cmake ${CMAKE_BINARY_DIR}/leanstepConfigVersion.cmake
        DESTINATION ${LEANSTEP_CMAKE_DIR})
