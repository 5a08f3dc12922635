#include "kernels/emulated_world/exchange/two_level.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/exchange/exchange_case.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

// Returns the error feedback of every element, in units of the sum over all ranks: the errors are
// of node means, each over g ranks.
std::vector<double> owed_in_two_levels(const TwoLevel& state, std::size_t elements, int m) {
  std::vector<double> owed(elements);
  const int shares = state.nodes == Nodes::shares ? state.per_node : 1;
  for (int s = 0; s < shares; ++s) {
    const ChunkLayout layout = share_layout(elements, m, shares, s);
    const auto add = [&](const auto& worker, const auto& server, std::size_t chunk) {
      for (std::size_t e = 0; e < layout.elements; ++e) {
        double sum = double(m) * server[e / chunk][e % chunk];
        for (const Flat& of_node : worker) sum += of_node[e];
        owed[std::size_t(s) * layout.padded + e] = state.per_node * sum;
      }
    };
    if (std::size_t(s) < state.signs.size())
      add(state.signs[std::size_t(s)].worker, state.signs[std::size_t(s)].server, layout.chunk);
    if (std::size_t(s) < state.quantised.size() && layout.elements > 0)
      add(state.quantised[std::size_t(s)].worker, state.quantised[std::size_t(s)].server,
          (layout.elements + std::size_t(m) - 1) / std::size_t(m));
  }
  return owed;
}

}  // namespace

TEST_CASE("two levels: sent plus error equals the input, with 1, 4 and 8 bits") {
  for (const std::size_t elements : {std::size_t{1003}, std::size_t{70}})
    for (const auto& [nodes, per_node] : {std::pair{2, 2}, {3, 4}, {4, 1}, {2, 8}, {1, 4}})
      for (const Nodes how : {Nodes::leaders, Nodes::shares})
        for (const std::optional<Quantiser>& q :
             {std::optional<Quantiser>(), {{WireFormat::int8, 64}}, {{WireFormat::int4, 64}}}) {
          const std::size_t n = std::size_t(nodes * per_node);
          sent_plus_owed_equals_meant(TwoLevel{.per_node = per_node, .nodes = how, .quantiser = q},
                                      n, elements, [&, m = nodes](const TwoLevel& state) {
                                        return owed_in_two_levels(state, elements, m);
                                      });
          if (how == Nodes::leaders || nodes == 1) continue;
          TwoLevel state{
              .per_node = per_node, .nodes = how, .in_node = WireFormat::fp16, .quantiser = q};
          auto buffers = random_buffers(n, elements, 1);
          const Wire wire = average(state, views(buffers));
          CHECK(wire.sent[0] ==
                sharded_allreduce_bytes(elements, nodes, per_node, WireFormat::fp16, q));
        }
  TwoLevel state{.per_node = 3};
  auto buffers = random_buffers(4, 8, 1);
  CHECK_THROWS_WITH(average(state, views(buffers)), "per_node: must divide the 4 ranks");
}

// Equals the exchange of m ranks that have the means of the nodes, for the whole buffer and for
// each share.
TEST_CASE("two levels: same bits as the flat exchange of node means") {
  const int nodes = 3, per_node = 4;
  const std::size_t elements = 5000;
  TwoLevel by_leaders{.per_node = per_node},
      by_shares{.per_node = per_node, .nodes = Nodes::shares};
  ErrorFeedback flat = error_feedback(elements, nodes);
  std::vector<ErrorFeedback> of_shares;
  for (int s = 0; s < per_node; ++s)
    of_shares.push_back(error_feedback(share_layout(elements, nodes, per_node, s)));
  for (unsigned call = 0; call < 3; ++call) {
    auto leaders = random_buffers(12, elements, 10 + call), shares = leaders;
    std::vector<Flat> means;
    for (std::size_t node = 0; node < 3; ++node) {
      auto one = std::vector(leaders.begin() + std::ptrdiff_t(4 * node),
                             leaders.begin() + std::ptrdiff_t(4 * node + 4));
      TwoLevel in_node{.per_node = per_node};
      average(in_node, views(one));
      means.push_back(one[0]);
    }
    auto cut = means;
    compressed_allreduce(views(means), flat, Padding::excluded);
    for (std::size_t s = 0; s < 4; ++s) {
      std::vector<std::span<float>> of_share;
      for (Flat& mean : cut)
        of_share.push_back(
            std::span(mean).subspan(s * of_shares[s].layout.padded, of_shares[s].layout.elements));
      compressed_allreduce(of_share, of_shares[s], Padding::excluded);
    }
    average(by_leaders, views(leaders));
    average(by_shares, views(shares));
    for (std::size_t r = 0; r < 12; ++r) {
      CHECK(leaders[r] == means[0]);
      CHECK(shares[r] == cut[0]);
    }
  }
}

TEST_CASE("two levels: in 16 bits only the node's mean is rounded") {
  for (const auto& [format, error] :
       {std::pair{WireFormat::fp16, 2e-3}, {WireFormat::bf16, 2e-2}}) {
    TwoLevel state{.per_node = 4, .in_node = format};
    auto buffers = random_buffers(4, 301, 5);
    const auto meant = sum(buffers, 301);
    average(state, views(buffers));
    double furthest = 0;
    for (std::size_t e = 0; e < 301; ++e)
      furthest = std::max(furthest, std::fabs(buffers[2][e] - meant[e] / 4));
    CHECK(furthest < error);
    CHECK(furthest > error / 100);
  }
}
