#include <algorithm>
#include <map>
#include <queue>

#include "sim/network/fair_share.h"
#include "sim/network/flow_network.h"
#include "sim/network/network.h"

namespace lambcast {
namespace {

class AnalyticNetwork final : public Network {
 public:
  explicit AnalyticNetwork(const Topology& topology) : topology_(topology) {}

  void start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) override {
    const auto [known, is_new] = known_.try_emplace(&flows);
    if (is_new) known->second = analytic_time(flows, topology_);
    in_flight_.push({now + known->second * times, started_++, ticket});
  }

  std::optional<SimTime> next_event() override {
    if (in_flight_.empty()) return std::nullopt;
    return in_flight_.top().end;
  }

  void advance(SimTime now, std::vector<Ticket>& finished) override {
    while (!in_flight_.empty() && in_flight_.top().end <= now) {
      finished.push_back(in_flight_.top().ticket);
      in_flight_.pop();
    }
  }

 private:
  struct InFlight {
    SimTime end;
    std::uint64_t order;
    Ticket ticket;
    bool operator>(const InFlight& other) const {
      return end != other.end ? end > other.end : order > other.order;
    }
  };
  const Topology& topology_;
  std::priority_queue<InFlight, std::vector<InFlight>, std::greater<>> in_flight_;
  std::uint64_t started_ = 0;
  std::map<const FlowSet*, Duration> known_;
};

}  // namespace

Duration analytic_time(const FlowSet& flows, const Topology& topology) {
  const LastFlow last = last_flow(flows, topology);
  return last.bytes.value() > 0 ? last.bytes / last.share : Duration();
}

std::unique_ptr<Network> make_network(NetworkModel model, const Topology& topology) {
  if (model == NetworkModel::analytic) return std::make_unique<AnalyticNetwork>(topology);
  return std::make_unique<FlowNetwork>(topology);
}

}  // namespace lambcast
