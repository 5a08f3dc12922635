#include "models/training/cost_source.h"

#include <algorithm>
#include <utility>

namespace lambcast {
namespace {

constexpr double least_share = 0.01;

}  // namespace

CostSources::Entry& CostSources::entry(std::string_view cost, const Provenance& from) {
  for (Entry& known : entries_)
    if (known.cost == cost) return known;
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

std::optional<TippingCollective> CostSources::tipping() const {
  return moved_s_ >= least_share * time_s_ ? tipping_ : std::nullopt;
}

void CostSources::add(const CostSources& of_step, double steps) {
  time_s_ += of_step.time_s_ * steps;
  for (const Entry& other : of_step.entries_)
    entry(other.cost, other.provenance).time_s += other.time_s * steps;
  if (of_step.moved_s_ * steps <= moved_s_) return;
  tipping_ = of_step.tipping_;
  moved_s_ = of_step.moved_s_ * steps;
}

std::vector<CostSource> CostSources::shares() const {
  std::vector<CostSource> sources;
  for (const Entry& known : entries_)
    sources.push_back({known.cost, known.provenance, time_s_ > 0 ? known.time_s / time_s_ : 1});
  return sources;
}

Kind weakest(const std::vector<CostSource>& sources) {
  Kind kind = Kind::measured;
  for (const CostSource& source : sources)
    if (source.share >= least_share) kind = std::max(kind, source.provenance.kind);
  return kind;
}

}  // namespace lambcast
