# SPDX-License-Identifier: MIT
# libleanstep, shared and static, from the objects of the library's rooms (nothing is compiled twice). It needs
# jansson, threads and libm; a BLAS is needed by the program alone.

foreach(room ${LEANSTEP_LIBRARY_ROOMS})
    list(APPEND LEANSTEP_LIBRARY_OBJECTS $<TARGET_OBJECTS:room_${room}>)
endforeach()

add_library(leanstep SHARED ${LEANSTEP_LIBRARY_OBJECTS})
add_library(leanstep_static STATIC ${LEANSTEP_LIBRARY_OBJECTS})
set_target_properties(leanstep leanstep_static PROPERTIES OUTPUT_NAME leanstep LINKER_LANGUAGE C)
set_target_properties(leanstep PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set_target_properties(leanstep_static PROPERTIES EXPORT_NAME static)
target_link_libraries(leanstep PRIVATE PkgConfig::JANSSON Threads::Threads m)
target_link_libraries(leanstep_static PRIVATE Threads::Threads m)
foreach(library leanstep leanstep_static)
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
# A missing symbol is an error here, not in the program that loads the library. Sanitizers leave theirs to the program.
if(NOT LEANSTEP_SANITIZE AND NOT APPLE)
    target_link_options(leanstep PRIVATE LINKER:--no-undefined)
endif()
