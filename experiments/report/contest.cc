#include "experiments/report/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "experiments/report/palette.h"
#include "experiments/report/summary.h"
#include "sim/base/sort_stably.h"

namespace lambcast::report {
namespace {

constexpr Name Point::*place_names[] = {&Point::cluster,   &Point::model,      &Point::baseline,
                                        &Point::kernels,   &Point::network,    &Point::device,
                                        &Point::precision, &Point::zero_stage, &Point::overlap,
                                        &Point::symmetry,  &Point::settings};
constexpr double Point::*place_numbers[] = {
    &Point::gpus,         &Point::gpus_per_node, &Point::micro_batch, &Point::grad_accum,
    &Point::global_batch, &Point::seq_len,       &Point::steps,       &Point::nic_Gbps};

std::string place_of(const Point& p) {
  std::string place;
  for (const auto name : place_names) place += fmt::format("{}\n", p.*name);
  for (const auto number : place_numbers) place += fmt::format("{}\n", p.*number);
  return place;
}

bool is_candidate(const Point& p) {
  return p.compressed() && std::isfinite(p.speedup) && is_sound(p);
}

// Returns the fastest row of each candidate, fastest first.
std::vector<const Point*> ranking_of(std::vector<const Point*> rows) {
  sort_stably(rows, [](const Point* a, const Point* b) { return a->speedup > b->speedup; });
  std::vector<const Point*> ranking;
  for (const Point* p : rows)
    if (std::ranges::none_of(ranking, [&](const Point* q) { return q->optimizer == p->optimizer; }))
      ranking.push_back(p);
  return ranking;
}

}  // namespace

Contest contest_of(const std::vector<Point>& points) {
  Contest contest;
  if (std::ranges::none_of(points, [](const Point& p) { return is_candidate(p) && p.exchanges(); }))
    return contest;
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<const Point*>> places;  // in the order of the file
  for (const Point& p : points) {
    if (!is_candidate(p)) continue;
    const auto [place, added] = known.try_emplace(place_of(p), places.size());
    if (added) places.emplace_back();
    places[place->second].push_back(&p);
  }
  struct Shown {
    std::size_t candidates;
    Meeting meeting;
  };
  std::vector<Shown> shown;
  std::set<std::string> candidates;
  for (const auto& rows : places) {
    const std::vector<const Point*> ranking = ranking_of(rows);
    if (ranking.size() < 2) continue;
    ++contest.places;
    for (const Point* p : ranking) candidates.insert(p->optimizer);
    const Point& first = *ranking[0];
    const auto there = std::ranges::find_if(
        shown, [&](const Shown& s) { return s.meeting.winner->cluster == first.cluster; });
    const Shown here{ranking.size(), {&first, ranking[1]}};
    const auto rank = [](const Shown& s) {
      return std::pair(s.candidates, s.meeting.winner->gpus);
    };
    if (there == shown.end())
      shown.push_back(here);
    else if (rank(here) > rank(*there))
      *there = here;
    if (first.speedup <= 1) {
      ++contest.plain;
      continue;
    }
    auto win = std::ranges::find(contest.wins, first.optimizer.text(), &Win::candidate);
    if (win == contest.wins.end())
      win = contest.wins.insert(win, {first.optimizer.text(), 0, &first});
    ++win->places;
    if (first.speedup > win->best->speedup) win->best = &first;
  }
  contest.candidates = candidates.size();
  sort_stably(contest.wins, std::ranges::greater(), &Win::places);
  for (const Shown& s : shown) contest.clusters.push_back(s.meeting);
  return contest;
}

std::string headline_of(const Contest& contest) {
  const auto places = [](std::size_t count, std::size_t all) {
    return all == 1 ? std::string("the one place") : fmt::format("{} of {} places", count, all);
  };
  if (contest.wins.empty())
    return fmt::format(
        "None of {} ways of sending less is faster than the plain run in {}.", contest.candidates,
        contest.places == 1 ? "the one place" : fmt::format("any of {} places", contest.places));
  const Win& first = contest.wins.front();
  return fmt::format(
      "{} is the fastest of {} ways of sending less in {}, at most {} as fast as {} "
      "({}, {} GPUs).",
      display_name(first.candidate), contest.candidates, places(first.places, contest.places),
      to_text(speedup_of(*first.best)), display_name(first.best->baseline.text()),
      first.best->cluster, first.best->gpus);
}

std::string detail_of(const Contest& contest) {
  std::vector<std::string> others;
  for (std::size_t i = 1; i < contest.wins.size(); ++i) {
    const Win& win = contest.wins[i];
    others.push_back(
        fmt::format("{} is fastest in {}, at most {} ({}, {} GPUs)", display_name(win.candidate),
                    win.places, to_text(speedup_of(*win.best)), win.best->cluster, win.best->gpus));
  }
  if (contest.plain > 0 && !contest.wins.empty())
    others.push_back(fmt::format("in {} nothing is faster than the plain run", contest.plain));
  std::string text = fmt::format("{}", fmt::join(others, "; "));
  if (!text.empty()) text += ". ";
  return text + "Time of as many steps: what fewer bits cost in further steps is not in it.";
}

}  // namespace lambcast::report
