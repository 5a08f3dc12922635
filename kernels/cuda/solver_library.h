// The cuSOLVER functions in use, as a table that is loaded at first use: training without GaLore
// does not need libcusolver.
#pragma once

#include <cusolverDn.h>

namespace lambcast::cuda {

#define LAMBCAST_SOLVER_FUNCTIONS(F) \
  F(cusolverDnCreate)                \
  F(cusolverDnDestroy)               \
  F(cusolverDnSetStream)             \
  F(cusolverDnSsyevdx_bufferSize)    \
  F(cusolverDnSsyevdx)

struct SolverApi {
#define LAMBCAST_DECLARE(function) decltype(&::function) function = nullptr;
  LAMBCAST_SOLVER_FUNCTIONS(LAMBCAST_DECLARE)
#undef LAMBCAST_DECLARE
};

// Returns the table, which is loaded once and never unloaded. Throws Error{Exit::missing} with one
// sentence if there is no cuSOLVER.
const SolverApi& load_solver();

}  // namespace lambcast::cuda
