#include "sim/collectives/backend.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lambcast {
namespace {

constexpr BackendTraits table[] = {
    {Backend::nccl, "nccl", false, "nccl", "nccl", false, Endpoint::gpu, false, Backend::nccl},
    {Backend::mpi_host, "mpi", false, "mpi (host-staged)", "mpi on host buffers", true,
     Endpoint::host, false, Backend::mpi_host},
    {Backend::mpi_device, "mpi", true, "mpi (cuda_aware)", "mpi on device buffers", true,
     Endpoint::gpu, false, Backend::mpi_device},
    {Backend::compressed, "compressed", false, "compressed", "nccl", false, Endpoint::gpu, true,
     Backend::nccl},
};

}  // namespace

std::span<const BackendTraits> backend_traits() { return table; }

const std::vector<std::string>& backend_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const BackendTraits& row : table)
      if (std::find(all.begin(), all.end(), row.word) == all.end()) all.emplace_back(row.word);
    return all;
  }();
  return words;
}

Backend backend_of(std::string_view word, bool cuda_aware) {
  const BackendTraits* found = nullptr;  // any row of the word, better with this cuda_aware
  for (const BackendTraits& row : table)
    if (row.word == word && (found == nullptr || row.cuda_aware == cuda_aware)) found = &row;
  LAMBCAST_CHECK(found != nullptr, "no backend is called {}", word);
  return found->backend;
}

}  // namespace lambcast
