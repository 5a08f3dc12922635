// Identity of this process among those that one launcher started.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lambcast::validate {

struct Launch {
  int rank = 0;
  int processes = 1;
  int local_rank = 0;
  std::string address;  // address of the host of rank 0
  int port = 0;
  std::string token{};       // secret of this launch; empty if it is in the file
  std::string token_file{};  // file through which rank 0 passes on a secret (token_file.h)
  int on_this_host = 1;      // processes on this host
};

// A function that returns the value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// Reads the launch from RANK, WORLD_SIZE, LOCAL_RANK (torchrun), OMPI_COMM_WORLD_* (Open MPI),
// MV2_COMM_WORLD_* (MVAPICH2), PMI_* with MPI_LOCAL* (MPICH, Intel MPI, MVAPICH) or SLURM_* (srun),
// the first complete group. If none is complete and PMI_SIZE names no others, the process is alone.
// MASTER_ADDR and MASTER_PORT are where rank 0 listens (port 29500 if not given; the next one under
// torchrun, whose agent uses that port). The address may be absent on a single node, and in a Slurm
// step: then it is the first host of SLURM_STEP_NODELIST. The token is LAMBCAST_TOKEN, or comes
// through a file: LAMBCAST_TOKEN_FILE, in a folder that all hosts share, or token_file_of_host() on
// a single node. Throws Error for a value that is not a number or is out of range, for a missing
// address, for a token that is empty or longer than 256 bytes, and for several nodes without a
// token or a file.
Launch launch_of(const Environment& environment);

// Rank and number of the processes that a launcher of MPI programs started (one of those above
// except torchrun). Without a launcher, this is the only process.
struct MpiLaunch {
  int rank = 0;
  int processes = 1;
  int local_rank = 0;    // also 0 if the launcher does not state it
  int on_this_host = 1;  // processes on this host; also 1 if the launcher does not state it
};
MpiLaunch mpi_launch_of(const Environment& environment);

// Returns whether this process prints messages for its whole launch: rank 0, a process alone, or
// one with invalid variables of its own.
bool is_first(const Environment& environment);

}  // namespace lambcast::validate
