#include "experiments/report/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "experiments/verdict/verdict.h"
#include "models/optimizer/optimizer_model.h"
#include "sim/base/csv.h"

namespace lambcast::report {
namespace {

// Work of one GPU in a step. It is compared often and formatted rarely.
struct LocalBatch {
  double micro, accum;
  bool operator==(const LocalBatch&) const = default;
};
struct HashOfLocalBatch {
  std::size_t operator()(const LocalBatch& batch) const {
    return std::hash<double>()(batch.micro) * 31 + std::hash<double>()(batch.accum);
  }
};

struct HashOfCoordinates {
  std::size_t operator()(const Coordinates& at) const {
    std::size_t hash = 0;
    const auto add = [&](std::size_t more) { hash = (hash ^ more) * 0x9e3779b97f4a7c15; };
    for (const Name name : at.names) add(std::hash<Name>()(name));
    for (const double number : at.numbers) add(std::hash<double>()(number));
    return hash;
  }
};

template <typename Key>
bool alike(const Points& points, const Key& key) {
  return std::all_of(points.begin(), points.end(),
                     [&](const Point* p) { return key(*p) == key(*points.front()); });
}

// Returns the first point with the most common key among `points`; the first in the file wins a
// tie.
template <typename Key>
const Point* usual(const Points& points, const Key& key) {
  if (!points.empty() && alike(points, key)) return points.front();
  using Value = std::decay_t<decltype(key(*points[0]))>;
  using Hash =
      std::conditional_t<std::is_same_v<Value, LocalBatch>, HashOfLocalBatch, std::hash<Value>>;
  std::unordered_map<Value, std::size_t, Hash> count;
  for (const Point* p : points) ++count[key(*p)];
  const Point* best = nullptr;
  std::size_t most = 0;
  for (const Point* p : points) {
    const std::size_t n = count[key(*p)];
    if (n > most) {
      most = n;
      best = p;
    }
  }
  return best;
}

// Groups the points by cluster; the rows of a cluster mostly follow one another.
std::unordered_map<Name, Points> by_cluster(const Points& points) {
  std::unordered_map<Name, Points> found;
  Points* there = nullptr;
  Name cluster;
  for (const Point* p : points) {
    if (there == nullptr || !(p->cluster == cluster)) {
      cluster = p->cluster;
      there = &found[cluster];
    }
    there->push_back(p);
  }
  return found;
}

std::string labelled(std::string_view label, const std::string& value) {
  if (value.empty()) return label.empty() ? "no other settings" : fmt::format("no {}", label);
  return label.empty() ? value : fmt::format("{} {}", label, value);
}

// Records the kept value as a fact, and for the title if other values were dropped.
void state_kept(Slice& slice, std::size_t rows_before, const std::string& fact) {
  slice.facts.push_back(fact);
  if (slice.points.size() < rows_before) slice.folded.push_back(fact);
}

// Keeps the rows with the most common key. `text` describes the key; an empty text is not recorded.
template <typename Key, typename Text>
void keep_most_common_key(Slice& slice, std::string_view label, const Key& key, const Text& text) {
  const Point* best = usual(slice.points, key);
  if (!best) return;
  const std::size_t before = slice.points.size();
  if (!alike(slice.points, key))
    keep_if(slice, [&](const Point& p) { return key(p) == key(*best); });
  if (const std::string said = text(*best); !said.empty())
    state_kept(slice, before, labelled(label, said));
}

std::string usual_backend(const Points& points) {
  for (const Point* p : points) {
    if (p->backend == "nccl") return "nccl";
  }
  const Point* most = usual(points, [](const Point& p) { return p.backend; });
  return most ? most->backend.text() : std::string();
}

void state_batch(Slice& slice, const std::string& batch) {
  slice.batch = batch;
  slice.facts.push_back(batch);
}

// Fields that a sweep may vary and no figure shows.
struct Axis {
  const char* label;
  Name Point::*field;
};
constexpr Axis unseen_axes[] = {{"kernel costs", &Point::kernels},
                                {"device", &Point::device},
                                {"precision", &Point::precision},
                                {"ZeRO stage", &Point::zero_stage},
                                {"overlap", &Point::overlap},
                                {"symmetry", &Point::symmetry},
                                {"", &Point::settings}};

// Returns the part of "tp=2; framework=megatron" that the others do not all have, or a label if
// there is none.
std::string settings_apart(const std::string& settings, const std::set<std::string>& others) {
  std::vector<std::string> own;
  for (std::size_t begin = 0; begin < settings.size();) {
    const std::size_t end = std::min(settings.find("; ", begin), settings.size());
    const std::string setting = settings.substr(begin, end - begin);
    const bool everywhere = std::ranges::all_of(others, [&](const std::string& other) {
      return ("; " + other + "; ").find("; " + setting + "; ") != std::string::npos;
    });
    if (!everywhere) own.push_back(setting);
    begin = std::min(end + 2, settings.size());
  }
  return own.empty() ? labelled("", Name()) : fmt::format("{}", fmt::join(own, ", "));
}

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

}  // namespace

double published_freeze_share() {
  return model_of(OptimizerType::onebit_lamb).published_freeze_share;
}

Points select(const Points& points, const std::function<bool(const Point&)>& wanted) {
  Points kept;
  for (const Point* p : points) {
    if (wanted(*p)) kept.push_back(p);
  }
  return kept;
}

Points of_cluster(const Points& points, const std::string& cluster) {
  return select(points, [&](const Point& p) { return p.cluster == cluster; });
}

bool any_cluster(const Points& points, const std::function<bool(const Points&)>& holds) {
  for (const std::string& cluster : names(points, &Point::cluster)) {
    if (holds(of_cluster(points, cluster))) return true;
  }
  return false;
}

void keep_if(Slice& slice, const std::function<bool(const Point&)>& wanted) {
  slice.points = select(slice.points, wanted);
}

void keep_most_common(Slice& slice, std::string_view label, Name Point::*field) {
  const auto key = [field](const Point& p) { return p.*field; };
  keep_most_common_key(slice, label, key, [&](const Point& p) { return key(p).text(); });
}

void keep_most_common(Slice& slice, std::string_view label, double Point::*field) {
  keep_most_common_key(
      slice, label, [field](const Point& p) { return or_zero(p.*field); },
      [field](const Point& p) { return csv::number(p.*field); });
}

Slice settled(const std::vector<Point>& points) {
  Slice slice;
  for (const Point& p : points)
    if (p.ok() && !backend_fails(p.findings.text())) slice.points.push_back(&p);
  if (slice.points.size() < static_cast<std::size_t>(std::ranges::count_if(points, &Point::ok)))
    slice.facts.push_back("without backends that end with an error there");
  keep_most_common(slice, "", &Point::model);
  slice.folded.clear();  // titles begin with the model
  keep_most_common(slice, "seq_len", &Point::seq_len);
  keep_most_common(slice, "network model", &Point::network);
  for (const Axis& axis : unseen_axes) {
    const std::vector<std::string> found = names(slice.points, axis.field);
    const bool said = axis.field == &Point::kernels && found != std::vector<std::string>{""};
    if (said || found.size() > 1) keep_usual(slice, axis.label, axis.field);
  }
  keep_usual_gpus_per_node(slice);
  return slice;
}

void keep_usual(Slice& slice, std::string_view label, Name Point::*field) {
  const auto value = [field](const Point& p) { return p.*field; };
  std::unordered_map<Name, std::unordered_map<Name, Name>> wanted;  // by cluster and optimizer
  for (const auto& [cluster, points] : by_cluster(slice.points)) {
    const Name common = value(*usual(points, value));
    std::unordered_map<Name, Points> of_optimizer;
    for (const Point* p : points) of_optimizer[p->optimizer].push_back(p);
    for (const auto& [optimizer, own] : of_optimizer) {
      const bool has_common =
          std::any_of(own.begin(), own.end(), [&](const Point* p) { return value(*p) == common; });
      wanted[cluster][optimizer] = has_common ? common : value(*usual(own, value));
    }
  }
  const std::size_t before = slice.points.size();
  keep_if(slice, [&](const Point& p) { return value(p) == wanted.at(p.cluster).at(p.optimizer); });
  std::vector<std::string> kept = names(slice.points, field);
  if (kept.size() > 1) std::erase(kept, "");
  state_kept(slice, before, labelled(label, fmt::format("{}", fmt::join(kept, " or "))));
}

void keep_usual_gpus_per_node(Slice& slice) {
  std::unordered_map<Name, double> wanted;
  const Points whole = select(slice.points, [](const Point& p) { return p.nodes > 1; });
  for (const auto& [cluster, points] : by_cluster(whole)) {
    const Point* common = usual(points, [](const Point& p) { return or_zero(p.gpus_per_node); });
    if (!std::isnan(common->gpus_per_node)) wanted[cluster] = common->gpus_per_node;
  }
  const std::size_t before = slice.points.size();
  keep_if(slice, [&](const Point& p) {
    const auto most = wanted.find(p.cluster);
    return most == wanted.end() || p.gpus_per_node == std::min(most->second, p.gpus);
  });
  if (slice.points.size() == before) return;
  std::set<std::string> kept;
  for (const auto& [cluster, most] : wanted) kept.insert(csv::number(most));
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
  const auto run = [](const Point& p) { return Coordinates{{p.optimizer}, {or_zero(p.steps)}}; };
  const auto distance = [](double share) { return std::abs(share - published_freeze_share()); };
  // freeze share to keep for each run
  std::unordered_map<Coordinates, double, HashOfCoordinates> nearest;
  for (const Point* p : slice.points) {
    const double share = p->freeze_share();
    if (!p->compressed() || std::isnan(share)) continue;
    const auto [entry, added] = nearest.try_emplace(run(*p), share);
    if (!added && distance(share) < distance(entry->second)) entry->second = share;
  }
  keep_if(slice, [&](const Point& p) {
    if (!p.compressed()) return true;
    const auto found = nearest.find(run(p));
    return found == nearest.end() || p.freeze_share() == found->second;
  });
  std::set<std::string> shares;
  for (const auto& [of, share] : nearest) shares.insert(percent(share));
  if (shares.empty()) return;
  slice.facts.push_back(fmt::format("freeze_step at {} of the steps", fmt::join(shares, " or ")));
}

std::vector<double> evenly_chosen(const std::vector<double>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<double> chosen;
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return chosen;
}

void keep_usual_nic(Slice& slice) {
  const auto nic = [](const Point& p) { return or_zero(p.nic_Gbps); };
  constexpr std::size_t most_bandwidths = 3;
  std::unordered_map<Name, std::vector<double>> wanted;
  for (const auto& [cluster, points] : by_cluster(slice.points)) {
    std::map<double, std::size_t> rows;
    std::size_t most = 0;
    for (const Point* p : points) most = std::max(most, ++rows[nic(*p)]);
    std::erase_if(rows, [&](const auto& bandwidth) { return bandwidth.second < most; });
    std::vector<double> common;
    for (const auto& [Gbps, count] : rows) common.push_back(Gbps);
    wanted[cluster] = evenly_chosen(common, most_bandwidths);
  }
  const std::size_t before = slice.points.size();
  keep_if(slice, [&](const Point& p) {
    return std::ranges::find(wanted.at(p.cluster), nic(p)) != wanted.at(p.cluster).end();
  });
  if (slice.points.size() == before) return;
  std::set<double> kept;
  for (const auto& [cluster, some] : wanted) kept.insert(some.begin(), some.end());
  state_kept(slice, before, fmt::format("NICs of {} Gbit/s", fmt::join(kept, " or ")));
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
    return LocalBatch{or_zero(p.micro_batch), or_zero(p.grad_accum)};
  };
  Points rest = slice.points;
  while (!rest.empty()) {
    const Point& first = *usual(rest, local);
    const LocalBatch best = local(first);
    const Points kept = select(slice.points, [&](const Point& p) { return local(p) == best; });
    if (enough(kept)) {
      slice.points = kept;
      state_batch(slice, fmt::format("micro batch {} x {} steps per GPU (weak scaling)",
                                     first.micro_batch, first.grad_accum));
      return true;
    }
    rest = select(rest, [&](const Point& p) { return !(local(p) == best); });
  }
  return false;
}

