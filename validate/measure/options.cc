#include "validate/measure/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "validate/measure/expected_result.h"

namespace lambcast::validate {
namespace {

constexpr std::size_t kMostSizes = 10'000;

Where flag(const std::string& name) { return {{}, 0, name}; }

double parse_number(const std::string& text, const std::string& name, double low) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < low) {
    fail_input(flag(name), fmt::format("'{}' is no value for it", text),
               fmt::format("a number from {}", low));
  }
  return value;
}

int parse_whole(const std::string& text, const std::string& name, int low) {
  const double value = parse_number(text, name, low);
  if (value != std::floor(value) || value > 1e9) {
    fail_input(flag(name), fmt::format("'{}' is no whole number", text));
  }
  return static_cast<int>(value);
}

// Parses "64K", "16M", "1G", which are binary as in nccl-tests.
std::uint64_t parse_size(const std::string& text, const std::string& name) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, value);
  int shift = -1;
  if (end == last) shift = 0;
  if (end + 1 == last) {
    if (*end == 'K' || *end == 'k') shift = 10;
    if (*end == 'M' || *end == 'm') shift = 20;
    if (*end == 'G' || *end == 'g') shift = 30;
  }
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;
  if (status != std::errc{} || shift < 0 || value < 1 || value > kLargest >> shift) {
    fail_input(flag(name), fmt::format("'{}' is no size", text),
               "1 to 1024G, bytes or with K, M, G (binary)");
  }
  return value << shift;
}

template <typename T>
T parse_word(const std::string& text, const std::string& name,
             const std::map<std::string, T>& all) {
  if (const auto found = all.find(text); found != all.end()) return found->second;
  std::vector<std::string> words;
  for (const auto& [word, value] : all) words.push_back(word);
  fail_unknown(flag(name), "value", text, words);
}

// Replacements for flags that exist in nccl-tests only.
const std::map<std::string, std::string> kOfNcclTests{
    {"--minbytes", "is spelled -b here"},
    {"--maxbytes", "is spelled -e here"},
    {"--stepfactor", "is spelled -f here"},
    {"--stepbytes", "is spelled -i here"},
    {"--iters", "is spelled -n here"},
    {"--warmup_iters", "is spelled -w here"},
    {"--check", "is spelled -c here"},
    {"--root", "is spelled -r here"},
    {"--ngpus", "is spelled -g here"},
    {"--average", "is spelled -a here"},
    {"-J", "is spelled --format json here"},
    {"--datatype", "is spelled -d here"},
    {"--run_cycles", "is spelled -N here"},
    {"-o", "is not supported: every reduction is a sum"},
    {"-t", "is not supported: give -g, or start more processes"},
    {"--nthreads", "is not supported: give -g, or start more processes"},
    {"-m", "is not supported: an iteration is one call"},
    {"--agg_iters", "is not supported: an iteration is one call"},
    {"-G", "is not supported: no call is captured in a CUDA graph"},
    {"--cudagraph", "is not supported: no call is captured in a CUDA graph"},
    {"-z", "is not supported: NCCL is waited for after all iterations, MPI after each"},
    {"--blocking", "is not supported: NCCL is waited for after all iterations, MPI after each"}};

// Reads a flag that is a whole number; returns false for any other flag.
bool apply_whole(const std::string& name, const std::string& value, MeasureOptions& o) {
  static const std::map<std::string, std::pair<int MeasureOptions::*, int>> flags{
      {"-n", {&MeasureOptions::iterations, 1}},
      {"-w", {&MeasureOptions::warmup, 0}},
      {"-c", {&MeasureOptions::check_iterations, 0}},
      {"-r", {&MeasureOptions::root, 0}},
      {"-N", {&MeasureOptions::cycles, 1}},
      {"-g", {&MeasureOptions::gpus_per_process, 1}}};
  const auto flag = flags.find(name);
  if (flag == flags.end()) return false;
  o.*flag->second.first = parse_whole(value, name, flag->second.second);
  return true;
}

