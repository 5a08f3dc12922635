#include "kernels/cuda/blas_library.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "sim/base/error.h"

namespace lambcast::cuda {

const BlasApi& load_blas() {
  static const BlasApi loaded = [] {
    const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen(LAMBCAST_CUBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Error(Exit::missing, std::string("cuBLAS: ") + dlerror());
    BlasApi api;
    const auto load = [&](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      if (function == nullptr) throw Error(Exit::missing, name + " has no " + symbol);
    };
    load(api.cublasCreate_v2, "cublasCreate_v2");
    load(api.cublasDestroy_v2, "cublasDestroy_v2");
    load(api.cublasSetStream_v2, "cublasSetStream_v2");
    load(api.cublasGemmEx, "cublasGemmEx");
    return api;
  }();
  return loaded;
}

}  // namespace lambcast::cuda
