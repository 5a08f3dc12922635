#include <algorithm>

#include "kernels/profile.h"
#include "kernels/profile/bert_large.h"
#include "sim/base/error.h"

namespace lambcast {

std::vector<std::size_t> profile_sizes(const ProfileOptions& o) {
  const auto refuse = [](const char* flag, const char* what) { fail_input({"", 0, flag}, what); };
  if (o.min_bytes < 4) refuse("-b", "must be at least 4 bytes, one element");
  if (o.max_bytes < o.min_bytes) refuse("-e", "must not be below -b");
  if (!(o.factor > 1)) refuse("-f", "must be above 1");
  if (o.iterations < 1) refuse("-n", "must be at least 1");
  if (o.warmup < 0) refuse("-w", "must not be negative");

  std::vector<std::size_t> sizes;
  const double last = static_cast<double>(o.max_bytes);
  for (double bytes = static_cast<double>(o.min_bytes); bytes <= last; bytes *= o.factor) {
    sizes.push_back(static_cast<std::size_t>(bytes) / 4);
  }
  if (o.min_bytes / 4 <= bert_large_elements && bert_large_elements <= o.max_bytes / 4) {
    sizes.push_back(bert_large_elements);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace lambcast
