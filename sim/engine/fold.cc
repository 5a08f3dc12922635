#include "sim/engine/fold.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
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

// Finds the classes.
class Colouring {
 public:
  explicit Colouring(const Topology& topology) : topology_(topology) {}

  void add(const FlowSet& set) {
    if (!added_.insert(&set).second) return;
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

  void refine() {
    colour_links();
    std::vector<Colour> carried(colours_.size());
    class_.resize(colours_.size());
    classes_ = 1;
    for (std::size_t before = 0;;) {
      for (Routes& routes : routes_) colour_flows(routes, carried);
      for (const LinkId link : used_) {
        colours_[link] = mixed(colours_[link], carried[link]);
        carried[link] = 0;
      }
      const std::size_t now = divide_classes();
      if (now == before || now == used_.size()) break;
      before = now;
    }
    for (Routes& routes : routes_) colour_flows(routes, carried);
  }

  std::vector<Routes>& routes() { return routes_; }
  std::size_t routes_of(const Paths* paths) const { return by_paths_.at(paths); }
  const std::vector<LinkId>& used() const { return used_; }
  Colour colour(LinkId link) const { return colours_[link]; }

 private:
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

  // Puts links into classes by colour and returns their number. A colour depends on the one before,
  // so that links of two classes never meet again.
  std::size_t divide_classes() {
    std::vector<const Colour*> first(classes_, nullptr);
    std::unordered_map<Colour, std::uint32_t> split;
    for (const LinkId link : used_) {
      const Colour*& colour = first[class_[link]];
      if (colour == nullptr) colour = &colours_[link];
      if (*colour == colours_[link]) continue;
      const auto next = static_cast<std::uint32_t>(classes_ + split.size());
      class_[link] = split.try_emplace(colours_[link], next).first->second;
    }
    return classes_ += split.size();
  }

  const Topology& topology_;
  std::vector<Routes> routes_;
  std::map<const Paths*, std::size_t> by_paths_;
  std::set<const FlowSet*> added_;
  std::vector<LinkId> used_;
  std::vector<Colour> colours_;       // by link
  std::vector<std::uint32_t> class_;  // by link
  std::size_t classes_ = 0;
};

// Writes classes as flows and links.
class Folding {
 public:
  Folding(const std::vector<std::shared_ptr<const CommProgram>>& programs, const Topology& topology)
      : topology_(topology), colouring_(topology) {
    for (const auto& program : programs)
      if (program != nullptr)
        for (const CommPhase& phase : program->phases) colouring_.add(*phase.flows);
    colouring_.refine();
  }

  // Returns whether no route crosses a class of links twice.
  bool write() {
    if (!std::ranges::all_of(colouring_.routes(),
                             [&](Routes& routes) { return find_classes(routes); }))
      return false;
    write_links();
    for (Routes& routes : colouring_.routes()) write_paths(routes);
    return true;
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
  // A class of links. `crossed_by` sums up the classes of flows that cross it.
  struct Links {
    Bandwidth capacity;  // of each
    LinkKind kind = LinkKind::local;
    Colour crossed_by = 0;
    std::uint32_t count = 0;
  };

  // Finds a flow of each class and adds it to the links that it crosses.
  bool find_classes(Routes& routes) {
    std::unordered_map<Colour, std::uint32_t> known;
    const LinkLists& lists = routes.paths->links();
    for (std::uint32_t i = 0; i < lists.size(); ++i) {
      const auto [at, is_new] = known.try_emplace(routes.colours[i], routes.firsts.size());
      if (!is_new) {
        ++routes.counts[at->second];
        continue;
      }
      const Colour flow = mixed(routes.colours[i], Colour{++flow_classes_});
      std::vector<Colour> crossed;
      for (const LinkId link : lists.of(i)) {
        crossed.push_back(colouring_.colour(link));
        if (std::ranges::count(crossed, crossed.back()) > 1) return false;
        links_[crossed.back()].crossed_by += flow;
      }
      routes.firsts.push_back(i);
      routes.counts.push_back(1);
    }
    return true;
  }

  // Writes the narrowest of the classes that the same flows cross. The others limit none.
  void write_links() {
    for (const LinkId link : colouring_.used()) {
      Links& of = links_[colouring_.colour(link)];
      of = {topology_.capacity(link), topology_.link(link).kind, of.crossed_by, of.count + 1};
    }
    const auto width = [&](Colour colour) {
      return links_[colour].capacity * links_[colour].count;
    };
    folded_.add_vertex({});
    std::unordered_map<Colour, Colour> narrowest;  // by the flows, then by the colour
    for (const LinkId link : colouring_.used()) {
      const Colour colour = colouring_.colour(link);
      const auto [at, is_new] = narrowest.try_emplace(links_[colour].crossed_by, colour);
      if (!is_new && width(colour) < width(at->second)) at->second = colour;
    }
    for (const LinkId link : colouring_.used()) {
      const Colour colour = colouring_.colour(link);
      const Links& of = links_[colour];
      if (narrowest[of.crossed_by] == colour && !class_of_.contains(colour))
        class_of_[colour] = folded_.add_link(0, 0, width(colour), of.kind);
    }
  }

  void write_paths(Routes& routes) {
    LinkLists folded;
    for (const std::uint32_t i : routes.firsts) {
      for (const LinkId link : routes.paths->links().of(i))
        if (const auto of = class_of_.find(colouring_.colour(link)); of != class_of_.end())
          folded.links.push_back(of->second);
      folded.end_list();
    }
    routes.folded = std::make_shared<const Paths>(std::move(folded));
  }

  std::shared_ptr<const FlowSet> folded(const FlowSet& set) {
    std::shared_ptr<const FlowSet>& result = sets_[&set];
    if (result != nullptr) return result;
    const Routes& routes = colouring_.routes()[colouring_.routes_of(set.paths.get())];
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
  Colouring colouring_;
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> sets_;  // to the folded one
  Topology folded_;
  std::unordered_map<Colour, Links> links_;
  std::unordered_map<Colour, LinkId> class_of_;  // of links that are not left out
  std::uint64_t flow_classes_ = 0;
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
