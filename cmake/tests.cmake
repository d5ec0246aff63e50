# SPDX-License-Identifier: MIT
# Test programs, one a file, under tests/ of the build folder:
#   tests/<room>/test_*.c    cmocka; linked to its room and those below
#   tests/<room>/golden_*.c  takes a folder of golden values; linked to io as well, which reads them
#   tests/<room>/*.c         what a room's tests share (slow references and the like)
#   examples/*.c             linked to the shared library alone, under examples/ of the build folder
#   bench/*.c                under bench/ of the build folder
# The targets `tests_all`, `examples_all` and `bench_all` build them; scripts/run_tests runs them.

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
add_custom_target(tests_all)
add_custom_target(examples_all)
add_custom_target(bench_all DEPENDS leanstep_program)

function(leanstep_test source room)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source} ${ARGN})
    target_link_libraries(${name} PRIVATE room_${room} room_io PkgConfig::CMOCKA)
    target_include_directories(${name} PRIVATE tests)
    target_compile_definitions(${name} PRIVATE LEANSTEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                               LEANSTEP_PROGRAM="${CMAKE_BINARY_DIR}/leanstep")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_dependencies(tests_all ${name})
    if(room MATCHES "train|cli")
        add_dependencies(${name} leanstep_program)
    endif()
endfunction()

if(CMOCKA_FOUND)
    foreach(room ${LEANSTEP_LIBRARY_ROOMS} ${LEANSTEP_PROGRAM_ROOMS})
        file(GLOB sources CONFIGURE_DEPENDS tests/${room}/*.c)
        set(programs ${sources})
        set(shared ${sources})
        list(FILTER programs INCLUDE REGEX "/(test|golden)_[^/]*$")
        list(FILTER shared EXCLUDE REGEX "/(test|golden)_[^/]*$")
        foreach(source ${programs})
            leanstep_test(${source} ${room} ${shared})
        endforeach()
    endforeach()
else()
    message(STATUS "cmocka was not found: the test programs are left out")
endif()

file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${example_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(example_${name} PRIVATE leanstep m)
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    add_dependencies(examples_all example_${name})
endforeach()

file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${bench_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(bench_${name} PRIVATE room_cli)
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
    add_dependencies(bench_all bench_${name})
endforeach()
