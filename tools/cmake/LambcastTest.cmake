# lambcast_test(NAME LIBRARIES lib... SOURCES file...): one Catch2 program whose test cases ctest
# runs one by one. All programs share one compiled Catch2 main.
if(LAMBCAST_TESTS)
  enable_testing()
  find_package(Catch2 REQUIRED)
  # Catch2 2, or 3 under the names of 2.
  add_library(lambcast_catch INTERFACE)
  if(Catch2_VERSION VERSION_LESS 3)
    target_link_libraries(lambcast_catch INTERFACE Catch2::Catch2)
  else()
    target_link_libraries(lambcast_catch INTERFACE Catch2::Catch2WithMain)
    target_include_directories(lambcast_catch SYSTEM INTERFACE ${CMAKE_SOURCE_DIR}/tools/cmake/catch3)
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/catch_main.cc @ONLY
    CONTENT "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
  add_library(lambcast_catch_main OBJECT ${CMAKE_BINARY_DIR}/catch_main.cc)
  target_link_libraries(lambcast_catch_main PUBLIC lambcast_catch)
  # -O1 takes two thirds of the compiler's time of -O3. The hooks of a sanitizer nearly double it, and -O0 saves as much.
  if(LAMBCAST_SANITIZE)
    target_compile_options(lambcast_catch_main PRIVATE -O0)
  else()
    target_compile_options(lambcast_catch_main PRIVATE -O1)
  endif()
  include(Catch)
endif()

function(lambcast_test name)
  if(NOT LAMBCAST_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LIBRARIES;SOURCES" ${ARGN})
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:lambcast_catch_main>)
  target_link_libraries(${name} PRIVATE lambcast_options lambcast_catch ${arg_LIBRARIES})
  # What is tested is optimized, what tests it need not be.
  target_compile_options(${name} PRIVATE -O0)
  target_precompile_headers(${name} REUSE_FROM lambcast_test_headers)
  if(LAMBCAST_SANITIZE MATCHES thread)
    # As one test: the thousands of fibers of an emulated device take this sanitizer a second.
    add_test(NAME ${name} COMMAND ${name})
  else()
    catch_discover_tests(${name} TEST_PREFIX "${name}: ")
  endif()
endfunction()
