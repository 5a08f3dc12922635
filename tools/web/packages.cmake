# Packages of the module for browsers, in place of the host's: header libraries, which toolchain.cmake puts on the
# path, count as found, and so do those of targets that this build never makes. All others are switched off.
set(LAMBCAST_WEB_TARGETS fmt::fmt Boost::headers Boost::context nlohmann_json::nlohmann_json
  tomlplusplus::tomlplusplus yaml-cpp Eigen3::Eigen CLI11::CLI11 Threads::Threads
  SQLite::SQLite3 ZLIB::ZLIB)
foreach(package MPI pybind11 Python Catch2)
  set(CMAKE_DISABLE_FIND_PACKAGE_${package} TRUE)
endforeach()
macro(lambcast_web_package method name)
  foreach(target IN LISTS LAMBCAST_WEB_TARGETS)
    if(target MATCHES "^${name}(::|$)|::${name}$" AND NOT TARGET ${target})
      add_library(${target} INTERFACE IMPORTED GLOBAL)
    endif()
    if(TARGET ${target} AND target MATCHES "^${name}(::|$)|::${name}$")
      set(${name}_FOUND TRUE)
    endif()
  endforeach()
endmacro()
cmake_language(SET_DEPENDENCY_PROVIDER lambcast_web_package SUPPORTED_METHODS FIND_PACKAGE)
