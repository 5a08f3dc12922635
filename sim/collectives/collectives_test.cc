#include <catch2/catch.hpp>
#include <map>

#include "sim/base/error.h"
#include "sim/collectives/algorithm_cases.h"
#include "sim/collectives/algorithms.h"
#include "sim/collectives/collective.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

constexpr double mb = 1e6;
const Duration alpha = Duration::microseconds(5);

Transport one_protocol(Duration local, Duration network) {
  const HopLatency hop{Duration(), local, network};
  return {{{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
}

NodeSpec node_of(int gpus, int nics, double gpu_link, double nic) {
  return {gpus, nics, Bandwidth(gpu_link), false, Bandwidth(1e12), Bandwidth(nic), Bandwidth(1e10)};
}

Machines machines(const NodeSpec& node, int nodes, bool fold) {
  return {node, nodes, single_switch, fold ? 1 : 0};
}

Collective plan(std::string algorithm, Op op, double size, int ranks, const NodeSpec& node,
                Machines& on, const Transport& transport, bool expand = false) {
  return plan_collective(
      {op, Bytes(size), {ranks, node.gpus}, DecisionRules::nccl, std::move(algorithm), "", expand},
      on, transport);
}

// Returns the time with one GPU per node on an ideal switch of bandwidth B, the textbook case.
double on_ideal_switch(const std::string& algorithm, Op op, double size, int n) {
  const NodeSpec node = node_of(1, 1, 1e12, 1e9);
  Machines ideal = machines(node, n, true);
  return plan(algorithm, op, size, n, node, ideal, one_protocol(alpha, alpha)).time.s();
}

TEST_CASE("collectives: closed forms on an ideal switch") {
  const double S = 64 * mb, B = 1e9, a = alpha.s();
  for (const int n : {2, 4, 8, 64}) {
    INFO("n = " << n);
    const double log = std::log2(n);
    // An all-reduce takes 2(n-1) rounds of S/n, an all-gather half as many.
    CHECK(on_ideal_switch("ring", Op::all_reduce, S, n) == Approx(2 * (n - 1) * (a + S / n / B)));
    CHECK(on_ideal_switch("ring", Op::all_gather, S, n) == Approx((n - 1) * (a + S / n / B)));
    CHECK(on_ideal_switch("ring", Op::reduce_scatter, S, n) == Approx((n - 1) * (a + S / n / B)));
    // A streaming chain: every edge carries S, the last rank is n-1 hops away.
    CHECK(on_ideal_switch("ring", Op::broadcast, S, n) == Approx((n - 1) * a + S / B));
    CHECK(on_ideal_switch("ring", Op::reduce, S, n) == Approx((n - 1) * a + S / B));
    // With one GPU per node, there is no reduction inside a node.
    CHECK(on_ideal_switch("hierarchical", Op::all_reduce, S, n) ==
          Approx(2 * (n - 1) * (a + S / n / B)));
    // Recursive doubling takes log2 n rounds of the whole buffer.
    CHECK(on_ideal_switch("recursive_doubling", Op::all_reduce, S, n) == Approx(log * (a + S / B)));
    // Halving and doubling move S/2 + S/4 + ... = S(n-1)/n each.
    CHECK(on_ideal_switch("halving_doubling", Op::all_reduce, S, n) ==
          Approx(2 * (log * a + S * (n - 1) / n / B)));
    CHECK(on_ideal_switch("recursive_doubling", Op::all_gather, S, n) ==
          Approx(log * a + S * (n - 1) / n / B));
    // These all-gathers move as many bytes, in log2 n or n/2 rounds.
    CHECK(on_ideal_switch("bruck", Op::all_gather, S, n) == Approx(log * a + S * (n - 1) / n / B));
    CHECK(on_ideal_switch("neighbor_exchange", Op::all_gather, S, n) ==
          Approx(n / 2 * a + S * (n - 1) / n / B));
    // Every rank sends S/n to every other rank, in rounds or at once.
    CHECK(on_ideal_switch("pairwise", Op::all_to_all, S, n) == Approx((n - 1) * (a + S / n / B)));
    CHECK(on_ideal_switch("linear", Op::all_to_all, S, n) == Approx(a + (n - 1) * S / n / B));
    // Bruck's all-to-all moves half of all blocks in each of log2 n rounds.
    CHECK(on_ideal_switch("bruck", Op::all_to_all, S, n) == Approx(log * (a + S / 2 / B)));
    for (const Op op : {Op::broadcast, Op::reduce})
      CHECK(on_ideal_switch("binomial", op, S, n) == Approx(log * (a + S / B)));
    // All ranks send at once, each over its own links.
    CHECK(on_ideal_switch("shift", Op::send_recv, S, n) == Approx(a + S / B));
  }
  // Two nodes: one edge per tree, half of S each way on both. More nodes: an inner node moves 2S.
  CHECK(on_ideal_switch("tree", Op::all_reduce, S, 2) == Approx(2 * a + S / B));
  CHECK(on_ideal_switch("tree", Op::all_reduce, S, 8) == Approx(2 * 3 * a + 2 * S / B));
  CHECK(on_ideal_switch("tree", Op::all_reduce, S, 64) == Approx(2 * 6 * a + 2 * S / B));
}

TEST_CASE("collectives: ranks beyond a power of two send first and get their part back") {
  const double S = 64 * mb, B = 1e9, a = alpha.s();
  for (const int n : {3, 5, 6, 12, 24, 63}) {
    INFO("n = " << n);
    const double core = std::exp2(std::floor(std::log2(n))), rounds = std::log2(core);
    const double halving = rounds * a + S * (core - 1) / core / B;
    CHECK(on_ideal_switch("recursive_doubling", Op::all_reduce, S, n) ==
          Approx((rounds + 2) * (a + S / B)));
    CHECK(on_ideal_switch("halving_doubling", Op::all_reduce, S, n) ==
          Approx(2 * halving + 2 * (a + S / B)));
    // Only the rank's own part is sent back.
    CHECK(on_ideal_switch("halving_doubling", Op::reduce_scatter, S, n) ==
          Approx(halving + a + S / B + a + S / n / B));
    // Bruck's last round moves the remainder: nothing is sent twice, and no rank waits for another.
    CHECK(on_ideal_switch("bruck", Op::all_gather, S, n) ==
          Approx((rounds + 1) * a + S * (n - 1) / n / B));
  }
}

TEST_CASE("collectives: folded and full machines and both network models give the same time") {
  const Transport transport = one_protocol(Duration::microseconds(3), Duration::microseconds(14));
  for (const auto& [gpus, nics, nodes] :
       {std::array{4, 1, 4}, std::array{4, 4, 2}, std::array{8, 2, 4}, std::array{3, 1, 3},
        std::array{2, 2, 8}, std::array{4, 1, 1}, std::array{1, 1, 5}}) {
    const NodeSpec node = node_of(gpus, nics, 40e9, 3e9);
    Machines both = machines(node, nodes, true);
    Machines full_only = machines(node, nodes, false);
    const ProcessGroup group{gpus * nodes, gpus};
    for (const AlgorithmCase& c : algorithm_cases(group)) {
      INFO(c.algorithm << " " << name_of(c.op) << " " << nodes << " nodes of " << gpus << ", "
                       << nics << " NICs");
      const auto folded = plan(c.algorithm, c.op, 100 * mb, group.ranks, node, both, transport);
      const auto full =
          plan(c.algorithm, c.op, 100 * mb, group.ranks, node, full_only, transport, true);
      // Equal up to a picosecond of rounding in each of the expanded rounds.
      const double expected = folded.time.s();
      CHECK(full.time.s() == Approx(expected).epsilon(1e-8));
      CHECK(simulate(folded, NetworkModel::analytic).s() == Approx(expected).epsilon(1e-8));
      CHECK(simulate(full, NetworkModel::analytic).s() == Approx(expected).epsilon(1e-8));
      // The fluid model redistributes capacity that early flows free, so it is never slower. If all
      // flows of a round share the same bottleneck, both models are equal.
      const double fluid = simulate(folded, NetworkModel::flow).s();
      CHECK(simulate(full, NetworkModel::flow).s() == Approx(fluid).epsilon(1e-8));
      CHECK(fluid <= expected * (1 + 1e-9));
      if (c.algorithm == "ring" || c.algorithm == "hierarchical" || c.algorithm == "pairwise")
        CHECK(fluid == Approx(expected).epsilon(1e-8));
    }
  }
}

// Returns a transport with one protocol, over a network whose switches reduce.
Transport reducing() {
  Transport transport = one_protocol(alpha, alpha);
  transport.protocols[0].name = "Simple";
  transport.protocols[0].in_switch = InSwitch{{Duration(), Duration(), alpha}, 1};
  transport.tuning = NcclTuning();
  transport.tuning->sharp = true;
  return transport;
}

TEST_CASE("collectives: the network's switches add what every NIC sends them once") {
  const double S = 64 * mb, B = 1e9, a = alpha.s();
  struct Expected {
    const char* algorithm;
    int gpus;
    double link, nic, time;
  };
  // The sum travels up and down the network (2 hops); within the node there are two hops (direct)
  // or a chain. With fast NICs, the links of four GPUs carry 2 (p-1)/p S, or S (1 + 1/p) through
  // their switch.
  for (const auto& [algorithm, gpus, link, nic, time] :
       {Expected{"collnet_direct", 1, 1e12, B, 2 * a + S / B},
        Expected{"collnet_chain", 1, 1e12, B, 2 * a + S / B},
        Expected{"collnet_direct", 2, 1e12, B, 4 * a + S / 2 / B},
        Expected{"collnet_direct", 4, 1e12, B, 4 * a + S / 4 / B},
        Expected{"collnet_chain", 4, 1e12, B, 8 * a + S / 4 / B},
        Expected{"nvls", 4, 1e12, B, a + S / 4 / B},
        Expected{"collnet_direct", 4, B, 1e12, 4 * a + 1.5 * S / B},
        Expected{"collnet_chain", 4, B, 1e12, 8 * a + 1.5 * S / B},
        Expected{"nvls", 4, B, 1e12, a + 1.25 * S / B}}) {
    for (const int nodes : {2, 5, 16}) {
      INFO(algorithm << " on " << nodes << " nodes of " << gpus);
      const NodeSpec node = node_of(gpus, gpus, link, nic);
      Machines folded = machines(node, nodes, true), full = machines(node, nodes, false);
      const auto on = [&](Machines& machines, bool expand) {
        return plan(algorithm, Op::all_reduce, S, nodes * gpus, node, machines, reducing(), expand);
      };
      CHECK(on(folded, false).time.s() == Approx(time).epsilon(1e-7));
      CHECK(on(full, true).time.s() == Approx(time).epsilon(1e-7));
      CHECK(simulate(on(full, true), NetworkModel::flow).s() == Approx(time).epsilon(1e-7));
      CHECK(on(folded, false).traffic.network_sent_per_node.value() == Approx(S));
      CHECK(on(full, true).traffic.network_sent_per_node.value() == Approx(S));
    }
  }
  // A network that does not reduce is refused; a single node does not need it.
  const NodeSpec node = node_of(4, 4, 1e12, B);
  Machines two = machines(node, 2, true);
  Transport plain = reducing();
  plain.tuning->sharp = false;
  for (const char* algorithm : {"collnet_direct", "collnet_chain", "nvls"})
    CHECK_THROWS_WITH(plan(algorithm, Op::all_reduce, S, 8, node, two, plain),
                      Contains("set nccl.sharp = true"));
  CHECK(plan("nvls", Op::all_reduce, S, 4, node, two, plain).algorithm == "nvls");
  CHECK_THROWS_WITH(plan("collnet_direct", Op::all_reduce, S, 4, node, two, plain),
                    Contains("does not do all_reduce over 4 ranks on 1 node"));
}

TEST_CASE("collectives: a round takes the latency of its farthest send") {
  const double S = 64 * mb, B = 1e9, link = 40e9, within = 3e-6, between = 14e-6;
  const Transport transport = one_protocol(Duration::microseconds(3), Duration::microseconds(14));
  const auto time = [&](const char* algorithm, Op op, int gpus) {
    const NodeSpec node = node_of(gpus, gpus, link, B);
    Machines two = machines(node, 2, true);
    return plan(algorithm, op, S, 2 * gpus, node, two, transport).time.s();
  };
  // Ranks form pairs, within a node if it has an even number: first they exchange one block, then
  // two blocks with the other neighbour and back in turn.
  CHECK(time("neighbor_exchange", Op::all_gather, 2) ==
        Approx(within + S / 4 / link + between + S / 2 / B));
  CHECK(time("neighbor_exchange", Op::all_gather, 3) ==
        Approx(between + S / 6 / B + 2 * (between + S / 3 / B)));
  // The first round is between the nodes, later rounds are between halves of a node.
  for (const Op op : {Op::broadcast, Op::reduce})
    CHECK(time("binomial", op, 4) == Approx(between + S / B + 2 * (within + S / link)));
}

TEST_CASE("collectives: partly filled nodes, one rank and three ranks") {
  const NodeSpec node = node_of(4, 1, 40e9, 1e9);
  const Transport transport = one_protocol(alpha, alpha);
  Machines two_nodes = machines(node, 2, true);
  // Five ranks on nodes of four: the second node has one. The ring still leaves a node at the NIC's
  // rate.
  const auto five = plan("ring", Op::all_reduce, 100 * mb, 5, node, two_nodes, transport);
  CHECK(five.time.s() == Approx(8 * (alpha.s() + 20 * mb / 1e9)));
  CHECK(five.traffic.sent_per_rank.value() == Approx(160 * mb));
  // One rank has nothing to send.
  const auto one = plan("", Op::all_reduce, 100 * mb, 1, node, two_nodes, transport);
  CHECK(one.time.ps() == 0);
  CHECK(simulate(one, NetworkModel::flow).ps() == 0);
  CHECK_FALSE(shares_are_unlike(one));
  // Recursive doubling over three ranks: one rank sends its data to its pair, the core runs one
  // round, and the result is sent back.
  const NodeSpec single = node_of(1, 1, 1e12, 1e9);
  Machines three_nodes = machines(single, 3, true);
  const auto three =
      plan("recursive_doubling", Op::all_reduce, mb, 3, single, three_nodes, transport);
  CHECK(three.time.s() == Approx(3 * (alpha.s() + mb / 1e9)));
  // With one rank per node, there are no sends within a node.
  CHECK_FALSE(shares_are_unlike(
      plan("hierarchical", Op::all_reduce, mb, 3, single, three_nodes, transport)));
}

TEST_CASE("collectives: time never falls below bytes over bandwidth and grows with size") {
  const NodeSpec node = node_of(4, 1, 40e9, 1e9);
  const Transport transport = one_protocol(alpha, alpha);
  for (const int nodes : {1, 2, 8}) {
    Machines both = machines(node, nodes, true);
    for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::all_to_all}) {
      Duration last;
      for (double size = 1e3; size < 1e10; size *= 3) {
        const auto collective = plan("", op, size, 4 * nodes, node, both, transport);
        CHECK(collective.time > last);
        CHECK(collective.time.s() >=
              collective.traffic.network_sent_per_node.value() / 1e9 * (1 - 1e-9));
        last = collective.time;
      }
    }
  }
}

TEST_CASE("collectives: several NICs share a ring, two-node trees use their full rate") {
  const Transport transport = one_protocol(Duration(), Duration());
  const NodeSpec one = node_of(8, 1, 200e9, 10e9);
  const NodeSpec four = node_of(8, 4, 200e9, 10e9);
  const double S = 1e9;
  const auto time = [&](const NodeSpec& node, const char* algorithm) {
    Machines both = machines(node, 2, true);
    return plan(algorithm, Op::all_reduce, S, 16, node, both, transport).time.s();
  };
  CHECK(time(one, "ring") == Approx(2 * 15. / 16 * S / 10e9));
  CHECK(time(four, "ring") == Approx(2 * 15. / 16 * S / 40e9));
  // More NICs than GPUs are bundled, one bundle per GPU with the rate of all its NICs.
  const NodeSpec bundled = node_of(1, 4, 200e9, 10e9);
  Machines bundles = machines(bundled, 2, true);
  CHECK(plan("ring", Op::all_reduce, S, 2, bundled, bundles, transport).time.s() ==
        Approx(S / 40e9));
  // The tree sends S each way, so its busbw is 2(n-1)/n times the NICs' rate.
  CHECK(time(four, "tree") == Approx(S / 40e9));
}

TEST_CASE("collectives: data that crosses the network also crosses the way to the NIC") {
  NodeSpec node = node_of(1, 1, 1e12, 10e9);
  node.gpu_nic = Bandwidth(1e9);
  const Transport transport = one_protocol(alpha, alpha);
  for (const int n : {2, 4}) {
    Machines both = machines(node, n, true);
    CHECK(plan("recursive_doubling", Op::all_reduce, 64 * mb, n, node, both, transport).time.s() ==
          Approx(std::log2(n) * (alpha.s() + 64 * mb / 1e9)));
  }
}

TEST_CASE("collectives: protocols trade latency for bandwidth, and the cheapest is used") {
  Transport transport = one_protocol(alpha, alpha);
  transport.protocols.push_back(
      {"ll", {Duration(), alpha, Duration::microseconds(1)}, {}, 0.5, Bytes(1e18)});
  const NodeSpec node = node_of(1, 1, 1e12, 1e9);
  Machines both = machines(node, 4, true);
  CHECK(plan("ring", Op::all_reduce, 1000, 4, node, both, transport).protocol == "ll");
  CHECK(plan("ring", Op::all_reduce, 1e8, 4, node, both, transport).protocol == "simple");
}

TEST_CASE("collectives: unknown algorithms, protocols and sizes are refused") {
  const NodeSpec node = node_of(4, 1, 40e9, 1e9);
  Machines both = machines(node, 2, true);
  const Transport transport = one_protocol(alpha, alpha);
  CHECK_THROWS_WITH(plan("rign", Op::all_reduce, 1, 8, node, both, transport),
                    Contains("unknown algorithm 'rign', did you mean 'ring'?"));
  CHECK_THROWS_WITH(plan("tree", Op::all_to_all, 1, 8, node, both, transport),
                    Contains("tree does not do all_to_all") && Contains("pairwise"));
  Machines one_node = machines(node, 1, true);
  CHECK_THROWS_WITH(plan("tree", Op::all_reduce, 1, 4, node, one_node, transport),
                    Contains("1 node"));
}

TEST_CASE("collectives: an algorithm supports its operations and no other") {
  const std::map<std::string, std::vector<Op>> does{
      {"ring", {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast, Op::reduce}},
      {"tree", {Op::all_reduce}},
      {"nvls", {Op::all_reduce}},
      {"nvls_tree", {Op::all_reduce}},
      {"collnet_direct", {Op::all_reduce}},
      {"collnet_chain", {Op::all_reduce}},
      {"hierarchical", {Op::all_reduce}},
      {"recursive_doubling", {Op::all_reduce, Op::all_gather}},
      {"halving_doubling", {Op::all_reduce, Op::reduce_scatter}},
      {"neighbor_exchange", {Op::all_gather}},
      {"pairwise", {Op::all_to_all}},
      {"linear", {Op::all_to_all}},
      {"bruck", {Op::all_to_all, Op::all_gather}},
      {"deepspeed_gather", {Op::all_to_all}},
      {"binomial", {Op::broadcast, Op::reduce}},
      {"shift", {Op::send_recv}}};
  for (const std::string& algorithm : algorithm_names()) {
    for (std::size_t op = 0; op < op_names().size(); ++op) {
      INFO(algorithm << " " << op_names()[op]);
      const std::vector<Op>& listed = does.at(algorithm);
      CHECK(supports(algorithm, static_cast<Op>(op), {16, 4}) ==
            (std::find(listed.begin(), listed.end(), static_cast<Op>(op)) != listed.end()));
    }
  }
  CHECK(supports("nvls", Op::all_reduce, {4, 4}));
  CHECK_FALSE(supports("nvls", Op::all_gather, {4, 4}));
  CHECK_FALSE(supports("nvls", Op::all_reduce, {1, 1}));
  // Over several nodes, these algorithms need a network that reduces.
  CHECK(in_network("nvls", {16, 4}));
  CHECK_FALSE(in_network("nvls", {4, 4}));
  CHECK(in_network("collnet_chain", {16, 4}));
  CHECK_FALSE(in_network("nvls_tree", {16, 4}));
  CHECK_FALSE(supports("nvls", Op::all_reduce, {14, 4}));
  CHECK_FALSE(supports("collnet_direct", Op::all_reduce, {4, 4}));
  CHECK_FALSE(supports("collnet_chain", Op::all_reduce, {14, 4}));
  CHECK_FALSE(supports("nvls_tree", Op::all_reduce, {14, 4}));
  CHECK_FALSE(supports("nvls_tree", Op::all_reduce, {4, 1}));
  CHECK_FALSE(supports("tree", Op::all_reduce, {4, 4}));
  CHECK_FALSE(supports("hierarchical", Op::all_reduce, {14, 4}));
  CHECK_FALSE(supports("neighbor_exchange", Op::all_gather, {15, 4}));
}

// A limit in coll_tuned_decision_fixed.c: one algorithm is used below this number of bytes, another
// one from it on.
struct Limit {
  Op op;
  int ranks;
  double bytes;  // all_reduce and reduce_scatter: the vector; else one rank's message
  const char* below;
  const char* from_there;
};

void check_limits(DecisionRules rules, const std::vector<Limit>& limits) {
  for (const Limit& limit : limits) {
    const bool whole = limit.op == Op::all_reduce || limit.op == Op::reduce_scatter;
    const double unit = whole ? 1 : limit.ranks;
    const auto chosen = [&](double bytes) {
      return candidates(rules, limit.op, Bytes(bytes * unit), {limit.ranks, 1});
    };
    INFO(name_of(limit.op) << ", " << limit.ranks << " ranks, " << limit.bytes << " bytes");
    CHECK(chosen(limit.bytes - 1) == std::vector<std::string>{limit.below});
    CHECK(chosen(limit.bytes) == std::vector<std::string>{limit.from_there});
  }
}

constexpr const char *doubling = "recursive_doubling", *halving = "halving_doubling",
                     *neighbors = "neighbor_exchange", *ring = "ring", *bruck = "bruck",
                     *linear = "linear", *pairwise = "pairwise";

TEST_CASE("collectives: Open MPI 4.1 changes algorithms with size and ranks as in its rules") {
  check_limits(DecisionRules::openmpi_4_1, {{Op::all_reduce, 3, 65536, doubling, ring},
                                            {Op::all_reduce, 3, 262144, ring, halving},
                                            {Op::all_reduce, 4, 8192, doubling, halving},
                                            {Op::all_reduce, 15, 8192, doubling, halving},
                                            {Op::all_reduce, 16, 4096, doubling, halving},
                                            {Op::all_reduce, 31, 4096, doubling, halving},
                                            {Op::all_reduce, 32, 128, doubling, halving},
                                            {Op::all_reduce, 63, 128, doubling, halving},
                                            {Op::all_reduce, 64, 262144, doubling, halving},
                                            {Op::all_reduce, 255, 262144, doubling, halving},
                                            {Op::all_reduce, 256, 4096, doubling, halving},
                                            {Op::all_reduce, 511, 4096, doubling, halving},
                                            {Op::all_reduce, 512, 16384, doubling, halving}});
  check_limits(DecisionRules::openmpi_4_1, {{Op::all_gather, 16, 1e9, doubling, doubling},
                                            {Op::all_gather, 31, 1e9, bruck, bruck},
                                            {Op::all_gather, 32, 1024, doubling, neighbors},
                                            {Op::all_gather, 33, 1024, bruck, ring},
                                            {Op::all_gather, 62, 65536, neighbors, ring},
                                            {Op::all_gather, 64, 512, doubling, neighbors},
                                            {Op::all_gather, 126, 65536, neighbors, ring},
                                            {Op::all_gather, 128, 512, doubling, neighbors},
                                            {Op::all_gather, 510, 131072, neighbors, ring},
                                            {Op::all_gather, 512, 4096, doubling, neighbors}});
  check_limits(DecisionRules::openmpi_4_1, {{Op::all_to_all, 15, 512, linear, linear},
                                            {Op::all_to_all, 16, 512, bruck, linear},
                                            {Op::all_to_all, 63, 512, bruck, linear},
                                            {Op::all_to_all, 64, 1024, bruck, linear},
                                            {Op::all_to_all, 255, 262144, linear, pairwise},
                                            {Op::all_to_all, 256, 1024, bruck, linear},
                                            {Op::all_to_all, 256, 32768, linear, pairwise}});
  check_limits(DecisionRules::openmpi_4_1, {{Op::reduce_scatter, 3, 262144, ring, ring},
                                            {Op::reduce_scatter, 4, 262144, halving, ring}});
}

TEST_CASE("collectives: Open MPI 4.0 changes algorithms with size and ranks as in its rules") {
  check_limits(DecisionRules::openmpi_4_0, {{Op::all_reduce, 8, 10000, doubling, ring},
                                            // This rule applies below 50 kB in total.
                                            {Op::all_gather, 8, 6250, doubling, neighbors},
                                            {Op::all_gather, 5, 10000, bruck, ring},
                                            {Op::all_to_all, 12, 200, linear, linear},
                                            {Op::all_to_all, 13, 200, bruck, linear},
                                            {Op::all_to_all, 13, 3000, linear, pairwise},
                                            // The limit of this rule is 12 KiB.
                                            {Op::reduce_scatter, 8, 12289, halving, ring},
                                            {Op::reduce_scatter, 6, 12289, ring, ring}});
  for (const DecisionRules rules : {DecisionRules::openmpi_4_0, DecisionRules::openmpi_4_1}) {
    CHECK(candidates(rules, Op::broadcast, Bytes(1e6), {8, 4}).front() == "binomial");
    CHECK(candidates(rules, Op::send_recv, Bytes(1e6), {8, 4}).front() == "shift");
  }
}

TEST_CASE("collectives: NCCL considers trees between nodes, and its switch if there is one") {
  const auto names = [](Op op, ProcessGroup group, bool in_switch) {
    return candidates(DecisionRules::nccl, op, Bytes(1e6), group, in_switch);
  };
  using Names = std::vector<std::string>;
  CHECK(names(Op::all_reduce, {8, 8}, false) == Names{"ring"});
  CHECK(names(Op::all_reduce, {16, 8}, false) == Names{"ring", "tree"});
  CHECK(names(Op::all_reduce, {8, 8}, true) == Names{"ring", "nvls"});
  CHECK(names(Op::all_reduce, {16, 8}, true) == Names{"ring", "tree", "nvls_tree"});
  CHECK(names(Op::all_gather, {16, 8}, true) == Names{"ring"});
  CHECK(names(Op::all_to_all, {16, 8}, true) == Names{"linear"});
  CHECK(names(Op::send_recv, {16, 8}, true) == Names{"shift"});
}

}  // namespace
}  // namespace lambcast
