// The processes that mpirun or srun started of one command.
#pragma once

#include "experiments/sweep/ranks.h"

namespace lambcast {

// Whether this process is to say what all of them would: it is the first of them, or alone.
bool speaks_for_all();

// Before another process than the first ends with an error that the first is to say: mpirun kills
// all as soon as one has failed, and the first may not have been heard by then.
void outlive_the_first();

// Returns the rank of this process in its launch; null for a single process, without starting MPI.
// Throws Error (missing) if the program was built without MPI, or if MPI does not see the other
// processes.
Ranks* launched_ranks();

}  // namespace lambcast
