#include "validate/measure/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <functional>
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
    fail_input(flag(name), fmt::format("'{}' is not an allowed value", text),
               fmt::format("a number from {}", low));
  }
  return value;
}

int parse_whole(const std::string& text, const std::string& name, int low) {
  const double value = parse_number(text, name, low);
  if (value != std::floor(value) || value > 1e9) {
    fail_input(flag(name), fmt::format("'{}' is not a whole number", text));
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
    fail_input(flag(name), fmt::format("'{}' is not a size", text),
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
    {"--agg_iters", "is spelled -m here"},
    {"--cudagraph", "is spelled -G here"},
    {"--blocking", "is spelled -z here"}};

using M = MeasureOptions;
using Reader = std::function<void(const std::string& name, const std::string& value, M& options)>;
template <typename T>
using Words = std::map<std::string, T>;

// Returns a reader that stores parse(value, name, rest...) in a member of the options.
template <typename T, typename Parse, typename... Rest>
Reader reads(T M::*member, Parse parse, Rest... rest) {
  return [=](const std::string& name, const std::string& value, M& options) {
    options.*member = parse(value, name, rest...);
  };
}

std::string as_written(const std::string& text, const std::string&) { return text; }

Operation read_operation(const std::string& text, const std::string& name) {
  return parse_operation(text, flag(name), Operation::stream);
}

const std::map<std::string, Reader> kReaders{
    {"-b", reads(&M::min_bytes, parse_size)},
    {"-e", reads(&M::max_bytes, parse_size)},
    {"-f", reads(&M::factor, parse_number, 1.001)},
    {"-i", reads(&M::step_bytes, parse_size)},
    {"-n", reads(&M::iterations, parse_whole, 1)},
    {"-w", reads(&M::warmup, parse_whole, 0)},
    {"-c", reads(&M::check_iterations, parse_whole, 0)},
    {"-r", reads(&M::root, parse_whole, 0)},
    {"-g", reads(&M::gpus_per_process, parse_whole, 1)},
    {"-N", reads(&M::cycles, parse_whole, 1)},
    {"-m", reads(&M::aggregated, parse_whole, 1)},
    {"-G", reads(&M::graph_launches, parse_whole, 0)},
    {"-d", reads(&M::type, parse_data_type)},
    {"-z", reads(&M::blocking, parse_word<bool>, Words<bool>{{"0", false}, {"1", true}})},
    {"-a", reads(&M::rank_time, parse_word<RankTime>,
                 Words<RankTime>{{"0", RankTime::rank0},
                                 {"1", RankTime::mean},
                                 {"2", RankTime::min},
                                 {"3", RankTime::max}})},
    {"--op", reads(&M::operation, read_operation)},
    {"--statistic",
     reads(&M::statistic, parse_word<Statistic>,
           Words<Statistic>{{"mean", Statistic::mean}, {"median", Statistic::median}})},
    {"--share-gpu",
     reads(&M::share_gpu, parse_word<bool>, Words<bool>{{"yes", true}, {"no", false}})},
    {"--staging", reads(&M::staging, parse_word<Staging>,
                        Words<Staging>{{"none", Staging::none}, {"memcpy", Staging::memcpy}})},
    {"--seconds-per-size", reads(&M::seconds_per_size, parse_number, 0)},
    {"--format", reads(&M::format, parse_word<ReportFormat>,
                       Words<ReportFormat>{{"nccl-tests", ReportFormat::nccl_tests},
                                           {"json", ReportFormat::json},
                                           {"csv", ReportFormat::csv}})},
    {"--manifest", reads(&M::manifest, as_written)},
    {"--algorithm", reads(&M::algorithm, as_written)},
    {"--network", reads(&M::network, as_written)}};

void apply(const std::string& name, const std::string& value, MeasureOptions& options) {
  if (const auto found = kOfNcclTests.find(name); found != kOfNcclTests.end())
    fail_input(flag(name), found->second);
  const auto reader = kReaders.find(name);
  if (reader != kReaders.end()) return reader->second(name, value, options);
  std::vector<std::string> known;
  for (const auto& [each, unused] : kReaders) known.push_back(each);
  fail_unknown(flag(name), "flag", name, known);
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
  -m N                        calls of an iteration, in one group of NCCL (default: 1)
  -G N                        launches of a CUDA graph that holds all iterations, 0 for no graph (default: 0)
  -z 0|1                      1: all ranks wait after each iteration of NCCL (default: 0)
  -g N                        GPUs of this process (default: all of the node, or 1 under a launcher)
  -a 0|1|2|3                  time of an iteration: of rank 0, or the mean, least or most of all ranks (default: 1)
  --statistic WORD            time of a size: mean (the default) or median of its iterations
  --seconds-per-size SECONDS  as few iterations as fit in this many seconds, 3 or more (default: -n of them)
  --staging WORD              copies next to DeepSpeed's exchange: none (the default) or memcpy
  --share-gpu yes|no          several ranks on one GPU (default: no)
  --format WORD               nccl-tests (the default), json or csv
  --tables DIR                folder for a table of each of --op and -d, lists with commas then, over 1, 2, 4, ... nodes (default: none)
  --steps-of N                weights of a model: whole steps of the shipped optimizers on GPUs are timed first, into DIR/steps.csv (default: none)
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

bool has_in_place(Operation operation, Backend backend) {
  switch (operation) {
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::reduce_scatter:
      return true;
    case Operation::broadcast:
      return backend == Backend::nccl;
    case Operation::all_to_all:
      return backend == Backend::mpi_host;
    default:
      return false;
  }
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
