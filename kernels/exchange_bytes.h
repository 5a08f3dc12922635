// Bytes that one rank sends per call, in closed form, for each way of averaging a buffer over
// ranks. N elements, n ranks; rings for all-reduce and all-gather, direct messages for all-to-all.
// The emulated world counts its messages, and tests compare them with these forms.
//
//   plain          2 (n-1)/n N b                        b bytes per element
//   one bit        2 (n-1)/n Np/8 + 8 (n-1)             kernels/layout.h for Np
//   fp8, intK      2 (n-1) q(C) + 2 * 4 (n-1) s(C)      C = ceil(N/n) the chunk, q(C) its payload,
//                                                       s(C) its scales, which is 1 for fp8
//   hierarchical   (g-1) m q(S) + (m-1) q(S) + scales   g ranks on each of m nodes, S = ceil(N/n):
//                                                       a reduce-scatter, nothing is gathered
//   sharded        (g-1) (P b + c) + the one-bit or quantised bytes of P elements over m nodes;
//                  c are the codes of a share: P/8 + 4 m of one bit, or m (q(C) + 4 s(C)),
//                  C = ceil(P/m)
//   PowerSGD       2 (n-1)/n 4 r (h + w)                a matrix of h rows and w columns at rank r;
//                                                       times the iterations over both factors
//   top-k          8 k (n-1)                            a value and an index each, gathered
//   random-k       2 (n-1)/n 4 k                        indices come from a seed
//   chunks         (n-1) (14 k + 128) / 8               k values in all chunks of 4,096 elements
//                                                       together: 2 bits each, and 12 for the
//                                                       position; signs of cosines 17 k + 32 bits
//   local steps    a plain all-reduce every H steps; between m sites of s ranks one of 1/s of the
//                  buffer, and an all-gather in the site, in addition to the site's own all-reduce
//   neighbours     d N b                                d neighbours, for any n
//
// Chunks are whole elements. If n does not divide N, the last one is padded.
//
// Sources: DeepSpeed runtime/comm/nccl.py; Colossal-AI quantization/fp8.py; ZeRO++
// arXiv:2306.10209; PowerSGD arXiv:1905.13727; deep gradient compression arXiv:1712.01887; DiLoCo
// arXiv:2311.08105.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/layout.h"

namespace lambcast {

// Format of an element on the wire.
enum class WireFormat { fp32, fp16, bf16, fp8_e4m3, fp8_e5m2, int8, int4 };

// A format and the number of elements that share a 4-byte scale; 0: all of a message. Plain formats
// have no scale.
struct Quantiser {
  WireFormat format = WireFormat::int8;
  std::uint64_t block = 0;
};

// Values sent from each chunk of 4,096 elements: the largest ones, or signs of cosine coefficients
// (reference/chunk_top_k.h, dct_sign.h).
enum class ChunkCode { largest, cosines };
inline constexpr std::size_t elements_of_chunk = 4096;

constexpr std::size_t chunk_count(std::size_t elements) {
  return (elements + elements_of_chunk - 1) / elements_of_chunk;
}

std::uint64_t payload_bytes(WireFormat format, std::uint64_t elements);
std::uint64_t scale_count(const Quantiser& quantiser, std::uint64_t elements);  // in a message

// Return the bytes that one rank sends, with the symbols above; chunks are padded.
std::uint64_t plain_allreduce_bytes(std::uint64_t elements, int ranks, WireFormat format);
std::uint64_t onebit_allreduce_bytes(std::uint64_t elements, int ranks);
std::uint64_t quantised_allreduce_bytes(std::uint64_t elements, int ranks,
                                        const Quantiser& quantiser);
std::uint64_t hierarchical_reduce_scatter_bytes(std::uint64_t elements, int nodes, int per_node,
                                                const Quantiser& in_node,
                                                const Quantiser& between_nodes);
// Returns the bytes of the codes of one share's result, signs or codes of a quantiser, in
// `share.ranks` chunks.
std::uint64_t code_bytes(const ChunkLayout& share, const std::optional<Quantiser>& quantiser);
// `in_node` must be plain. Without a quantiser, one bit is sent.
std::uint64_t sharded_allreduce_bytes(std::uint64_t elements, int nodes, int per_node,
                                      WireFormat in_node,
                                      const std::optional<Quantiser>& quantiser = {});
std::uint64_t power_sgd_bytes(std::uint64_t rows, std::uint64_t columns, int rank, int ranks,
                              int iterations = 1);
std::uint64_t top_k_bytes(std::uint64_t kept, int ranks);
// Return the bytes of a message with `kept` values per chunk, and the bytes that a rank sends in
// the all-gather of these messages.
std::uint64_t chunk_message_bytes(ChunkCode code, std::uint64_t elements, std::uint64_t kept);
std::uint64_t chunked_bytes(ChunkCode code, std::uint64_t elements, std::uint64_t kept, int ranks);
std::uint64_t random_k_bytes(std::uint64_t kept, int ranks);
std::uint64_t site_meeting_bytes(std::uint64_t elements, int sites, int site_ranks);
std::uint64_t neighbour_bytes(std::uint64_t elements, int neighbours, WireFormat format);

}  // namespace lambcast
