// Matrix products of a traced step by their shapes, next to the time that the shape gives
// (models/device/matrix_product.h).
//
// Kineto records shapes with record_shapes=True: "Input Dims" and "Input type" of the operators on
// the host (aten::mm, addmm, bmm, baddbmm, _scaled_mm). A kernel belongs to the operator during
// which it was launched: its "correlation" names the launch (cuda_runtime or cuda_driver), which
// lies within the operator on the same thread. Kernels of a CUDA graph have one launch and no
// shapes.
//
// The time of a product is the sum of its product kernels. Left out: products of Transformer
// Engine and of compiled graphs, which are no such operators, grouped products, and the kernels
// that sum the parts of a product divided along k.
//
// Source: pytorch/kineto libkineto/src/output_json.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/device/matrix_product.h"
#include "sim/base/units.h"

namespace lambcast {

using TensorDims = std::vector<std::int64_t>;

struct TracedProduct {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string type;             // of the inputs, such as c10::BFloat16
  std::vector<Duration> times;  // of each call

  bool same_shape(const TracedProduct& other) const;
  // Returns the forecast; nothing for other types of numbers.
  std::optional<Duration> forecast(const GpuRates& rates) const;
};

// Returns the product of an operator with these inputs; nothing for other operators.
std::optional<TracedProduct> product_of(const std::string& name,
                                        const std::vector<TensorDims>& inputs,
                                        const std::string& type);

// The products that a trace records, and the kernels of each.
class ProductCalls {
 public:
  // Adds an operator on the host.
  void add(const TracedProduct& product, std::int64_t thread, double begin_us, double end_us);
  void add_launch(std::uint32_t correlation, std::int64_t thread, double at_us);
  // Returns the index of the call during which a kernel was launched, or -1. All calls and launches
  // must have been added.
  int call_of(std::uint32_t correlation);
  // Adds the time of a kernel to the call.
  void spend(int call, double us) { calls_[static_cast<std::size_t>(call)].spent_us += us; }
  // Returns the products by shape, with the times of the calls that spent any.
  std::vector<TracedProduct> products() const;

 private:
  struct Made {
    std::int64_t thread;
    double begin_us, end_us;
    std::size_t product;
    double spent_us = 0;
  };
  struct Launch {
    double at_us;
    std::int64_t thread;
    std::uint32_t correlation;
  };
  std::vector<TracedProduct> products_;
  std::vector<Made> calls_;
  std::vector<Launch> launches_;
  bool sorted_ = false;
};

// Formats the products with the largest total times, then all of them together; empty if there are
// none.
std::string products_report(const std::vector<TracedProduct>& products, int steps,
                            const GpuRates& rates);

}  // namespace lambcast
