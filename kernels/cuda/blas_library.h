// The cuBLAS functions in use, as a table that is loaded at first use: training without Muon does
// not need libcublas.
#pragma once

#include <cublas_v2.h>

namespace lambcast::cuda {

// cuBLAS overloads this name, so its type is written out.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void* alpha, const void* a, cudaDataType, int,
                                  const void* b, cudaDataType, int, const void* beta, void* c,
                                  cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);

struct BlasApi {
  decltype(&::cublasCreate_v2) cublasCreate_v2 = nullptr;
  decltype(&::cublasDestroy_v2) cublasDestroy_v2 = nullptr;
  decltype(&::cublasSetStream_v2) cublasSetStream_v2 = nullptr;
  GemmEx cublasGemmEx = nullptr;
};

// Returns the table, which is loaded once and never unloaded. Throws Error{Exit::missing} with one
// sentence if there is no cuBLAS.
const BlasApi& load_blas();

}  // namespace lambcast::cuda
