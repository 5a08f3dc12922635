#include "kernels/cuda/device.cuh"
#include "kernels/cuda/galore.h"

namespace lambcast::cuda {
namespace {

struct GaloreConstants {
  float lr, back, decay;
};

// A block takes a row at a time.
__global__ void __launch_bounds__(threads)
    galore_apply_kernel(GaloreWeights a, const GaloreConstants c) {
  const std::size_t columns = a.shape.columns;
  for (std::size_t i = blockIdx.x; i < a.shape.rows; i += gridDim.x) {
    for (std::size_t j = threadIdx.x; j < columns; j += threads) {
      const std::size_t e = i * columns + j;
      float move = a.rank > 0 ? 0.0f : c.lr * a.rows[e];
      for (int d = 0; d < a.rank; ++d) {
        move += a.rows[i * a.rank + d] * a.columns[j * a.rank + d];
      }
      if (a.rank > 0) move *= c.back;
      float p = a.p[e] - move;
      p -= c.decay * p;
      a.p[e] = p;
      store_quad(a.half_p, e, e + 1, {p});
    }
  }
}

}  // namespace

cudaError_t galore_apply(const GaloreWeights& a, const reference::GaloreOptions& o,
                         cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  const GaloreConstants c{static_cast<float>(o.lr), static_cast<float>(o.lr * o.scale),
                          static_cast<float>(o.lr * o.weight_decay)};
  unsigned blocks = 0;
  if (const auto e = grid_size(galore_apply_kernel, a.shape.rows, blocks)) return e;
  launch(galore_apply_kernel, blocks, threads, stream, a, c);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
