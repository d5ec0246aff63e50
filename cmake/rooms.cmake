# SPDX-License-Identifier: MIT
# One static library a room, linked to the rooms of lower rank that it may include. docs/architecture.md says why
# the rooms are cut where they are; scripts/check_tree holds the ranks.

set(LEANSTEP_LIBRARY_ROOMS base numeric kernels store io optim plan ckpt)
set(LEANSTEP_PROGRAM_ROOMS model data train cli)

# leanstep_room(NAME ROOM...): src/NAME/*.c, with everything of the given rooms and what they stand on.
function(leanstep_room room)
    file(GLOB sources CONFIGURE_DEPENDS src/${room}/*.c)
    list(FILTER sources EXCLUDE REGEX "src/cli/main.c$")
    if(NOT sources)
        file(WRITE ${CMAKE_BINARY_DIR}/empty_${room}.c "typedef int empty_room;\n")
        set(sources ${CMAKE_BINARY_DIR}/empty_${room}.c)
    endif()
    add_library(room_${room} STATIC ${sources})
    set_target_properties(room_${room} PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/rooms)
    target_include_directories(room_${room} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    foreach(lower ${ARGN})
        target_link_libraries(room_${room} PUBLIC room_${lower})
    endforeach()
endfunction()

leanstep_room(base)
target_link_libraries(room_base PUBLIC Threads::Threads m)
leanstep_room(numeric base)
leanstep_room(kernels numeric)
# The reference variant stays unvectorised; the other variants name their instruction set in their sources.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/isa_scalar.c PROPERTIES
                            COMPILE_OPTIONS "-fno-tree-vectorize;-fno-tree-slp-vectorize")
leanstep_room(store kernels)
leanstep_room(io base)
target_link_libraries(room_io PUBLIC PkgConfig::JANSSON)
leanstep_room(optim store io)
leanstep_room(plan optim)
leanstep_room(ckpt optim)
leanstep_room(model plan)
target_link_libraries(room_model PUBLIC PkgConfig::CBLAS)
leanstep_room(data io)
target_link_libraries(room_data PUBLIC PkgConfig::UTF8PROC)
leanstep_room(train model data ckpt)
leanstep_room(cli train)
