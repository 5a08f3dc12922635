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

template <typename Text>
void keep_most_common_text(Slice& slice, std::string_view label, const Text& text) {
  const std::string best = most_common(slice.points, text);
  keep_if(slice, [&](const Point& p) { return text(p) == best; });
  if (!best.empty())
    slice.facts.push_back(label.empty() ? best : fmt::format("{} {}", label, best));
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
  keep_most_common(slice, "seq_len", &Point::seq_len);
  keep_most_common(slice, "network model", &Point::network);
  keep_usual(slice, "kernel costs", &Point::kernels);
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
  keep_if(slice, [&](const Point& p) { return text(p) == usual.at({p.cluster, p.optimizer}); });
  std::vector<std::string> kept = names(slice.points, field);
  std::erase(kept, "");
  if (!kept.empty()) slice.facts.push_back(fmt::format("{} {}", label, fmt::join(kept, " or ")));
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
  bool differed = false;
  for (const Point* p : slice.points) {
    const Point*& best = fastest[coordinates(*p)];
    differed = differed || (best && best->samples_per_s != p->samples_per_s);
    if (!best || p->samples_per_s > best->samples_per_s) best = p;
  }
  keep_if(slice, [&](const Point& p) { return fastest.at(coordinates(p)) == &p; });
  if (differed) slice.facts.push_back("of rows with the same coordinates the fastest");
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

std::string stated(const Slice& slice) { return fmt::format("{}", fmt::join(slice.facts, ", ")); }

}  // namespace lambcast::report
