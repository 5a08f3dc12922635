// The host copies of the MPI backend without CUDA awareness. MPI can access only host memory, so
// every buffer is copied to the host before an exchange and back after it, through pageable NumPy
// arrays, one blocking copy after another. This list is used by the real copies (cuda/host_copy.h),
// the training step and calibrations. Np / 8 bytes of packed signs, n ranks:
//
//   phase 1  down  n chunks of Np/8n, the scale (4), the buffer for n scales (4n)
//            up    all received chunks (Np/8), n own chunks back again, 4, 4n
//   phase 2  down  the served chunk (Np/8n), the empty receive buffer (Np/8), 4, 4n
//            up    Np/8n, Np/8, 4, 4n
//
// About 2 Np/8 down and 3 Np/8 up, 2n + 13 copies. DeepSpeed also makes the copies without useful
// data. Source: DeepSpeed 0.15.4, runtime/comm/mpi.py, the branch with cuda_aware false.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/layout.h"

namespace lambcast {

struct StagingCopy {
  bool to_host = false;
  std::uint64_t bytes = 0;
  int times = 1;  // number of equal copies in a row
};

// Copies around phase 1 and phase 2, in their order.
struct Staging {
  std::vector<StagingCopy> scatter, gather;

  std::vector<StagingCopy> copies() const;  // copies of both phases
};
Staging staging_copies(const ChunkLayout& layout);

// Returns the size of a buffer that fits each copy: Np / 8, or 4n for few elements on many ranks.
std::uint64_t staging_bytes(const ChunkLayout& layout);

}  // namespace lambcast
