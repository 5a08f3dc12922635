# What the programs and their pages are made of, as a bill of materials (CycloneDX 1.5) in FILE. The
# list below is the only one; versions are those that the build has found.

# component(NAME VERSION LICENSE HOW PURL [HEADERS prefix] [LIBRARY soname] [FILE path])
#   LICENSE   an SPDX identifier
#   HOW       linked (a shared library), compiled (headers), inlined (into every page), run (another
#             program, where there is one)
#   HEADERS, LIBRARY   how sources include it, and programs need it: a test (bill_test.py) makes
#             sure that they use no other
#   FILE      what is inlined; its SHA-256 goes into the bill
function(component name version license how purl)
  cmake_parse_arguments(arg "" "HEADERS;LIBRARY;FILE" "" ${ARGN})
  set(json "{}")
  string(JSON json SET "${json}" type "\"library\"")
  string(JSON json SET "${json}" bom-ref "\"${name}\"")
  string(JSON json SET "${json}" name "\"${name}\"")
  if(version)
    string(JSON json SET "${json}" version "\"${version}\"")
    set(purl "${purl}@${version}")
  endif()
  string(JSON json SET "${json}" purl "\"${purl}\"")
  string(JSON json SET "${json}" licenses "[{\"license\": {\"id\": \"${license}\"}}]")
  if(arg_FILE)
    file(SHA256 ${arg_FILE} sum)
    string(JSON json SET "${json}" hashes "[{\"alg\": \"SHA-256\", \"content\": \"${sum}\"}]")
  endif()
  set(properties "{\"name\": \"lambcast:how\", \"value\": \"${how}\"}")
  foreach(key HEADERS LIBRARY)
    if(arg_${key})
      string(TOLOWER ${key} word)
      string(APPEND properties ", {\"name\": \"lambcast:${word}\", \"value\": \"${arg_${key}}\"}")
    endif()
  endforeach()
  string(JSON json SET "${json}" properties "[${properties}]")
  string(JSON count LENGTH "${bill}" components)
  string(JSON bill SET "${bill}" components ${count} "${json}")
  string(JSON count LENGTH "${bill}" dependencies 0 dependsOn)
  string(JSON bill SET "${bill}" dependencies 0 dependsOn ${count} "\"${name}\"")
  set(bill "${bill}" PARENT_SCOPE)
endfunction()

function(write_bill_of_materials file)
  foreach(package fmt tomlplusplus yaml-cpp nlohmann_json SQLite3 ZLIB CLI11 Boost Eigen3 MPI pybind11)
    find_package(${package} QUIET)
  endforeach()
  set(bill [[{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {},
    "components": [], "dependencies": [{"ref": "lambcast", "dependsOn": []}]}]])
  string(JSON bill SET "${bill}" metadata "{\"component\": {\"type\": \"application\",
    \"bom-ref\": \"lambcast\", \"name\": \"lambcast\", \"version\": \"${PROJECT_VERSION}\",
    \"licenses\": [{\"license\": {\"id\": \"MIT\"}}]}}")

  component(fmt "${fmt_VERSION}" MIT linked pkg:github/fmtlib/fmt HEADERS fmt/ LIBRARY libfmt.so)
  component(toml++ "${tomlplusplus_VERSION}" MIT linked pkg:github/marzer/tomlplusplus
    HEADERS toml++/ LIBRARY libtomlplusplus.so)
  component(yaml-cpp "${yaml-cpp_VERSION}" MIT linked pkg:github/jbeder/yaml-cpp
    HEADERS yaml-cpp/ LIBRARY libyaml-cpp.so)
  component(nlohmann-json "${nlohmann_json_VERSION}" MIT compiled pkg:github/nlohmann/json
    HEADERS nlohmann/)
  component(sqlite "${SQLite3_VERSION}" blessing linked pkg:generic/sqlite
    HEADERS sqlite3.h LIBRARY libsqlite3.so)
  component(zlib "${ZLIB_VERSION_STRING}" Zlib linked pkg:github/madler/zlib
    HEADERS zlib.h LIBRARY libz.so)
  component(CLI11 "${CLI11_VERSION}" BSD-3-Clause compiled pkg:github/CLIUtils/CLI11 HEADERS CLI/)
  if(TARGET lambcast_python)
    component(pybind11 "${pybind11_VERSION}" BSD-3-Clause compiled pkg:github/pybind/pybind11
      HEADERS pybind11/)
  endif()
  component(Boost.Graph "${Boost_VERSION_STRING}" BSL-1.0 compiled pkg:github/boostorg/graph
    HEADERS boost/)
  component(Eigen "${Eigen3_VERSION}" MPL-2.0 compiled pkg:gitlab/libeigen/eigen HEADERS Eigen/)
  if(MPI_CXX_FOUND)
    # The version is that of the standard: any library of it will do, Debian's is Open MPI.
    component(MPI "${MPI_CXX_VERSION}" BSD-3-Clause linked pkg:generic/mpi HEADERS mpi.h
      LIBRARY libmpi)
  endif()
  set(uplot ${CMAKE_SOURCE_DIR}/experiments/report/uplot)
  file(STRINGS ${uplot}/README.md title LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9.]+$" version "${title}")
  component(uPlot "${version}" MIT inlined pkg:npm/uplot FILE ${uplot}/uPlot.iife.min.js)
  component(gnuplot "" gnuplot run pkg:generic/gnuplot)
  file(CONFIGURE OUTPUT ${file} CONTENT "${bill}\n" @ONLY)
endfunction()
