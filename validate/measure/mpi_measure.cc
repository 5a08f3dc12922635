#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "validate/measure/expected_result.h"
#include "validate/measure/measure.h"
#include "validate/measure/mpi_collectives.h"
#include "validate/measure/mpi_world.h"
#include "validate/measure/report.h"

namespace lambcast::validate {
namespace {

void check_options(const MeasureOptions& options, int ranks) {
  if (options.operation == Operation::ping_pong && ranks < 2) {
    fail_input({{}, 0, "--op"}, "ping_pong needs at least 2 ranks");
  }
  if (options.share_gpu) fail_input({{}, 0, "--share-gpu"}, "is for NCCL: MPI here uses no GPU");
  if (options.gpus_per_process > 0) {
    fail_input({{}, 0, "-g"}, "is for NCCL: the ranks of MPI are the processes of mpirun -n");
  }
  if (options.staging != Staging::none && options.operation != Operation::compressed_allreduce) {
    fail_input({{}, 0, "--staging"}, "only compressed_allreduce has copies to stage");
  }
  if (options.aggregated > 1) fail_input({{}, 0, "-m"}, "is for NCCL: MPI has no groups of calls");
  if (options.graph_launches > 0) fail_input({{}, 0, "-G"}, "is for NCCL: MPI here uses no GPU");
  if (options.blocking) fail_input({{}, 0, "-z"}, "is for NCCL: with MPI, each call is waited for");
  if (options.root >= ranks) {
    fail_input({{}, 0, "-r"}, fmt::format("there is no rank {} among {}", options.root, ranks));
  }
  if (is_sixteen_bit(options.type) && has_sum(options.operation)) {
    fail_input({{}, 0, "-d"}, "MPI adds no 16-bit numbers",
               "float, uint8, or an operation without a sum");
  }
  check_type(options, ranks);
  if (options.max_bytes / bytes_of(options.type) > std::numeric_limits<int>::max()) {
    fail_input({{}, 0, "-e"}, "MPI counts elements in 31 bits",
               fmt::format("below {}G", 2 * bytes_of(options.type)));
  }
}

std::unique_ptr<TimedCollective> prepare(const MeasureOptions& options, std::uint64_t size,
                                         Placement placement) {
  if (options.operation == Operation::compressed_allreduce)
    return deepspeed_mpi_exchange(options, size);
  return mpi_collective(options, size, placement);
}

std::uint64_t block_of(const MeasureOptions& options, int ranks) {
  return options.operation == Operation::compressed_allreduce
             ? deepspeed_block_bytes(ranks)
             : block_bytes(options.operation, ranks, options.type);
}

double time_once(TimedCollective& collective) {
  MPI_Barrier(measured_world());
  const double start = MPI_Wtime();
  collective.run();
  // Returns at least one tick, so that a rate can always be computed.
  return std::max(MPI_Wtime() - start, MPI_Wtick());
}

std::uint64_t wrong_everywhere(TimedCollective& collective, int iterations) {
  std::uint64_t wrong = 0;
  for (int i = 0; i < iterations; ++i) {
    collective.fill();
    MPI_Barrier(measured_world());
    collective.run();
    wrong += collective.count_wrong();
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, measured_world());
  return wrong;
}

// Warms up and returns how many iterations to time; the result is the same on every rank.
int warm_up(TimedCollective& collective, const MeasureOptions& options) {
  double slowest = 0;
  for (int i = 0; i < options.warmup; ++i) slowest = time_once(collective);
  if (options.seconds_per_size == 0) return options.iterations;
  MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, measured_world());
  const double fitting = std::floor(options.seconds_per_size / slowest);
  const double least = std::min(3, options.iterations);
  return static_cast<int>(std::clamp(fitting, least, double(options.iterations)));
}

// Combines the times of all ranks into one per iteration; the result is the same on every rank.
std::vector<double> over_ranks(std::vector<double> seconds, const MeasureOptions& options,
                               int ranks) {
  const int count = static_cast<int>(seconds.size());
  if (options.rank_time == RankTime::rank0) {
    MPI_Bcast(seconds.data(), count, MPI_DOUBLE, 0, measured_world());
  } else {
    const MPI_Op reduction = options.rank_time == RankTime::min   ? MPI_MIN
                             : options.rank_time == RankTime::max ? MPI_MAX
                                                                  : MPI_SUM;
    MPI_Allreduce(MPI_IN_PLACE, seconds.data(), count, MPI_DOUBLE, reduction, measured_world());
  }
  double divisor = options.rank_time == RankTime::mean ? ranks : 1;
  if (options.operation == Operation::ping_pong) divisor = 2;  // there and back
  for (double& value : seconds) value /= divisor;
  return seconds;
}

MeasuredHalf measure_half(TimedCollective& collective, const MeasureOptions& options,
                          std::uint64_t size, int ranks) {
  MeasuredHalf result;
  result.checked = options.check_iterations > 0;
  if (!result.checked) collective.fill();
  result.wrong = wrong_everywhere(collective, options.check_iterations);
  result.iterations = warm_up(collective, options);
  std::vector<double> seconds;
  for (int i = 0; i < result.iterations; ++i) seconds.push_back(time_once(collective));
  seconds = over_ranks(std::move(seconds), options, ranks);

  std::vector<Duration> times;
  for (const double value : seconds) times.push_back(Duration::seconds(value));
  const double mean =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  result.row.size = Bytes(static_cast<double>(size));
  result.row.time =
      options.statistic == Statistic::median ? median(times) : Duration::seconds(mean);
  const auto [low, high] = std::minmax_element(times.begin(), times.end());
  result.row.spread = Spread{*low, *high};
  return result;
}

MeasuredRow measure_size(const MeasureOptions& options, std::uint64_t size, int ranks) {
  const auto half = [&](TimedCollective& collective) {
    return measure_half(collective, options, size, ranks);
  };
  MeasuredRow row{half(*prepare(options, size, Placement::out_of_place)), {}};
  if (has_in_place(options.operation, Backend::mpi_host))
    row.in_place = half(*prepare(options, size, Placement::in_place));
  return row;
}

// Returns the version text of the library up to the first comma or line end: "Open MPI v4.1.4".
std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data());
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

int measure_mpi(const MeasureOptions& options, std::ostream& out) {
  const MpiSession mpi;
  check_world(mpi.ranks());
  check_options(options, mpi.ranks());
  MeasuredTable table;
  table.options = options;
  // In a ping-pong only the first and the last rank have a time, so that of rank 0 is used.
  if (options.operation == Operation::ping_pong) table.options.rank_time = RankTime::rank0;
  table.backend = Backend::mpi_host;
  table.library = library_name();
  table.timing = "each iteration after a barrier";
  if (options.operation == Operation::compressed_allreduce) {
    table.timing += ", exchange without compression kernels";
  }
  table.places = gather_places(mpi.ranks());
  const std::vector<std::uint64_t> sizes = sizes_to_run(options, block_of(options, mpi.ranks()));
  try {
    Report report(table, mpi.rank() == 0 ? &out : nullptr,
                  sizes.size() * static_cast<std::size_t>(options.cycles));
    for (int cycle = 0; cycle < options.cycles; ++cycle)
      for (const std::uint64_t size : sizes)
        report.add(measure_size(table.options, size, mpi.ranks()));
    return report.finish();
  } catch (const Error& error) {
    if (mpi.ranks() == 1) throw;
    // Ends all ranks: only rank 0 writes, and if that fails, the others would wait for it.
    fmt::print(stderr, "lambcast: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(error.code()));
    throw;
  }
}

}  // namespace lambcast::validate
