#include "kernels/cuda/muon.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/cuda/blas_library.h"
#include "kernels/cuda/gradient.cuh"
#include "kernels/cuda/gradient.h"
#include "sim/base/error.h"

namespace lambcast::cuda {
namespace {

struct MuonConstants {
  float old, fresh, rate, kept, eps;
  bool nesterov;
};

MuonConstants constants_of(const reference::MuonOptions& o, reference::MatrixShape shape) {
  return {static_cast<float>(o.momentum),
          static_cast<float>(1 - o.momentum),
          static_cast<float>(o.lr * reference::muon_scale(o.scale, shape)),
          static_cast<float>(1 - o.lr * o.weight_decay),
          static_cast<float>(o.iterations.eps),
          o.nesterov};
}

template <typename T>
__global__ void __launch_bounds__(threads)
    muon_momentum_kernel(float* m, TypedGradient<T> g, HalfPointer x, std::size_t elements,
                         MuonConstants c) {
  const GradientReader<T> reader(g);
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad momentum = load_quad(m, e, limit), direction;
    const Quad gradient = reader.read(e, limit);
    for (int i = 0; i < 4; ++i) {
      const float fresh = c.fresh * gradient.at[i];
      momentum.at[i] = c.old * momentum.at[i] + fresh;
      direction.at[i] = c.nesterov ? fresh + c.old * momentum.at[i] : momentum.at[i];
    }
    store_quad(m, e, limit, momentum);
    store_quad(x, e, limit, direction);
  });
}

__global__ void __launch_bounds__(threads)
    muon_divide_kernel(HalfPointer x, const double* squared_norm, std::size_t elements, float eps) {
  const float norm = max_or_nan(static_cast<float>(sqrt(*squared_norm)), eps);
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad q = load_quad(reinterpret_cast<const __nv_bfloat16*>(x.bits), e, limit);
    for (int i = 0; i < 4; ++i) q.at[i] /= norm;
    store_quad(x, e, limit, q);
  });
}

__global__ void __launch_bounds__(threads)
    muon_apply_kernel(float* p, const __nv_bfloat16* x, HalfPointer half_p, std::size_t elements,
                      MuonConstants c) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad weights = load_quad(p, e, limit);
    const Quad update = load_quad(x, e, limit);
    for (int i = 0; i < 4; ++i) weights.at[i] = c.kept * weights.at[i] - c.rate * update.at[i];
    store_quad(p, e, limit, weights);
    store_quad(half_p, e, limit, weights);
  });
}

void require_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(Exit::failure,
              std::string(what) + ": error " + std::to_string(int(status)) + " of cuBLAS");
}

__nv_bfloat16* typed(const DeviceBuffer<std::uint16_t>& x) {
  return reinterpret_cast<__nv_bfloat16*>(x.data());
}

// Launches a kernel over quads of `elements`.
template <typename... Parameters, typename... Arguments>
void over_quads(const char* what, void (*kernel)(Parameters...), std::size_t elements,
                cudaStream_t stream, Arguments... arguments) {
  unsigned blocks = 0;
  require(grid_size(kernel, quads_of(elements), blocks), what);
  launch(kernel, blocks, threads, stream, arguments...);
  require(cudaGetLastError(), what);
}

