#include "validate/measure/nccl_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/nccl/group.h"
#include "sim/base/error.h"
#include "validate/measure/nccl_collectives.h"
#include "validate/measure/nccl_steps.h"

namespace lambcast::validate {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

Gpus connect_gpus(Rendezvous& others, const LocalRanks& local, std::uint64_t bytes) {
  const cuda::NcclApi& nccl = local.nccl;
  ncclUniqueId id{};
  if (local.first_rank == 0) require(nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string shared = others.exchange({id.internal, sizeof id.internal})[0];
  if (shared.size() != sizeof id.internal) fail_gibberish("name of an NCCL communicator");
  std::memcpy(id.internal, shared.data(), sizeof id.internal);

  Gpus gpus;
  for (const int device : local.devices) {
    const int rank = local.first_rank + static_cast<int>(gpus.size());
    gpus.push_back(std::make_unique<Gpu>(nccl, device, rank, local.ranks, bytes));
  }
  others.exchange({});  // a rank without memory fails here, not while the others wait inside NCCL
  cuda::Group group(nccl);
  require(nccl, group.started(), "ncclGroupStart");
  for (const auto& gpu : gpus) gpu->connect(id);
  require(nccl, group.end(), "ncclGroupEnd of ncclCommInitRank");
  return gpus;
}

void wait_for(const Gpus& gpus) {
  for (const auto& gpu : gpus) gpu->wait();
}

// Enqueues the calls of one iteration, several of them in one group of NCCL.
void run_iteration(const std::function<void()>& call, const Gpus& gpus, int calls) {
  if (calls == 1) return call();
  const cuda::NcclApi& nccl = gpus.front()->nccl;
  cuda::Group group(nccl);
  require(nccl, group.started(), "ncclGroupStart");
  for (int i = 0; i < calls; ++i) call();
  require(nccl, group.end(), "ncclGroupEnd");
}

// Returns the time of one call in a batch of iterations, as measured by this thread. With
// `graph_launches` above 0, the batch is captured in CUDA graphs before the time starts, and
// launched that many times.
double time_batch(const std::function<void()>& call, const MeasureOptions& options,
                  const Gpus& gpus, Rendezvous& others, int iterations, int graph_launches) {
  const auto batch = [&] {
    for (int i = 0; i < iterations; ++i) {
      run_iteration(call, gpus, options.aggregated);
      if (!options.blocking) continue;
      wait_for(gpus);
      others.exchange({});
    }
  };
  std::function<void()> captured;
  if (graph_launches > 0) captured = captured_work(gpus, batch);
  wait_for(gpus);
  others.exchange({});
  const auto start = std::chrono::steady_clock::now();
  if (!captured) batch();
  for (int launch = 0; launch < graph_launches; ++launch) captured();
  wait_for(gpus);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count() / iterations / options.aggregated / std::max(1, graph_launches);
}

template <typename T>
std::vector<T> exchange_numbers(Rendezvous& others, T mine) {
  std::vector<T> all;
  for (const std::string& text :
       others.exchange(std::string(reinterpret_cast<const char*>(&mine), sizeof mine))) {
    T value{};
    if (text.size() != sizeof value) fail_gibberish("number");
    std::memcpy(&value, text.data(), sizeof value);
    all.push_back(value);
  }
  return all;
}

double over_members(const std::vector<double>& seconds, RankTime rank_time) {
  switch (rank_time) {
    case RankTime::rank0:
      return seconds.front();
    case RankTime::min:
      return *std::min_element(seconds.begin(), seconds.end());
    case RankTime::max:
      return *std::max_element(seconds.begin(), seconds.end());
    case RankTime::mean:
      break;
  }
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / double(seconds.size());
}

struct Timed {
  int iterations = 0;
  Duration time;
};

// Warms up, and times as many iterations as the options allow. All ranks return the same values.
Timed time_calls(const std::function<void()>& call, const MeasureOptions& options, const Gpus& gpus,
                 Rendezvous& others) {
  Timed timed{options.iterations, {}};
  const double warm =
      options.warmup > 0 ? time_batch(call, options, gpus, others, options.warmup, 0) : 0;
  if (options.seconds_per_size > 0) {
    const auto all = exchange_numbers(others, warm);
    const double calls = options.aggregated * std::max(1, options.graph_launches);
    const double fitting =
        options.seconds_per_size / (calls * *std::max_element(all.begin(), all.end()));
    const double least = std::min(3, options.iterations);
    timed.iterations = static_cast<int>(std::clamp(fitting, least, double(options.iterations)));
  }
  const double mine =
      time_batch(call, options, gpus, others, timed.iterations, options.graph_launches);
  timed.time = Duration::seconds(over_members(exchange_numbers(others, mine), options.rank_time));
  return timed;
}

std::uint64_t wrong_everywhere(TimedCollective& collective, const Gpus& gpus, Rendezvous& others,
                               int iterations) {
  std::uint64_t wrong = 0;
  for (int i = 0; i < iterations; ++i) {
    collective.fill();
    others.exchange({});
    collective.run();
    wait_for(gpus);
    others.exchange({});  // no copies while a rank on the same GPU still runs
    wrong += collective.count_wrong();
  }
  const auto all = exchange_numbers(others, wrong);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

std::unique_ptr<TimedCollective> prepare(const MeasureOptions& options, const Gpus& gpus,
                                         std::uint64_t size, Placement placement) {
  if (options.operation == Operation::compressed_allreduce)
    return nccl_compressed_allreduce(gpus, size);
  return nccl_collective(options, gpus, size, placement);
}

MeasuredHalf measure_half(TimedCollective& collective, const MeasureOptions& options,
                          std::uint64_t size, const Gpus& gpus, Rendezvous& others) {
  MeasuredHalf result;
  result.checked = options.check_iterations > 0;
  if (!result.checked) collective.fill();
  result.wrong = wrong_everywhere(collective, gpus, others, options.check_iterations);
  const Timed timed = time_calls([&] { collective.run(); }, options, gpus, others);
  result.iterations = timed.iterations;
  result.row.size = Bytes(static_cast<double>(size));
  result.row.time = timed.time;
  return result;
}

MeasuredRow measure_size(const MeasureOptions& options, std::uint64_t size, const Gpus& gpus,
                         Rendezvous& others) {
  const auto half = [&](TimedCollective& collective) {
    return measure_half(collective, options, size, gpus, others);
  };
  MeasuredRow row{half(*prepare(options, gpus, size, Placement::out_of_place)), {}};
  if (has_in_place(options.operation, Backend::nccl))
    row.in_place = half(*prepare(options, gpus, size, Placement::in_place));
  return row;
}

}  // namespace

std::vector<RankPlace> gather_places(Rendezvous& others, const LocalRanks& local) {
  std::vector<RankPlace> mine;
  int rank = local.first_rank;
  for (const int device : local.devices) {
    mine.push_back(
        {local.hosts_of_their_own ? fmt::format("{}/rank{}", host_name(), rank) : host_name(),
         device, gpu_name(device)});
    ++rank;
  }
  std::vector<RankPlace> places;
  for (const std::string& lines : others.exchange(place_lines(mine)))
    for (RankPlace& place : places_in(lines)) places.push_back(std::move(place));
  if (places.size() != static_cast<std::size_t>(local.ranks))
    throw Error(Exit::failure,
                fmt::format("the processes hold {} ranks together, not {}: all need the same -g",
                            places.size(), local.ranks));
  return places;
}

void measure_steps(const MeasureOptions& options, std::uint64_t weights, const LocalRanks& local,
                   Rendezvous& others, std::ostream& out) {
  const bool writes = local.first_rank == 0;
  // Each iteration is one step. The first warm-up step precedes the compression stage.
  MeasureOptions once = options;
  once.warmup = std::max(2, options.warmup);
  once.aggregated = 1;
  once.graph_launches = 0;
  std::size_t free = std::numeric_limits<std::size_t>::max();
  for (const int device : local.devices) {
    std::size_t of_device = 0, total = 0;
    cuda::require(cudaSetDevice(device), "cudaSetDevice");
    cuda::require(cudaMemGetInfo(&of_device, &total), "cudaMemGetInfo");
    free = std::min(free, of_device);
  }
  const auto all = exchange_numbers(others, free);
  const std::size_t least = *std::min_element(all.begin(), all.end());
  const std::uint64_t needed = step_memory_bytes(weights);
  if (writes && least < needed)
    out << fmt::format("# whole steps are left out: a GPU has {} bytes free, {} weights need {}\n",
                       least, weights, needed);
  if (writes) out << "optimizer,exchange,gradient,weights,ranks,step_us\n";
  if (least < needed) return;
  const Gpus gpus = connect_gpus(others, local, step_buffer_bytes(weights, local.ranks));
  for (const ShippedStep& shipped : shipped_steps()) {
    const std::function<void()> step = shipped.make(gpus, weights);
    others.exchange({});  // fails if another rank ran out of memory
    const Timed timed = time_calls(step, once, gpus, others);
    if (writes)
      out << fmt::format("{},{},{},{},{},{:.3f}\n", shipped.optimizer, shipped.exchange,
                         shipped.gradient, weights, local.ranks, timed.time.us())
          << std::flush;
  }
  others.exchange({});  // no communicator is destroyed while another rank still uses it
}

int measure_ranks(MeasuredTable head, const LocalRanks& local, Rendezvous& others,
                  std::ostream& out) {
  const MeasureOptions options = head.options;
  head.places = gather_places(others, local);
  const std::vector<std::uint64_t> sizes =
      sizes_to_run(options, block_bytes(options.operation, local.ranks, options.type));
  const Gpus gpus = connect_gpus(others, local, sizes.back());
  Report report(std::move(head), local.first_rank == 0 ? &out : nullptr,
                sizes.size() * static_cast<std::size_t>(options.cycles));
  for (int cycle = 0; cycle < options.cycles; ++cycle)
    for (const std::uint64_t size : sizes) report.add(measure_size(options, size, gpus, others));
  others.exchange({});  // no communicator is destroyed while another rank still uses it
  return report.finish();
}

}  // namespace lambcast::validate
