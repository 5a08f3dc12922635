#include "validate/measure/pattern.h"

#include <catch2/catch.hpp>
#include <span>

#include "kernels/emulated_world/compressed_allreduce.h"
#include "validate/measure/compressed_pattern.h"

using namespace lambcast;
using namespace lambcast::validate;

TEST_CASE("the pattern is exact: the sums of all ranks by hand") {
  const auto sums = pattern_sums(3);
  for (const std::uint64_t i : {0ULL, 1ULL, 250ULL, 123456789ULL}) {
    const std::uint32_t h = pattern_residue(i);
    CHECK(pattern_value(2, i) == (2 + h) % 251);
    CHECK(sums[h] ==
          static_cast<float>(pattern_value(0, i) + pattern_value(1, i) + pattern_value(2, i)));
  }
  // Neighbouring blocks must differ; otherwise a block at the wrong place would pass.
  int equal = 0;
  for (std::uint64_t i = 0; i < 1024; ++i)
    equal += pattern_value(0, i) == pattern_value(0, i + 1024);
  CHECK(equal < 100);
}

TEST_CASE(
    "the average of the compressed pattern is exact in the emulated world, padding included") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}) {
    // With 2 elements most ranks serve only padding; with the largest number chunks have many
    // elements.
    for (const std::size_t elements : {std::size_t{2}, std::size_t{1000}, std::size_t{65537}}) {
      emulated::ErrorFeedback errors = emulated::error_feedback(elements, ranks);
      const std::size_t chunk = errors.layout.chunk;
      std::vector<std::vector<float>> x;
      for (int rank = 0; rank < ranks; ++rank) {
        x.emplace_back();
        for (std::size_t i = 0; i < elements; ++i) {
          const float part = compressed_part(rank, static_cast<int>(i / chunk));
          x.back().push_back(compressed_sign(i) ? part : -part);
        }
      }
      const std::vector<std::span<float>> spans(x.begin(), x.end());
      emulated::compressed_allreduce(spans, errors, Padding::excluded);

      const std::vector<float> means = compressed_means(ranks);
      std::size_t wrong = 0;
      for (const auto& result : x) {
        for (std::size_t i = 0; i < elements; ++i) {
          const float mean = means[i / chunk];
          wrong += result[i] != (compressed_sign(i) ? mean : -mean);
        }
      }
      INFO(ranks << " ranks, " << elements << " elements");
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the compressed pattern distinguishes ranks, chunks and positions") {
  for (const int ranks : {2, 3, 8, 16}) {
    for (const float mean : compressed_means(ranks)) CHECK(mean != 0);
    for (int p = 0; p < ranks; ++p) {
      for (int q = 0; q < p; ++q) {
        // If p and q are exchanged, the average of some chunk must change. It is the chunk whose
        // number is the lowest bit of p ^ q.
        const int chunk = (p ^ q) & -(p ^ q);
        REQUIRE(chunk < ranks);
        CHECK((compressed_part(p, chunk) > 0) != (compressed_part(q, chunk) > 0));
        CHECK(compressed_part(p, 0) != compressed_part(q, 0));
      }
    }
  }
  // After a shift by a chunk, about half the signs differ.
  for (const std::uint64_t shift : {1ULL, 8ULL, 24ULL, 1024ULL, 65536ULL}) {
    int equal = 0;
    for (std::uint64_t i = 0; i < 10000; ++i) {
      equal += compressed_sign(i) == compressed_sign(i + shift);
    }
    CHECK(equal > 4000);
    CHECK(equal < 6000);
  }
}