void apply(const std::string& name, const std::string& value, MeasureOptions& o) {
  if (apply_whole(name, value, o)) return;
  if (name == "-b") {
    o.min_bytes = parse_size(value, name);
  } else if (name == "-e") {
    o.max_bytes = parse_size(value, name);
  } else if (name == "-f") {
    o.factor = parse_number(value, name, 1.001);
  } else if (name == "-i") {
    o.step_bytes = parse_size(value, name);
  } else if (name == "-d") {
    o.type = parse_data_type(value);
  } else if (name == "-a") {
    o.rank_time = parse_word<RankTime>(value, name,
                                       {{"0", RankTime::rank0},
                                        {"1", RankTime::mean},
                                        {"2", RankTime::min},
                                        {"3", RankTime::max}});
  } else if (name == "--op") {
    o.operation = parse_operation(value, flag(name), Operation::stream);
  } else if (name == "--statistic") {
    o.statistic = parse_word<Statistic>(value, name,
                                        {{"mean", Statistic::mean}, {"median", Statistic::median}});
  } else if (name == "--staging") {
    o.staging =
        parse_word<Staging>(value, name, {{"none", Staging::none}, {"memcpy", Staging::memcpy}});
  } else if (name == "--share-gpu") {
    o.share_gpu = parse_word<bool>(value, name, {{"yes", true}, {"no", false}});
  } else if (name == "--seconds-per-size") {
    o.seconds_per_size = parse_number(value, name, 0);
  } else if (name == "--format") {
    o.format = parse_word<ReportFormat>(value, name,
                                        {{"nccl-tests", ReportFormat::nccl_tests},
                                         {"json", ReportFormat::json},
                                         {"csv", ReportFormat::csv}});
  } else if (name == "--manifest") {
    o.manifest = value;
  } else if (name == "--algorithm") {
    o.algorithm = value;
  } else if (name == "--network") {
    o.network = value;
  } else {
    if (const auto found = kOfNcclTests.find(name); found != kOfNcclTests.end()) {
      fail_input(flag(name), found->second);
    }
    static const std::vector<std::string> kKnown{"-b",
                                                 "-e",
                                                 "-f",
                                                 "-i",
                                                 "-n",
                                                 "-w",
                                                 "-c",
                                                 "-r",
                                                 "-g",
                                                 "-a",
                                                 "-d",
                                                 "-N",
                                                 "--op",
                                                 "--statistic",
                                                 "--share-gpu",
                                                 "--staging",
                                                 "--seconds-per-size",
                                                 "--format",
                                                 "--manifest",
                                                 "--algorithm",
                                                 "--network"};
    fail_unknown(flag(name), "flag", name, kKnown);
  }
}

}  // namespace

std::string_view measure_help() {
  return R"(Flags
  --backend WORD              what is measured: nccl (GPUs) or mpi (hosts); required
  --op WORD                   operation: all_reduce (the default), all_gather, reduce_scatter, all_to_all, broadcast, send_recv, reduce, compressed_allreduce, ping_pong
  -b SIZE                     smallest size in bytes (K, M, G: powers of 1024; default: 32M)
  -e SIZE                     largest size in bytes (K, M, G: powers of 1024; default: 32M)
  -f FACTOR                   factor from one size to the next (default: 2)
  -i SIZE                     bytes from one size to the next, in place of -f (default: none)
  -n N                        iterations that are timed at each size (default: 20)
  -w N                        warm-up iterations before them (default: 1)
  -c N                        iterations whose results are checked, 0 for none (default: 1)
  -r RANK                     rank that broadcast and reduce start or end at (default: 0)
  -d WORD                     type: float (the default), half, bfloat16, uint8
  -N N                        times that all sizes are run (default: 1)
  -g N                        GPUs of this process (default: all of the node, or 1 under a launcher)
  -a 0|1|2|3                  time of an iteration: of rank 0, or the mean, least or most of all ranks (default: 1)
  --statistic WORD            time of a size: mean (the default) or median of its iterations
  --seconds-per-size SECONDS  as few iterations as fit in this many seconds, 3 or more (default: -n of them)
  --staging WORD              copies next to DeepSpeed's exchange: none (the default) or memcpy
  --share-gpu yes|no          several ranks on one GPU (default: no)
  --format WORD               nccl-tests (the default), json or csv
  --tables DIR                folder for a table of each of --op and -d, lists with commas then, over 1, 2, 4, ... nodes (default: none)
  --budget SECONDS            no table of --tables is begun after this time (default: 600)
  --manifest FILE             file for versions and settings as JSON (default: none)
  --algorithm TEXT            algorithm that was forced from outside, such as ring, for the header of the CSV (default: none)
  --network TEXT              name of the network for the header of the CSV, such as "10 Gbit/s Ethernet" (default: none)
compressed_allreduce includes the compression kernels with nccl; with mpi it is DeepSpeed's exchange without them.
--share-gpu puts -g ranks on one GPU, or the processes of a launcher: for launch, proxy and TCP, not for links.
Processes of mpirun (Open MPI, MPICH, Intel MPI, MVAPICH), srun or torchrun measure nccl together. Over several hosts
they meet at MASTER_ADDR, an address of the host of rank 0, and MASTER_PORT (29500): torchrun sets both, srun the first, else export
them. Over several hosts set LAMBCAST_TOKEN to the same secret for all, or LAMBCAST_TOKEN_FILE to a path in a folder
that they share: a process without the secret is not let in.
Examples
  lambcast measure --backend nccl --op all_reduce -b 1M -e 1G -f 2
  lambcast measure --backend nccl --share-gpu yes -g 4 --op compressed_allreduce -b 8 -e 256M -f 4
  MASTER_ADDR=node0 LAMBCAST_TOKEN_FILE=$HOME/token mpirun -x MASTER_ADDR -x LAMBCAST_TOKEN_FILE \
    -n 16 -N 8 lambcast measure --backend nccl -b 8 -e 1G -f 2
  srun lambcast measure --backend nccl --tables mine --op all_reduce,all_gather -d float,half,uint8 -b 64K -e 256M -f 4
  mpirun -n 8 lambcast measure --backend mpi --op compressed_allreduce -b 1M -e 64M -f 4 --format csv)";
}

