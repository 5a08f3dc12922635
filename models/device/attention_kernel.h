// Time of the attention core of one block, from queries, keys and values to the context: softmax(q
// k^T / sqrt(d)) v, forward and backward, for each kernel that frameworks use.
//
// unfused (Megatron-LM 2021 and eager PyTorch): scores (queries x keys) of every head go through
// memory. Two batched products forward, four backward, and in bytes per score in 16 bits
//   softmax   4 forward (scale, mask and softmax in one kernel; 16 in eager mode), 6 backward
//   dropout   5 forward (a byte of mask), 5 backward
// The whole square is computed for any mask.
//
// With r distances between tokens (DeBERTa, He et al. 2021, arXiv 2006.03654) queries and keys are
// also multiplied by the vectors of distances: two products with r columns per query and per key
// forward, four backward. Each score then gathers its two terms, which are divided and added:
// 32 bytes in 8 kernels forward, 28 in 8 backward. Counted from the tensors of transformers 4.57,
// models/deberta_v2/modeling_deberta_v2.py; kind: assumed. No fused kernel does this. The vectors'
// own projections, 2 r h^2 multiply-adds per micro batch, are left out.
//
// flash1 to flash4 (Dao et al. 2022, Dao 2023, Shah et al. 2024, Zadouri et al. 2026) and cudnn
// (cuDNN's fused attention on Hopper and later): scores stay on the chip; two products forward and
// five backward (scores are recomputed), and one exponential per score in each pass:
//   flash1, flash2   time = products / reached + scores / exponentials
//   the others       time = products / reached + the exposed part of the exponentials' time: one
//                    warp group's softmax overlaps another's products, but not fully
// A causal mask leaves (1 + 128 / keys) / 2 of the square: whole tiles of 128 x 128 are skipped. So
// does a window: of n = keys / 128 tiles in a row at most a = window / 128 + 1 are computed, which
// leaves a (2 n - a + 1) / 2 n^2. The rate of the products is that of a large matrix product, times
// a share of the kernel. The shares are read off the papers' figures (head 128, long sequences)
// with a large product at 260 TFLOP/s of an A100 and 740 of an H100; those of cudnn use the 613
// that an H100 reaches in training:
//
//   kernel   GPU   forward   backward TFLOP/s   shares
//   flash1   A100  110 - 125                    0.5    0.45
//   flash2   A100  225       190                1      0.8
//   flash2   H100  335 - 400                    0.62   0.5    without Hopper's own instructions
//   cudnn    H100  595 - 609 499 - 518          1.29   1.03   1 and 0.8 with exposed exponentials
//   cudnn    B200                               share_attention of the peak and 0.8 of it: large
//                                               products are limited by power, attention is not
//   flash3   H100  648       561                1.09 of cudnn; forward under a causal mask 1.14
//                                               (616 of 539) at 16,384 tokens, used for every
//                                               length, although 1,024 tokens reach 1.03
//   flash4   B200  1605                         1.3 of cudnn 9.13, also backward (assumed)
//
// A GB300, with twice the exponentials, thus reaches 1 and 0.79 without a number of its own. flash1
// needs Turing; on Volta it represents similar kernels: NVIDIA's fmha of MLPerf v0.7 and xFormers'
// (its README). flash2 and cudnn need Ampere, flash4 Hopper; flash3 runs only on Hopper. Kernels
// that were not timed on a GPU are assumed as fast as one that was: flash4 on Hopper as cudnn,
// cudnn before Hopper as flash2. flash1 is assumed to lose as much on Hopper and later as flash2.
// In fp8 the same shares apply to the fp8 rate: 910 TFLOP/s forward on an H100, of the 1,000 to
// 1,200 of Shah et al. 2024, figure 7 (assumed for the backward pass). Waves over the
// multiprocessors are counted as for products, one block per head, sample and 128 queries.
//
// Under context parallelism the keys for a rank's queries arrive in `rounds` parts: the same number
// of kernels, each over its part. Sources: arXiv 2205.14135, 2307.08691, 2407.08608 (figures 5 and
// 6: cuDNN next to flash3), the authors' page on FlashAttention-4
// (together.ai/blog/flashattention-4); kind: published, shares rounded by eye. Supported GPUs:
// README of Dao-AILab/flash-attention and of flash_attn/cute.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/device/gpu_rates.h"

namespace lambcast {

enum class AttentionKernel { unfused, flash1, flash2, cudnn, flash3, flash4 };

const std::vector<std::string>& attention_kernel_names();
std::string_view name_of(AttentionKernel kernel);

// Returns the newest kernel that frameworks ship for a GPU: cuDNN's on Hopper and later.
AttentionKernel newest_attention(const GpuRates& rates);

bool runs_on(AttentionKernel kernel, const GpuRates& rates);
// Returns the kernel whose speed is used: the kernel itself if it was timed on that generation.
AttentionKernel timed_as(AttentionKernel kernel, const GpuRates& rates);

struct AttentionWork {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, head_size = 0;
  std::int64_t queries = 0, keys = 0;
  bool causal = false, dropout = false;
  bool eager_softmax = false;  // scale, mask and softmax as separate kernels
  int rounds = 1;              // parts in which the keys arrive under context parallelism
  // single has twice the bytes of half. fp8 has half the bytes, and products at the fp8 rate.
  MatrixFormat format = MatrixFormat::half;
  std::int64_t value_size = 0;  // elements of a head's values; 0: head_size
  // In window_layers of every window_every blocks, flash kernels read at most `window` previous
  // keys (0: no window). Costs are the mean over all blocks.
  std::int64_t window = 0, window_every = 1, window_layers = 1;
  bool autocast = false;       // a bias, and the softmax in fp32 (image_time.h)
  std::int64_t distances = 0;  // distances whose vectors queries and keys are multiplied by
};

struct AttentionPiece {
  std::string_view name;
  bool product = false;  // limited by the matrix units, else by memory
  KernelCost cost;
};

// Return the kernels in order of execution.
std::vector<AttentionPiece> attention_forward(AttentionKernel kernel, const AttentionWork& work,
                                              const GpuRates& rates);
std::vector<AttentionPiece> attention_backward(AttentionKernel kernel, const AttentionWork& work,
                                               const GpuRates& rates);

}  // namespace lambcast
