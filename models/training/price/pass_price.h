// Time of the passes of one micro batch through a chunk of blocks, and the part of it that is
// communication.
//
// A pass is the pieces of its blocks in order (models/device/block_time.h) with the collectives of
// pipeline_plan.h between them. Exposed time of a collective of time C that overlaps a product of
// time G:
//
//   backward, behind a product     max(0, C - G)
//   scattered chunk by chunk       max(C / t, C - G (1 - 1/t))     TensorOverlap::all, chunks
//   gathered chunk by chunk        max(0, C - G (1 - 1/t))         a rank begins with its own
//   ring of context parallelism    max(0, C - overlapping attention), (c - 1) / c of it
//   keys and values gathered       max(0, C - overlapping attention), 1 / c of it
//
// (Chunks: Transformer Engine common/comm_gemm_overlap/comm_gemm_overlap.cpp, split_overlap_ag and
// _rs; PyTorch torch/distributed/_symmetric_memory.)
//
// Sharded weights have a stream of their own (weight_stream.h). If both they and the pass's own
// collectives leave the node, they cannot use a NIC at once: a pass lasts at least their sum.
//
// At the pipeline's ends, exchanges of tokens have no pass of another micro batch to overlap
// (models/parallel/pipeline_schedule.h).
//
// A pass takes at least as long as the host takes to start its kernels (host_pace.h).
//
// NCCL's kernels run on the multiprocessors that compute. Computation that overlaps a collective is
// longer by this share of the overlapped time:
//
//   min(32, 4 x ranks on a node) blocks / multiprocessors
//
// A channel takes one multiprocessor, and a node has four channels for each participating GPU
// (assumed: NCCL opens two to four for each NIC, at most 32). This holds for gradients and for
// sharded weights. Collectives of experts' weights have process groups with fewer ranks on a node;
// both groups are weighted by their time on the stream. It does not hold for chunks sent by copy
// engines (TensorOverlap::all, a ring of keys and values), nor for tensor parallelism during weight
// gradients, where published runs show no slowdown (Korthikanti et al. 2022, table 5).
#pragma once

#include <optional>
#include <vector>

#include "models/device/compute_interval.h"
#include "models/training/plan/buffers.h"
#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/training_plan.h"
#include "models/training/price/beside_collectives.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/interval.h"

namespace lambcast {

// A call of a plan, and how often it is made. The plan must outlive it.
struct CallsMade {
  const Call* call;
  std::int64_t times;
};

// Adds each call of the plan once.
inline void add(std::vector<CallsMade>& calls, const Call& call, std::int64_t times) {
  if (times == 0) return;
  for (CallsMade& made : calls) {
    if (made.call != &call) continue;
    made.times += times;
    return;
  }
  calls.push_back({&call, times});
}

// Total network load of the collectives of one micro batch.
struct Wire {
  Bytes per_gpu, per_node;
  std::int64_t collectives = 0;
  Duration communication;
  Duration meeting;  // the part of `communication` that is priced with other stages of the node

  Wire& operator+=(const Wire& other) {
    per_gpu += other.per_gpu;
    per_node += other.per_node;
    collectives += other.collectives;
    communication += other.communication;
    meeting += other.meeting;
    return *this;
  }
};

// Price of one pass of one micro batch.
struct PassPrice {
  Duration compute;  // kernels
  Duration exposed;  // collectives that nothing overlaps
  Duration communication;
  std::vector<CallsMade> calls;  // in all blocks of the chunk, without sends
  Duration time() const { return compute + exposed; }
};

// Sources of the times of both passes, except for collectives.
struct ChunkReads {
  RateTimes kernels;
  Duration launches;  // the host starts kernels of experts
  Duration paced;     // time beyond kernels and collectives, because the host starts each kernel
  Duration lost;      // slowdown by overlapping collectives, which occupy multiprocessors
  Duration kept;      // slowdown by overlapping exchanges of tokens
  Duration to_host, to_gpu;  // waits for copies of activations
  CopyRates copies;          // rates of these copies
};

struct ChunkPrice {
  PassPrice forward, input_gradient, weight_gradient;
  Duration blocks_forward,
      blocks_backward;  // the part of the passes in blocks, without sharded weights
  Duration send_forward, send_backward;
  ChunkReads reads;

  parallel::ChunkTimes times() const {
    const Duration input = input_gradient.time(), weight = weight_gradient.time();
    return {forward.time(), input + weight, input, weight, send_forward, send_backward};
  }
};

struct PipelinePrice {
  std::vector<ChunkPrice> chunks;  // by position
  parallel::PipelineTime time;
  // Totals of a step, per rank of a stage.
  std::vector<Duration> forward, backward, communication, exposed;
  std::vector<Duration> meeting;  // the part of communication priced with other stages of a node
  std::vector<Bytes> wire_bytes_per_gpu, network_bytes_per_node;
  std::vector<std::int64_t> num_collectives;
  std::vector<std::vector<CallsMade>> calls;  // calls of one micro batch, by position
  bool calibrated = true;
  bool covered = true;  // whether all collectives are calibrated
};

// Returns the price with all collectives, or all computations, at `end` of their intervals.
// `compute_width` is the half-width of computations, in logarithms. With `only`, collectives of
// other kinds take their expected times.
PipelinePrice price_pipeline(const PipelinePlan& plan, const TrainingPlan& training,
                             CollectiveCosts& costs, End end, double compute_width,
                             std::optional<CallKind> only = std::nullopt);

}  // namespace lambcast
