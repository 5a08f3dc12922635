// The flow model compared with SimGrid, with every rank simulated: lambcast_simgrid_bench [RANKS]
// (built with -DLAMBCAST_BENCH=ON if libsimgrid-dev is installed).
//
// Both solve the same max-min problem: no latencies, one NIC per rank. Each row has a pattern, the
// forecast time of each simulator, and the CPU time that it took.
//
//   ring            all-reduce over a switch: 2(n-1) rounds in which each rank sends to the next
//   16 rings        of different sizes over the same n/16 nodes, one NIC each
//   pairwise        all-to-all over leaves of 32 and 8 spines: n-1 rounds, 4:1 oversubscribed
//   16 pairwise     of different sizes over the same n/16 nodes, one NIC each, same leaves
//   pairs           n messages of 1 to 1,000 MB between random ranks, same leaves
//   incast          n-1 such messages to one rank
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <simgrid/s4u.hpp>

#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/engine/engine.h"
#include "sim/engine/fold.h"
#include "topologies/fabric.h"

namespace {

using namespace lambcast;
namespace sg4 = simgrid::s4u;

constexpr double nic_rate = 12.5e9, gpu_rate = 1e13;
constexpr int rings = 16, ports = 32, spines = 8;

struct Result {
  double simulated_s = 0, cpu_s = 0;
};

Result timed(const std::function<double()>& run) {
  const std::clock_t begin = std::clock();
  const double simulated = run();
  return {simulated, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC};
}

double ring_bytes(int ring) { return 64e6 * (1 + ring / 16.); }

// --- lambcast ---

Transport bare() { return {{{"bare", {}, {}, 1.0}}, Duration(), Bandwidth(), 1, Endpoint::gpu}; }

NodeSpec node_of(int gpus) {
  return {gpus,
          1,
          Bandwidth(gpu_rate),
          false,
          Bandwidth(gpu_rate),
          Bandwidth(nic_rate),
          Bandwidth(gpu_rate)};
}

double one_collective(Op op, const char* algorithm, double bytes, int ranks, const Fabric& fabric) {
  Machines machines(node_of(1), ranks, fabric, 0);
  const Collective collective = plan_collective(
      {op, Bytes(bytes), {ranks, 1}, DecisionRules::nccl, algorithm, "", true}, machines, bare());
  return simulate(collective, NetworkModel::flow).s();
}

double several(Op op, const char* algorithm, int nodes, const Fabric& fabric) {
  Machines machines(node_of(rings), nodes, fabric, 0);
  TaskGraph graph;
  std::vector<Collective> collectives;
  for (int ring = 0; ring < rings; ++ring) {
    CollectiveRequest request{
        op, Bytes(ring_bytes(ring)), {nodes, 1, rings}, DecisionRules::nccl, algorithm, "", true};
    request.beside = Place{0, ring};
    collectives.push_back(plan_collective(request, machines, bare()));
  }
  std::vector<std::shared_ptr<const CommProgram>> programs;
  for (const Collective& collective : collectives) programs.push_back(collective.program);
  const auto& machine = machines.full().machine;
  const FoldedPrograms folded = fold(programs, {machine, &machine->topology});
  for (const auto& program : folded.programs)
    graph.add_communication(algorithm, Category::gradient_comm, graph.add_resource(algorithm),
                            program.get());
  return run(graph, *make_network(NetworkModel::flow, *folded.topology)).end.since_start().s();
}

Fabric leaves_and_spines() {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.nodes_per_leaf = ports;
  spec.oversubscription.value = static_cast<double>(ports) / spines;
  return make_fabric(spec);
}

struct Message {
  std::size_t from, to;
  double bytes;
};

std::vector<Message> random_messages(int ranks, bool to_one) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return random() % static_cast<std::size_t>(n); };
  std::vector<Message> messages;
  for (int i = to_one ? 1 : 0; i < ranks; ++i) {
    const std::size_t from = to_one ? static_cast<std::size_t>(i) : below(ranks);
    const std::size_t to =
        to_one ? 0 : (from + 1 + below(ranks - 1)) % static_cast<std::size_t>(ranks);
    messages.push_back({from, to, 1e6 * (1 + static_cast<double>(below(1000)))});
  }
  return messages;
}

