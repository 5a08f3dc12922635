// Alternatives to an all-reduce of uncompressed gradients, in addition to the 1-bit optimizers:
// their messages, the kernels around them, and the persistent state. DeepSpeed's form is flat: all
// ranks exchange all gradients after the last backward pass.
//
//   K elements, n ranks, per step and rank
//   fp16, bf16    all_reduce of 2 K bytes, of gradients that are accumulated in fp32 (PyTorch's
//                 fp16_compress_hook and bf16_compress_hook, Horovod's Compression.fp16)
//   onebit        signs and scales with error feedback, as compressed_allreduce.h sends momenta,
//                 from the first step and without a frozen variance: not 1-bit Adam's algorithm
//   fp8           scale and cast; all_to_all of K bytes and scales; sum; cast; all_gather of K
//                 bytes (Colossal-AI quantization/fp8.py, fp8_communication), in e4m3 or e5m2
//   int8, int4    the same in K or K/2 bytes, a scale per 2,048 elements (ZeRO++,
//                 arXiv:2306.10209, section 3.3, on one level)
//   fp8+ef,       the same with error feedback: of a rank's gradients, 4 K bytes, and of its sums,
//   int8+ef,      4 K/n, which the fused kernels read and write while they code
//   int4+ef
//   qgz           K/2 bytes all_to_all in the node, summed, then K/2g between nodes with g ranks
//                 each; a rank is left with its share (ZeRO++, section 3.3); with int8 K and K/g
//   loco          the same with error feedback on both levels, K and K/g elements. DeepSpeed keeps
//                 it in 8 bits, which separate kernels widen and narrow (coalesced_collectives.py,
//                 all_to_all_loco_quant_reduce); the fused kernels keep it in fp32
//   sdp4bit       as qgz, K bytes in the node and K/2g between nodes, a scale per 128 elements;
//                 ranks gather the changes of weights in 4 bits (Jia et al. 2024,
//                 arXiv:2410.15526; jindajia/SDP4Bit, scripts of speed)
//   powersgd:R    all_reduce of 4 R (h + w) bytes of a matrix, other tensors uncompressed; 6 h w R
//                 FLOPs; error feedback (Vogels et al. 2019, arXiv:1905.13727). A factor of w R is
//                 kept as the start of the next step; powersgd:R:I starts anew and iterates I times
//                 over both factors: I times their bytes and (4 I + 2) h w R FLOPs
//   topk:SHARE    all_gather of 8 bytes for each of SHARE K values and indices: grows with n; error
//                 feedback (Lin et al. 2018, arXiv:1712.01887)
//   randomk:SHARE all_reduce of SHARE K values, indices from a seed; error feedback
//   chunktopk:K,  messages of K values from each chunk of 4,096 (chunked_exchange.h)
//   dctsign:K
//   lossless:     the bits of all values in SHARE of their bytes, which depends on the values: bf16
//   SHARE         0.67, fp16 0.85 (DietGPU's README); all_to_all, sum, all_gather of SHARE b K
//   local:H       nothing for H - 1 steps, then weights averaged by an outer optimizer (DiLoCo,
//                 arXiv:2311.08105). With fp16, and bf16 in its wrapper, ranks still exchange a
//                 byte for overflow in each step: DeepSpeed does if its backward pass sums no
//                 gradients (runtime/utils.py, CheckOverflow). With sites, see below, they do not
//   localsgd:H    the same without an outer optimizer: all continue from the average
//                 (arXiv:1805.09767)
//   local:H:R     between sites of R ranks, of clusters far apart: within a site gradients are
//                 all_reduced in every step, as without the exchange. Every H steps each rank
//                 all_reduces 4 K/R bytes of weights with the ranks of other sites that have the
//                 same shard, takes the outer step on them, and the site gathers 4 K bytes
//   neighbours:G  a rank steps on its own gradients, then averages its 4 K bytes of weights with
//                 neighbours only: both sides of a ring, or in the one-peer exponential graph the
//                 rank 2^(step mod log2 n) further on (arXiv:1705.09056, arXiv:2110.13363)
//
// Other forms of these exchanges. Libraries that hook into the backward pass use the first and the
// third:
//
//   two-level     the ranks of a node sum their uncompressed gradients at a leader; only the
//                 leaders exchange as above; a broadcast in the node distributes the sum
//   sharded       the ranks of a node scatter that sum, and each exchanges its share as above
//                 (exchange_levels.h)
//   overlapped    each bucket is exchanged when the backward pass has filled it, so that every
//                 bucket has the latencies of a whole exchange. Weights of neighbours are sent
//                 whole during both passes
//   start N       the first N steps of the run all_reduce their gradients (PyTorch's powerSGD_hook
//                 and post_localSGD_hook; post-local SGD, arXiv:1808.07217: "localsgd:H / nodes /
//                 start N")
//   every H       the change of weights is coded every H steps, between ranks or sites, and an
//                 outer optimizer applies its average, as with local:H:R
//
// In the first three forms, top-k takes its threshold from a sample (arXiv:1712.01887), and scales
// precede their chunks in one message instead of two. Kernels of overlapped buckets run on the
// stream of communication and count as communication. Only collectives slow the passes down.
// Source: Bagua (arXiv:2107.01499, section 3.4; bagua-core-internal, communicators/mod.rs:
// reduce_inplace, broadcast; comm_ops/centralized_low_precision_synchronous;
// kernels/bagua_kernels.cu: 32 bytes in front of a chunk; decentralized.py: one bucket, started
// before the forward pass); PyTorch distributed/algorithms/ddp_comm_hooks.
//
// If ranks share optimizer states (ZeRO stages 1 and 2), a rank needs only the sums of its share:
// onebit, fp8, int8 and int4 then gather nothing, since weights are gathered after the step. At
// stage 2 gradients are exchanged after every micro batch. With stage 3 qgz is part of the passes
// (weight_sharing.h).
//
// Bytes are those of kernels/exchange_bytes.h. The effect on convergence is not modelled.
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/plan/averaged_gradients.h"
#include "models/training/plan/exchange.h"
#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/exchange_state.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Whether an exchange replaces the reduction of gradients.
bool exchanges_gradients(const TrainingPlan& training);

// Whether the program runs exchanges in hooks of the backward pass by default.
bool exchanges_in_hooks(const TrainingPlan& training);

std::vector<StepPart> gradient_exchange(const TrainingPlan& training,
                                        const AveragedGradients& gradients);

// Returns the exchange of a `share` of a layout rank's gradients, such as a bucket, among its
// owners.
std::vector<StepPart> gradient_exchange(const TrainingPlan& training, const Owners& owners,
                                        const parallel::RankParameters& held, double share = 1);

}  // namespace lambcast
