// GPU memory traffic of DeepSpeed's own optimizers: each tensor operation of a step reads its
// distinct operands and writes its result whole. A dispatch mode counted the real steps (0.14.4;
// the files of 0.15.4 to 0.19.5 are the same). Listed operations come from the source, and their
// sum is that count. The kernels of this library are compared with these.
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
  bool of_decay = false;  // for weight decay alone
};

// Steps without their exchange and without the fp16 wrapper around them; with weight decay.
std::span<const TensorOperation> deepspeed_onebit_lamb_warm_up();      // 132
std::span<const TensorOperation> deepspeed_onebit_lamb_compression();  // 216
std::span<const TensorOperation> deepspeed_zero_one_onebit_round();    // 88, before the freeze
std::span<const TensorOperation> deepspeed_fp16_unfused_wrapper();     // 40, around 1-bit LAMB
double bytes_per_element(std::span<const TensorOperation> operations, bool decays = true);

// 0/1 Adam's step that synchronises, its local step included: without a list.
constexpr double deepspeed_zero_one_synchronisation_bytes = 232;

// compressed_allreduce over n ranks, all of it: of the n-th part that a rank serves 100.
inline double deepspeed_exchange_bytes_per_element(int ranks) { return 172 + 100.0 / ranks; }

// The fp16 wrappers around an optimizer, from the check of overflow to the copy of the weights.
// FP16_Optimizer, around the Adams and 1-bit Adam, keeps a group's tensors in one flat buffer:
// counted on 46 tensors, without a list. FP16_UnfusedOptimizer, around 1-bit LAMB, goes tensor by
// tensor: listed above. (Around plain LAMB it takes another path, which flattens: neither is it.)
constexpr double deepspeed_fp16_wrapper_bytes = 41.9;
constexpr double deepspeed_lamb_wrapper_bytes = 40;

// How often the host waits for the GPU.
constexpr int deepspeed_fp16_wrapper_waits = 51;  // FP16_Optimizer, 46 tensors: one each and 5
constexpr int deepspeed_onebit_lamb_warm_up_waits = 3;  // per tensor
// Per tensor in the compression stage: the factor, and with weight decay the share of the momentum.
constexpr int deepspeed_onebit_lamb_compression_waits(bool weight_decay) {
  return weight_decay ? 2 : 1;
}

}  // namespace lambcast