bool keep_batch_and_steps(Slice& slice, const std::function<bool(const Points&)>& enough) {
  const bool kept = keep_batch(slice, [&](const Points& some) {
    Slice runs{some, {}, {}, {}};
    keep_most_common(runs, "steps", &Point::steps);
    return enough(runs.points);
  });
  if (kept) keep_most_common(slice, "steps", &Point::steps);
  return kept;
}

void keep_fastest(Slice& slice, const std::function<Coordinates(const Point&)>& coordinates) {
  std::unordered_map<Coordinates, const Point*, HashOfCoordinates> by_coordinates;
  std::vector<const Point**> fastest;  // fastest point with each point's coordinates
  fastest.reserve(slice.points.size());
  for (const Point* p : slice.points) {
    Coordinates at = coordinates(*p);
    std::ranges::transform(at.numbers, at.numbers.begin(), or_zero);
    const Point*& best = by_coordinates[at];
    if (!best || p->samples_per_s > best->samples_per_s) best = p;
    fastest.push_back(&best);
  }
  std::set<std::string> differing;
  bool differed = false;
  for (std::size_t i = 0; i < slice.points.size(); ++i) {
    const Point* p = slice.points[i];
    const Point& best = **fastest[i];
    if (best.samples_per_s == p->samples_per_s) continue;
    differed = true;
    if (best.cuda_aware != p->cuda_aware) differing.insert("cuda_aware");
    if (best.backend != p->backend) differing.insert("backend");
    for (const auto& [name, field] :
         {std::pair{"global_batch", &Point::global_batch},
          std::pair{"micro_batch", &Point::micro_batch},
          std::pair{"grad_accum", &Point::grad_accum},
          std::pair{"freeze_step", &Point::freeze_step}, std::pair{"steps", &Point::steps}}) {
      if (or_zero(best.*field) != or_zero(p->*field)) differing.insert(name);
    }
  }
  Points kept;
  for (std::size_t i = 0; i < slice.points.size(); ++i)
    if (*fastest[i] == slice.points[i]) kept.push_back(slice.points[i]);
  slice.points = std::move(kept);
  if (!differed) return;
  slice.facts.push_back(fmt::format(
      "of rows with the same coordinates the fastest{}",
      differing.empty() ? "" : fmt::format(" (they differ in {})", fmt::join(differing, ", "))));
}

