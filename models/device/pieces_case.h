// Sums over the pieces of a block, for tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/device/block_time.h"
#include "models/device/device.h"

namespace lambcast {

inline GpuRates rates_of(const std::string& device) { return load_device(device).rates.value(); }

// The block of the 22-billion model of Korthikanti et al. 2022, table 4.
inline BlockWork block_22b() {
  BlockWork work;
  work.hidden = 6144, work.heads = work.kv_heads = 64, work.ffn = 4 * 6144, work.vocab = 51200;
  work.causal = work.dropout = true;
  work.micro_batch = 4, work.seq_len = 2048, work.tensor_parallel = 8;
  work.attention = AttentionKernel::unfused;
  return work;
}

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
