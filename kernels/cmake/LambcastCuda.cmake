# Enables CUDA where nvcc is found and the option LAMBCAST_CUDA is on; sets LAMBCAST_HAS_CUDA.
#
# Include it in the highest directory whose targets link the kernels: CMake wants a language enabled
# in a directory common to all its users.
include_guard(GLOBAL)
include(CheckLanguage)

set(LAMBCAST_HAS_CUDA OFF)
if(LAMBCAST_CUDA)
  check_language(CUDA)
endif()
if(LAMBCAST_CUDA AND CMAKE_CUDA_COMPILER)
  # A short list for a quick build: Ampere, Hopper, and PTX for what comes after. guide.md has the
  # list of all for -DCMAKE_CUDA_ARCHITECTURES.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures" FORCE)
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 12 and newer take -std=c++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
  set(LAMBCAST_HAS_CUDA ON)
endif()
