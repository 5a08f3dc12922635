// Kinds of work of a training step, without rates: price.h finds the time of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "models/training/plan/optimizer_cost.h"
#include "sim/base/provenance.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

// The shares [from, to) of a forward or backward pass over one micro batch.
struct PassWork {
  bool backward = false;
  double from = 0, to = 1;
};

// Elementwise work bound by the GPU's memory: bytes read and written.
struct MemoryWork {
  double bytes = 0;
};

// Kernels over `elements` in `tensors` pieces (optimizer_cost.h).
struct KernelWork {
  Passes passes;
  double elements = 0, tensors = 0;
};

// Matrix products of the optimizer, in half precision, at a share of the peak.
struct ProductWork {
  double flops = 0;
  Sourced<double> share_of_peak;
  std::string_view cost = "share_of_peak";  // name of this share among the sources
};

// Copies between GPU and host memory, each with a wait: numpy's pageable buffers, or the pinned
// ones through which MPI stages device buffers.
struct HostCopy {
  double down_bytes = 0, up_bytes = 0;
  double waits = 0;
  bool pinned = false;
};

// An optimizer's update on the host's processors, whose memory the ranks of a node share: bytes
// read and written for one rank, and the number of ranks that update at once.
struct HostUpdate {
  double bytes = 0;
  int ranks = 1;
};

// One collective.
struct Call {
  ProcessGroup group;
  Backend backend = Backend::nccl;  // backend that carries it (backend.h)
  Op op = Op::all_reduce;
  Bytes bytes;
  std::string algorithm = {};  // empty: the choice of the cluster or library
  Place place = {};            // place of the group's first member
};

// The kind of a collective: the library that carries it, and its operation.
struct CallKind {
  Backend backend = Backend::nccl;
  Op op = Op::all_reduce;
  bool operator==(const CallKind&) const = default;
};
inline CallKind call_kind(const Call& call) { return {call.backend, call.op}; }

// Returns a call over NCCL with the library's own choice of algorithm.
inline Call call(const ProcessGroup& group, Op op, double bytes) {
  return {group, Backend::nccl, op, Bytes(bytes)};
}

// Returns the call, or nothing if it has a single rank or no bytes.
inline std::optional<Call> some(const Call& call) {
  return call.group.ranks > 1 && call.bytes.value() > 0 ? std::optional(call) : std::nullopt;
}

// Under a layout: a segment of a pipeline stage's passes over all micro batches (pipeline_plan.h).
// Segments end when gradients are complete: segment 0 with the first micro batch's forward pass,
// segment 1 + i when the gradients of its i-th chunk from the end may be reduced, and the last
// segment with the stage's last pass.
struct StageWork {
  int stage = 0;
  int segment = 0;
};

// An operation that only orders others.
struct Wait {};

// Time that kernels lose to an overlapping collective (pass_price.h).
struct Slowdown {
  Call beside;
  bool first_only =
      false;  // whether the call overlaps only the first segment, which may be the shorter
  double of_backward = 0;  // without a layout: share of the backward pass that it overlaps
};

using Work = std::variant<PassWork, StageWork, MemoryWork, KernelWork, ProductWork, HostCopy,
                          HostUpdate, Call, Wait, Slowdown>;

}  // namespace lambcast
