#include "experiments/report/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace lambcast::report {
namespace {

// The most common text among `points`; the first in the file wins a tie.
template <typename Text>
std::string most_common(const Points& points, const Text& text) {
  std::map<std::string, std::size_t> count;
  for (const Point* p : points) ++count[text(*p)];
  std::string best;
  std::size_t most = 0;
  for (const Point* p : points) {
    const std::size_t n = count[text(*p)];
    if (n > most) {
      most = n;
      best = text(*p);
    }
  }
  return best;
}

std::string labelled(std::string_view label, const std::string& value) {
  if (value.empty()) return label.empty() ? "no other settings" : fmt::format("no {}", label);
  return label.empty() ? value : fmt::format("{} {}", label, value);
}

// States what was kept; in the title too where other values were dropped.
void state_kept(Slice& slice, std::size_t rows_before, const std::string& fact) {
  slice.facts.push_back(fact);
  if (slice.points.size() < rows_before) slice.folded.push_back(fact);
}

template <typename Text>
void keep_most_common_text(Slice& slice, std::string_view label, const Text& text) {
  const std::string best = most_common(slice.points, text);
  const std::size_t before = slice.points.size();
  keep_if(slice, [&](const Point& p) { return text(p) == best; });
  if (!best.empty()) state_kept(slice, before, labelled(label, best));
}

std::string usual_backend(const Points& points) {
  for (const Point* p : points) {
    if (p->backend == "nccl") return "nccl";
  }
  return most_common(points, [](const Point& p) { return p.backend; });
}

void state_batch(Slice& slice, const std::string& batch) {
  slice.batch = batch;
  slice.facts.push_back(batch);
}

// What a sweep may vary and no figure shows.
struct Axis {
  const char* label;
  std::string Point::*field;
};
constexpr Axis axes[] = {{"kernel costs", &Point::kernels},
                         {"device", &Point::device},
                         {"precision", &Point::precision},
                         {"ZeRO stage", &Point::zero_stage},
                         {"overlap", &Point::overlap},
                         {"symmetry", &Point::symmetry},
                         {"", &Point::settings}};

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

}  // namespace

Points select(const Points& points, const std::function<bool(const Point&)>& wanted) {
  Points kept;
  for (const Point* p : points) {
    if (wanted(*p)) kept.push_back(p);
  }
  return kept;
}

void keep_if(Slice& slice, const std::function<bool(const Point&)>& wanted) {
  slice.points = select(slice.points, wanted);
}

void keep_most_common(Slice& slice, std::string_view label, std::string Point::*field) {
  keep_most_common_text(slice, label, [field](const Point& p) { return p.*field; });
}

void keep_most_common(Slice& slice, std::string_view label, double Point::*field) {
  keep_most_common_text(slice, label, [field](const Point& p) { return csv::number(p.*field); });
}

Slice settled(const std::vector<Point>& points) {
  Slice slice;
  for (const Point& p : points) {
    if (p.ok()) slice.points.push_back(&p);
  }
  keep_most_common(slice, "", &Point::model);
  slice.folded.clear();  // titles begin with the model
  keep_most_common(slice, "seq_len", &Point::seq_len);
  keep_most_common(slice, "network model", &Point::network);
  for (const Axis& axis : axes) {
    const std::vector<std::string> found = names(slice.points, axis.field);
    const bool said = axis.field == &Point::kernels && found != std::vector<std::string>{""};
    if (said || found.size() > 1) keep_usual(slice, axis.label, axis.field);
  }
  keep_usual_gpus_per_node(slice);
  return slice;
}

