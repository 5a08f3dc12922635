#include "models/device/attention_kernel.h"

#include <algorithm>
#include <cmath>

#include "models/device/matrix_product.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

constexpr std::int64_t flash_tile = 128;

// Share of the exponentials' time that is exposed next to the products, for cudnn and later
// kernels. The backward share includes the gradient of the softmax.
constexpr double shown_exponentials = 0.78, shown_exponentials_backward = 2.44;

struct FlashShare {
  double forward, backward;  // shares of the rate that the GPU reaches
};

FlashShare flash_share(AttentionKernel kernel, MatrixFormat format, const GpuRates& rates) {
  if (kernel >= AttentionKernel::cudnn && format == MatrixFormat::half && rates.share_attention) {
    const double share = rates.share_attention->value / rates.of(MatrixFormat::half).share.value;
    return {share, 0.8 * share};
  }
  if (kernel >= AttentionKernel::cudnn) return {1.29, 1.03};
  // GPUs with fp8 units have Hopper's or later matrix instructions, which the older kernels do not
  // use.
  const double used = rates.of(MatrixFormat::fp8).peak.value.value() > 0 ? 0.62 : 1;
  if (kernel == AttentionKernel::flash2) return {used, 0.8 * used};
  return {0.5 * used, 0.45 * used};
}

double faster_than_cudnn(AttentionKernel kernel, bool causal_forward) {
  if (kernel == AttentionKernel::flash4) return 1.3;
  if (kernel == AttentionKernel::flash3) return causal_forward ? 1.14 : 1.09;
  return 1;
}

double scores(const AttentionWork& w) {
  return static_cast<double>(w.batch * w.heads) * static_cast<double>(w.queries) *
         static_cast<double>(w.keys);
}

double computed_share(const AttentionWork& w) {
  if (!w.causal) return 1;
  const double tiles = std::max(1.0, static_cast<double>(w.keys) / flash_tile);
  // Share of the square that is computed if row i has min(i, most) tiles, up to the diagonal.
  const auto of_rows = [&](double most) {
    return most * (2 * tiles - most + 1) / (2 * tiles * tiles);
  };
  if (w.window == 0) return of_rows(tiles);
  const double seen = std::min(tiles, static_cast<double>(w.window) / flash_tile + 1);
  const auto every = static_cast<double>(w.window_every);
  const auto back = static_cast<double>(w.window_layers);
  return (of_rows(tiles) * (every - back) + of_rows(seen) * back) / every;
}

// Returns the number of head elements that are multiplied per score. Forward (2 products): queries
// by keys, and scores by values. Backward (5 products): scores again, and the gradients of queries,
// keys, scores and values.
double multiplied(const AttentionWork& w, int products) {
  const auto key = static_cast<double>(w.head_size);
  const double value = w.value_size > 0 ? static_cast<double>(w.value_size) : key;
  return products == 2 ? key + value : 3 * key + 2 * value;
}

// `products` is 2 forward and 5 backward, each with 2 head_size operations per score.
std::vector<AttentionPiece> flash(AttentionKernel kernel, const AttentionWork& w, int products,
                                  const GpuRates& rates) {
  const FlashShare shares = flash_share(kernel, w.format, rates);
  const double share = products == 2 ? shares.forward : shares.backward;
  const double computed = scores(w) * computed_share(w);
  const auto head = static_cast<double>(w.head_size);
  KernelCost cost;
  cost.flops = Flops(2 * computed * multiplied(w, products));
  // Tensors that are moved: queries and context, keys and values; in the backward pass also their
  // gradients.
  const double elements =
      static_cast<double>(w.batch) * head *
      (2 * static_cast<double>(w.heads * w.queries) + 2 * static_cast<double>(w.kv_heads * w.keys));
  cost.bytes = Bytes(elements * bytes_per_element(w.format) * (products > 2 ? 2 : 1));
  const double blocks =
      static_cast<double>(w.batch * w.heads * ((w.queries + flash_tile - 1) / flash_tile));
  const double waves = blocks / rates.multiprocessors;
  const double idle = std::ceil(waves) / waves;
  const double multiply = cost.flops.value() / (rates.reached(w.format).value() * share);
  const double exponentials = computed / rates.exponentials.value.value();
  const double shown = kernel < AttentionKernel::cudnn ? 1
                       : products == 2                 ? shown_exponentials
                                                       : shown_exponentials_backward;
  const double faster = faster_than_cudnn(kernel, w.causal && products == 2);
  const double beside = multiply + shown * exponentials;
  const double compute = std::max(exponentials, beside) / faster * idle;
  const Duration computing = Duration::seconds(compute), moving = cost.bytes / rates.memory.value;
  cost.rests_on[Rate::start] = w.rounds * rates.kernel_start.value;
  cost.duration = std::max(computing, moving) + cost.rests_on[Rate::start];
  if (computing >= moving) {
    Duration& products_time = cost.rests_on[rate_of(w.format)];
    if (beside > exponentials) products_time = Duration::seconds(multiply / faster * idle);
    cost.rests_on[Rate::exponentials] = computing - products_time;
  } else {
    cost.rests_on[Rate::memory] = moving;
  }
  return {{"attention", true, cost}};
}

AttentionPiece batched(std::string_view name, const AttentionWork& w, std::int64_t m,
                       std::int64_t n, std::int64_t k, const GpuRates& rates) {
  const Product product{m,
                        n,
                        k,
                        w.batch * w.heads,
                        w.format,
                        bytes_per_element(w.format),
                        rows_aligned(w.format, {w.head_size, w.keys})};
  return {name, true, product_cost(product, rates)};
}

