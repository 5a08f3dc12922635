// Reads measurements out of what other tools print, so that a user can calibrate with the logs
// they have. Each importer takes the whole text, the name for messages and hints for what a log
// does not say, and returns one Measurement per table, in the order of the file. All throw Error
// with file, line and reason for a file that is broken, cut off or contradicts itself; none
// guesses. Times are taken as printed; bandwidths only serve to check that columns line up.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast::validate {

// Facts from the user that a log may lack. A hint overrides the log, except that a number of ranks
// which contradicts the bandwidths of the log is an error, and so is any hint that contradicts our
// CSV.
struct ImportHints {
  std::optional<Operation> operation;
  std::optional<int> ranks;
  std::optional<int> nodes;
  bool in_place = false;  // nccl-tests: take the in-place columns
};

// nccl-tests, what it prints. A header starts at its '#', a row at its size: whatever launchers,
// containers and CI put before them ("[1,0]<stdout>:", "0: ", "pod-3: ", time stamps, Markdown) is
// passed over, and so are colours. Knows the columns of all versions (with and without redop, root,
// per-iteration statistics and time stamps; "error" instead of "#wrong"; N/A), NCCL INFO lines
// between and inside rows, and the tables of `lambcast measure`. The collective comes from the
// hint, the line "Collective test starting", the command line in the log or the file's name; the
// ranks from the hint, the device lines, NCCL's messages or the ratio busbw / algbw. Rows of size 0
// are skipped.
std::vector<Measurement> import_nccl_tests_text(std::string_view text, std::string_view name,
                                                const ImportHints& hints = {});

// nccl-tests, what it writes with -J, and `lambcast measure --format json`. The environment of
// the run, which nccl-tests stores in the file, is never read.
std::vector<Measurement> import_nccl_tests_json(std::string_view text, std::string_view name,
                                                const ImportHints& hints = {});

// OSU micro-benchmarks over MPI or NCCL: allreduce, allgather, alltoall, bcast, reduce_scatter,
// latency, bw. OSU prints the size per rank for allgather and alltoall; here it becomes the total.
// The ranks are not in its output: they come from the hint or a "-n N osu_..." command line in the
// log. latency and bw run between two ranks: on two nodes where the hint says two or more.
std::vector<Measurement> import_osu(std::string_view text, std::string_view name,
                                    const ImportHints& hints = {});

// Intel MPI Benchmarks (IMB-MPI1): Allreduce, Allgather, Alltoall, Bcast, Reduce, Reduce_scatter,
// Sendrecv, PingPong; a log holds many, and the others are passed over, as is what one process does
// alone. t_avg, between t_min and t_max over the processes. Of Allgather and Alltoall the block of
// a rank is printed, as OSU does.
std::vector<Measurement> import_imb(std::string_view text, std::string_view name,
                                    const ImportHints& hints = {});

// iperf3 -J over TCP: one row with the bytes of the receiver over the whole time, and the number of
// streams. Like perftest, it runs between two nodes, for any hint about other tables.
std::vector<Measurement> import_iperf3(std::string_view text, std::string_view name,
                                       const ImportHints& hints = {});

// perftest: ib_write_bw and its kin (stream, one per queue pair) and the latency tests (ping_pong,
// t_typical).
std::vector<Measurement> import_perftest(std::string_view text, std::string_view name,
                                         const ImportHints& hints = {});

// DeepSpeed's communication benchmarks (ds_bench; benchmarks/communication of DeepSpeed and
// DeepSpeedExamples): all_reduce, all_gather, all_to_all and broadcast of PyTorch over NCCL; pt2pt
// is passed over. The bytes are those of the description, "262144x4"; of all_gather it names what
// one rank puts in. Its throughput of an all_reduce counts the vector twice. The nodes come from
// the hint or its launcher's "nnodes=".
std::vector<Measurement> import_deepspeed_bench(std::string_view text, std::string_view name,
                                                const ImportHints& hints = {});

// One of the above, or our CSV.
struct Importer {
  bool is_json;
  std::string_view words;  // that only such a text holds
  std::vector<Measurement> (*read)(std::string_view text, std::string_view name,
                                   const ImportHints& hints);
  bool in_place = false;  // whether there are in-place columns to take
};

// All, in the order in which a text is offered to them; without words one takes any.
std::span<const Importer> importers();

// Returns the tables by the first importer that recognises the text. Throws Error for in-place
// columns of a format that has none.
std::vector<Measurement> import_measurements(std::string_view text, std::string_view name,
                                             const ImportHints& hints = {});

}  // namespace lambcast::validate
