#include "kernels/deepspeed_traffic.h"

#include <array>

namespace lambcast {
namespace {

// Bytes per element of an fp32 tensor operation. In place with a number: read and written. With a
// second tensor: one more read. Out of place: every operand read, one result written.
constexpr double in_place = 8, in_place_with = 12, out_of_place = 8, of_two = 12, sum = 4;

constexpr std::array warm_up{
    TensorOperation{"m.mul_(b1)", in_place},
    TensorOperation{"m.add_(g)", in_place_with},
    TensorOperation{"v.mul_(b2)", in_place},
    TensorOperation{"v.addcmul_(g, g)", in_place_with},
    TensorOperation{"v.sqrt()", out_of_place},
    TensorOperation{"+ eps", out_of_place},
    TensorOperation{"m / ...", of_two},
    TensorOperation{"wd * p", out_of_place, true},
    TensorOperation{"update += ...", in_place_with, true},
    TensorOperation{"p.pow(2)", out_of_place},
    TensorOperation{".sum()", sum},
    TensorOperation{"update.pow(2)", out_of_place},
    TensorOperation{".sum()", sum},
    TensorOperation{"-lr * update", out_of_place},
    TensorOperation{"p.add_(...)", in_place_with},
};

constexpr std::array compression{
    TensorOperation{"m.clone()", out_of_place},
    TensorOperation{"m.mul_(b1)", in_place},
    TensorOperation{"m.add_(g)", in_place_with},
    TensorOperation{"m.mul_(scaling)", in_place},
    TensorOperation{"m.div_(scaling)", in_place},
    TensorOperation{"b1 * m_last", out_of_place},
    TensorOperation{"m - ...", of_two},
    TensorOperation{"... / (1 - b1)", out_of_place},
    TensorOperation{"v_fresh.mul_(b2)", in_place},
    TensorOperation{"v_fresh.addcmul_(g, g)", in_place_with},
    TensorOperation{"v.sqrt()", out_of_place},
    TensorOperation{"+ eps", out_of_place},
    TensorOperation{"m / denominator", of_two},
    TensorOperation{"wd * p", out_of_place, true},
    TensorOperation{"preliminary + ...", of_two, true},
    TensorOperation{"update.pow(2)", out_of_place},
    TensorOperation{".sum()", sum},
    TensorOperation{"v_fresh.sqrt()", out_of_place},
    TensorOperation{"+ eps", out_of_place},
    TensorOperation{"denominator / fresh one", of_two},
    TensorOperation{".max()", sum},
    TensorOperation{"preliminary.pow(2)", out_of_place, true},
    TensorOperation{".sum()", sum, true},
    TensorOperation{"-lr * update", out_of_place},
    TensorOperation{"p.add_(...)", in_place_with},
};

constexpr std::array onebit_round{
    TensorOperation{"m.mul_(b1)", in_place},
    TensorOperation{"m.add_(g)", in_place_with},
    TensorOperation{"v.sqrt()", out_of_place},
    TensorOperation{"+ eps", out_of_place},
    TensorOperation{"m / ...", of_two},
    TensorOperation{"wd * p", out_of_place, true},
    TensorOperation{"update += ...", in_place_with, true},
    TensorOperation{"-lr * update", out_of_place},
    TensorOperation{"p.add_(...)", in_place_with},
};

// fp16 gradients and weights (2 bytes) in addition to their fp32 copies.
constexpr double widened = 6, norm = 4, narrowed = 6;

constexpr std::array unfused_wrapper{
    TensorOperation{"overflow: grad.float()", widened},
    TensorOperation{".sum()", sum},
    TensorOperation{"norm: grad.float()", widened},
    TensorOperation{".norm()", norm},
    TensorOperation{"fp32 grad = grad.to(float)", widened},
    TensorOperation{"fp32 grad.mul_(1 / scale)", in_place},
    TensorOperation{"weight.copy_(fp32 weight)", narrowed},
};

}  // namespace

std::span<const TensorOperation> deepspeed_onebit_lamb_warm_up() { return warm_up; }
std::span<const TensorOperation> deepspeed_onebit_lamb_compression() { return compression; }
std::span<const TensorOperation> deepspeed_zero_one_onebit_round() { return onebit_round; }
std::span<const TensorOperation> deepspeed_fp16_unfused_wrapper() { return unfused_wrapper; }

double bytes_per_element(std::span<const TensorOperation> operations, bool decays) {
  double bytes = 0;
  for (const TensorOperation& operation : operations)
    if (decays || !operation.of_decay) bytes += operation.bytes_per_element;
  return bytes;
}

}  // namespace lambcast
