// The part of cuSOLVER that singular_directions.h needs, on Eigen (fake_cusolver.cc).
#pragma once

#include "kernels/cuda_on_cpu/cuda_runtime.h"

enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_INVALID_VALUE = 3 };
enum cusolverEigMode_t { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 };
enum cusolverEigRange_t { CUSOLVER_EIG_RANGE_ALL = 1001, CUSOLVER_EIG_RANGE_I = 1002 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
using cusolverDnHandle_t = void*;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnSsyevdx_bufferSize(cusolverDnHandle_t, cusolverEigMode_t,
                                              cusolverEigRange_t, cublasFillMode_t, int n,
                                              const float* a, int lda, float vl, float vu, int il,
                                              int iu, int* found, const float* values, int* floats);
cusolverStatus_t cusolverDnSsyevdx(cusolverDnHandle_t, cusolverEigMode_t, cusolverEigRange_t,
                                   cublasFillMode_t, int n, float* a, int lda, float vl, float vu,
                                   int il, int iu, int* found, float* values, float* workspace,
                                   int floats, int* info);
