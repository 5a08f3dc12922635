#include "experiments/output/memory_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "experiments/output/cell.h"
#include "models/training/memory/memory.h"
#include "sim/base/json.h"
#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

std::string total_text(const TrainingPlan& training, const MemoryForecast& memory) {
  const Bytes capacity = training.device->memory_capacity;
  return fmt::format("memory: {} ({} to {}) of {} a GPU{}", to_text(memory.peak),
                     to_text(memory.low()), to_text(memory.high()), to_text(capacity),
                     memory.peak <= capacity ? "" : ": DOES NOT FIT");
}

std::string host_text(const TrainingPlan& training, const MemoryForecast& memory) {
  if (memory.host == Bytes()) return "";
  return fmt::format("  offloaded: {} of the host memory of a node{}\n", to_text(memory.host),
                     fits_host(*training.cluster, memory) ? "" : ": DOES NOT FIT");
}

// Returns the parts of memory, largest first.
auto sorted_parts(const MemoryForecast& memory) {
  auto parts = memory.parts;
  sort_stably(parts, std::ranges::greater(), [](const auto& part) { return part.second; });
  return parts;
}

std::string parts_text(const MemoryForecast& memory) {
  std::vector<std::string> parts;
  for (const auto& [part, bytes] : sorted_parts(memory))
    parts.push_back(fmt::format("{} {}", part, bytes_cell(bytes)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json held(const MemoryForecast& memory) {
  Json json{{"peak_bytes_per_gpu", memory.peak.value()}, {"parts", Json::object()}};
  for (const auto& [part, bytes] : memory.parts) json["parts"][part] = bytes.value();
  return json;
}

}  // namespace

std::string memory_text(const TrainingPlan& training, const MemoryForecast& memory) {
  std::string out = fmt::format("{}\n  {}\n{}", total_text(training, memory), parts_text(memory),
                                host_text(training, memory));
  std::vector<std::string> peaks;
  for (const MemoryForecast& stage : forecast_stage_memory(training))
    peaks.push_back(bytes_cell(stage.peak));
  if (peaks.size() > 1)
    out += fmt::format("  by stage of the pipeline: {}\n", fmt::join(peaks, ", "));
  return out;
}

std::string memory_line(const TrainingPlan& training, const MemoryForecast& memory) {
  std::string out = total_text(training, memory);
  const auto parts = sorted_parts(memory);
  for (std::size_t i = 0; i < std::min<std::size_t>(2, parts.size()); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "; most: " : ", ", parts[i].first,
                       bytes_cell(parts[i].second));
  return out + " (--explain parts)\n" + host_text(training, memory);
}

Json memory_json(const TrainingPlan& training, const MemoryForecast& memory) {
  Json json{{"peak_bytes_per_gpu", memory.peak.value()},
            {"peak_low_bytes_per_gpu", memory.low().value()},
            {"peak_high_bytes_per_gpu", memory.high().value()},
            {"fits", memory.fits},
            {"parts", held(memory).at("parts")},
            {"stages", Json::array()}};
  for (const MemoryForecast& stage : forecast_stage_memory(training))
    json["stages"].push_back(held(stage));
  return json;
}

}  // namespace lambcast