MeasureOptions parse_measure_flags(const std::vector<std::string>& flags) {
  MeasureOptions options;
  for (std::size_t i = 0; i < flags.size(); i += 2) {
    if (i + 1 == flags.size()) fail_input(flag(flags[i]), "needs a value");
    apply(flags[i], flags[i + 1], options);
  }
  if (options.seconds_per_size > 0 && options.warmup == 0) {
    fail_input(flag("-w"), "--seconds-per-size goes by the time of a warm-up", "at least 1");
  }
  if (options.max_bytes < options.min_bytes) fail_input(flag("-e"), "is below -b");
  return options;
}

DataType parse_data_type(const std::string& text, const std::string& flag) {
  static const std::map<std::string, DataType> kNames{
      {"float", DataType::float32}, {"fp32", DataType::float32}, {"half", DataType::half},
      {"fp16", DataType::half},     {"uint8", DataType::uint8},  {"bfloat16", DataType::bfloat16},
      {"bf16", DataType::bfloat16}};
  return parse_word<DataType>(text, flag, kNames);
}

void check_type(const MeasureOptions& options, int ranks) {
  if (options.operation == Operation::compressed_allreduce && options.type != DataType::float32)
    fail_input(flag("-d"), "compressed_allreduce compresses float", "float");
  if (options.check_iterations > 0 && has_sum(options.operation) &&
      ranks > most_exact_ranks(options.type))
    fail_input(flag("-c"),
               fmt::format("sums of {} over {} ranks are rounded, so none is exact",
                           name_of(options.type), ranks),
               "0");
}

std::uint64_t block_bytes(Operation operation, int ranks, DataType type) {
  const bool blocks = operation == Operation::all_gather ||
                      operation == Operation::reduce_scatter || operation == Operation::all_to_all;
  return bytes_of(type) * static_cast<std::uint64_t>(blocks ? ranks : 1);
}

std::vector<std::uint64_t> sizes_to_run(const MeasureOptions& options, std::uint64_t block) {
  std::vector<std::uint64_t> sizes;
  for (double size = static_cast<double>(options.min_bytes);
       size <= static_cast<double>(options.max_bytes);
       size = options.step_bytes > 0 ? size + static_cast<double>(options.step_bytes)
                                     : size * options.factor) {
    const std::uint64_t whole = static_cast<std::uint64_t>(size) / block * block;
    if (whole > 0 && (sizes.empty() || whole > sizes.back())) sizes.push_back(whole);
    if (sizes.size() > kMostSizes)
      fail_input(flag(options.step_bytes > 0 ? "-i" : "-f"),
                 fmt::format("gives more than {} sizes", kMostSizes));
  }
  if (sizes.empty()) {
    fail_input(flag("-e"), fmt::format("no size holds a whole block of {} bytes", block));
  }
  return sizes;
}

}  // namespace lambcast::validate
