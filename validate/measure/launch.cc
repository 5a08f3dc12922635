#include "validate/measure/launch.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <span>

#include "sim/base/error.h"
#include "validate/measure/token_file.h"

namespace lambcast::validate {
namespace {

struct Launcher {
  const char* rank;
  const char* processes;
  const char* local_rank;
  const char* on_this_node;  // variable with the number of processes on this node
};

// Slurm's variables must be those of a step: a batch script has SLURM_PROCID and SLURM_NTASKS too,
// but is a single process.
constexpr std::array<Launcher, 5> kLaunchers{{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
}};

constexpr int kMany = 1'000'000;

std::optional<int> number_in(const std::string& text, int low, int high) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

int number(const Environment& environment, const std::string& name, int low, int high) {
  const std::string text = environment(name).value_or("");
  const std::optional<int> value = number_in(text, low, high);
  if (!value)
    fail_input({{}, 0, name}, fmt::format("'{}' is not an allowed value", text),
               fmt::format("{} to {}", low, high));
  return *value;
}

// Returns the first host of a list of Slurm such as "n[01-04,7],login1"; empty for an empty list.
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t first_end = list.find_first_of("-,]", bracket),
                    closed = list.find(']', bracket);
  if (closed == std::string::npos) return {};
  const std::size_t rest = list.find_first_of(",[", closed);
  return list.substr(0, bracket) + list.substr(bracket + 1, first_end - bracket - 1) +
         list.substr(closed + 1, rest == std::string::npos ? rest : rest - closed - 1);
}

// Returns the number of processes on this host. Slurm states that of the first host, then others:
// "8(x4),4".
int on_this_host(const Environment& environment, const Launcher& launcher) {
  const std::string text = environment(launcher.on_this_node).value_or("");
  return number_in(text.substr(0, text.find_first_of("(,")), 1, kMany).value_or(1);
}

// Sets the token, or the file that will contain it.
void set_token(Launch& launch, const Environment& environment, bool one_node) {
  constexpr std::size_t kLongestToken = 256;
  const auto file = environment("LAMBCAST_TOKEN_FILE");
  if (const auto secret = environment("LAMBCAST_TOKEN")) {
    if (secret->empty() || secret->size() > kLongestToken)
      fail_input({{}, 0, "LAMBCAST_TOKEN"}, fmt::format("has {} bytes", secret->size()),
                 fmt::format("1 to {}", kLongestToken));
    launch.token = *secret;
  } else if (file && !file->empty()) {
    launch.token_file = *file;
  } else if (one_node) {
    launch.token_file = token_file_of_host(launch.port).string();
  } else {
    fail_input(
        {{}, 0, "LAMBCAST_TOKEN"},
        "is not set, and the processes are on several hosts, where other users could join them: "
        "set it to the same secret for all, or LAMBCAST_TOKEN_FILE to a path in a folder "
        "that the hosts share");
  }
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Launch launch_of(const Environment& environment) {
  constexpr int kDefaultPort = 29500;
  Launch launch;
  for (const Launcher& launcher : kLaunchers) {
    const bool complete = environment(launcher.rank) && environment(launcher.processes) &&
                          environment(launcher.local_rank);
    if (!complete) continue;
    launch.processes = number(environment, launcher.processes, 1, kMany);
    launch.rank = number(environment, launcher.rank, 0, launch.processes - 1);
    launch.local_rank = number(environment, launcher.local_rank, 0, launch.processes - 1);
    launch.on_this_host = on_this_host(environment, launcher);
    if (launch.processes == 1) return launch;
    launch.port = kDefaultPort;
    if (environment("MASTER_PORT")) launch.port = number(environment, "MASTER_PORT", 1, 65534);
    if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") ++launch.port;
    bool one_node = environment(launcher.on_this_node) == environment(launcher.processes);
    launch.address = environment("MASTER_ADDR").value_or(one_node ? "127.0.0.1" : "");
    if (launch.address.empty())  // the first host of a step of Slurm holds its rank 0
      launch.address = first_host(environment("SLURM_STEP_NODELIST").value_or(""));
    one_node = one_node || launch.address == "127.0.0.1" || launch.address == "::1" ||
               launch.address == "localhost";
    if (launch.address.empty()) {
      fail_input({{}, 0, "MASTER_ADDR"},
                 fmt::format("is not set: the {} processes need the address of the host of rank 0",
                             launch.processes));
    }
    set_token(launch, environment, one_node);
    return launch;
  }
  if (environment("PMI_SIZE").value_or("1") != "1") {
    fail_input({{}, 0, "PMI_SIZE"},
               "is above 1, and no variable has the rank of this process on its host; try: start "
               "with torchrun, srun or the mpirun of Open MPI, MPICH, Intel MPI or MVAPICH");
  }
  return launch;
}

MpiLaunch mpi_launch_of(const Environment& environment) {
  for (const Launcher& launcher : std::span(kLaunchers).subspan<1>()) {
    const auto rank = number_in(environment(launcher.rank).value_or(""), 0, kMany);
    const auto processes = number_in(environment(launcher.processes).value_or(""), 1, kMany);
    const auto local = number_in(environment(launcher.local_rank).value_or("0"), 0, kMany);
    if (rank && processes && *rank < *processes)
      return {*rank, *processes, local.value_or(0), on_this_host(environment, launcher)};
  }
  return {};
}

bool is_first(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (!environment(launcher.processes)) continue;
    const auto processes = number_in(*environment(launcher.processes), 1, kMany);
    if (!processes) return true;
    const auto is_one_of_them = [&](const char* name) {
      return number_in(environment(name).value_or("0"), 0, *processes - 1).has_value();
    };
    return !is_one_of_them(launcher.rank) || !is_one_of_them(launcher.local_rank) ||
           environment(launcher.rank).value_or("0") == "0";
  }
  return true;
}

}  // namespace lambcast::validate
