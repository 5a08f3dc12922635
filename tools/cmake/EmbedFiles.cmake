# lambcast_embed(target NAME file...): compiles files into `target`, so that the program needs no
# data directory. Its sources include "embedded/NAME.h", which declares
#
#   std::span<const lambcast::EmbeddedFile> lambcast::NAME();   // {name, text}, in the given order
#
# `name` is the file as given here. Text becomes a literal of escaped bytes: no delimiter to collide
# with, any encoding, and one token for the compiler. A changed file is embedded anew by the build.

# Part two, run by the build: cmake -DNAME= -DOUTPUT= -DNAMES= -DPATHS= -P EmbedFiles.cmake
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(arrays "")
  set(table "")
  set(index 0)
  foreach(name path IN ZIP_LISTS NAMES PATHS)
    file(READ "${path}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
    string(APPEND arrays "constexpr char file_${index}[] = \"${bytes}\";\n")
    string(APPEND table "    {\"${name}\", {file_${index}, sizeof(file_${index}) - 1}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(WRITE "${OUTPUT}" "#include \"embedded/${NAME}.h\"\n\nnamespace lambcast {\nnamespace {\n\n"
    "${arrays}\nconstexpr EmbeddedFile files[] = {\n${table}};\n\n}  // namespace\n\n"
    "std::span<const EmbeddedFile> ${NAME}() { return files; }\n\n}  // namespace lambcast\n")
  return()
endif()

function(lambcast_embed target name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(paths "")
  foreach(file IN LISTS ARGN)
    get_filename_component(path ${file} ABSOLUTE)
    list(APPEND paths ${path})
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/${name}.h @ONLY CONTENT "#pragma once

#include <span>
#include <string_view>

#ifndef LAMBCAST_EMBEDDED_FILE
#define LAMBCAST_EMBEDDED_FILE
namespace lambcast {
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};
}  // namespace lambcast
#endif

namespace lambcast {
std::span<const EmbeddedFile> @name@();
}  // namespace lambcast
")
  add_custom_command(OUTPUT ${folder}/${name}.cc
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DOUTPUT=${folder}/${name}.cc "-DNAMES=${ARGN}"
      "-DPATHS=${paths}" -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${paths} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    COMMENT "Embedding ${name}" VERBATIM)
  target_sources(${target} PRIVATE ${folder}/${name}.cc)
  set_source_files_properties(${folder}/${name}.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -Wno-overlength-strings)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
