// The processes of one command that were started by mpirun or srun.
#pragma once

#include "experiments/sweep/ranks.h"

namespace lambcast {

// Returns whether this process prints the messages that all processes have in common: it is the
// first one, or the only one.
bool speaks_for_all();

// Call it before a process other than the first ends with an error that the first one reports:
// mpirun kills all processes when one has failed, possibly before the first one has printed it.
void outlive_the_first();

// Returns the rank of this process in its launch; null for a single process, without starting MPI.
// Throws Error (missing) if the program was built without MPI, or if MPI does not see the other
// processes.
Ranks* launched_ranks();

}  // namespace lambcast
