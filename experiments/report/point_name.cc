#include "experiments/report/point_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/slice.h"

namespace lambcast::report {

std::string point_name(const Point& point, const std::vector<Point>& points) {
  std::string text =
      fmt::format("{}, {} GPUs, batch {}", point.cluster, point.gpus, point.global_batch);
  std::vector<const Point*> alike;
  for (const Point& p : points)
    if (p.model == point.model && p.cluster == point.cluster && p.optimizer == point.optimizer &&
        p.gpus == point.gpus && p.global_batch == point.global_batch)
      alike.push_back(&p);
  // Appends `said` if the rows still considered differ in `field`, and keeps the rows with the
  // point's value. Keeps all rows if none has it.
  const auto name = [&](double Point::*field, const std::string& said) {
    const auto other = [&](const Point* p) { return !same_number(p->*field, point.*field); };
    const auto differ = static_cast<std::size_t>(std::ranges::count_if(alike, other));
    if (differ > 0 && !std::isnan(point.*field)) text += ", " + said;
    if (differ < alike.size()) std::erase_if(alike, other);
  };
  name(&Point::nic_Gbps, fmt::format("{:.4g} Gbit/s NIC", point.nic_Gbps));
  name(&Point::steps, fmt::format("{} steps", point.steps));
  name(&Point::freeze_step, fmt::format("freeze_step {} of {}", point.freeze_step, point.steps));
  name(&Point::seq_len, fmt::format("seq_len {}", point.seq_len));
  name(&Point::micro_batch, fmt::format("micro batch {}", point.micro_batch));
  if (std::ranges::any_of(alike, [&](const Point* p) { return p->backend != point.backend; }))
    text += ", backend " + point.backend.text();
  for (const std::string& fact : apart(point, points)) text += ", " + fact;
  if ((" " + point.findings.text() + " ").find(" memory-tight ") != std::string::npos)
    text += " (it may not fit in memory)";
  return text;
}

}  // namespace lambcast::report
