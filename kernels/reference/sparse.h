// CPU reference of sparse messages: k of N elements are sent, the others become error feedback.
//
// top-k: the k largest magnitudes; of equal ones the lower index is taken first, so that exactly k
// are sent. A NaN counts as larger than every number, so that it is sent to all ranks and does not
// stay. random-k: bucket i has the elements [i N / k, (i+1) N / k) and sends one of them, selected
// by a hash of seed and i: the same on all ranks, so that only values are sent.
//
// Sources: deep gradient compression arXiv:1712.01887; sparsified SGD with memory arXiv:1809.07599.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lambcast::reference {

// Returns the indices in increasing order.
std::vector<std::uint32_t> top_k_indices(std::span<const float> c, std::size_t k);
std::uint32_t random_index(std::uint64_t seed, std::size_t bucket, std::size_t k,
                           std::size_t elements);
std::vector<std::uint32_t> random_k_indices(std::uint64_t seed, std::size_t k,
                                            std::size_t elements);

// Returns the values at `indices` and sets these elements of c to 0; c is then the error feedback.
std::vector<float> take(std::span<float> c, std::span<const std::uint32_t> indices);
// x[indices[i]] += share * values[i].
void add_at(std::span<float> x, std::span<const std::uint32_t> indices,
            std::span<const float> values, float share);

}  // namespace lambcast::reference
