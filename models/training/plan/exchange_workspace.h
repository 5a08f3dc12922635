// Temporary memory of a gradient exchange, in addition to its persistent state: gradients in fp32
// during coding, messages sent and received, and scratch space of kernels.
//
//   bytes for K elements on n ranks        fused kernels             PyTorch's operations
//   fp16, bf16                             2 K                       2 K
//   onebit                                 4 K + K/4                 4 K + 5/4 K
//   fp8, int8, int4: c bytes an element    4 K + 2 c K, and 4 K/n    the same
//                                          for sums in fp32
//   qgz, loco, sdp4bit: nodes of g ranks   4 K + 2 c K, and 4 K/g    2 c K
//                                          and 4 K/n for sums
//   powersgd:R: matrices of h x w          4 K + 4 R h, and 8 R w    4 K + 4 R h
//                                          h/256 for the largest
//   topk: k = SHARE K                      4 K + 8 k (n + 1), and    8 K + 8 k (n + 1)
//                                          16 k + K/64 + 0.27 MB
//   randomk                                4 K + 8 k                 4 K + 8 k
//   chunktopk, dctsign: messages of M      4 K + M (n + 1)           the same
//   lossless:SHARE: gradients of b bytes   2 SHARE b K               the same
//   others                                 none: weights are averaged in place
//
// In addition: 4 R w for powersgd:R:I, and in sharded exchanges the codes of the node's other
// shares.
//
// Buffers of kernels/ are allocated once. PyTorch's allocator is assumed to find no free block of
// that size among freed activations, so the buffers add to the activations. An exchange in buckets
// would need less, but no framework that exchanges after the last backward pass does that.
//
// Sources: kernels/cuda/{compression,quantisation,low_rank,top_k}.h; Colossal-AI
// quantization/fp8.py; ZeRO++ in DeepSpeed, runtime/comm/coalesced_collectives.py.
#pragma once

#include "models/training/plan/gradient_exchange.h"

namespace lambcast {

double exchange_workspace_bytes(const TrainingPlan& training, const AveragedGradients& gradients);

}  // namespace lambcast
