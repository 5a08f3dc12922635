# Headers that nearly every source file includes, parsed once: they cost more compiler seconds than
# the sources themselves. Sources include what they use all the same.
#   lambcast_headers        the standard library and fmt, for the libraries above the kernels (these
#                           are a package of their own, and CUDA's compiler has no such headers)
#   lambcast_json_headers   nlohmann/json.hpp as well, for experiments/, which write it
#   lambcast_test_headers   Catch2 as well, for lambcast_test, without optimization: so are the tests

set(lambcast_common_headers <algorithm> <array> <charconv> <chrono> <cmath> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <optional> <set> <span> <string> <string_view> <utility>
  <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "" @ONLY)

# Position independent, so that the Python module is made of the same objects as the program, and
# inlined all the same: nobody replaces a function of ours when a shared object is loaded.
function(lambcast_for_shared_objects target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
endfunction()

add_library(lambcast_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
target_link_libraries(lambcast_headers PUBLIC lambcast_options fmt::fmt)
lambcast_for_shared_objects(lambcast_headers)
target_precompile_headers(lambcast_headers PRIVATE ${lambcast_common_headers})

find_package(nlohmann_json 3.11 REQUIRED)
add_library(lambcast_json_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
target_link_libraries(lambcast_json_headers PUBLIC lambcast_options fmt::fmt nlohmann_json::nlohmann_json)
lambcast_for_shared_objects(lambcast_json_headers)
target_precompile_headers(lambcast_json_headers PRIVATE ${lambcast_common_headers}
  <nlohmann/json.hpp>)

if(LAMBCAST_TESTS)
  add_library(lambcast_test_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(lambcast_test_headers PUBLIC lambcast_options fmt::fmt Catch2::Catch2)
  target_compile_options(lambcast_test_headers PUBLIC -O0)
  target_precompile_headers(lambcast_test_headers PRIVATE ${lambcast_common_headers}
    <catch2/catch.hpp>)
endif()

# Every library of `folder` and of the folders below it, with the headers of that target.
function(lambcast_precompile folder headers)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each ${below})
    lambcast_precompile(${each} ${headers})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      lambcast_for_shared_objects(${target})
      target_precompile_headers(${target} REUSE_FROM ${headers})
    endif()
  endforeach()
endfunction()
