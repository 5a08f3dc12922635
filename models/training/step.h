// One optimizer step as a task graph, executed, and its account.
//
// A step is `gas` micro batches forward and backward, then, after the last backward,
//
//   uniform, warmup   gradients summed over ranks: buckets filled, all_reduced, scaled, copied back
//                     (with ZeRO or Overlap::ddp earlier: gradient_reduction.h), then the optimizer
//   compression       overflow flag all_reduced, optimizer up to the momentum, compressed_allreduce
//                     once per fused buffer (LAMB), per parameter group (Adam, fp16; bf16: of the
//                     rank's share of it) or per tensor (Adam, fp32), each padded to a multiple of
//                     n * lcm(n, 8)
//   silent            no communication (0/1 Adam between its sync points)
//
// Where the wrapper shards the optimizer (models/deepspeed/wrapper.h), weights are all_gathered
// after every step, group by group.
//
// No part of DeepSpeed's stage 0 overlaps another.
//
// compressed_allreduce of a buffer of Np elements over n ranks (deepspeed/runtime/comm/*.py):
//   worker kernels; signs Np/8 bytes all-to-all; 4-byte scales all-gathered; server kernels; signs
//   all-gathered; scales all-gathered; decode. Sent per rank: 2 (n-1)/n Np/8 + 8 (n-1) bytes.
// The mpi backend gathers with hand-written sends; without cuda_aware it copies through pageable
// host memory: about 2 Np/8 + Np/8n down and 3 Np/8 + Np/8n up.
#pragma once

#include <optional>

#include "models/device/compute_interval.h"
#include "models/training/collective_costs.h"
#include "models/training/training.h"
#include "sim/engine/engine.h"

namespace lambcast {

struct StepMetrics {
  Duration step_time;
  // With every collective at the low or high end of its interval (topologies/calibration.h) and
  // every computation at that of its own (models/device/compute_interval.h), d and e away:
  //
  //   step_time -+ sqrt(d^2 + e^2)
  //
  // Collectives are taken to err together and so are computations, the two apart, as wires and GPUs
  // are. Where wires were fitted to whole steps, the errors of the two cancel in part, and where
  // collectives hide behind the backward pass, they do not add up: the interval is too wide then.
  Duration step_time_low, step_time_high;
  // The share of steps that should lie inside; absent where held-out forecasts do not support one:
  // without a calibration, with compression, or where compute is not of the same GPU and model.
  std::optional<double> coverage;
  bool calibrated = true;     // collectives lie inside what the cluster was calibrated on
  Basis basis = Basis::rate;  // what forward and backward rest on
  Duration forward, backward, gradient_comm, exposed_comm, compress, decompress, optimizer, bubble;
  Bytes wire_bytes_per_gpu;
  Bytes network_bytes_per_node;
  std::int64_t num_collectives = 0;
};

// The graph with what ran, for traces.
struct StepRun {
  TaskGraph graph;
  Timeline timeline;
  StepMetrics metrics;
};

StepRun run_step(const Training& training, const Stage& stage, CollectiveCosts& costs);

// Copies between GPU and host memory: the cluster's own figures, else the device profile's. What a
// cluster says of MPI's staging is one rate, of either direction.
struct HostCopies {
  Sourced<Bandwidth> pageable_to_host, pageable_to_device;  // numpy buffers of mpi.py
  Sourced<Bandwidth> staged_to_host, staged_to_device;      // MPI's own pinned buffers
};
HostCopies host_copies(const Cluster& cluster, const Device& device);

// Elements of each parameter group as a wrapper flattens it, its padding included.
std::vector<std::int64_t> flat_groups(const Training& training);

// Padded sizes of the buffers that compressed_allreduce is called on, in order.
std::vector<std::int64_t> compressed_buffers(const Training& training);

}  // namespace lambcast
