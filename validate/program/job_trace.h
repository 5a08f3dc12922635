// Profile of one rank of a training job: the trace of PyTorch's profiler (Kineto, Chrome JSON),
// plain or compressed by gzip, or an SQLite export of Nsight Systems (recorded_trace.h). The first
// and the last step of a trace are often cut and are left out if at least three were recorded.
//
// Parts of each step, with the intervals of kernels on all streams united:
//
//   computing   kernels other than communication
//   exposed     communication while nothing computes
//   idle        neither
//
// Kernels are classified by name: communication (ncclKernel, ncclDevKernel, rccl, msccl, nvshmem,
// deep_ep), attention (flash, fmha, attention), products (gemm, cutlass, xmma, nvjet, conv),
// copies, all others. A collective's kernel includes the wait for the last rank, so exposed time is
// more than the transfer.
//
// Computing is divided by kind: products first, then attention while no product runs, and so on.
//
// Source: facebookresearch/HolisticTraceAnalysis hta/common/types.py (kinds of kernels).
// Left out: several ranks of one job in one file.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "validate/program/traced_collectives.h"
#include "validate/program/traced_products.h"
#include "validate/replay/source.h"

namespace lambcast {

enum class KernelKind { products, attention, other, copies, communication };
inline constexpr std::array<std::string_view, 5> kernel_kind_names{
    "products", "attention", "other kernels", "copies", "communication"};
KernelKind kind_of_kernel(std::string_view name);

struct TracedStep {
  double time_us = 0, computing_us = 0, exposed_us = 0, idle_us = 0;
  std::array<double, kernel_kind_names.size()> kernel_us{};  // sum per kind, overlaps included
  // Time in which kernels of this kind run, and none of an earlier kind.
  std::array<double, kernel_kind_names.size()> alone_us{};
};

struct JobTrace {
  std::string gpu;  // name of the device in the trace; empty if it has none
  int gpus = 1;     // number of GPUs in the file; the first is read
  std::vector<TracedStep> steps;
  int left_out = 0;  // steps left out at the ends of the trace
  bool truncated = false;
  std::vector<TracedCollective> collectives = {};  // of these steps
  std::vector<TracedProduct> products = {};        // of these steps, by shape
  // Returns the medians over the steps.
  TracedStep median() const;
};

// Reads a trace. Throws Error (usage) naming the file if it holds no step, no kernel, or another
// format.
JobTrace read_job_trace(const std::string& path);

// Returns the trace as a measured run of `what_if`, with its median step and the standard error of
// that median (training_log.h).
SourceFigure figure_of(const JobTrace& trace, const std::string& path, const WhatIf& what_if);

}  // namespace lambcast
