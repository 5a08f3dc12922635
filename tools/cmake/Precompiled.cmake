# Headers that nearly every source file includes, parsed once: they cost more compiler seconds than
# the sources themselves. Sources include what they use all the same.
#   lambcast_headers        the standard library and fmt, for the libraries above the kernels (these
#                           are a package of their own, and CUDA's compiler has no such headers)
#   lambcast_test_headers   Catch2 as well, for lambcast_test, without optimization: so are the tests

set(lambcast_common_headers <algorithm> <array> <charconv> <chrono> <cmath> <filesystem> <fstream>
  <functional> <limits> <map> <memory> <optional> <set> <span> <string> <string_view> <utility>
  <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "" @ONLY)

add_library(lambcast_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
target_link_libraries(lambcast_headers PUBLIC lambcast_options fmt::fmt)
target_precompile_headers(lambcast_headers PRIVATE ${lambcast_common_headers})

if(LAMBCAST_TESTS)
  add_library(lambcast_test_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(lambcast_test_headers PUBLIC lambcast_options fmt::fmt Catch2::Catch2)
  target_compile_options(lambcast_test_headers PUBLIC -O0)
  target_precompile_headers(lambcast_test_headers PRIVATE ${lambcast_common_headers}
    <catch2/catch.hpp>)
endif()

# Every library of `folder` and of the folders below it, but those for shared libraries: position
# independent code has no use for headers parsed without it.
function(lambcast_precompile folder)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each ${below})
    lambcast_precompile(${each})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(pic ${target} POSITION_INDEPENDENT_CODE)
    if(type STREQUAL STATIC_LIBRARY AND NOT pic)
      target_precompile_headers(${target} REUSE_FROM lambcast_headers)
    endif()
  endforeach()
endfunction()
