# lambcast_gpu_test(NAME LIBRARIES lib... SOURCES file...): like lambcast_test, for tests that need
# a GPU. They carry the label "gpu"; where a test prints "SKIPPED: why" ctest reports it as skipped,
# never as passed. One after the other: some want half of the GPU's memory.
function(lambcast_gpu_test name)
  if(NOT LAMBCAST_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LIBRARIES;SOURCES" ${ARGN})
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:lambcast_catch_main>)
  target_link_libraries(${name} PRIVATE lambcast_options lambcast_catch ${arg_LIBRARIES})
  catch_discover_tests(${name} TEST_PREFIX "${name}: "
    PROPERTIES LABELS gpu RESOURCE_LOCK gpu SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endfunction()
