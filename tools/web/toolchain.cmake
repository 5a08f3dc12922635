# Toolchain of lambcast for a browser: clang 22 and Debian's libc++ for wasm32-wasi, with exceptions.
# The standard include folders are named one by one: the headers of the host must not be found.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
find_program(web_clang clang++-22 NO_CMAKE_FIND_ROOT_PATH)
find_program(web_c_clang clang-22 NO_CMAKE_FIND_ROOT_PATH)
find_program(web_ar llvm-ar-22 llvm-ar NO_CMAKE_FIND_ROOT_PATH)
find_program(web_ranlib llvm-ranlib-22 llvm-ranlib NO_CMAKE_FIND_ROOT_PATH)
set(CMAKE_CXX_COMPILER ${web_clang})
set(CMAKE_C_COMPILER ${web_c_clang})
set(CMAKE_AR ${web_ar} CACHE FILEPATH "")
set(CMAKE_RANLIB ${web_ranlib} CACHE FILEPATH "")
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasip1)
set(CMAKE_C_COMPILER_TARGET wasm32-wasip1)

set(web_llvm /usr/lib/llvm-22)
set(web_libc /usr/include/wasm32-wasi)
# Header libraries of the host, and nothing else of its include folder.
set(web_headers ${CMAKE_BINARY_DIR}/headers)
foreach(header fmt boost nlohmann toml++ eigen3/Eigen zlib.h zconf.h)
  cmake_path(GET header FILENAME name)
  if(NOT EXISTS ${web_headers}/${name})
    file(MAKE_DIRECTORY ${web_headers})
    file(CREATE_LINK /usr/include/${header} ${web_headers}/${name} SYMBOLIC)
  endif()
endforeach()

string(JOIN " " web_c_flags -nostdlibinc -isystem ${web_libc} -fwasm-exceptions -ffunction-sections
  -fdata-sections -fvisibility=hidden -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID -D_WASI_EMULATED_MMAN
  -D_WASI_EMULATED_PROCESS_CLOCKS)
# The folder runtime/ is first: its <__config_site> takes the place of libc++'s own.
string(JOIN " " web_cxx_flags -nostdinc++ -nostdlibinc -isystem ${CMAKE_CURRENT_LIST_DIR}/runtime
  -isystem ${web_llvm}/include/wasm32-wasi/c++/v1 ${web_c_flags} -isystem ${web_headers}
  -include ${CMAKE_CURRENT_LIST_DIR}/runtime/posix.h -DFMT_HEADER_ONLY=1
  -D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION -Wno-unknown-warning-option)
set(CMAKE_C_FLAGS_INIT "${web_c_flags}")
set(CMAKE_CXX_FLAGS_INIT "${web_cxx_flags}")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
