# lambcast_fuzz(PARSER TEST program LIBRARIES lib... SEEDS file...): the parser of PARSER_fuzz.cc
# under random bytes (sim/base/fuzz_target.h). With LAMBCAST_FUZZ a libFuzzer program, with
# LAMBCAST_TESTS a test case of `program`. Both read the files of fuzz/NAME/ beside the source,
# NAME without its folder, and the seeds, patterns of files that ship.
function(lambcast_fuzz parser)
  cmake_parse_arguments(arg "" "TEST" "LIBRARIES;SEEDS" ${ARGN})
  get_filename_component(name ${parser} NAME)
  get_filename_component(folder ${parser} DIRECTORY)
  file(GLOB texts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/fuzz/${name}/*
    ${arg_SEEDS})
  list(JOIN texts "\n" lines)
  set(list ${CMAKE_BINARY_DIR}/fuzz/${name}.txt)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  if(LAMBCAST_FUZZ)
    add_executable(${name}_fuzz ${parser}_fuzz.cc)
    target_link_libraries(${name}_fuzz PRIVATE lambcast_options ${arg_LIBRARIES})
    target_compile_definitions(${name}_fuzz PRIVATE LAMBCAST_LIBFUZZER)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
  if(TARGET ${arg_TEST})
    target_sources(${arg_TEST} PRIVATE ${parser}_fuzz.cc)
    set_source_files_properties(${parser}_fuzz.cc PROPERTIES
      COMPILE_DEFINITIONS "FUZZ_TEXTS=\"${list}\"")
  endif()
endfunction()
