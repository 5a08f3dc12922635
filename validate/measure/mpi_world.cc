#include "validate/measure/mpi_world.h"

#include <fmt/format.h>

#include <array>

#include "sim/base/error.h"
#include "validate/measure/launch.h"

namespace lambcast::validate {
namespace {

MPI_Comm& chosen() {
  static MPI_Comm ranks = MPI_COMM_WORLD;
  return ranks;
}

}  // namespace

MPI_Comm measured_world() { return chosen(); }

void measure_on(MPI_Comm ranks) { chosen() = ranks; }

MpiSession::MpiSession() {
  int started = 0;
  MPI_Initialized(&started);
  owner_ = started == 0;
  if (owner_) MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(measured_world(), &rank_);
  MPI_Comm_size(measured_world(), &ranks_);
}

MpiSession::~MpiSession() {
  if (owner_) MPI_Finalize();
}

void check_world(int ranks) {
  const int processes = mpi_launch_of(process_environment()).processes;
  if (processes == ranks || measured_world() != MPI_COMM_WORLD) return;
  throw Error(Exit::missing,
              fmt::format("{} processes were started, and MPI sees {}: start them with the mpirun "
                          "of the MPI that lambcast was built with, or srun --mpi=pmix",
                          processes, ranks));
}

std::vector<RankPlace> gather_places(int ranks) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> mine{};
  int length = 0;
  MPI_Get_processor_name(mine.data(), &length);
  std::vector<char> all(mine.size() * static_cast<std::size_t>(ranks));
  const int width = static_cast<int>(mine.size());
  MPI_Allgather(mine.data(), width, MPI_CHAR, all.data(), width, MPI_CHAR, measured_world());
  std::vector<RankPlace> places;
  for (int rank = 0; rank < ranks; ++rank) {
    places.push_back({&all[static_cast<std::size_t>(rank) * mine.size()], -1, {}});
  }
  return places;
}

}  // namespace lambcast::validate