// `bytes` is the number of bytes moved per score if scores have 16 bits.
AttentionPiece by_bytes(std::string_view name, const AttentionWork& w, double bytes, int kernels,
                        const GpuRates& rates) {
  const double elements = scores(w) * bytes_per_element(w.format) / 2;
  return {name, false, memory_cost(Bytes(elements * bytes), kernels, rates)};
}

// Appends the terms of scores that depend on the distance of two tokens.
void add_distances(std::vector<AttentionPiece>& pieces, const AttentionWork& w, bool forward,
                   const GpuRates& rates) {
  if (w.distances == 0) return;
  for (const auto& [name, tokens] :
       {std::pair{"queries by distances", w.queries}, std::pair{"keys by distances", w.keys}}) {
    pieces.push_back(batched(name, w, tokens, w.distances, w.head_size, rates));
    if (!forward) pieces.push_back(batched(name, w, tokens, w.head_size, w.distances, rates));
  }
  pieces.push_back(by_bytes("terms of distances", w, forward ? 32 : 28, 8, rates));
}

void check(const AttentionWork& w) {
  LAMBCAST_CHECK(w.batch >= 0 && w.heads >= 0 && w.kv_heads >= 0 && w.head_size >= 0 &&
                     w.queries >= 0 && w.keys >= 0 && w.rounds >= 1,
                 "attention of {} x {} heads of {}, {} queries, {} keys", w.batch, w.heads,
                 w.head_size, w.queries, w.keys);
}

}  // namespace

const std::vector<std::string>& attention_kernel_names() {
  static const std::vector<std::string> names{"unfused", "flash1", "flash2",
                                              "cudnn",   "flash3", "flash4"};
  return names;
}

std::string_view name_of(AttentionKernel kernel) {
  return attention_kernel_names()[static_cast<std::size_t>(kernel)];
}

AttentionKernel newest_attention(const GpuRates& rates) {
  if (rates.compute_capability >= generation::hopper) return AttentionKernel::cudnn;
  if (runs_on(AttentionKernel::flash2, rates)) return AttentionKernel::flash2;
  return rates.compute_capability >= generation::turing ? AttentionKernel::flash1
                                                        : AttentionKernel::unfused;
}

bool runs_on(AttentionKernel kernel, const GpuRates& rates) {
  const double of_gpu = rates.compute_capability;
  switch (kernel) {
    case AttentionKernel::unfused:
      return true;
    case AttentionKernel::flash1:
      return of_gpu >= generation::volta;
    case AttentionKernel::flash2:
    case AttentionKernel::cudnn:
      return of_gpu >= generation::ampere;
    case AttentionKernel::flash3:
      return of_gpu >= generation::hopper && of_gpu < generation::blackwell;
    case AttentionKernel::flash4:
      return of_gpu >= generation::hopper;
  }
  return false;
}

AttentionKernel timed_as(AttentionKernel kernel, const GpuRates& rates) {
  if (kernel == AttentionKernel::cudnn && rates.compute_capability < generation::hopper)
    return AttentionKernel::flash2;
  if (kernel == AttentionKernel::flash4 && rates.compute_capability < generation::blackwell)
    return AttentionKernel::cudnn;
  return kernel;
}

std::vector<AttentionPiece> attention_forward(AttentionKernel kernel, const AttentionWork& w,
                                              const GpuRates& rates) {
  check(w);
  if (scores(w) == 0 || w.head_size == 0) return {};
  if (kernel != AttentionKernel::unfused) return flash(timed_as(kernel, rates), w, 2, rates);
  std::vector<AttentionPiece> pieces{batched("scores", w, w.queries, w.keys, w.head_size, rates),
                                     by_bytes("softmax", w,
                                              w.autocast        ? 24
                                              : w.eager_softmax ? 16
                                                                : 4,
                                              w.autocast || w.eager_softmax ? 4 : 1, rates)};
  if (w.dropout) pieces.push_back(by_bytes("scores dropout", w, 5, 1, rates));
  pieces.push_back(batched("context", w, w.queries, w.head_size, w.keys, rates));
  add_distances(pieces, w, true, rates);
  return pieces;
}

std::vector<AttentionPiece> attention_backward(AttentionKernel kernel, const AttentionWork& w,
                                               const GpuRates& rates) {
  check(w);
  if (scores(w) == 0 || w.head_size == 0) return {};
  if (kernel != AttentionKernel::unfused) return flash(timed_as(kernel, rates), w, 5, rates);
  std::vector<AttentionPiece> pieces{
      batched("scores gradient", w, w.queries, w.keys, w.head_size, rates),
      batched("value gradient", w, w.keys, w.head_size, w.queries, rates)};
  if (w.dropout) pieces.push_back(by_bytes("scores dropout", w, 5, 1, rates));
  pieces.push_back(by_bytes("softmax", w,
                            w.autocast        ? 26
                            : w.eager_softmax ? 14
                                              : 6,
                            w.autocast        ? 4
                            : w.eager_softmax ? 3
                                              : 1,
                            rates));
  pieces.push_back(batched("query gradient", w, w.queries, w.head_size, w.keys, rates));
  pieces.push_back(batched("key gradient", w, w.keys, w.head_size, w.queries, rates));
  add_distances(pieces, w, false, rates);
  return pieces;
}

}  // namespace lambcast
