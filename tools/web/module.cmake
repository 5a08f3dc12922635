# The inner build, by toolchain.cmake: the engine, its runtime and the module.
enable_language(C)

# Pictures for papers are drawn by another program, and a page starts none.
get_target_property(sources lambcast_report SOURCES)
list(REMOVE_ITEM sources gnuplot.cc)
set_property(TARGET lambcast_report PROPERTY SOURCES ${sources})
set_property(TARGET lambcast_launchers PROPERTY SOURCES ${CMAKE_CURRENT_LIST_DIR}/no_launchers.cc)
set_property(TARGET lambcast_megatron PROPERTY SOURCES ${CMAKE_CURRENT_LIST_DIR}/no_megatron.cc)
# Traces need packed files and SQLite.
get_target_property(sources lambcast_program SOURCES)
list(FILTER sources EXCLUDE REGEX "trace[a-z_]*[.]cc$")
set_property(TARGET lambcast_program PROPERTY SOURCES ${sources})
get_target_property(linked lambcast_program INTERFACE_LINK_LIBRARIES)
list(FILTER linked EXCLUDE REGEX ":${CMAKE_DL_LIBS}>")
set_property(TARGET lambcast_program PROPERTY INTERFACE_LINK_LIBRARIES ${linked})

# Debian's libc++abi for wasm32 throws nothing. The sources of exceptions are those of emscripten.
set(abi /usr/share/emscripten/system/lib/libcxxabi)
set(unwind /usr/share/emscripten/system/lib/libunwind)
add_library(lambcast_web_runtime OBJECT ${abi}/src/cxa_exception.cpp ${abi}/src/cxa_personality.cpp
  ${abi}/src/private_typeinfo.cpp ${unwind}/src/Unwind-wasm.c
  runtime/glue.cc)
set_target_properties(lambcast_web_runtime PROPERTIES UNITY_BUILD OFF)

target_include_directories(lambcast_web_runtime SYSTEM BEFORE PRIVATE ${unwind}/include)
target_compile_options(lambcast_web_runtime PRIVATE -w -fdeclspec -D__USING_WASM_EXCEPTIONS__=1)
target_compile_options(lambcast_web_runtime PRIVATE
  "$<$<COMPILE_LANGUAGE:CXX>:-D_LIBCPP_INLINE_VISIBILITY=;-D_LIBCXXABI_HAS_NO_THREADS;-D_LIBCPP_BUILDING_LIBRARY;-D_LIBCXXABI_BUILDING_LIBRARY>"
  "$<$<COMPILE_LANGUAGE:C>:-D__EMSCRIPTEN__;-D_LIBUNWIND_HIDE_SYMBOLS;-D_LIBUNWIND_HAS_NO_THREADS;-Dthread_local=_Thread_local>")

add_executable(lambcast_module module.cc log_answer.cc preset_answer.cc ../answers.cc ../collective_question.cc ../size.cc)
target_link_libraries(lambcast_module PRIVATE lambcast_experiments lambcast_importers
  lambcast_program lambcast_web_runtime)
set(libraries /usr/lib/llvm-22/lib/wasm32-wasi)
set(libc /usr/lib/wasm32-wasi)
target_link_options(lambcast_module PRIVATE -nostdlib --no-wasm-opt -mexec-model=reactor -Wl,--gc-sections,--strip-all
  -Wl,--stack-first,-z,stack-size=1048576 -Wl,--entry,_initialize ${libc}/crt1-reactor.o)
target_link_libraries(lambcast_module PRIVATE ${libraries}/libc++.a ${libraries}/libc++abi.a
  ${libc}/libc.a ${libc}/libm.a ${libc}/libwasi-emulated-signal.a ${libc}/libwasi-emulated-getpid.a
  ${libc}/libwasi-emulated-mman.a ${libc}/libwasi-emulated-process-clocks.a
  /usr/lib/llvm-22/lib/clang/22/lib/wasi/libclang_rt.builtins-wasm32.a)
set_target_properties(lambcast_module PROPERTIES SUFFIX .wasm)