bool vary(const Points& points, double Point::*field) {
  double first = absent;
  return std::ranges::any_of(points, [&](const Point* p) {
    if (std::isnan(first)) first = p->*field;
    return p->*field < first || p->*field > first;
  });
}

// Returns the different values, ascending. Consecutive rows mostly have the same value, which is
// then not looked up again.
std::vector<double> values(const Points& points, double Point::*field) {
  std::set<double> found;
  double last = absent;
  for (const Point* p : points)
    if (p->*field != last && !std::isnan(p->*field)) found.insert(last = p->*field);
  return {found.begin(), found.end()};
}

std::vector<std::string> names(const Points& points, Name Point::*field) {
  std::vector<std::string> found;
  std::unordered_set<Name> known;
  Name last;
  for (const Point* p : points) {
    if (p->*field == last && !found.empty()) continue;
    last = p->*field;
    if (known.insert(last).second) found.push_back(last);
  }
  return found;
}

std::vector<std::string> apart(const Point& point, const std::vector<Point>& points) {
  std::array<std::set<std::string>, std::size(unseen_axes)> others;
  std::array<Name, std::size(unseen_axes)> last;
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = point.*unseen_axes[i].field;
  bool other_nodes = false;
  for (const Point& p : points) {
    if (p.cluster != point.cluster) continue;
    other_nodes |= p.gpus == point.gpus && or_zero(p.gpus_per_node) != or_zero(point.gpus_per_node);
    if (p.optimizer != point.optimizer) continue;
    for (std::size_t i = 0; i < last.size(); ++i) {
      const Name value = p.*unseen_axes[i].field;
      if (value == last[i]) continue;
      last[i] = value;
      if (value != point.*unseen_axes[i].field) others[i].insert(value.text());
    }
  }
  std::vector<std::string> said;
  for (std::size_t i = 0; i < others.size(); ++i)
    if (!others[i].empty())
      said.push_back(unseen_axes[i].field == &Point::settings
                         ? settings_apart(point.settings.text(), others[i])
                         : labelled(unseen_axes[i].label, point.*unseen_axes[i].field));
  if (other_nodes) said.push_back(fmt::format("{} GPUs per node", point.gpus_per_node));
  return said;
}

std::string stated(const Slice& slice) { return fmt::format("{}", fmt::join(slice.facts, ", ")); }

}  // namespace lambcast::report