double at_once(const std::vector<Message>& messages, int ranks) {
  const auto machine = build_machine(node_of(1), ranks, leaves_and_spines());
  Router router(machine->topology);
  std::vector<FlowSet> sets;
  for (const Message& message : messages) {
    const VertexId out = machine->nic[message.from], in = machine->nic[message.to];
    std::vector<LinkId> links;
    router.append_route(machine->gpu[message.from], out, 0, links);
    router.append_route(out, in, machine->port[message.to], links);
    router.append_route(in, machine->gpu[message.to], 0, links);
    sets.emplace_back(std::vector<std::vector<LinkId>>{links},
                      std::vector<Flow>{{Bytes(message.bytes)}});
  }
  const auto network = make_network(NetworkModel::flow, machine->topology);
  for (std::size_t i = 0; i < sets.size(); ++i)
    network->start(static_cast<Ticket>(i), sets[i], 1, SimTime());
  SimTime end;
  std::vector<Ticket> finished;
  while (const auto event = network->next_event()) {
    end = *event;
    network->advance(end, finished);
  }
  return end.since_start().s();
}

// --- SimGrid ---

sg4::Mailbox* box_of(const std::string& group, int rank) {
  return sg4::Mailbox::by_name(fmt::format("{}-{}", group, rank));
}

// Sends `bytes` to `to(round)`, waits for a message, and then for all other ranks, `rounds` times.
void play(const std::string& group, int rank, int rounds, double bytes, sg4::Barrier& barrier,
          const std::function<int(int)>& to) {
  static char token;
  for (int round = 0; round < rounds; ++round) {
    const sg4::CommPtr sent =
        box_of(group, to(round))->put_async(&token, static_cast<std::uint64_t>(bytes));
    box_of(group, rank)->get<char>();
    sent->wait();
    barrier.wait();
  }
}

void start_engine() {
  static int argc = 1;
  static char name[] = "bench";
  static char* argv[] = {name, nullptr};
  new sg4::Engine(&argc, argv);  // one engine per process, which lives until the process ends
  for (const char* const setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0"})
    sg4::Engine::set_config(setting);
}

std::vector<sg4::Host*> star(int hosts) {
  auto* const zone = sg4::create_star_zone("star");
  std::vector<sg4::Host*> all;
  for (int i = 0; i < hosts; ++i) {
    all.push_back(zone->create_host(fmt::format("host-{}", i), 1e9));
    const auto* const link = zone->create_split_duplex_link(fmt::format("nic-{}", i), nic_rate)
                                 ->set_latency(0.0)
                                 ->seal();
    zone->add_route(all.back()->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, sg4::LinkInRoute::Direction::UP}}, true);
  }
  zone->seal();
  return all;
}

