// The events of a trace for a breakdown, as recorded by each profiler, in microseconds.
//
//   Kineto   JSON of PyTorch's profiler, plain or gzip: complete events ("ph": "X") of the
//            categories kernel, gpu_memcpy and gpu_memset; steps are the annotations
//            ProfilerStep#N, of the GPU if there are any. A file that ends within an event is
//            read up to there and marked as truncated.
//   Nsight   SQLite export of Nsight Systems: CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET of
//            the first GPU; steps are NVTX ranges named ProfilerStep, step, iteration, iter,
//            train_step or training_step with a number. A step lasts from the first to the last
//            kernel that its range launches (CUPTI_ACTIVITY_KIND_RUNTIME), as Kineto's
//            annotations of the GPU do. Without such calls it is the range itself.
//
// Sources: pytorch/kineto libkineto/src/output_json.cpp; Nsight Systems, exported data.
// Left out, with Nsight Systems: shapes of products and sizes of collectives.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "validate/program/job_trace.h"
#include "validate/program/traced_products.h"

namespace lambcast {

struct TracedKernel {
  double begin_us = 0, end_us = 0;
  KernelKind kind = KernelKind::other;
  int collective = -1;            // index into RecordedTrace::collectives; -1: not recorded
  std::uint32_t correlation = 0;  // number of its launch; 0: not recorded
};

struct RecordedTrace {
  std::string gpu;  // empty if the trace names none
  int gpus = 1;     // number of GPUs, of which the kernels of one are read
  std::vector<TracedKernel> kernels;
  std::vector<TracedCollective> collectives;  // their `times` are empty
  ProductCalls products;
  std::vector<std::pair<double, double>> steps, steps_of_gpu;
  bool truncated = false;
};

// Reads a trace of either kind, recognised by content. Throws Error (usage) naming the file if it
// cannot be read.
RecordedTrace read_trace(const std::string& path);
RecordedTrace read_kineto(const std::string& path);
RecordedTrace read_nsight(const std::string& path);

}  // namespace lambcast
