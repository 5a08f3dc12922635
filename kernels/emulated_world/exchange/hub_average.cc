#include "kernels/emulated_world/exchange/hub_average.h"

namespace lambcast::emulated {

HubWire average(RelayAverage& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  if (n == 1) return {};
  std::vector<std::vector<float>> c = compensated(buffers, o.worker, elements);
  std::vector<reference::Message> received;
  for (std::size_t r = 0; r < n; ++r)
    received.push_back(send(c[r], o.worker[r], o.quantiser, o.error_feedback));
  o.relay.resize(elements);
  std::vector<float> mean(elements);
  reference::dequantise_sum(received, o.quantiser, static_cast<float>(1.0 / static_cast<double>(n)),
                            mean);
  for (std::size_t e = 0; e < elements; ++e) mean[e] += o.relay[e];
  const reference::Message message = send(mean, o.relay, o.quantiser, o.error_feedback);
  reference::dequantise(message, o.quantiser, mean);
  hand_out(mean, buffers);
  return {received[0].bytes(), message.bytes()};
}

HubWire average(StoreAverage& o, Buffers buffers) {
  const std::size_t n = buffers.size();
  const Wire gathered = average(o.codec, buffers);
  if (n == 1) return {};
  const std::size_t message = gathered.sent[0] / (n - 1);
  return {message, n * message};
}

}  // namespace lambcast::emulated
