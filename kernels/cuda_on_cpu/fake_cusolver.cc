#include <Eigen/Eigenvalues>

#include "kernels/cuda/solver_library.h"

namespace {

// All handles point to it; it is never read.
int handle_of_all = 0;

}  // namespace

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  return *handle = &handle_of_all, CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t, cudaStream_t) {
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSsyevdx_bufferSize(cusolverDnHandle_t, cusolverEigMode_t,
                                              cusolverEigRange_t, cublasFillMode_t, int,
                                              const float*, int, float, float, int, int, int*,
                                              const float*, int* floats) {
  return *floats = 1, CUSOLVER_STATUS_SUCCESS;
}

// Like the original, reads only the lower triangle of a, and returns the vectors il to iu (counted
// from 1, in increasing order of eigenvalues) in its first columns.
cusolverStatus_t cusolverDnSsyevdx(cusolverDnHandle_t, cusolverEigMode_t mode,
                                   cusolverEigRange_t range, cublasFillMode_t fill, int n, float* a,
                                   int lda, float, float, int il, int iu, int* found, float* values,
                                   float*, int floats, int* info) {
  if (mode != CUSOLVER_EIG_MODE_VECTOR || range != CUSOLVER_EIG_RANGE_I ||
      fill != CUBLAS_FILL_MODE_LOWER || lda != n || il < 1 || iu > n || il > iu || floats < 1) {
    return CUSOLVER_STATUS_INVALID_VALUE;
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXf> solver(
      Eigen::Map<const Eigen::MatrixXf>(a, n, n));
  *info = solver.info() == Eigen::Success ? 0 : 1;
  *found = iu - il + 1;
  Eigen::Map<Eigen::VectorXf>(values, *found) = solver.eigenvalues().segment(il - 1, *found);
  Eigen::Map<Eigen::MatrixXf>(a, n, *found) = solver.eigenvectors().middleCols(il - 1, *found);
  return CUSOLVER_STATUS_SUCCESS;
}

namespace lambcast::cuda {

const SolverApi& load_solver() {
  static const SolverApi api{cusolverDnCreate, cusolverDnDestroy, cusolverDnSetStream,
                             cusolverDnSsyevdx_bufferSize, cusolverDnSsyevdx};
  return api;
}

}  // namespace lambcast::cuda