void keep_usual(Slice& slice, std::string_view label, std::string Point::*field) {
  const auto text = [field](const Point& p) { return p.*field; };
  std::map<std::pair<std::string, std::string>, std::string> usual;  // by cluster and optimizer
  for (const std::string& cluster : names(slice.points, &Point::cluster)) {
    const Points there = select(slice.points, [&](const Point& p) { return p.cluster == cluster; });
    const std::string common = most_common(there, text);
    for (const std::string& optimizer : names(there, &Point::optimizer)) {
      const Points own = select(there, [&](const Point& p) { return p.optimizer == optimizer; });
      const bool has_common =
          std::any_of(own.begin(), own.end(), [&](const Point* p) { return text(*p) == common; });
      usual[{cluster, optimizer}] = has_common ? common : most_common(own, text);
    }
  }
  const std::size_t before = slice.points.size();
  keep_if(slice, [&](const Point& p) { return text(p) == usual.at({p.cluster, p.optimizer}); });
  std::vector<std::string> kept = names(slice.points, field);
  if (kept.size() > 1) std::erase(kept, "");
  state_kept(slice, before, labelled(label, fmt::format("{}", fmt::join(kept, " or "))));
}

void keep_usual_gpus_per_node(Slice& slice) {
  const auto text = [](const Point& p) { return csv::number(p.gpus_per_node); };
  std::map<std::string, double> usual;  // by cluster, where a run takes more than one node
  for (const std::string& cluster : names(slice.points, &Point::cluster)) {
    const Points whole =
        select(slice.points, [&](const Point& p) { return p.cluster == cluster && p.nodes > 1; });
    const std::string common = most_common(whole, text);
    for (const Point* p : whole)
      if (text(*p) == common && !common.empty()) usual[cluster] = p->gpus_per_node;
  }
  const std::size_t before = slice.points.size();
  keep_if(slice, [&](const Point& p) {
    const auto most = usual.find(p.cluster);
    return most == usual.end() || p.gpus_per_node == std::min(most->second, p.gpus);
  });
  if (slice.points.size() == before) return;
  std::set<std::string> kept;
  for (const auto& [cluster, most] : usual) kept.insert(csv::number(most));
  state_kept(slice, before, fmt::format("{} GPUs per node", fmt::join(kept, " or ")));
}

void keep_usual_backend(Slice& slice) {
  const auto is_compressed = [](const Point& p) { return p.compressed(); };
  const auto is_plain = [](const Point& p) { return !p.compressed(); };
  const Points compressed = select(slice.points, is_compressed);
  const std::string wanted = usual_backend(compressed);
  const std::string plain = usual_backend(select(slice.points, is_plain));
  keep_if(slice, [&](const Point& p) { return p.backend == (p.compressed() ? wanted : plain); });
  if (!compressed.empty()) slice.facts.push_back("backend " + wanted);
}

void keep_published_freeze(Slice& slice) {
  const auto run = [](const Point& p) { return fmt::format("{} {}", p.optimizer, p.steps); };
  const auto distance = [](double share) { return std::abs(share - published_freeze_share); };
  std::map<std::string, double> nearest;  // freeze share of each run
  for (const Point* p : slice.points) {
    const double share = p->freeze_share();
    if (!p->compressed() || std::isnan(share)) continue;
    const auto [entry, added] = nearest.try_emplace(run(*p), share);
    if (!added && distance(share) < distance(entry->second)) entry->second = share;
  }
  keep_if(slice, [&](const Point& p) {
    const auto found = nearest.find(run(p));
    return !p.compressed() || found == nearest.end() || p.freeze_share() == found->second;
  });
  std::set<std::string> shares;
  for (const auto& [name, share] : nearest) shares.insert(percent(share));
  if (shares.empty()) return;
  slice.facts.push_back(fmt::format("freeze_step at {} of the steps", fmt::join(shares, " or ")));
}

void keep_usual_nic(Slice& slice) {
  std::map<std::string, std::string> usual;
  const auto nic = [](const Point& p) { return csv::number(p.nic_Gbps); };
  for (const std::string& cluster : names(slice.points, &Point::cluster)) {
    usual[cluster] = most_common(
        select(slice.points, [&](const Point& p) { return p.cluster == cluster; }), nic);
  }
  keep_if(slice, [&](const Point& p) { return nic(p) == usual.at(p.cluster); });
}

