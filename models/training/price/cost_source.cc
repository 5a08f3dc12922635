#include "models/training/price/cost_source.h"

#include <algorithm>
#include <utility>

namespace lambcast {
namespace {

constexpr double least_share = 0.01;

}  // namespace

CostSources::Entry& CostSources::entry(std::string_view cost, const Provenance& from) {
  // Similar operations read their costs in the same order: most are found at the last position or
  // the next one.
  for (std::size_t i = 0; i < entries_.size(); ++i, ++at_) {
    if (at_ >= entries_.size()) at_ = 0;
    if (entries_[at_].cost == cost) return entries_[at_];
  }
  at_ = entries_.size();
  return entries_.emplace_back(Entry{std::string(cost), from});
}

void CostSources::read(std::string_view cost, const Provenance& from) {
  entry(cost, from).is_read = true;
}

void CostSources::read_for(Duration part, std::string_view cost, const Provenance& from) {
  entry(cost, from).time_s += part.s();
}

void CostSources::spend(Duration time) {
  time_s_ += time.s();
  for (Entry& known : entries_)
    if (std::exchange(known.is_read, false)) known.time_s += time.s();
}

void CostSources::tips(const TippingCollective& collective, double times) {
  const double moved_s = collective.moves().s() * times;
  if (moved_s <= moved_s_) return;
  tipping_ = collective;
  moved_s_ = moved_s;
}

RunSources::RunSources(CostSources of_step) {
  add(std::make_shared<const CostSources>(std::move(of_step)), 1);
}

void RunSources::add(std::shared_ptr<const CostSources> of_step, double steps) {
  parts_.push_back({std::move(of_step), steps});
}

double RunSources::time_s() const {
  double all_s = 0;
  for (const Part& part : parts_) all_s += part.of_step->time_s_ * part.steps;
  return all_s;
}

std::vector<RunSources::Spent> RunSources::spent() const {
  std::vector<Spent> all;
  for (const Part& part : parts_) {
    std::size_t at = 0;  // the steps of a run read their costs in similar order
    const std::size_t before = all.size();
    for (const CostSources::Entry& entry : part.of_step->entries_) {
      std::size_t tried = 0;
      for (; tried < before && all[at].of->cost != entry.cost; ++tried) at = (at + 1) % before;
      if (tried < before)
        all[at].time_s += entry.time_s * part.steps;
      else
        all.push_back({&entry, entry.time_s * part.steps});
    }
  }
  return all;
}

std::vector<CostSource> RunSources::shares() const {
  const double all_s = time_s();
  std::vector<CostSource> sources;
  for (const auto& [of, seconds] : spent())
    sources.push_back({of->cost, of->provenance, all_s > 0 ? seconds / all_s : 1});
  return sources;
}

Kind RunSources::weakest() const {
  const double all_s = time_s();
  Kind kind = Kind::measured;
  for (const auto& [of, seconds] : spent())
    if (all_s <= 0 || seconds / all_s >= least_share) kind = std::max(kind, of->provenance.kind);
  return kind;
}

std::optional<TippingCollective> RunSources::tipping() const {
  std::optional<TippingCollective> furthest;
  double moved_s = 0;
  for (const auto& [of_step, steps] : parts_) {
    if (of_step->moved_s_ * steps <= moved_s) continue;
    furthest = of_step->tipping_;
    moved_s = of_step->moved_s_ * steps;
  }
  return moved_s >= least_share * time_s() ? furthest : std::nullopt;
}

}  // namespace lambcast
