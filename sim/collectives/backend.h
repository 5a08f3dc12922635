// Backends of the collectives of a training run: the names that configurations, plans, prices,
// calibrations and results share.
//
//   backend      spelt                 library  buffers  compressed_allreduce packs bits
//   nccl         nccl                  NCCL     device   through a bool and a byte tensor
//   mpi_host     mpi                   MPI      host     as nccl; numpy arrays, pageable memory
//   mpi_device   mpi with cuda_aware   MPI      device   as nccl; MPI stages through pinned memory
//   compressed   compressed            NCCL     device   in one operation
//
// The algorithm that a library runs depends on its release: DecisionRules (choice.h).
//
// Source: deepspeed/runtime/comm/{nccl,mpi,compressed}.py.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Backend { nccl, mpi_host, mpi_device, compressed };

// Memory in which the library's buffers lie.
enum class Endpoint { gpu, host };

struct BackendTraits {
  Backend backend;
  std::string_view word;      // name in flags, files and results
  bool cuda_aware;            // set in addition to the name
  std::string_view label;     // name with cuda_aware, for people
  std::string_view in_words;  // library and buffers in words
  bool mpi;                   // MPI library; else NCCL
  Endpoint endpoint;
  bool packs_at_once;  // compressed_allreduce packs bits in one operation
  Backend carrier;     // backend of its collectives: compressed is nccl with other kernels
};

// Returns the properties of all backends, indexed by Backend.
std::span<const BackendTraits> backend_traits();

inline const BackendTraits& traits_of(Backend backend) {
  return backend_traits()[static_cast<std::size_t>(backend)];
}
inline bool is_mpi(Backend backend) { return traits_of(backend).mpi; }

// Returns "nccl", "mpi" and "compressed", each once.
const std::vector<std::string>& backend_words();

// `word` must be one of backend_words(). cuda_aware affects mpi only.
Backend backend_of(std::string_view word, bool cuda_aware = false);

}  // namespace lambcast
