// The ranks of a measurement: all ranks of the launch, or those chosen by a survey (survey.h). It
// is global to the process, since a TimedCollective is called without it.
#pragma once

#include <mpi.h>

#include <vector>

#include "validate/measure/rank_place.h"

namespace lambcast::validate {

// Returns MPI_COMM_WORLD until measure_on() is called.
MPI_Comm measured_world();

// Sets the ranks; `ranks` must stay valid until the next call.
void measure_on(MPI_Comm ranks);

// Returns the host of each rank of measured_world(). All its ranks must call this.
std::vector<RankPlace> gather_places(int ranks);

// Throws Error (missing) if a launcher started more processes than MPI sees: the mpirun of another
// MPI starts each of them as a world of its own.
void check_world(int ranks);

// Initialises and finalises MPI, unless the caller has initialised it.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  bool owner_ = false;
  int rank_ = 0;
  int ranks_ = 0;
};

}  // namespace lambcast::validate
