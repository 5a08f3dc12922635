// GPU memory traffic of DeepSpeed's own optimizers: each tensor operation of a step reads its
// distinct operands and writes its result entirely. A dispatch mode counted the real steps (0.14.4;
// the files of 0.15.4 to 0.19.5 are the same). Listed operations come from the source, and their
// sum equals that count. The kernels of this library are compared with these bytes.
//
// With weight decay and without a mask. Bytes per element of fp32 state.
//
// Sources: DeepSpeed runtime/fp16/onebit/{lamb,zoadam}.py, runtime/fp16/{,un}fused_optimizer.py,
// runtime/comm/nccl.py.
#pragma once

#include <span>
#include <string_view>

namespace lambcast {

struct TensorOperation {
  std::string_view what;
  double bytes_per_element;
  bool of_decay = false;  // only needed for weight decay
};

// Operations of steps without their exchange and without the fp16 wrapper; with weight decay. Bytes
// per element:
std::span<const TensorOperation> deepspeed_onebit_lamb_warm_up();      // 132
std::span<const TensorOperation> deepspeed_onebit_lamb_compression();  // 216
std::span<const TensorOperation> deepspeed_zero_one_onebit_round();    // 88, before the freeze
std::span<const TensorOperation> deepspeed_fp16_unfused_wrapper();     // 40, around 1-bit LAMB
double bytes_per_element(std::span<const TensorOperation> operations, bool decays = true);

// Bytes of 0/1 Adam's synchronising step, including its local step; without a list.
constexpr double deepspeed_zero_one_synchronisation_bytes = 232;

// Returns the bytes of compressed_allreduce over n ranks, with 100 per element of the n-th part
// that a rank serves.
inline double deepspeed_exchange_bytes_per_element(int ranks) { return 172 + 100.0 / ranks; }

// Bytes of the fp16 wrappers around an optimizer, from the overflow check to the copy of the
// weights. FP16_Optimizer, around the Adams and 1-bit Adam, keeps a group's tensors in one flat
// buffer: counted with 46 tensors, without a list. FP16_UnfusedOptimizer, around 1-bit LAMB, works
// tensor by tensor: listed above. (Around plain LAMB it takes a third path, which flattens.)
constexpr double deepspeed_fp16_wrapper_bytes = 41.9;
constexpr double deepspeed_lamb_wrapper_bytes = 40;

// How often the host waits for the GPU:
constexpr int deepspeed_fp16_wrapper_waits = 51;  // FP16_Optimizer with 46 tensors: one each, and 5
constexpr int deepspeed_onebit_lamb_warm_up_waits = 3;  // per tensor
// Returns the waits per tensor in the compression stage: one for the factor, and with weight decay
// one for the share of the momentum.
constexpr int deepspeed_onebit_lamb_compression_waits(bool weight_decay) {
  return weight_decay ? 2 : 1;
}

}  // namespace lambcast
