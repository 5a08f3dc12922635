#include "kernels/reference/freeze.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lambcast::reference {

int memory(const FreezeOptions& o) { return static_cast<int>(std::lround(1 / (1 - o.beta2))); }
std::size_t measurements(const FreezeOptions& o) {
  return static_cast<std::size_t>((memory(o) + o.interval - 1) / o.interval);
}
bool settled(const FreezeOptions& o, double before, double now) {
  return std::min(before, now) >= o.threshold * std::max(before, now);
}
int earliest(const FreezeOptions& o) { return std::max(o.earliest, 2 * memory(o)); }

FreezeMonitor freeze_monitor(const TensorLayout& tensors, const FreezeOptions& o) {
  if (!(o.threshold > 0 && o.threshold < 1)) {
    fail_input(Where{"", 0, "threshold"}, "must be between 0 and 1");
  }
  if (!(o.beta2 >= 0 && o.beta2 < 1))
    fail_input(Where{"", 0, "beta2"}, "must be from 0 to below 1");
  if (o.interval < 1) fail_input(Where{"", 0, "interval"}, "must be at least 1");
  if (!(o.share > 0 && o.share <= 1))
    fail_input(Where{"", 0, "share"}, "must be from above 0 to 1");
  if (o.latest < 0) fail_input(Where{"", 0, "latest"}, "must be at least 0");
  return {tensors, o};
}

bool measures(const FreezeMonitor& m, int step) {
  return m.frozen_at == 0 && step % m.options.interval == 0;
}

bool may_freeze(FreezeMonitor& m, int step, std::span<const double> norms) {
  if (m.frozen_at != 0) return true;
  LAMBCAST_CHECK(norms.size() == m.tensors.tensors(), "{} norms of {} tensors", norms.size(),
                 m.tensors.tensors());
  if (m.options.latest > 0 && step >= m.options.latest) {
    m.frozen_at = step;
    return true;
  }
  m.norms.emplace_back(norms.begin(), norms.end());
  if (m.norms.size() <= measurements(m.options)) return false;
  const std::vector<double> before = std::move(m.norms.front());
  m.norms.pop_front();
  if (step < earliest(m.options)) return false;
  std::size_t elements = 0;
  for (std::size_t t = 0; t < norms.size(); ++t) {
    if (settled(m.options, before[t], norms[t])) elements += m.tensors.size(t);
  }
  const double wanted = m.options.share * static_cast<double>(m.tensors.elements());
  if (static_cast<double>(elements) < wanted) return false;
  if (std::ranges::all_of(norms, [](double norm) { return norm == 0; })) return false;
  m.frozen_at = step;
  return true;
}

std::vector<double> variance_norms(std::span<const float> v, const TensorLayout& tensors) {
  std::vector<double> norms;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    double sum = 0;
    for (const float x : tensors.view(v, t)) sum += std::fabs(static_cast<double>(x));
    norms.push_back(sum);
  }
  return norms;
}

}  // namespace lambcast::reference
