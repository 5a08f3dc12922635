// Flags of `lambcast measure`, with the names and meanings of nccl-tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validate/measure/data_type.h"
#include "validate/measurement.h"

namespace lambcast::validate {

// How the times of the ranks become one time (nccl-tests -a 0|1|2|3).
enum class RankTime { rank0 = 0, mean = 1, min = 2, max = 3 };

// How the times of the iterations become one time. nccl-tests reports the mean; on a machine
// shared with others the median is the steadier choice.
enum class Statistic { mean, median };

// Copies that a training process without CUDA-aware MPI adds to DeepSpeed's exchange: each buffer
// is copied between device and pageable host memory. Without a GPU, `memcpy` copies the same
// buffers within host memory.
enum class Staging { none, memcpy };

enum class ReportFormat { nccl_tests, json, csv };

// Returns whether a backend has an in-place form of an operation, in which the input lies in the
// buffer of the result. Each size is then measured in both forms.
bool has_in_place(Operation operation, Backend backend);

struct MeasureOptions {
  Operation operation = Operation::all_reduce;
  DataType type = DataType::float32;   // -d
  std::uint64_t min_bytes = 32 << 20;  // -b
  std::uint64_t max_bytes = 32 << 20;  // -e
  double factor = 2;                   // -f
  std::uint64_t step_bytes = 0;        // -i; above 0 it replaces the factor
  int iterations = 20;                 // -n
  int warmup = 1;                      // -w
  int check_iterations = 1;            // -c
  int root = 0;                        // -r
  int cycles = 1;                      // -N: times that all sizes are run
  int aggregated = 1;                  // -m: calls of an iteration, in one group of NCCL
  int graph_launches = 0;              // -G: launches of a CUDA graph of all iterations; 0: none
  bool blocking = false;               // -z: all ranks wait after each iteration
  // -g; 0: all local GPUs, or one under a launcher. With share_gpu: ranks of this process.
  int gpus_per_process = 0;
  bool share_gpu = false;  // NCCL: several ranks on one GPU, see shared_gpu.h
  RankTime rank_time = RankTime::mean;
  Statistic statistic = Statistic::mean;
  Staging staging = Staging::none;
  // If above 0, limits the iterations per size (but at least 3) to this many seconds.
  double seconds_per_size = 0;
  ReportFormat format = ReportFormat::nccl_tests;
  std::string manifest;   // a file for the manifest; may be empty
  std::string algorithm;  // what was forced from outside, for the header of the CSV, e.g. "ring"
  std::string network;    // words for the header of the CSV, e.g. "emulated Ethernet, 100 Mbit/s"
};

// Returns the help text of the flags, with examples.
std::string_view measure_help();

// Reads the flags of nccl-tests (-b -e -f -i -n -w -c -r -g -a -d -N -m -G -z) and the long flags
// of this project: --op, --statistic mean|median, --staging none|memcpy, --share-gpu yes|no,
// --seconds-per-size S, --format nccl-tests|json|csv, --manifest FILE, --algorithm TEXT,
// --network TEXT. Throws Error naming the flag; for a flag that only nccl-tests has, the error
// names its replacement.
MeasureOptions parse_measure_flags(const std::vector<std::string>& flags);

// Parses a type by its name in nccl-tests; fp16, bf16 and fp32 are names too. Throws Error naming
// the flag.
DataType parse_data_type(const std::string& text, const std::string& flag = "-d");

// Returns the unit of sizes: one element per rank for collectives of blocks, one element for others
// (compressed_allreduce pads).
std::uint64_t block_bytes(Operation operation, int ranks, DataType type = DataType::float32);

// Throws Error if the operation does not support the type, or if results have to be checked and
// sums over so many ranks are not exact.
void check_type(const MeasureOptions& options, int ranks);

// Returns the sizes to run, smallest first, rounded down to whole blocks. Sizes that round to zero
// or to the previous one are left out. Throws Error if none is left, and for more than 10,000.
std::vector<std::uint64_t> sizes_to_run(const MeasureOptions& options, std::uint64_t block_bytes);

}  // namespace lambcast::validate
