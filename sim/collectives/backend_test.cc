#include "sim/collectives/backend.h"

#include <catch2/catch.hpp>
#include <set>

namespace lambcast {
namespace {

TEST_CASE("backend: every backend has a row, and its words lead back to it") {
  std::set<std::string_view> labels;
  for (std::size_t i = 0; i < backend_traits().size(); ++i) {
    const BackendTraits& row = backend_traits()[i];
    CHECK(row.backend == static_cast<Backend>(i));
    CHECK(backend_of(row.word, row.cuda_aware) == row.backend);
    CHECK(labels.insert(row.label).second);
    // A backend that carries another one carries itself too. Both use one library, with buffers in
    // the same memory.
    const BackendTraits& carrier = traits_of(row.carrier);
    CHECK(carrier.carrier == carrier.backend);
    CHECK(carrier.mpi == row.mpi);
    CHECK(carrier.endpoint == row.endpoint);
  }
  CHECK(backend_words() == std::vector<std::string>{"nccl", "mpi", "compressed"});
}

TEST_CASE("backend: cuda_aware selects device buffers instead of host buffers, for MPI only") {
  CHECK(backend_of("mpi") == Backend::mpi_host);
  CHECK(backend_of("mpi", true) == Backend::mpi_device);
  CHECK(backend_of("nccl", true) == Backend::nccl);
  CHECK(backend_of("compressed", true) == Backend::compressed);
}

}  // namespace
}  // namespace lambcast
