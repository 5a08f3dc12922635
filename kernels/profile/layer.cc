#include "kernels/profile/layer.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kernels/profile/load.h"

namespace lambcast::cuda {
namespace {

// cuBLASLt, loaded when a layer is timed: linking its hundreds of megabytes would cost every
// command of the program 70 ms at its start.
struct Blas {
#define LAMBCAST_BLAS_FUNCTIONS(f)                                                      \
  f(cublasLtCreate) f(cublasLtDestroy) f(cublasLtGetStatusString) f(cublasLtGetVersion) \
      f(cublasLtMatmul) f(cublasLtMatmulAlgoGetHeuristic) f(cublasLtMatmulDescCreate)   \
          f(cublasLtMatmulDescDestroy) f(cublasLtMatmulDescSetAttribute)                \
              f(cublasLtMatmulPreferenceCreate) f(cublasLtMatmulPreferenceDestroy)      \
                  f(cublasLtMatmulPreferenceSetAttribute) f(cublasLtMatrixLayoutCreate) \
                      f(cublasLtMatrixLayoutDestroy) f(cublasLtMatrixLayoutSetAttribute)
#define LAMBCAST_MEMBER(name) decltype(&::name) name = nullptr;
  LAMBCAST_BLAS_FUNCTIONS(LAMBCAST_MEMBER)
#undef LAMBCAST_MEMBER
  bool complete = false;
};

const Blas& blas() {
  static const Blas loaded = [] {
    Blas b;
    const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = dlopen(LAMBCAST_CUBLASLT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return b;
    b.complete = true;
#define LAMBCAST_LOAD(symbol)                                               \
  b.symbol = reinterpret_cast<decltype(b.symbol)>(dlsym(library, #symbol)); \
  b.complete = b.complete && b.symbol != nullptr;
    LAMBCAST_BLAS_FUNCTIONS(LAMBCAST_LOAD)
#undef LAMBCAST_LOAD
    return b;
  }();
  return loaded;
}

void require_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Error(Exit::failure, fmt::format("{}: {}", what, blas().cublasLtGetStatusString(status)));
  }
}

constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20;

// A backward pass of this length fills any GPU: larger micro batches would only take more time.
constexpr double long_enough_us = 1e5;

struct FormatTypes {
  cublasComputeType_t compute;
  cudaDataType_t in, out;
  double bytes;  // per element of the factors
};

FormatTypes types_of(ProductFormat format) {
  switch (format) {
    case ProductFormat::fp16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F, 2};
    case ProductFormat::bf16:
      return {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, 2};
    case ProductFormat::tf32:
      return {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, 4};
    case ProductFormat::fp8:
      return {CUBLAS_COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_16BF, 1};
    case ProductFormat::fp32:
      break;
  }
  return {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, 4};
}

// A planned product: descriptors, and the first algorithm of cuBLASLt's heuristic.
class Plan {
 public:
  Plan(cublasLtHandle_t handle, const Product& p, ProductFormat format = ProductFormat::fp16)
      : handle_(handle) {
    const FormatTypes types = types_of(format);
    require_blas(blas().cublasLtMatmulDescCreate(&operation_, types.compute, CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
    // Column-major: C^T = B^T A^T, so the row-major product needs no transposition. fp8 products
    // only take B stored by columns.
    if (format == ProductFormat::fp8) {
      const cublasOperation_t transposed = CUBLAS_OP_T;
      require_blas(blas().cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                         &transposed, sizeof transposed),
                   "cublasLtMatmulDescSetAttribute");
      layout(b_, types.in, p.k, p.n, p.batch);
    } else {
      layout(b_, types.in, p.n, p.k, p.batch);
    }
    layout(a_, types.in, p.k, p.m, p.batch);
    layout(c_, types.out, p.n, p.m, p.batch);
    cublasLtMatmulPreference_t preference = nullptr;
    require_blas(blas().cublasLtMatmulPreferenceCreate(&preference),
                 "cublasLtMatmulPreferenceCreate");
    const std::size_t bytes = blas_workspace_bytes;
    blas().cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const auto status = blas().cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, c_, c_,
                                                              preference, 1, &best, &found);
    blas().cublasLtMatmulPreferenceDestroy(preference);
    require_blas(status, "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0) throw Error(Exit::failure, "cuBLASLt has no algorithm for a product");
    algorithm_ = best.algo;
  }
  ~Plan() {
    for (const cublasLtMatrixLayout_t matrix : {a_, b_, c_})
      blas().cublasLtMatrixLayoutDestroy(matrix);
    blas().cublasLtMatmulDescDestroy(operation_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void run(const void* a, const void* b, void* c, void* workspace, cudaStream_t stream) const {
    const float one = 1, zero = 0;
    require_blas(blas().cublasLtMatmul(handle_, operation_, &one, b, b_, a, a_, &zero, c, c_, c, c_,
                                       &algorithm_, workspace, blas_workspace_bytes, stream),
                 "cublasLtMatmul");
  }

 private:
  static void layout(cublasLtMatrixLayout_t& matrix, cudaDataType_t type, std::size_t rows,
                     std::size_t columns, std::size_t batch) {
    require_blas(blas().cublasLtMatrixLayoutCreate(&matrix, type, rows, columns,
                                                   static_cast<std::int64_t>(rows)),
                 "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(batch);
    const auto stride = static_cast<std::int64_t>(rows * columns);
    blas().cublasLtMatrixLayoutSetAttribute(matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof count);
    blas().cublasLtMatrixLayoutSetAttribute(matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                            &stride, sizeof stride);
  }

  cublasLtHandle_t handle_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

// Handle, workspace and operands for the largest product of a layer.
struct Operands {
  cublasLtHandle_t handle = nullptr;
  DeviceBuffer<unsigned char> workspace{blas_workspace_bytes};
  DeviceBuffer<float> a, b, c;  // two fp16 values in each float; other formats read the same bits

  // `halves`: size of an element of the products, in units of 16 bits.
  Operands(const std::vector<Product>& products, double rest, std::size_t halves = 1) {
    std::size_t a_size = 0, b_size = 0;
    // The copy that represents the memory-bound work reads from c and writes to its other half.
    std::size_t c_size = static_cast<std::size_t>(rest) / 4;
    for (const Product& p : products) {
      a_size = std::max(a_size, halves * p.batch * p.m * p.k);
      b_size = std::max(b_size, halves * p.batch * p.k * p.n);
      c_size = std::max(c_size, halves * p.batch * p.m * p.n / 2 + 1);
    }
    a = DeviceBuffer<float>(a_size / 2 + 1);
    b = DeviceBuffer<float>(b_size / 2 + 1);
    c = DeviceBuffer<float>(c_size);
    for (const auto* x : {&a, &b}) {
      require(
          fill_random(reinterpret_cast<__half*>(x->data()), 2 * x->size(), -0.5f, 0.5f, nullptr),
          "fill_random");
    }
    require_blas(blas().cublasLtCreate(&handle), "cublasLtCreate");
  }
  ~Operands() { blas().cublasLtDestroy(handle); }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
};

double time_products(Timer& timer, Operands& operands, const std::vector<Product>& products,
                     double rest) {
  std::vector<std::unique_ptr<Plan>> plans;
  for (const Product& p : products) plans.push_back(std::make_unique<Plan>(operands.handle, p));
  const auto work = [&](cudaStream_t stream) {
    for (const auto& plan : plans) {
      plan->run(operands.a.data(), operands.b.data(), operands.c.data(), operands.workspace.data(),
                stream);
    }
    // Half of the bytes are read, half are written.
    const std::size_t half = static_cast<std::size_t>(rest) / 8;
    return cudaMemcpyAsync(operands.c.data() + half, operands.c.data(), 4 * half,
                           cudaMemcpyDeviceToDevice, stream);
  };
  return timer.time("transformer layer", work).median_us;
}

ProductTimes time_format(Timer& timer, ProductFormat format) {
  const std::vector<Product> products = profiled_products();
  Operands operands(products, 0, types_of(format).bytes > 2 ? 2 : 1);
  ProductTimes times{std::string(name_of(format)), {}, {}, {}, {}, {}};
  for (const Product& p : products) {
    const Plan plan(operands.handle, p, format);
    const Timing timing = timer.time("matrix product", [&](cudaStream_t stream) {
      plan.run(operands.a.data(), operands.b.data(), operands.c.data(), operands.workspace.data(),
               stream);
      return cudaSuccess;
    });
    times.m.push_back(p.m), times.n.push_back(p.n), times.k.push_back(p.k);
    times.time_us.push_back(timing.median_us), times.spread_us.push_back(timing.spread_us);
  }
  return times;
}

}  // namespace

std::string_view products_missing() {
  return blas().complete ? "" : "no matrix products: cuBLASLt could not be loaded";
}

std::string blas_version() {
  if (!blas().complete) return {};
  const std::size_t v = blas().cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

FlopRate time_large_product(Timer& timer) {
  if (!blas().complete) return {};
  constexpr std::size_t side = 8192;
  const std::vector<Product> product{{side, side, side, 1}};
  Operands operands(product, 0);
  const double us = time_products(timer, operands, product, 0);
  return Flops(2.0 * side * side * side) / Duration::microseconds(us);
}

std::vector<LayerTimes> time_layers(Timer& timer,
                                    const std::function<void(std::string_view)>& progress) {
  std::vector<LayerTimes> all;
  if (!blas().complete) return all;
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  for (const LayerShape& shape : profiled_layers()) {
    LayerTimes times{shape.hidden, shape.heads, shape.ffn, shape.seq_len, {}, {}, {}};
    for (const int micro_batch : fitting_micro_batches(shape, 0.8 * static_cast<double>(free))) {
      if (progress) {
        progress(fmt::format("layer of hidden {}, sequence {}, micro batch {}", shape.hidden,
                             shape.seq_len, micro_batch));
      }
      const double rest = rest_bytes(shape, micro_batch);
      const auto forward = forward_products(shape, micro_batch);
      const auto backward = backward_products(shape, micro_batch);
      Operands operands(backward, 2 * rest);
      times.micro_batch.push_back(micro_batch);
      times.forward_us.push_back(time_products(timer, operands, forward, rest));
      times.backward_us.push_back(time_products(timer, operands, backward, 2 * rest));
      if (times.backward_us.back() > long_enough_us) break;
    }
    if (!times.micro_batch.empty()) all.push_back(std::move(times));
  }
  return all;
}

std::vector<ProductTimes> time_products_by_shape(
    Timer& timer, double compute_capability, std::vector<std::string>& notes,
    const std::function<void(std::string_view)>& progress) {
  std::vector<ProductTimes> all;
  if (!blas().complete) return all;
  for (int i = 0; i < product_formats; ++i) {
    const auto format = static_cast<ProductFormat>(i);
    if (!multiplies(format, compute_capability)) continue;
    if (progress) progress(fmt::format("matrix products in {}", name_of(format)));
    try {
      all.push_back(time_format(timer, format));
    } catch (const Error& error) {
      notes.push_back(
          fmt::format("products in {} were left out: {}", name_of(format), error.what()));
    }
  }
  return all;
}

}  // namespace lambcast::cuda
