#include "kernels/exchange_bytes.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lambcast {
namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

std::uint64_t others(int ranks) {
  LAMBCAST_CHECK(ranks >= 1, "{} ranks", ranks);
  return static_cast<std::uint64_t>(ranks) - 1;
}

std::uint64_t message_bytes(const Quantiser& quantiser, std::uint64_t elements) {
  return payload_bytes(quantiser.format, elements) + 4 * scale_count(quantiser, elements);
}

}  // namespace

std::uint64_t payload_bytes(WireFormat format, std::uint64_t elements) {
  switch (format) {
    case WireFormat::fp32:
      return 4 * elements;
    case WireFormat::fp16:
    case WireFormat::bf16:
      return 2 * elements;
    case WireFormat::int4:
      return ceil_div(elements, 2);
    default:
      return elements;
  }
}

std::uint64_t scale_count(const Quantiser& quantiser, std::uint64_t elements) {
  const bool plain = quantiser.format == WireFormat::fp32 || quantiser.format == WireFormat::fp16 ||
                     quantiser.format == WireFormat::bf16;
  if (plain || elements == 0) return 0;
  return quantiser.block == 0 ? 1 : ceil_div(elements, quantiser.block);
}

std::uint64_t plain_allreduce_bytes(std::uint64_t elements, int ranks, WireFormat format) {
  const std::uint64_t chunk = ceil_div(elements, others(ranks) + 1);
  return 2 * others(ranks) * payload_bytes(format, chunk);
}

std::uint64_t onebit_allreduce_bytes(std::uint64_t elements, int ranks) {
  return others(ranks) * (2 * chunk_layout(elements, ranks).chunk_bytes() + 8);
}

std::uint64_t quantised_allreduce_bytes(std::uint64_t elements, int ranks,
                                        const Quantiser& quantiser) {
  const std::uint64_t chunk = ceil_div(elements, others(ranks) + 1);
  return 2 * others(ranks) * message_bytes(quantiser, chunk);
}

std::uint64_t hierarchical_reduce_scatter_bytes(std::uint64_t elements, int nodes, int per_node,
                                                const Quantiser& in_node,
                                                const Quantiser& between_nodes) {
  const std::uint64_t all_nodes = others(nodes) + 1;
  const std::uint64_t shard = ceil_div(elements, all_nodes * (others(per_node) + 1));
  return others(per_node) * message_bytes(in_node, all_nodes * shard) +
         others(nodes) * message_bytes(between_nodes, shard);
}

std::uint64_t code_bytes(const ChunkLayout& share, const std::optional<Quantiser>& quantiser) {
  const std::uint64_t nodes = others(share.ranks) + 1;
  if (!quantiser) return share.packed_bytes() + 4 * nodes;
  return nodes * message_bytes(*quantiser, ceil_div(share.elements, nodes));
}

std::uint64_t sharded_allreduce_bytes(std::uint64_t elements, int nodes, int per_node,
                                      WireFormat in_node,
                                      const std::optional<Quantiser>& quantiser) {
  const ChunkLayout share = share_layout(elements, nodes, per_node, 0);
  const std::uint64_t in_the_node =
      others(per_node) * (payload_bytes(in_node, share.padded) + code_bytes(share, quantiser));
  return in_the_node + (quantiser ? quantised_allreduce_bytes(share.elements, nodes, *quantiser)
                                  : onebit_allreduce_bytes(share.padded, nodes));
}

std::uint64_t power_sgd_bytes(std::uint64_t rows, std::uint64_t columns, int rank, int ranks,
                              int iterations) {
  const std::uint64_t r = static_cast<std::uint64_t>(rank);
  return static_cast<std::uint64_t>(iterations) *
         (plain_allreduce_bytes(rows * r, ranks, WireFormat::fp32) +
          plain_allreduce_bytes(columns * r, ranks, WireFormat::fp32));
}

std::uint64_t top_k_bytes(std::uint64_t kept, int ranks) { return others(ranks) * 8 * kept; }

std::uint64_t chunk_message_bytes(ChunkCode code, std::uint64_t elements, std::uint64_t kept) {
  const bool largest = code == ChunkCode::largest;
  const std::uint64_t whole = largest ? elements / elements_of_chunk : chunk_count(elements);
  const std::uint64_t rest = largest ? elements % elements_of_chunk : 0;
  const std::uint64_t sent =
      whole * std::min<std::uint64_t>(kept, elements_of_chunk) + std::min(kept, rest);
  return (largest ? 16 : 4) + ceil_div((largest ? 12 + 2 : 16 + 1) * sent, 8);
}

std::uint64_t chunked_bytes(ChunkCode code, std::uint64_t elements, std::uint64_t kept, int ranks) {
  return others(ranks) * chunk_message_bytes(code, elements, kept);
}

std::uint64_t random_k_bytes(std::uint64_t kept, int ranks) {
  return plain_allreduce_bytes(kept, ranks, WireFormat::fp32);
}

std::uint64_t site_meeting_bytes(std::uint64_t elements, int sites, int site_ranks) {
  const std::uint64_t share = ceil_div(elements, others(site_ranks) + 1);
  return plain_allreduce_bytes(share, sites, WireFormat::fp32) +
         others(site_ranks) * payload_bytes(WireFormat::fp32, share);
}

std::uint64_t neighbour_bytes(std::uint64_t elements, int neighbours, WireFormat format) {
  return static_cast<std::uint64_t>(neighbours) * payload_bytes(format, elements);
}

}  // namespace lambcast
