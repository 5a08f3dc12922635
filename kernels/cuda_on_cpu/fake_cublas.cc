#include <Eigen/Core>
#include <cstdint>

#include "kernels/cuda/blas_library.h"
#include "kernels/reference/half.h"

namespace {

using lambcast::reference::HalfFormat;

// Every handle points to this object, which is never read.
int blas_handle_of_all = 0;

// Returns a bf16 matrix, column by column, or its transpose.
Eigen::MatrixXf matrix_of(const void* from, cublasOperation_t of, int rows, int columns, int ld) {
  const auto* const bits = static_cast<const std::uint16_t*>(from);
  Eigen::MatrixXf x(rows, columns);
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i)
      x(i, j) = lambcast::reference::from_half(bits[of == CUBLAS_OP_N ? j * ld + i : i * ld + j],
                                               HalfFormat::bf16);
  return x;
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return *handle = &blas_handle_of_all, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }

// Like the original, reads c only if beta is not 0, sums in fp32, and rounds once.
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                            int lda, const void* b, cudaDataType b_type, int ldb, const void* beta,
                            void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  const bool is_wrong = lda < (of_a == CUBLAS_OP_N ? m : k) ||
                        ldb < (of_b == CUBLAS_OP_N ? k : n) || ldc < m || m < 1 || n < 1 || k < 1;
  if (is_wrong || a_type != CUDA_R_16BF || b_type != CUDA_R_16BF || c_type != CUDA_R_16BF ||
      compute != CUBLAS_COMPUTE_32F)
    return CUBLAS_STATUS_INVALID_VALUE;
  const float scale = *static_cast<const float*>(alpha), add = *static_cast<const float*>(beta);
  Eigen::MatrixXf product = scale * (matrix_of(a, of_a, m, k, lda) * matrix_of(b, of_b, k, n, ldb));
  if (add != 0) product += add * matrix_of(c, CUBLAS_OP_N, m, n, ldc);
  auto* const to = static_cast<std::uint16_t*>(c);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i)
      to[j * ldc + i] = lambcast::reference::to_half(product(i, j), HalfFormat::bf16);
  return CUBLAS_STATUS_SUCCESS;
}

namespace lambcast::cuda {

const BlasApi& load_blas() {
  static const BlasApi api{cublasCreate_v2, cublasDestroy_v2, cublasSetStream_v2, cublasGemmEx};
  return api;
}

}  // namespace lambcast::cuda
