// Types in which a run keeps its weights and sums its gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lambcast {

enum class DataType { fp16, bf16, fp32 };

constexpr std::string_view name_of(DataType type) {
  constexpr std::string_view names[] = {"fp16", "bf16", "fp32"};
  return names[static_cast<std::size_t>(type)];
}

constexpr double bytes_of(DataType type) { return type == DataType::fp32 ? 4 : 2; }

struct Precision {
  DataType weights = DataType::fp32;
  std::optional<DataType> gradients;  // type on the wire; absent: type of the weights
  std::optional<DataType> sums;       // over micro batches; absent: the engine's (wrapper.h)
  // Window of dynamic loss scaling, which doubles the scale after that number of steps without
  // overflow; absent: no scale, or a constant one.
  std::optional<std::int64_t> loss_scale_window;

  bool is_half() const { return weights != DataType::fp32; }
  DataType on_wire() const { return gradients.value_or(weights); }

  bool operator==(const Precision&) const = default;
};

}  // namespace lambcast
