// The collectives of MPI, and the exchange of DeepSpeed's MPI backend, as timed collectives.
#pragma once

#include <memory>

#include "validate/measure/options.h"
#include "validate/measure/timed_collective.h"

namespace lambcast::validate {

// Returns a collective of MPI, which must be initialised; `size` is one of sizes_to_run().
// Reductions are sums.
//   all_reduce MPI_Allreduce            reduce_scatter MPI_Reduce_scatter_block
//   all_gather MPI_Allgather            all_to_all     MPI_Alltoall
//   broadcast  MPI_Bcast                send_recv      MPI_Sendrecv, each rank to the next
//   reduce     MPI_Reduce
//   ping_pong  MPI_Send and MPI_Recv between the first and the last rank (a whole round trip)
// `placement` can be in place only if has_in_place(): MPI_IN_PLACE exists for the first four, and
// broadcast is always in place.
std::unique_ptr<TimedCollective> mpi_collective(const MeasureOptions& options, std::uint64_t size,
                                                Placement placement);

// Returns the exchange inside compressed_allreduce as in DeepSpeed's deepspeed/runtime/comm/mpi.py.
// With n ranks, N = size / 4 elements and chunks of N / (8 n) bytes of packed signs:
//
//   phase 1  for each root r every other rank posts Isend of its chunk r and r posts n-1 Irecv;
//            the same again for the 4-byte scales; one Waitall over 4(n-1) requests, default tag
//   phase 2  Allgather of one chunk per rank, Allgather of one scale per rank
//
// With Staging::memcpy (its path without CUDA-aware MPI) all buffers are copied from device to
// host before each phase and back after it, including the empty receive buffer of phase 2 and
// the rank's own chunks of phase 1, and phase 2 ends with a Barrier.
std::unique_ptr<TimedCollective> deepspeed_mpi_exchange(const MeasureOptions& options,
                                                        std::uint64_t size);

// Returns the unit of the sizes of this exchange: each rank then has whole bytes of signs, without
// padding.
constexpr std::uint64_t deepspeed_block_bytes(int ranks) {
  return 8 * sizeof(float) * static_cast<std::uint64_t>(ranks);
}

}  // namespace lambcast::validate
