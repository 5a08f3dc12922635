#include "experiments/output/trace_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/json.h"

namespace lambcast {
namespace {

std::string group_text(const ProcessGroup& group) {
  std::string text = fmt::format("{} ranks, {} on each of {} nodes", group.ranks,
                                 std::min(group.ranks, group.per_node), group.nodes());
  if (group.stride > 1) text += fmt::format(", slots {} apart", group.stride);
  if (group.siblings > 1) text += fmt::format(", {} such groups at once", group.siblings);
  return text;
}

std::int64_t layers_of(const ModelShape& model) { return std::max<std::int64_t>(1, model.layers); }

}  // namespace

std::int64_t whole_bytes(double bytes) { return std::llround(bytes); }

Json TraceArgs::of(const Work& work) const {
  return std::visit([&](const auto& of_kind) { return args(of_kind); }, work);
}

const CollectiveCost& TraceArgs::cost(const Call& call) const {
  return costs_.cost(
      {training_.cluster, call.group, training_.network, training_.expand, call.place.node},
      call.backend, call.op, call.bytes, call.algorithm);
}

Json TraceArgs::args(const PassWork& work) const {
  const std::int64_t layers = layers_of(*training_.model);
  if (work.from == 0 && work.to == 1) return {{"layers", fmt::format("all {}", layers)}};
  const auto first = std::llround(work.from * static_cast<double>(layers));
  const auto last = std::llround(work.to * static_cast<double>(layers));
  if (last - first != 1) return {{"share", work.to - work.from}};
  return {{"layer", work.backward ? layers - last : first}};
}

Json TraceArgs::args(const StageWork& work) const { return {{"stretch", work.segment}}; }

Json TraceArgs::args(const MemoryWork& work) const { return {{"bytes", whole_bytes(work.bytes)}}; }

Json TraceArgs::args(const KernelWork& work) const {
  return {{"elements", whole_bytes(work.elements)},
          {"tensors", whole_bytes(work.tensors)},
          {"bytes", whole_bytes(work.passes.bytes_per_element * work.elements)}};
}

Json TraceArgs::args(const ProductWork& work) const { return {{"flops", work.flops}}; }

Json TraceArgs::args(const HostCopy& work) const {
  return {{"bytes_down", whole_bytes(work.down_bytes)},
          {"bytes_up", whole_bytes(work.up_bytes)},
          {"memory", work.pinned ? "pinned" : "pageable"}};
}

Json TraceArgs::args(const HostUpdate& work) const {
  return {{"bytes", whole_bytes(work.bytes)}, {"ranks_at_once", work.ranks}};
}

Json TraceArgs::args(const Call& call) const {
  const CollectiveCost& of = cost(call);
  return {{"op", std::string(name_of(call.op))},
          {"bytes", whole_bytes(call.bytes.value())},
          {"group", group_text(call.group)},
          {"library", std::string(traits_of(call.backend).in_words)},
          {"algorithm", of.algorithm},
          {"protocol", of.protocol},
          {"calibrated", of.interval.calibrated}};
}

Json TraceArgs::args(const Wait&) const { return Json::object(); }

Json TraceArgs::args(const Slowdown& work) const { return {{"beside", args(work.beside)}}; }

}  // namespace lambcast
