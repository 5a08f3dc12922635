// Reads measurements from the logs of other tools, so that users can calibrate with existing logs.
// Each importer takes the whole text, the name for messages, and hints for facts that a log lacks.
// It returns one Measurement per table, in the order of the file. All throw Error with file, line
// and reason for a file that is damaged, cut off or contradictory; none guesses. Times are taken as
// printed; bandwidths are only used to check that columns line up.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast::validate {

// Facts from the user that a log may lack. A hint overrides the log. Two contradictions are errors:
// a number of ranks that contradicts the bandwidths of the log, and any hint that contradicts the
// project's own CSV.
struct ImportHints {
  std::optional<Operation> operation;
  std::optional<int> ranks;
  std::optional<int> nodes;
  // Take the in-place columns of nccl-tests or lambcast measure: training runs its collectives in
  // place. A CSV of an operation without an in-place form is read out of place.
  bool in_place = false;
};

// Reads the text output of nccl-tests. A header starts at its '#', a row at its size; prefixes of
// launchers, containers and CI ("[1,0]<stdout>:", "0: ", "pod-3: ", time stamps, Markdown) and
// colours are skipped. Supports the columns of all versions (with and without redop, root,
// per-iteration statistics and time stamps; "error" instead of "#wrong"; N/A), NCCL INFO lines
// between and inside rows, and the tables of `lambcast measure`. The collective comes from the
// hint, the line "Collective test starting", the command line in the log or the file's name; the
// ranks from the hint, the device lines, NCCL's messages or the ratio busbw / algbw. Rows of size 0
// are skipped.
std::vector<Measurement> import_nccl_tests_text(std::string_view text, std::string_view name,
                                                const ImportHints& hints = {});

// Reads the JSON that nccl-tests writes with -J, and that of `lambcast measure --format json`. It
// ignores the environment variables that nccl-tests stores in the file.
std::vector<Measurement> import_nccl_tests_json(std::string_view text, std::string_view name,
                                                const ImportHints& hints = {});

// OSU micro-benchmarks over MPI or NCCL: allreduce, allgather, alltoall, bcast, reduce_scatter,
// latency, bw. OSU prints the size per rank for allgather and alltoall; here it becomes the total.
// The ranks are not in its output: they come from the hint or a "-n N osu_..." command line in the
// log. latency and bw run between two ranks, on two nodes if the hint states two or more.
std::vector<Measurement> import_osu(std::string_view text, std::string_view name,
                                    const ImportHints& hints = {});

// Intel MPI Benchmarks (IMB-MPI1): Allreduce, Allgather, Alltoall, Bcast, Reduce, Reduce_scatter,
// Sendrecv, PingPong; a log holds many; other benchmarks and those of a single process are skipped.
// The time is t_avg, the spread t_min to t_max over the processes. For Allgather and Alltoall the
// printed size is the block of a rank, as in OSU.
std::vector<Measurement> import_imb(std::string_view text, std::string_view name,
                                    const ImportHints& hints = {});

// iperf3 -J over TCP: one row with the bytes of the receiver over the whole time, and the number of
// streams. Like perftest, it runs between two nodes, even if a hint states another number.
std::vector<Measurement> import_iperf3(std::string_view text, std::string_view name,
                                       const ImportHints& hints = {});

// perftest: ib_write_bw and related tests (stream, one per queue pair) and the latency tests
// (ping_pong, t_typical).
std::vector<Measurement> import_perftest(std::string_view text, std::string_view name,
                                         const ImportHints& hints = {});

// DeepSpeed's communication benchmarks (ds_bench; benchmarks/communication of DeepSpeed and
// DeepSpeedExamples): all_reduce, all_gather, all_to_all and broadcast of PyTorch over NCCL; pt2pt
// is skipped. The bytes come from the description, "262144x4"; for all_gather it is the input of
// one rank. The throughput of an all_reduce counts the vector twice. The nodes come from the hint
// or its launcher's "nnodes=".
std::vector<Measurement> import_deepspeed_bench(std::string_view text, std::string_view name,
                                                const ImportHints& hints = {});

// One of the importers above, or that of the project's CSV.
struct Importer {
  bool is_json;
  std::string_view words;  // text that identifies this format
  std::vector<Measurement> (*read)(std::string_view text, std::string_view name,
                                   const ImportHints& hints);
  bool in_place = false;  // whether the format has in-place columns
};

// Returns all importers, in the order in which they are tried. One without words accepts any text.
std::span<const Importer> importers();

// Returns the tables by the first importer that recognises the text. Throws Error for in-place
// columns of a format that has none.
std::vector<Measurement> import_measurements(std::string_view text, std::string_view name,
                                             const ImportHints& hints = {});

}  // namespace lambcast::validate
