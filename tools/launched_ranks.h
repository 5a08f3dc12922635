// The processes that mpirun or srun started of one command.
#pragma once

#include "experiments/ranks.h"

namespace lambcast {

// Whether this process is to say what all of them would: it is the first of them, or alone.
bool speaks_for_all();

// Before another process than the first ends with an error that the first is to say: mpirun kills
// all as soon as one has failed, and the first may not have been heard by then.
void outlive_the_first();

// What this process is among them; null where it is alone, and MPI is not started then. Throws
// Error (missing) where this program was built without MPI, or MPI does not see the others.
Ranks* launched_ranks();

}  // namespace lambcast
