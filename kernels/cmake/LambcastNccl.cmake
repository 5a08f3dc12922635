# Finds NCCL, which ships no CMake package: the imported target NCCL::nccl, or nothing. It is the
# header alone: the library is loaded at run time, from NCCL_LIBRARY if the loader does not find it.
include_guard(GLOBAL)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME
  PATHS /usr/local/cuda PATH_SUFFIXES include)
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ENV NCCL_HOME
  PATHS /usr/local/cuda PATH_SUFFIXES lib lib64)
if(NCCL_INCLUDE_DIR)
  add_library(NCCL::nccl INTERFACE IMPORTED GLOBAL)
  set_target_properties(NCCL::nccl PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS LAMBCAST_NCCL_LIBRARY="${NCCL_LIBRARY}")
else()
  message(STATUS "NCCL not found: the multi-GPU compressed_allreduce is not built")
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
