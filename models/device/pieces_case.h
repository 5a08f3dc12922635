// What tests add up of the pieces of a block.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/device/block_time.h"
#include "models/device/device.h"

namespace lambcast {

inline GpuRates rates_of(const std::string& device) { return load_device(device).rates.value(); }

inline double flops(const std::vector<Piece>& pieces, std::optional<Pass> pass = {}) {
  double sum = 0;
  for (const Piece& piece : pieces)
    if (!pass || piece.pass == *pass) sum += piece.flops.value();
  return sum;
}

inline double bytes_of(const std::vector<Piece>& pieces, std::string_view name) {
  double sum = 0;
  for (const Piece& piece : pieces)
    if (piece.name == name) sum += piece.bytes.value();
  return sum;
}

}  // namespace lambcast
