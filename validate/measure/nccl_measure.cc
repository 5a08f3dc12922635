#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "kernels/nccl/shared_gpu.h"
#include "validate/measure/launch.h"
#include "validate/measure/measure.h"
#include "validate/measure/nccl_ranks.h"

namespace lambcast::validate {
namespace {

constexpr int kMeetWithin_s = 120;

void check_flags(const MeasureOptions& options, const Launch& launch) {
  if (options.operation == Operation::ping_pong) {
    fail_input({{}, 0, "--op"},
               fmt::format("{} is not measured with NCCL", name_of(options.operation)));
  }
  if (options.staging != Staging::none) {
    fail_input({{}, 0, "--staging"},
               "NCCL reads and writes device memory, so nothing is staged (allowed: none)");
  }
  if (options.statistic == Statistic::median) {
    fail_input({{}, 0, "--statistic"}, "NCCL is timed over all iterations at once", "mean");
  }
  if (options.aggregated > 1 && options.operation == Operation::compressed_allreduce) {
    fail_input({{}, 0, "-m"},
               "compressed_allreduce runs kernels between its calls, so no group of "
               "NCCL holds several",
               "1");
  }
  if (options.blocking && options.graph_launches > 0) {
    fail_input({{}, 0, "-z"},
               "does not apply with -G: calls in a CUDA graph are not waited for one by one", "0");
  }
  if (options.share_gpu && launch.processes > 1 && options.gpus_per_process > 1) {
    fail_input({{}, 0, "-g"}, "with --share-gpu a process of a launcher is one rank", "1");
  }
  if (options.share_gpu && launch.processes == 1 && options.gpus_per_process < 2) {
    fail_input({{}, 0, "-g"}, "--share-gpu without a launcher needs the number of ranks",
               fmt::format("2 to {} per GPU", cuda::kMostRanksPerGpu));
  }
}

// Checks everything that depends on the number of ranks, before any rank starts.
void check_ranks(const MeasureOptions& options, int ranks) {
  if (options.root >= ranks) {
    fail_input({{}, 0, "-r"}, fmt::format("there is no rank {} among {}", options.root, ranks));
  }
  check_type(options, ranks);
  sizes_to_run(options, block_bytes(options.operation, ranks, options.type));
}

// Returns the GPUs of this process: -g of them, or without -g one under a launcher and all
// otherwise.
std::vector<int> local_devices(const MeasureOptions& options, const Launch& launch, int gpus) {
  const int wanted = options.gpus_per_process > 0 ? options.gpus_per_process
                     : launch.processes > 1       ? 1
                                                  : gpus;
  std::vector<int> devices;
  for (int i = 0; i < wanted; ++i) {
    const int device = launch.local_rank * wanted + i;
    if (options.share_gpu) {
      devices.push_back(device % gpus);
    } else if (gpus == 1 && wanted == 1) {
      devices.push_back(0);  // the launcher shows each process only its own GPU
    } else if (device < gpus) {
      devices.push_back(device);
    } else {
      throw Error(Exit::missing, fmt::format("local rank {} needs GPU {}, but this host has {}",
                                             launch.local_rank, device, gpus));
    }
  }
  return devices;
}

MeasuredTable head_of(const MeasureOptions& options, const cuda::NcclApi& nccl,
                      GpuSharing sharing) {
  MeasuredTable table;
  table.options = options;
  table.backend = Backend::nccl;
  table.library = "NCCL " + version_of(nccl);
  table.timing = "iterations back to back on one stream per GPU";
  if (options.operation == Operation::compressed_allreduce) {
    table.timing += ", compression kernels included";
  }
  table.has_spread = false;
  table.sharing = words_of(sharing);
  return table;
}

int measure_copies(const MeasureOptions& options, const std::vector<int>& devices,
                   std::ostream& out) {
  const int ranks = static_cast<int>(devices.size());
  const std::vector<cuda::NcclApi> copies = cuda::load_nccl_copies(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    cuda::settle_host(copies[std::size_t(rank)], rank, devices[std::size_t(rank)]);
  }
  unsetenv("NCCL_HOSTID");
  const MeasuredTable head = head_of(options, copies[0], GpuSharing::copies);
  const auto meeting = meet_in_process(ranks);
  std::vector<int> codes(devices.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const LocalRanks local{copies[i], {devices[i]}, int(i), ranks, true};
        codes[i] = measure_ranks(head, local, *meeting[i], out);
      } catch (const Error& error) {
        // The other ranks wait inside NCCL, and only the end of the process ends that wait.
        std::fprintf(stderr, "lambcast: %s\n", error.what());
        std::_Exit(static_cast<int>(error.code()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return codes[0];
}

}  // namespace

int measure_nccl(const MeasureOptions& options, std::ostream& out) {
  const Launch launch = launch_of(process_environment());
  check_flags(options, launch);
  if (options.share_gpu) cuda::prepare_shared_gpu();
  const int gpus = count_gpus();
  const std::vector<int> devices = local_devices(options, launch, gpus);
  const int ranks = launch.processes * static_cast<int>(devices.size());
  check_ranks(options, ranks);
  if (options.share_gpu && launch.processes == 1) {
    if (ranks > cuda::kMostRanksPerGpu * gpus) {
      fail_input({{}, 0, "-g"}, fmt::format("{} ranks are too many to share", ranks),
                 fmt::format("2 to {}", cuda::kMostRanksPerGpu * gpus));
    }
    return measure_copies(options, devices, out);
  }
  if (options.share_gpu) cuda::claim_host(launch.rank);
  const GpuSharing sharing = !options.share_gpu                ? GpuSharing::none
                             : mps_runs(process_environment()) ? GpuSharing::mps
                                                               : GpuSharing::slices;
  const cuda::NcclApi& nccl = cuda::load_nccl();
  const LocalRanks local{nccl, devices, launch.rank * static_cast<int>(devices.size()), ranks,
                         options.share_gpu};
  const auto others = meet_over_tcp(launch, kMeetWithin_s);
  return measure_ranks(head_of(options, nccl, sharing), local, *others, out);
}

int survey_nccl(const SurveyOptions& survey, const MeasureOptions& options) {
  const Launch launch = launch_of(process_environment());
  check_flags(options, launch);
  if (options.share_gpu)
    fail_input({{}, 0, "--share-gpu"}, "one GPU for several ranks measures no network", "no");
  for (const Operation operation : survey.operations)
    if (operation == Operation::ping_pong)
      fail_input({{}, 0, "--op"}, "ping_pong is not measured with NCCL");
  const std::vector<int> devices = local_devices(options, launch, count_gpus());
  const int held = static_cast<int>(devices.size());
  const cuda::NcclApi& nccl = cuda::load_nccl();
  const LocalRanks local{nccl, devices, launch.rank * held, launch.processes * held, false};
  const auto ranks = surveyed_nccl_ranks(head_of(options, nccl, GpuSharing::none), local, launch);
  return run_survey(survey, options, *ranks, std::cin, std::cout);
}

}  // namespace lambcast::validate
