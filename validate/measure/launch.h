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
  std::string address;  // of the host of rank 0
  int port = 0;
  std::string token{};       // the secret of this launch, or empty when it is in the file
  std::string token_file{};  // through which rank 0 hands a secret over (token_file.h)
};

// Looks a variable of the environment up; empty when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// From RANK, WORLD_SIZE, LOCAL_RANK (torchrun), OMPI_COMM_WORLD_* (Open MPI), MV2_COMM_WORLD_*
// (MVAPICH2), PMI_* with MPI_LOCAL* (MPICH, Intel MPI, MVAPICH) or SLURM_* (srun), the first that
// is complete; a process of its own where none is and PMI_SIZE names no others. MASTER_ADDR and
// MASTER_PORT say where rank 0 listens (port 29500 if not given; one further under torchrun, whose
// agent has taken that port). On a single node the address may be absent. The token is
// LAMBCAST_TOKEN, or comes through a file: LAMBCAST_TOKEN_FILE, in a folder that all hosts share,
// or token_file_of_host() on a single node. Throws Error for a value that is no number or out of
// range, for an address that is missing, for a token that is empty or of more than 256 bytes, and
// for several nodes without a token or a file.
Launch launch_of(const Environment& environment);

// Which of how many processes this is that a launcher of MPI programs started, one of those above
// but torchrun; the first of one where none did.
struct MpiLaunch {
  int rank = 0;
  int processes = 1;
  int local_rank = 0;  // 0 too if the launcher does not say
};
MpiLaunch mpi_launch_of(const Environment& environment);

// Whether this process is to say what all of its launch would: rank 0, or alone, or one whose own
// variables make no sense.
bool is_first(const Environment& environment);

}  // namespace lambcast::validate
