#include "kernels/emulated_world/exchange/wire.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lambcast::emulated {

Wire& operator+=(Wire& wire, const Wire& more) {
  for (std::size_t r = 0; r < wire.sent.size(); ++r) wire.sent[r] += more.sent[r];
  return wire;
}

void check(Buffers buffers) {
  LAMBCAST_CHECK(!buffers.empty(), "an exchange of no ranks");
  for (const auto& buffer : buffers) {
    LAMBCAST_CHECK(buffer.size() == buffers[0].size(), "{} and {} elements", buffer.size(),
                   buffers[0].size());
  }
}

std::vector<std::vector<float>> compensated(Buffers buffers, std::vector<std::vector<float>>& owed,
                                            std::size_t padded) {
  owed.resize(buffers.size());
  std::vector<std::vector<float>> all;
  for (std::size_t r = 0; r < buffers.size(); ++r) {
    owed[r].resize(padded);
    std::vector<float>& c = all.emplace_back(buffers[r].begin(), buffers[r].end());
    c.resize(padded);
    for (std::size_t e = 0; e < padded; ++e) c[e] += owed[r][e];
  }
  return all;
}

reference::Message send(std::span<float> c, std::span<float> owed, const Quantiser& quantiser,
                        bool error_feedback) {
  reference::Message message = reference::quantise_owed(c, quantiser);
  if (error_feedback) std::copy(c.begin(), c.end(), owed.begin());
  return message;
}

void hand_out(std::span<const float> average, Buffers buffers) {
  for (const auto& buffer : buffers) {
    std::copy_n(average.begin(), buffer.size(), buffer.begin());
  }
}

}  // namespace lambcast::emulated
