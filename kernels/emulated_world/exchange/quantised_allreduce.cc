#include "kernels/emulated_world/exchange/quantised_allreduce.h"

#include <algorithm>

namespace lambcast::emulated {
namespace {

using reference::Message;
using Flat = std::vector<float>;

}  // namespace

Wire average(QuantisedAllreduce& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  const std::size_t chunk = (elements + n - 1) / n;
  Wire wire{std::vector<std::size_t>(n)};
  if (n == 1) return wire;
  std::vector<Flat> c = compensated(buffers, o.worker, chunk * n);
  std::vector<std::vector<Message>> received(n);  // [server][worker]
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      received[r].push_back(send(std::span(c[i]).subspan(r * chunk, chunk),
                                 std::span(o.worker[i]).subspan(r * chunk, chunk), o.quantiser,
                                 o.error_feedback));
      if (i != r) wire.sent[i] += received[r].back().bytes();
    }
  }
  o.server.resize(n, Flat(chunk));
  Flat average(chunk * n);
  for (std::size_t r = 0; r < n; ++r) {
    Flat mean(chunk);
    reference::dequantise_sum(received[r], o.quantiser,
                              static_cast<float>(1.0 / static_cast<double>(n)), mean);
    for (std::size_t e = 0; e < chunk; ++e) mean[e] += o.server[r][e];
    const Message message = send(mean, o.server[r], o.quantiser, o.error_feedback);
    wire.sent[r] += (n - 1) * message.bytes();
    reference::dequantise(message, o.quantiser, std::span(average).subspan(r * chunk, chunk));
  }
  hand_out(average, buffers);
  return wire;
}

}  // namespace lambcast::emulated
