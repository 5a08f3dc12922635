#include "kernels/cuda/solver_library.h"

#include <dlfcn.h>

#include <string>

#include "sim/base/error.h"

namespace lambcast::cuda {

const SolverApi& load_solver() {
  static const SolverApi loaded = [] {
    const std::string name = "libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR);
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen(LAMBCAST_CUSOLVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Error(Exit::missing, std::string("cuSOLVER: ") + dlerror());
    SolverApi api;
#define LAMBCAST_LOAD(symbol)                                                   \
  api.symbol = reinterpret_cast<decltype(api.symbol)>(dlsym(library, #symbol)); \
  if (api.symbol == nullptr) throw Error(Exit::missing, name + " has no " #symbol);
    LAMBCAST_SOLVER_FUNCTIONS(LAMBCAST_LOAD)
#undef LAMBCAST_LOAD
    return api;
  }();
  return loaded;
}

}  // namespace lambcast::cuda
