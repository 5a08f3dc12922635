#include "kernels/emulated_world/exchange/sparse_allreduce.h"

#include <fmt/format.h>

#include "kernels/emulated_world/exchange/plain_allreduce.h"
#include "kernels/reference/chunk_top_k.h"
#include "kernels/reference/dct_sign.h"
#include "kernels/reference/sparse.h"
#include "sim/base/error.h"

namespace lambcast::emulated {

Wire average(SparseAllreduce& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  Wire wire{std::vector<std::size_t>(n)};
  if (n == 1) return wire;
  if (o.kept < 1 || o.kept > elements) {
    fail_input(Where{"", 0, "kept"}, fmt::format("{} (allowed: 1 to {})", o.kept, elements));
  }
  std::vector<std::vector<float>> c = compensated(buffers, o.owed, elements);
  std::vector<float> mean(elements);
  const float share = static_cast<float>(1.0 / static_cast<double>(n));
  if (o.choice == SparseAllreduce::Choice::top) {
    for (std::size_t r = 0; r < n; ++r) {
      const auto indices = reference::top_k_indices(c[r], o.kept);
      const auto values = reference::take(c[r], indices);
      reference::add_at(mean, indices, values, share);
      // In the ring of the all-gather a rank forwards the messages of all ranks except the next
      // one.
      wire.sent[r] = (n - 1) * (indices.size() * sizeof indices[0] + values.size() * sizeof(float));
    }
  } else {
    const auto indices = reference::random_k_indices(o.seed + o.calls, o.kept, elements);
    std::vector<std::vector<float>> values;
    for (auto& flat : c) values.push_back(reference::take(flat, indices));
    wire += plain_allreduce(std::vector<std::span<float>>(values.begin(), values.end()),
                            WireFormat::fp32);
    reference::add_at(mean, indices, values[0], 1.0f);
  }
  if (o.error_feedback) o.owed = std::move(c);
  hand_out(mean, buffers);
  ++o.calls;
  return wire;
}

Wire average(ChunkedGather& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  Wire wire{std::vector<std::size_t>(n)};
  if (n == 1) return wire;
  if (o.kept < 1 || o.kept > elements_of_chunk)
    fail_input(Where{"", 0, "kept"},
               fmt::format("{} (allowed: 1 to {})", o.kept, elements_of_chunk));
  const bool largest = o.code == ChunkCode::largest;
  std::vector<std::vector<float>> c = compensated(buffers, o.owed, elements);
  std::vector<float> mean(elements);
  const float share = static_cast<float>(1.0 / static_cast<double>(n));
  for (std::size_t r = 0; r < n; ++r) {
    const reference::ChunkMessage message =
        largest ? reference::encode_largest(c[r], o.kept) : reference::encode_cosines(c[r], o.kept);
    const std::vector<float> sent = largest ? reference::decode_largest(message, elements, o.kept)
                                            : reference::decode_cosines(message, elements, o.kept);
    for (std::size_t e = 0; e < elements; ++e) {
      mean[e] += share * sent[e];
      c[r][e] -= sent[e];
    }
    // In the ring of the all-gather a rank forwards the messages of all ranks except the next one.
    wire.sent[r] = (n - 1) * message.size();
  }
  if (o.error_feedback) o.owed = std::move(c);
  hand_out(mean, buffers);
  return wire;
}

}  // namespace lambcast::emulated
