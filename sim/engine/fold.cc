#include "sim/engine/fold.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

namespace lambcast {
namespace {

using Colour = std::uint64_t;

// One round of a multiplicative hash. Colours are added up per link, so that high bits must reach
// low ones.
Colour mixed(Colour a, Colour b) {
  const Colour x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 29) ^ (x >> 47);
}

Colour mixed(Colour a, double b) { return mixed(a, std::bit_cast<Colour>(b)); }

// Sets on one Paths object, whose flows differ in what they move.
struct Routes {
  std::shared_ptr<const Paths> paths;
  std::vector<Colour> moved{};          // of each flow, by all these sets
  std::vector<Colour> colours{};        // of each flow
  std::vector<std::uint32_t> firsts{};  // a flow of each class
  std::vector<std::uint32_t> counts{};  // flows of each class
  std::shared_ptr<const Paths> folded{};
};

class Folding {
 public:
  Folding(const std::vector<std::shared_ptr<const CommProgram>>& programs, const Topology& topology)
      : topology_(topology) {
    for (const auto& program : programs)
      if (program != nullptr)
        for (const CommPhase& phase : program->phases) add(*phase.flows);
    colour_links();
    refine();
  }

  // Returns whether no route crosses a class of links twice.
  bool write() {
    write_links();
    return std::ranges::all_of(routes_, [&](Routes& routes) { return write_paths(routes); });
  }

  std::shared_ptr<const Topology> topology() {
    return std::make_shared<const Topology>(std::move(folded_));
  }

  std::shared_ptr<const CommProgram> folded(const CommProgram& program) {
    CommProgram result{program.fixed, {}, program.expand};
    for (const CommPhase& phase : program.phases)
      result.phases.push_back({folded(*phase.flows), phase.latency, phase.times, phase.hidden});
    return std::make_shared<const CommProgram>(std::move(result));
  }

 private:
  void add(const FlowSet& set) {
    if (!sets_.try_emplace(&set, nullptr).second) return;
    const auto [known, is_new] = by_paths_.try_emplace(set.paths.get(), routes_.size());
    if (is_new) routes_.push_back({.paths = set.paths});
    Routes& routes = routes_[known->second];
    routes.moved.resize(set.size(), known->second);
    set.each([&](const Flow& flow, std::size_t path) {
      Colour& colour = routes.moved[path];
      colour =
          mixed(mixed(mixed(colour, flow.bytes.value()), flow.cap.value()), Colour{flow.weight});
    });
  }

  void colour_links() {
    colours_.resize(topology_.links().size());
    std::vector<bool> is_used(colours_.size());
    for (const Routes& routes : routes_)
      for (const LinkId link : routes.paths->links().links) {
        if (is_used[link]) continue;
        is_used[link] = true;
        used_.push_back(link);
        colours_[link] =
            mixed(static_cast<Colour>(topology_.link(link).kind), topology_.capacity(link).value());
      }
  }

  void refine() {
    std::vector<Colour> carried(colours_.size());
    for (std::size_t classes = 0;;) {
      for (Routes& routes : routes_) colour_flows(routes, carried);
      for (const LinkId link : used_) {
        colours_[link] = mixed(colours_[link], carried[link]);
        carried[link] = 0;
      }
      const std::size_t now = count_links();
      if (now == classes || now == used_.size()) break;
      classes = now;
    }
    for (Routes& routes : routes_) colour_flows(routes, carried);
  }

  void colour_flows(Routes& routes, std::vector<Colour>& carried) const {
    const LinkLists& lists = routes.paths->links();
    routes.colours = routes.moved;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Colour& colour = routes.colours[i];
      for (const LinkId link : lists.of(i)) colour = mixed(colour, colours_[link]);
      Colour hop = 0;
      for (const LinkId link : lists.of(i)) carried[link] += mixed(colour, hop++);
    }
  }

  std::size_t count_links() const {
    std::vector<Colour> seen;
    for (const LinkId link : used_) seen.push_back(colours_[link]);
    std::ranges::sort(seen);
    return static_cast<std::size_t>(std::unique(seen.begin(), seen.end()) - seen.begin());
  }

  void write_links() {
    std::unordered_map<Colour, std::uint32_t> members;
    for (const LinkId link : used_) ++members[colours_[link]];
    folded_.add_vertex({});
    for (const LinkId link : used_) {
      std::uint32_t& count = members[colours_[link]];
      if (count == 0) continue;
      class_of_[colours_[link]] =
          folded_.add_link(0, 0, topology_.capacity(link) * count, topology_.link(link).kind);
      count = 0;
    }
  }

  bool write_paths(Routes& routes) {
    std::unordered_map<Colour, std::uint32_t> known;
    const LinkLists& lists = routes.paths->links();
    LinkLists folded;
    for (std::uint32_t i = 0; i < lists.size(); ++i) {
      const auto [at, is_new] = known.try_emplace(routes.colours[i], routes.firsts.size());
      if (!is_new) {
        ++routes.counts[at->second];
        continue;
      }
      routes.firsts.push_back(i);
      routes.counts.push_back(1);
      std::vector<LinkId> links;
      for (const LinkId link : lists.of(i)) {
        links.push_back(class_of_.at(colours_[link]));
        if (std::ranges::count(links, links.back()) > 1) return false;
      }
      folded.add(links);
    }
    routes.folded = std::make_shared<const Paths>(std::move(folded));
    return true;
  }

  std::shared_ptr<const FlowSet> folded(const FlowSet& set) {
    std::shared_ptr<const FlowSet>& result = sets_.at(&set);
    if (result != nullptr) return result;
    const Routes& routes = routes_[by_paths_.at(set.paths.get())];
    std::vector<Flow> flows;
    std::size_t next = 0;
    set.each([&](const Flow& flow, std::size_t path) {
      if (next == routes.firsts.size() || routes.firsts[next] != path) return;
      const std::uint32_t count = routes.counts[next++];
      flows.push_back({flow.bytes * count, flow.cap * count, flow.weight * count, 1});
    });
    return result = std::make_shared<const FlowSet>(routes.folded, std::move(flows));
  }

  const Topology& topology_;
  std::vector<Routes> routes_;
  std::map<const Paths*, std::size_t> by_paths_;
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> sets_;  // to the folded one
  std::vector<LinkId> used_;
  std::vector<Colour> colours_;  // by link
  Topology folded_;
  std::unordered_map<Colour, LinkId> class_of_;
};

}  // namespace

FoldedPrograms fold(const std::vector<std::shared_ptr<const CommProgram>>& programs,
                    const std::shared_ptr<const Topology>& topology) {
  Folding folding(programs, *topology);
  if (!folding.write()) return {topology, programs};
  FoldedPrograms result;
  for (const auto& program : programs)
    result.programs.push_back(program == nullptr ? nullptr : folding.folded(*program));
  result.topology = folding.topology();
  return result;
}

}  // namespace lambcast
