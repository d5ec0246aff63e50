# SPDX-License-Identifier: MIT
# Fuzz targets: fuzz/fuzz_*.c define LLVMFuzzerTestOneInput. With -DLEANSTEP_FUZZ=ON and clang each becomes a
# libFuzzer program; with any compiler it is linked to fuzz/replay.c, which runs the files of its corpus
# (fuzz/corpus/<target>) through it. Both land under fuzz/ of the build folder.

add_custom_target(fuzz_all)
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
    get_filename_component(name ${source} NAME_WE)
    if(LEANSTEP_FUZZ)
        add_executable(${name} EXCLUDE_FROM_ALL ${source})
        target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
        add_executable(${name} EXCLUDE_FROM_ALL ${source} fuzz/replay.c)
    endif()
    target_link_libraries(${name} PRIVATE room_cli)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    add_dependencies(fuzz_all ${name})
endforeach()
if(LEANSTEP_FUZZ)
    # Coverage feedback is wanted in the code under test, not in the harness alone.
    foreach(room ${LEANSTEP_LIBRARY_ROOMS} ${LEANSTEP_PROGRAM_ROOMS})
        target_compile_options(room_${room} PRIVATE -fsanitize=fuzzer-no-link)
    endforeach()
    # The program and the shared library are built with it too, and need its runtime.
    target_link_options(leanstep_program PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(leanstep PRIVATE -fsanitize=fuzzer-no-link)
endif()