bool keep_batch(Slice& slice, const std::function<bool(const Points&)>& enough) {
  std::vector<double> batches = values(slice.points, &Point::global_batch);
  std::reverse(batches.begin(), batches.end());
  for (const double batch : batches) {
    const Points kept =
        select(slice.points, [&](const Point& p) { return p.global_batch == batch; });
    if (!enough(kept)) continue;
    slice.points = kept;
    state_batch(slice, fmt::format("global batch {}", batch));
    return true;
  }
  const auto local = [](const Point& p) {
    return fmt::format("{} x {} steps per GPU", p.micro_batch, p.grad_accum);
  };
  Points rest = slice.points;
  while (!rest.empty()) {
    const std::string best = most_common(rest, local);
    const Points kept = select(slice.points, [&](const Point& p) { return local(p) == best; });
    if (enough(kept)) {
      slice.points = kept;
      state_batch(slice, fmt::format("micro batch {} (weak scaling)", best));
      return true;
    }
    rest = select(rest, [&](const Point& p) { return local(p) != best; });
  }
  return false;
}

void keep_fastest(Slice& slice, const std::function<std::string(const Point&)>& coordinates) {
  std::map<std::string, const Point*> fastest;
  for (const Point* p : slice.points) {
    const Point*& best = fastest[coordinates(*p)];
    if (!best || p->samples_per_s > best->samples_per_s) best = p;
  }
  std::set<std::string> differing;
  bool differed = false;
  for (const Point* p : slice.points) {
    const Point& best = *fastest.at(coordinates(*p));
    if (best.samples_per_s == p->samples_per_s) continue;
    differed = true;
    if (best.cuda_aware != p->cuda_aware) differing.insert("cuda_aware");
    if (best.backend != p->backend) differing.insert("backend");
    for (const auto& [name, field] :
         {std::pair{"global_batch", &Point::global_batch},
          std::pair{"micro_batch", &Point::micro_batch},
          std::pair{"grad_accum", &Point::grad_accum},
          std::pair{"freeze_step", &Point::freeze_step}, std::pair{"steps", &Point::steps}}) {
      if (csv::number(best.*field) != csv::number(p->*field)) differing.insert(name);
    }
  }
  keep_if(slice, [&](const Point& p) { return fastest.at(coordinates(p)) == &p; });
  if (!differed) return;
  slice.facts.push_back(fmt::format(
      "of rows with the same coordinates the fastest{}",
      differing.empty() ? "" : fmt::format(" (they differ in {})", fmt::join(differing, ", "))));
}

std::vector<double> values(const Points& points, double Point::*field) {
  std::set<double> found;
  for (const Point* p : points) {
    if (!std::isnan(p->*field)) found.insert(p->*field);
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> names(const Points& points, std::string Point::*field) {
  std::vector<std::string> found;
  for (const Point* p : points) {
    if (std::find(found.begin(), found.end(), p->*field) == found.end()) found.push_back(p->*field);
  }
  return found;
}

std::vector<std::string> apart(const Point& point, const std::vector<Point>& points) {
  std::vector<std::string> said;
  for (const Axis& axis : axes) {
    const bool differs = std::any_of(points.begin(), points.end(), [&](const Point& p) {
      return p.cluster == point.cluster && p.optimizer == point.optimizer &&
             p.*axis.field != point.*axis.field;
    });
    if (differs) said.push_back(labelled(axis.label, point.*axis.field));
  }
  const bool other_nodes = std::any_of(points.begin(), points.end(), [&](const Point& p) {
    return p.cluster == point.cluster && p.gpus == point.gpus &&
           csv::number(p.gpus_per_node) != csv::number(point.gpus_per_node);
  });
  if (other_nodes) said.push_back(fmt::format("{} GPUs per node", point.gpus_per_node));
  return said;
}

std::string stated(const Slice& slice) { return fmt::format("{}", fmt::join(slice.facts, ", ")); }

}  // namespace lambcast::report
