#include "tools/launched_ranks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "sim/base/error.h"
#include "validate/measure/launch.h"

namespace lambcast {
namespace {

// The library is next to the program in a build and below lib in an installation; the program's run
// path includes both.
constexpr const char* library = "lambcast-mpi.so";

validate::MpiLaunch launch() { return validate::mpi_launch_of(validate::process_environment()); }

}  // namespace

bool speaks_for_all() { return launch().rank == 0; }

// Waits for mpirun to end this process when the first one ends. With srun the wait may last its
// full time.
void outlive_the_first() { std::this_thread::sleep_for(std::chrono::seconds(2)); }

Ranks* launched_ranks() {
  const int processes = launch().processes;
  if (processes == 1) return nullptr;
  // Loaded globally, because the libraries that MPI loads look up its symbols.
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (loaded == nullptr)
    throw Error(Exit::missing,
                fmt::format("{} processes were started, and this lambcast has no MPI ({}): install "
                            "one (Debian: libopenmpi-dev) and build again, or start one process",
                            processes, dlerror()));
  const auto start = reinterpret_cast<MpiRanksFunction*>(dlsym(loaded, mpi_ranks_function));
  Ranks* const ranks = start != nullptr ? start() : nullptr;
  if (ranks == nullptr) throw Error(Exit::missing, fmt::format("{}: {}", library, dlerror()));
  if (ranks->count() != processes)
    throw Error(
        Exit::missing,
        fmt::format("{} processes were started, and MPI sees {}: start them with the mpirun "
                    "of the MPI that lambcast was built with, or srun --mpi=pmix",
                    processes, ranks->count()));
  return ranks;
}

}  // namespace lambcast
