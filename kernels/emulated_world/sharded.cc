#include "kernels/emulated_world/sharded.h"

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

struct Range {
  std::size_t begin, end;
};
// Returns the share of `rank` in n elements: equal shares, rounded up; the last ones may be smaller
// or empty.
Range share_of(std::size_t n, int ranks, int rank) {
  const std::size_t each =
      (n + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
  const std::size_t begin = std::min(n, each * static_cast<std::size_t>(rank));
  return {begin, std::min(n, begin + each)};
}

}  // namespace

void check(const Sharding& s) {
  if (s.dp < 1) fail_input(Where{"", 0, "dp"}, "must be at least 1");
  if (s.tp < 1) fail_input(Where{"", 0, "tp"}, "must be at least 1");
  if (s.zero < 0 || s.zero > 2) fail_input(Where{"", 0, "zero"}, "must be 0, 1 or 2");
}

reference::Part part_of(const ShardedTensor& tensor, const Sharding& s, int data_rank,
                        int tensor_rank) {
  const reference::MatrixShape shape = tensor.shape;
  Range rows{0, shape.rows}, columns{0, shape.columns};
  if (tensor.split == Split::rows) rows = share_of(shape.rows, s.tp, tensor_rank);
  if (tensor.split == Split::columns) columns = share_of(shape.columns, s.tp, tensor_rank);
  const std::size_t width = columns.end - columns.begin;
  const std::size_t elements = (rows.end - rows.begin) * width;
  const Range own = s.zero > 0 ? share_of(elements, s.dp, data_rank) : Range{0, elements};
  return {shape, rows.begin, columns.begin, std::max<std::size_t>(width, 1), own.begin, own.end};
}

bool share_sums(const ShardedTensor& tensor, const Sharding& s, RankPlace a, RankPlace b) {
  const bool across_data = a.data == b.data || s.zero > 0;
  const bool across_tensor = a.tensor == b.tensor || tensor.split != Split::none;
  return across_data && across_tensor;
}

std::vector<reference::Sums> summed(const ShardedTensor& tensor, const Sharding& s,
                                    const std::vector<reference::Sums>& sums) {
  const auto place = [&](std::size_t r) {
    const int rank = static_cast<int>(r);
    return RankPlace{rank / s.tp, rank % s.tp};
  };
  std::vector<reference::Sums> totals;
  for (std::size_t r = 0; r < sums.size(); ++r) {
    reference::Sums total(sums[r].size());
    bool known = false;  // already set by the first rank of the group
    for (std::size_t other = 0; other < sums.size() && !known; ++other) {
      if (!share_sums(tensor, s, place(r), place(other))) continue;
      if (other < r) {
        total = totals[other];
        known = true;
        continue;
      }
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += sums[other][i];
    }
    totals.push_back(std::move(total));
  }
  return totals;
}

std::vector<float> elements_of(const reference::Part& part, const std::vector<float>& whole) {
  std::vector<float> own;
  own.reserve(part.size());
  for (std::size_t k = 0; k < part.size(); ++k) {
    own.push_back(whole[part.row(k) * part.whole.columns + part.column(k)]);
  }
  return own;
}

std::vector<float> mean_from(const std::vector<std::vector<float>>& gradients, std::size_t first) {
  const std::size_t n = gradients.size();
  std::vector<float> mean(gradients[0].size());
  for (std::size_t i = 0; i < n; ++i) {
    const auto& g = gradients[(first + i) % n];
    for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += g[e];
  }
  for (float& x : mean) x *= static_cast<float>(1.0 / static_cast<double>(n));
  return mean;
}

}  // namespace lambcast::emulated
