#include "models/training/plan/chunked_exchange.h"

#include <algorithm>

#include "kernels/exchange_bytes.h"
#include "models/training/plan/exchange_kernels.h"

namespace lambcast {
namespace {

ChunkCode code_of(const Exchange& exchange) {
  return exchange.kind == ExchangeKind::dct_sign ? ChunkCode::cosines : ChunkCode::largest;
}

const Sourced<double>& small_products() {
  static const Sourced<double> share{
      0.1, {Kind::assumed, "products of 64 x 64 in fp32 at 10 % of the peak of 16 bits"}};
  return share;
}

}  // namespace

double chunked_message_bytes(const Exchange& exchange, double elements) {
  return static_cast<double>(chunk_message_bytes(code_of(exchange),
                                                 static_cast<std::uint64_t>(elements),
                                                 static_cast<std::uint64_t>(exchange.parameter)));
}

void write_chunked(ExchangeParts& parts) {
  const double elements = parts.elements_, ranks = parts.group_.ranks;
  const double kept =
      std::min(elements, elements * parts.exchange_.parameter / double{elements_of_chunk});
  const auto transforms = [&](const char* name, Category part, double times) {
    if (code_of(parts.exchange_) == ChunkCode::cosines)
      parts.parts_.push_back({name, part, ProductWork{times * 256 * elements, small_products()}});
  };
  parts.kernels("add error feedback", Category::compress, unfused::add_owed(parts.gradient_),
                elements, parts.tensors_);
  transforms("cosines", Category::compress, 2);
  parts.kernels("select in chunks", Category::compress, unfused::select_in_chunks, elements,
                parts.tensors_);
  parts.send("all_gather messages", Op::all_gather,
             ranks * chunked_message_bytes(parts.exchange_, elements));
  parts.kernels("add up what arrived", Category::decompress, {16, 0, 1, 0, 0}, kept * ranks,
                parts.tensors_);
  transforms("cosines of the sum", Category::decompress, 1);
  parts.kernels("keep error feedback", Category::decompress, unfused::keep_owed, elements,
                parts.tensors_);
}

void write_lossless(ExchangeParts& parts) {
  const double element = parts.of_.bytes, elements = parts.elements_, ranks = parts.group_.ranks;
  const double bytes = parts.exchange_.parameter * element * elements;
  const Passes coding{3 * element, 2, 0, 0, 0, {}, 2 * element};
  parts.kernels("encode", Category::compress, coding, elements, 1);
  parts.send("all_to_all codes", Op::all_to_all, bytes);
  parts.kernels("decode", Category::decompress, coding, elements, 1);
  parts.kernels("sum", Category::compress, {element + 4 / ranks, 1, 0, 0, 0}, elements, 1);
  if (parts.of_.shared) return;
  parts.kernels("encode sums", Category::compress, coding, elements / ranks, 1);
  parts.send("all_gather codes of sums", Op::all_gather, bytes);
  parts.kernels("decode sums", Category::decompress, coding, elements, 1);
}

}  // namespace lambcast