void copy(DeviceBuffer<std::uint16_t>& to, const DeviceBuffer<std::uint16_t>& from,
          cudaStream_t stream) {
  require(cudaMemcpyAsync(to.data(), from.data(), from.size() * sizeof(std::uint16_t),
                          cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync");
}

}  // namespace

MuonStep::MuonStep(reference::MatrixShape shape, const reference::MuonOptions& options)
    : shape_(shape), options_(options), squared_norm_(1), workspace_(reduction_slots) {
  if (shape.rows < 2 || shape.columns < 2)
    throw Error(Exit::usage, "a matrix of " + std::to_string(shape.rows) + " x " +
                                 std::to_string(shape.columns) + " (allowed: 2 x 2 and more)");
  if (!options.iterations.in_bf16)
    throw Error(Exit::usage, "in_bf16: false (allowed: true, on a GPU)");
  const BlasApi& api = load_blas();
  cublasHandle_t handle = nullptr;
  require_blas(api.cublasCreate_v2(&handle), "cublasCreate");
  handle_ = handle;
  const std::size_t side = std::min(shape.rows, shape.columns);
  x_ = DeviceBuffer<std::uint16_t>(shape.elements());
  next_x_ = DeviceBuffer<std::uint16_t>(shape.elements());
  gram_ = DeviceBuffer<std::uint16_t>(side * side);
  factor_ = DeviceBuffer<std::uint16_t>(side * side);
}

MuonStep::~MuonStep() {
  if (handle_ != nullptr) load_blas().cublasDestroy_v2(static_cast<cublasHandle_t>(handle_));
}

// cuBLAS reads matrices column by column. In its order the memory of a wide matrix X (n x m) holds
// X', and that of a tall one (m x n) holds the transposed one of the iterations, n x m. The
// products of a wide matrix are therefore A = (X')' X' and X' B; B is symmetric.
void MuonStep::iterate(cudaStream_t stream) {
  const BlasApi& api = load_blas();
  const auto handle = static_cast<cublasHandle_t>(handle_);
  require_blas(api.cublasSetStream_v2(handle, stream), "cublasSetStream");
  const bool wide = shape_.rows <= shape_.columns;
  const int n = static_cast<int>(std::min(shape_.rows, shape_.columns));
  const int m = static_cast<int>(std::max(shape_.rows, shape_.columns));
  const auto multiply = [&](cublasOperation_t of_a, cublasOperation_t of_b, int rows, int columns,
                            int inner, double alpha, const DeviceBuffer<std::uint16_t>& a, int lda,
                            const DeviceBuffer<std::uint16_t>& b, int ldb, double beta,
                            DeviceBuffer<std::uint16_t>& c, int ldc) {
    const float scale = static_cast<float>(alpha), add = static_cast<float>(beta);
    require_blas(
        api.cublasGemmEx(handle, of_a, of_b, rows, columns, inner, &scale, a.data(), CUDA_R_16BF,
                         lda, b.data(), CUDA_R_16BF, ldb, &add, c.data(), CUDA_R_16BF, ldc,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  };
  constexpr auto plain = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
  const reference::NewtonSchulz& o = options_.iterations;
  for (int i = 0; i < o.iterations; ++i) {
    if (wide)
      multiply(transposed, plain, n, n, m, 1, x_, m, x_, m, 0, gram_, n);
    else
      multiply(plain, transposed, n, n, m, 1, x_, n, x_, n, 0, gram_, n);
    copy(factor_, gram_, stream);
    multiply(plain, plain, n, n, n, o.c, gram_, n, gram_, n, o.b, factor_, n);
    copy(next_x_, x_, stream);
    if (wide)
      multiply(plain, plain, m, n, n, 1, x_, m, factor_, n, o.a, next_x_, m);
    else
      multiply(plain, plain, n, m, n, 1, factor_, n, x_, n, o.a, next_x_, n);
    std::swap(x_, next_x_);
  }
}

void MuonStep::step(float* p, float* m, const Gradient& g, HalfPointer half_p,
                    cudaStream_t stream) {
  const std::size_t elements = shape_.elements();
  const MuonConstants c = constants_of(options_, shape_);
  require(with_type(g,
                    [&]<typename T>(const TypedGradient<T>& gradient) {
                      if (const auto e = check_aligned(p, m, half_p, gradient)) return e;
                      over_quads("momentum of Muon", muon_momentum_kernel<T>, elements, stream, m,
                                 gradient, HalfPointer(typed(x_)), elements, c);
                      return cudaSuccess;
                    }),
          "step of Muon");
  require(measure_gradient(HalfPointer(typed(x_)), elements, squared_norm_.data(),
                           workspace_.data(), stream),
          "norm of Muon's direction");
  over_quads("norm of Muon's direction", muon_divide_kernel, elements, stream,
             HalfPointer(typed(x_)), squared_norm_.data(), elements, c.eps);
  iterate(stream);
  over_quads("weights of Muon", muon_apply_kernel, elements, stream, p, typed(x_), half_p, elements,
             c);
}

}  // namespace lambcast::cuda
