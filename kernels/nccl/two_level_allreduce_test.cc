#include "kernels/nccl/two_level_allreduce.h"

#include "kernels/emulated_world/exchange/two_level.h"
#include "kernels/nccl/ranks_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// Ranks of `nodes` nodes, all on this machine: rank r has place r % per_node on node r / per_node.
struct Nodes {
  int nodes, per_node;
  std::vector<ncclComm_t> node, place;  // [rank]

  Nodes(int nodes_, int per_node_) : nodes(nodes_), per_node(per_node_) {
    node.resize(ranks());
    place.resize(ranks());
    for (int n = 0; n < nodes; ++n) connect(per_node, [&](int p) { return &node[at(n, p)]; });
    for (int p = 0; p < per_node; ++p) connect(nodes, [&](int n) { return &place[at(n, p)]; });
  }
  ~Nodes() {
    for (const auto* const comms : {&node, &place})
      for (const ncclComm_t comm : *comms) load_nccl().ncclCommDestroy(comm);
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  std::size_t ranks() const { return std::size_t(nodes * per_node); }
  std::size_t at(int n, int p) const { return std::size_t(n * per_node + p); }

  template <typename Comm>
  static void connect(int count, Comm comm) {
    const NcclApi& nccl = load_nccl();
    ncclUniqueId id{};
    require(nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    Group group(nccl);
    require(nccl, group.started(), "ncclGroupStart");
    for (int i = 0; i < count; ++i)
      require(nccl, nccl.ncclCommInitRank(comm(i), count, id, i), "ncclCommInitRank");
    require(nccl, group.end(), "ncclGroupEnd");
  }
};

// Compares the average through NCCL with the emulated world's, over several calls.
void agrees(int nodes, int per_node, std::size_t elements, bool in_half) {
  Nodes world(nodes, per_node);
  emulated::TwoLevel expected{.per_node = per_node,
                              .nodes = emulated::Nodes::shares,
                              .in_node = in_half ? WireFormat::fp16 : WireFormat::fp32};
  std::vector<TwoLevelAllreduce> states;
  for (std::size_t r = 0; r < world.ranks(); ++r)
    states.emplace_back(elements, nodes, int(r) / per_node, per_node, int(r) % per_node,
                        Padding::excluded, in_half);
  for (unsigned call = 0; call < 3; ++call) {
    std::vector<std::vector<float>> x;
    std::vector<DeviceBuffer<float>> full, means;
    std::vector<DeviceBuffer<std::uint16_t>> half;
    std::vector<TwoLevelRank> ranks;
    for (std::size_t r = 0; r < world.ranks(); ++r) {
      x.push_back(random_values(elements, 100 * call + unsigned(r)));
      std::vector<float> padded = x[r];
      padded.resize(states[r].padded());
      std::vector<std::uint16_t> bits(padded.size());
      if (in_half)
        for (std::size_t e = 0; e < padded.size(); ++e) {
          bits[e] = reference::to_half(padded[e]);
          if (e < elements) x[r][e] = reference::from_half(bits[e]);
        }
      full.push_back(upload(padded));
      half.push_back(upload(bits));
      means.emplace_back(elements);
      TwoLevelRank& rank = ranks.emplace_back();
      rank = {.state = &states[r],
              .x = full[r].data(),
              .mean = means[r].data(),
              .node = world.node[r],
              .place = world.place[r]};
      if (in_half) rank.half = {half[r].data(), HalfFormat::fp16};
    }
    two_level_allreduce(load_nccl(), ranks);
    const std::vector<std::span<float>> spans(x.begin(), x.end());
    average(expected, spans);
    const std::vector<float> first = means[0].to_host();
    for (const DeviceBuffer<float>& mean : means) CHECK(mean.to_host() == first);
    CHECK(relative_distance(first, x[0]) < 1e-2);  // one flipped sign in 1e5 changes it by 6e-3
  }
}

}  // namespace

TEST_CASE("two levels through NCCL agree with the emulated world, in 32 and in 16 bits") {
  if constexpr (!emulated_device) return;  // a GPU allows only one rank in a communicator
  for (const bool in_half : {false, true})
    for (const auto& [nodes, per_node] : {std::pair{2, 2}, {3, 4}, {2, 1}, {2, 8}})
      for (const std::size_t elements : {std::size_t{70}, std::size_t{10'007}}) {
        INFO(nodes << " x " << per_node << ", " << elements << (in_half ? " in 16 bits" : ""));
        agrees(nodes, per_node, elements, in_half);
      }
}

TEST_CASE("two levels through NCCL need two nodes") {
  NEED_GPUS(1);
  CHECK_THROWS_WITH(TwoLevelAllreduce(100, 1, 0, 4, 0, Padding::excluded),
                    Catch::Matchers::Contains("nodes: must be at least 2"));
}