std::vector<sg4::Host*> fat_tree(int hosts) {
  std::vector<sg4::Host*> all;
  const auto host = [&](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    all.push_back(zone->create_host(fmt::format("host-{}", id), 1e9));
    return std::make_pair(all.back()->get_netpoint(),
                          static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  auto* const zone = sg4::create_fatTree_zone(
      "tree", nullptr, {2, {ports, static_cast<unsigned>(hosts / ports)}, {1, spines}, {1, 1}},
      sg4::ClusterCallbacks(host), nic_rate, 0.0, sg4::Link::SharingPolicy::SPLITDUPLEX);
  zone->seal();
  return all;
}

void start_ring(const std::vector<sg4::Host*>& hosts, int ring) {
  const int n = static_cast<int>(hosts.size());
  const std::string group = fmt::format("ring{}", ring);
  const sg4::BarrierPtr barrier = sg4::Barrier::create(static_cast<unsigned>(n));
  for (int i = 0; i < n; ++i)
    sg4::Actor::create(group, hosts[static_cast<std::size_t>(i)], [=] {
      play(group, i, 2 * (n - 1), ring_bytes(ring) / n, *barrier, [=](int) { return (i + 1) % n; });
    });
}

double run_engine() {
  sg4::Engine::get_instance()->run();
  return sg4::Engine::get_clock();
}

double simgrid_rings(int count, int hosts_of_each) {
  start_engine();
  const std::vector<sg4::Host*> hosts = star(hosts_of_each);
  for (int ring = 0; ring < count; ++ring) start_ring(hosts, ring);
  return run_engine();
}

void start_pairwise(const std::vector<sg4::Host*>& hosts, int job, double bytes) {
  const int ranks = static_cast<int>(hosts.size());
  const std::string group = fmt::format("pairwise{}", job);
  const sg4::BarrierPtr barrier = sg4::Barrier::create(static_cast<unsigned>(ranks));
  for (int i = 0; i < ranks; ++i)
    sg4::Actor::create(group, hosts[static_cast<std::size_t>(i)], [=] {
      play(group, i, ranks - 1, bytes / ranks, *barrier,
           [=](int round) { return (i + round + 1) % ranks; });
    });
}

double simgrid_pairwise(double bytes, int ranks) {
  start_engine();
  start_pairwise(fat_tree(ranks), 0, bytes);
  return run_engine();
}

double simgrid_jobs(int ranks) {
  start_engine();
  const std::vector<sg4::Host*> hosts = fat_tree(ranks);
  for (int job = 0; job < rings; ++job) start_pairwise(hosts, job, ring_bytes(job));
  return run_engine();
}

double simgrid_messages(const std::vector<Message>& messages, int ranks) {
  start_engine();
  const std::vector<sg4::Host*> hosts = fat_tree(ranks);
  sg4::Actor::create("messages", hosts[0], [&] {
    std::vector<sg4::CommPtr> sent;
    for (const Message& message : messages)
      sent.push_back(sg4::Comm::sendto_async(hosts[message.from], hosts[message.to],
                                             static_cast<std::uint64_t>(message.bytes)));
    for (const sg4::CommPtr& one : sent) one->wait();
  });
  return run_engine();
}

// Runs in a separate process, since SimGrid has one engine per process.
Result apart(const std::function<double()>& run) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const Result result = timed(run);
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  Result result;
  const bool read_all = read(ends[0], &result, sizeof result) == sizeof result;
  int status = 0;
  waitpid(child, &status, 0);
  if (!read_all || status != 0) std::abort();
  return result;
}

void row(const char* name, int ranks, const Result& ours, const Result& theirs) {
  fmt::print("{:<11} {:>6} {:>14.9f} {:>14.9f} {:>9.1e} {:>10.3f} {:>10.3f} {:>7.1f}\n", name,
             ranks, ours.simulated_s, theirs.simulated_s,
             std::abs(ours.simulated_s / theirs.simulated_s - 1), ours.cpu_s, theirs.cpu_s,
             theirs.cpu_s / ours.cpu_s);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1024;
  if (n < 2 * ports || n % ports != 0) {
    fmt::print(stderr, "RANKS must be a multiple of {}, {} or more\n", ports, 2 * ports);
    return 2;
  }
  fmt::print("{:<11} {:>6} {:>14} {:>14} {:>9} {:>10} {:>10} {:>7}\n", "pattern", "ranks",
             "lambcast (s)", "SimGrid (s)", "differ by", "took (s)", "took (s)", "ratio");
  std::fflush(stdout);
  row("ring", n, apart([&] {
        return one_collective(Op::all_reduce, "ring", ring_bytes(0), n, single_switch);
      }),
      apart([&] { return simgrid_rings(1, n); }));
  row("16 rings", n,
      apart([&] { return several(Op::all_reduce, "ring", n / rings, single_switch); }),
      apart([&] { return simgrid_rings(rings, n / rings); }));
  const double bytes = 1e6 * n;
  row("pairwise", n, apart([&] {
        return one_collective(Op::all_to_all, "pairwise", bytes, n, leaves_and_spines());
      }),
      apart([&] { return simgrid_pairwise(bytes, n); }));
  if (n / rings % ports == 0)
    row("16 pairwise", n,
        apart([&] { return several(Op::all_to_all, "pairwise", n / rings, leaves_and_spines()); }),
        apart([&] { return simgrid_jobs(n / rings); }));
  for (const bool to_one : {false, true}) {
    const std::vector<Message> messages = random_messages(n, to_one);
    row(to_one ? "incast" : "pairs", n, apart([&] { return at_once(messages, n); }),
        apart([&] { return simgrid_messages(messages, n); }));
  }
}
