#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "sim/base/error.h"
#include "tools/commands.h"

namespace lambcast {
namespace {

// Becomes lambcast-measure, which lies beside this program; a launcher's environment stays.
int run_measure(const CLI::App& command) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lambcast-measure";
  std::vector<std::string> words{program.string()};
  for (const std::string& word : command.remaining()) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw Error(Exit::missing, fmt::format("{}: {}", program.string(), std::strerror(errno)));
}

}  // namespace

Command add_measure(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "measure", "time real collectives: NCCL on GPUs, MPI on hosts (flags of nccl-tests)");
  command->prefix_command();
  command->footer(R"(Flags
  --backend nccl|mpi   -b MIN -e MAX -f FACTOR -i STEP   -n ITERATIONS -w WARM-UP -c CHECKS   -a 0|1|2|3
  --op all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|send_recv|compressed_allreduce|ping_pong
  --format nccl-tests|json|csv   --manifest FILE   --statistic mean|median   --seconds-per-size S
  --staging none|memcpy   --share-gpu yes|no   -g GPUS   -r ROOT   --algorithm TEXT   --network TEXT
compressed_allreduce includes the compression kernels with nccl; with mpi it is DeepSpeed's exchange without them.
--share-gpu puts -g ranks on one GPU, or the processes of a launcher: for launch, proxy and TCP, not for links.
Examples
  lambcast measure --backend nccl --op all_reduce -b 1M -e 1G -f 2
  lambcast measure --backend nccl --share-gpu yes -g 4 --op compressed_allreduce -b 8 -e 256M -f 4
  mpirun -n 8 lambcast measure --backend mpi --op compressed_allreduce -b 1M -e 64M -f 4 --format csv)");
  return [command] { return run_measure(*command); };
}

}  // namespace lambcast
