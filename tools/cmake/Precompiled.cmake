# Headers that nearly every source file includes, parsed once: they cost more compiler seconds than
# the sources themselves. Sources include what they use all the same.
#   lambcast_headers        the standard library and fmt, for the libraries above the kernels (these
#                           are a package of their own, and CUDA's compiler has no such headers)
#   lambcast_json_headers   nlohmann/json.hpp as well, for sources that include it: the templates
#                           that its inline functions use are made anew for every source that sees it
#   lambcast_test_headers   Catch2 as well, for lambcast_test, without optimization: so are the tests

set(lambcast_common_headers <algorithm> <array> <charconv> <chrono> <cmath> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <optional> <set> <span> <string> <string_view> <utility>
  <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "" @ONLY)

# Position independent, so that the Python module is made of the same objects as the program, and
# inlined all the same: nobody replaces a function of ours when a shared object is loaded.
function(lambcast_for_shared_objects target)
  get_property(shared GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS)
  if(NOT shared)
    return()
  endif()
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
  target_link_libraries(lambcast_test_headers PUBLIC lambcast_options fmt::fmt lambcast_catch)
  target_compile_options(lambcast_test_headers PUBLIC -O0)
  target_precompile_headers(lambcast_test_headers PRIVATE ${lambcast_common_headers}
    <catch2/catch.hpp>)
endif()

# The headers with JSON for the sources of `target` that include it.
function(lambcast_precompile_json target)
  if(CMAKE_UNITY_BUILD)
    return()
  endif()
  set(headers ${CMAKE_BINARY_DIR}/CMakeFiles/lambcast_json_headers.dir/cmake_pch.hxx)
  set(made ${headers}.gch)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set(made ${headers}.pch)
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
    set(found "")  # in a source that the build makes there is none
    if(EXISTS ${source})
      file(STRINGS ${source} found REGEX "nlohmann/json.hpp" LIMIT_COUNT 1)
    endif()
    if(found)
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
        SKIP_PRECOMPILE_HEADERS ON
        COMPILE_OPTIONS "-Winvalid-pch;-include;${headers}"
        OBJECT_DEPENDS ${made})
      add_dependencies(${target} lambcast_json_headers)
    endif()
  endforeach()
endfunction()

# Every library of `folder` and of the folders below it.
function(lambcast_precompile folder)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each ${below})
    lambcast_precompile(${each})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      lambcast_for_shared_objects(${target})
      target_precompile_headers(${target} REUSE_FROM lambcast_headers)
      lambcast_precompile_json(${target})
    endif()
  endforeach()
endfunction()
