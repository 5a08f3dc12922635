#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

#include "validate/measure/launch.h"
#include "validate/measure/measure.h"
#include "validate/measure/nccl_collectives.h"
#include "validate/measure/rendezvous.h"
#include "validate/measure/report.h"

namespace lambcast::validate {
namespace {

constexpr int kMeetWithin_s = 120;

// The GPUs of this process: -g of them under a launcher (one if not given), else all or -g.
std::vector<int> local_devices(const MeasureOptions& options, const Launch& launch) {
  const int gpus = count_gpus();
  const int wanted = options.gpus_per_process > 0 ? options.gpus_per_process
                     : launch.processes > 1       ? 1
                                                  : gpus;
  std::vector<int> devices;
  for (int i = 0; i < wanted; ++i) {
    const int device = launch.local_rank * wanted + i;
    if (options.share_gpu) {
      devices.push_back(device % gpus);
    } else if (gpus == 1 && wanted == 1) {
      devices.push_back(0);  // the launcher shows each process its own GPU only
    } else if (device < gpus) {
      devices.push_back(device);
    } else {
      throw Error(Exit::missing, fmt::format("local rank {} wants GPU {} but this host has {}",
                                             launch.local_rank, device, gpus));
    }
  }
  return devices;
}

// Several ranks on one GPU: NCCL up to 2.29 refuses two ranks of one host on one device, so every
// process claims to be a host of its own and reaches the others over sockets.
void pretend_to_be_a_host(int rank) {
  setenv("NCCL_HOSTID", fmt::format("rank{}", rank).c_str(), 1);
  setenv("NCCL_NET", "Socket", 1);
  setenv("NCCL_NET_PLUGIN", "none", 1);
  setenv("NCCL_IB_DISABLE", "1", 1);
  setenv("NCCL_P2P_DISABLE", "1", 1);
  setenv("NCCL_SHM_DISABLE", "1", 1);
}

void check_options(const MeasureOptions& options, const Launch& launch, int ranks) {
  if (options.operation == Operation::ping_pong || options.operation == Operation::stream) {
    fail_input({{}, 0, "--op"},
               fmt::format("{} is not measured with NCCL", name_of(options.operation)));
  }
  if (options.staging != Staging::none) {
    fail_input({{}, 0, "--staging"}, "NCCL reads and writes device memory: only none fits");
  }
  if (options.root >= ranks) {
    fail_input({{}, 0, "-r"}, fmt::format("there is no rank {} among {}", options.root, ranks));
  }
  if (options.share_gpu && (launch.processes == 1 || options.gpus_per_process > 1)) {
    fail_input({{}, 0, "--share-gpu"}, "needs a launcher and one rank per process");
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<RankPlace> gather_places(Rendezvous& others, const std::vector<int>& devices) {
  std::string mine;
  for (const int device : devices) {
    mine += fmt::format("{}\t{}\t{}\n", host_name(), device, gpu_name(device));
  }
  std::vector<RankPlace> places;
  for (const std::string& lines : others.exchange(mine)) {
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = lines.find('\n', at);
      const std::string line = lines.substr(at, end - at);
      const std::size_t first = line.find('\t');
      const std::size_t second = line.find('\t', first + 1);
      RankPlace place{line.substr(0, first), 0, line.substr(second + 1)};
      std::from_chars(line.data() + first + 1, line.data() + second, place.device);
      places.push_back(place);
      at = end + 1;
    }
  }
  return places;
}

Gpus connect_gpus(Rendezvous& others, const std::vector<int>& devices, int first_rank, int ranks,
                  const MeasureOptions& options) {
  ncclUniqueId id{};
  if (first_rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string text(id.internal, sizeof id.internal);
  const std::string shared = others.exchange(text)[0];
  std::memcpy(id.internal, shared.data(), sizeof id.internal);

  // Room for the parts of the DeepSpeed exchange, which are rounded up to 512 bytes each.
  const std::uint64_t bytes = options.max_bytes + 4096 + 16 * static_cast<std::uint64_t>(ranks);
  Gpus gpus;
  for (const int device : devices) {
    const int rank = first_rank + static_cast<int>(gpus.size());
    gpus.push_back(std::make_unique<Gpu>(device, rank, ranks, bytes));
  }
  check(ncclGroupStart(), "ncclGroupStart");
  for (const auto& gpu : gpus) gpu->connect(id);
  check(ncclGroupEnd(), "ncclGroupEnd of ncclCommInitRank");
  return gpus;
}

void wait_for(const Gpus& gpus) {
  for (const auto& gpu : gpus) {
    check(cudaSetDevice(gpu->device), "cudaSetDevice");
    check(cudaStreamSynchronize(gpu->stream), "cudaStreamSynchronize");
  }
}

// The time of one iteration of a batch, as this process sees it.
double time_batch(TimedCollective& collective, const Gpus& gpus, Rendezvous& others,
                  int iterations) {
  wait_for(gpus);
  others.exchange({});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) collective.run();
  wait_for(gpus);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count() / iterations;
}

template <typename T>
std::vector<T> exchange_numbers(Rendezvous& others, T mine) {
  std::vector<T> all;
  for (const std::string& text :
       others.exchange(std::string(reinterpret_cast<const char*>(&mine), sizeof mine))) {
    T value{};
    std::memcpy(&value, text.data(), std::min(sizeof value, text.size()));
    all.push_back(value);
  }
  return all;
}

double over_processes(const std::vector<double>& seconds, RankTime rank_time) {
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

std::uint64_t wrong_everywhere(TimedCollective& collective, const Gpus& gpus, Rendezvous& others,
                               int iterations) {
  std::uint64_t wrong = 0;
  for (int i = 0; i < iterations; ++i) {
    collective.fill();
    others.exchange({});
    collective.run();
    wait_for(gpus);
    wrong += collective.count_wrong();
  }
  const auto all = exchange_numbers(others, wrong);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

MeasuredRow measure_size(const MeasureOptions& options, std::uint64_t size, const Gpus& gpus,
                         Rendezvous& others) {
  const std::unique_ptr<TimedCollective> collective =
      options.operation == Operation::compressed_allreduce ? deepspeed_nccl_exchange(gpus, size)
                                                           : nccl_collective(options, gpus, size);
  MeasuredRow result;
  collective->fill();
  result.checked = options.check_iterations > 0;
  result.wrong = wrong_everywhere(*collective, gpus, others, options.check_iterations);
  result.iterations = options.iterations;
  const double warm = time_batch(*collective, gpus, others, std::max(options.warmup, 1));
  if (options.seconds_per_size > 0) {
    const auto all = exchange_numbers(others, warm);
    const double fitting = options.seconds_per_size / *std::max_element(all.begin(), all.end());
    const double least = std::min(3, options.iterations);
    result.iterations = static_cast<int>(std::clamp(fitting, least, double(options.iterations)));
  }
  const double mine = time_batch(*collective, gpus, others, result.iterations);
  result.row.size = Bytes(static_cast<double>(size));
  result.row.time =
      Duration::seconds(over_processes(exchange_numbers(others, mine), options.rank_time));
  return result;
}

std::string library_name() {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

int measure_nccl(const MeasureOptions& options, std::ostream& out) {
  const Launch launch = launch_of(process_environment());
  const std::vector<int> devices = local_devices(options, launch);
  if (options.share_gpu) pretend_to_be_a_host(launch.rank);
  Rendezvous others(launch, kMeetWithin_s);

  MeasuredTable table;
  table.options = options;
  table.options.statistic = Statistic::mean;
  table.backend = "nccl";
  table.library = library_name();
  table.timing = "iterations back to back on one stream per GPU";
  if (options.share_gpu) {
    table.timing +=
        "; ranks share a GPU and talk over sockets: fit for launch, proxy, TCP and algorithm "
        "choice, not for links between GPUs or RDMA, and without MPS not for latency";
  }
  table.places = gather_places(others, devices);
  const int ranks = static_cast<int>(table.places.size());
  check_options(options, launch, ranks);
  const int first_rank = launch.rank * static_cast<int>(devices.size());
  const Gpus gpus = connect_gpus(others, devices, first_rank, ranks, options);
  std::uint64_t wrong = 0;
  for (const std::uint64_t size : sizes_to_run(options, ranks)) {
    table.rows.push_back(measure_size(options, size, gpus, others));
    wrong += table.rows.back().wrong;
  }
  if (launch.rank == 0) {
    write_report(table, out);
    if (!options.manifest.empty()) std::ofstream(options.manifest) << manifest_json(table);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace lambcast::validate
