// The functions of cuSOLVER in use, as a table that is loaded at its first use: training without
// GaLore needs no libcusolver.
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

// Loaded once and never unloaded. Throws Error{Exit::missing} with one sentence where there is
// none.
const SolverApi& load_solver();

}  // namespace lambcast::cuda
