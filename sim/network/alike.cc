#include "sim/network/alike.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace lambcast {
namespace {

// Finds the classes. Only links that flows use are numbered, so that unused links cost little.
class Refinement {
 public:
  Refinement(std::span<const ColouredFlows> lists, std::size_t links, const ColourOfLink& colour_of)
      : lists_(lists), number_(links, unused) {
    for (const ColouredFlows& flows : lists) {
      LinkLists& routes = routes_.emplace_back();
      routes.first = flows.routes->first;
      routes.links.reserve(flows.routes->links.size());
      for (const LinkId link : flows.routes->links) {
        if (number_[link] == unused) {
          number_[link] = static_cast<std::uint32_t>(used_.size());
          used_.push_back(link);
          colours_.push_back(colour_of(link));
        }
        routes.links.push_back(number_[link]);
      }
    }
    class_.resize(used_.size());
    refine();
  }

  // Returns the colours of all flows, by list.
  const std::vector<std::vector<Colour>>& flows() const { return flows_; }
  const std::vector<LinkId>& used() const { return used_; }
  std::uint32_t class_of(LinkId link) const { return class_[number_[link]]; }
  std::size_t classes() const { return classes_; }

 private:
  static constexpr std::uint32_t unused = ~std::uint32_t{0};

  void refine() {
    std::vector<Colour> carried(used_.size());
    std::size_t before = 0, now = 0;
    do {
      before = now;
      colour_flows();
      add_to_links(carried);
      for (std::size_t link = 0; link < used_.size(); ++link)
        colours_[link] = mixed(colours_[link], std::exchange(carried[link], 0));
      now = divide_classes();
    } while (now != before && now != used_.size());
    if (now != before) colour_flows();  // else flows already have the colours of these classes
  }

  void colour_flows() {
    flows_.resize(lists_.size());
    for (std::size_t list = 0; list < lists_.size(); ++list) {
      std::vector<Colour>& colours = flows_[list] = lists_[list].colours;
      for (std::size_t i = 0; i < colours.size(); ++i)
        for (const std::uint32_t link : routes_[list].of(i))
          colours[i] = mixed(colours[i], colours_[link]);
    }
  }

  void add_to_links(std::vector<Colour>& carried) const {
    for (std::size_t list = 0; list < lists_.size(); ++list)
      for (std::size_t i = 0; i < flows_[list].size(); ++i) {
        Colour hop = 0;
        for (const std::uint32_t link : routes_[list].of(i))
          carried[link] += mixed(flows_[list][i], hop++);
      }
  }

  // Divides links into classes by colour and returns their number. A colour depends on the previous
  // one, so that two classes are never merged.
  std::size_t divide_classes() {
    std::vector<const Colour*> first(classes_, nullptr);
    std::unordered_map<Colour, std::uint32_t> split;
    for (std::size_t link = 0; link < used_.size(); ++link) {
      const Colour*& colour = first[class_[link]];
      if (colour == nullptr) colour = &colours_[link];
      if (*colour == colours_[link]) continue;
      const auto next = static_cast<std::uint32_t>(classes_ + split.size());
      class_[link] = split.try_emplace(colours_[link], next).first->second;
    }
    return classes_ += split.size();
  }

  std::span<const ColouredFlows> lists_;
  std::vector<LinkLists> routes_;  // indexed by list; links are given as their numbers
  std::vector<std::vector<Colour>> flows_;
  std::vector<std::uint32_t> number_;  // number of each link
  std::vector<LinkId> used_;           // used link of each number; so are the next two
  std::vector<Colour> colours_;
  std::vector<std::uint32_t> class_;
  std::size_t classes_ = 1;
};

// Writes the classes into an Alike.
class Writer {
 public:
  explicit Writer(const Refinement& refined) : refined_(refined), classes_(refined.classes()) {}

  std::optional<Alike> write(std::span<const ColouredFlows> lists) {
    for (std::size_t i = 0; i < lists.size(); ++i)
      if (!find_classes(*lists[i].routes, refined_.flows()[i])) return std::nullopt;
    find_trunks();
    for (std::size_t i = 0; i < lists.size(); ++i) write_paths(*lists[i].routes, alike_.flows[i]);
    return std::move(alike_);
  }

 private:
  // A class of links. `crossed_by` is the sum of the colours of flows that cross it.
  struct Class {
    Colour crossed_by = 0;
    Alike::Links links{};
    std::uint32_t trunk = 0;
  };

  // Finds a flow of each class and adds it to the links that it crosses.
  bool find_classes(const LinkLists& routes, const std::vector<Colour>& colours) {
    std::unordered_map<Colour, std::uint32_t> known;
    std::vector<Alike::Flows>& flows = alike_.flows.emplace_back();
    std::vector<std::uint32_t> crossed;
    for (std::uint32_t i = 0; i < colours.size(); ++i) {
      const auto [at, is_new] = known.try_emplace(colours[i], flows.size());
      if (!is_new) {
        ++flows[at->second].count;
        continue;
      }
      flows.push_back({i, 1});
      const Colour flow = mixed(colours[i], Colour{++flow_classes_});
      crossed.clear();
      for (const LinkId link : routes.of(i)) {
        crossed.push_back(refined_.class_of(link));
        if (std::ranges::count(crossed, crossed.back()) > 1) return false;
        classes_[crossed.back()].crossed_by += flow;
      }
    }
    return true;
  }

  void find_trunks() {
    std::vector<Class*> in_order;
    for (const LinkId link : refined_.used()) {
      Class& of = classes_[refined_.class_of(link)];
      if (of.links.count++ > 0) continue;
      of.links.first = link;
      in_order.push_back(&of);
    }
    std::unordered_map<Colour, std::uint32_t> known;  // indexed by the flows that cross the links
    for (Class* const of : in_order) {
      const auto next = static_cast<std::uint32_t>(known.size());
      of->trunk = known.try_emplace(of->crossed_by, next).first->second;
      if (of->trunk == alike_.trunks.size()) alike_.trunks.emplace_back();
      alike_.trunks[of->trunk].push_back(of->links);
    }
  }

  void write_paths(const LinkLists& routes, const std::vector<Alike::Flows>& flows) {
    LinkLists& paths = alike_.paths.emplace_back();
    for (const Alike::Flows& of : flows) {
      for (const LinkId link : routes.of(of.first)) {
        const LinkId trunk = classes_[refined_.class_of(link)].trunk;
        if (std::find(paths.links.begin() + paths.first.back(), paths.links.end(), trunk) ==
            paths.links.end())
          paths.links.push_back(trunk);
      }
      paths.end_list();
    }
  }

  const Refinement& refined_;
  Alike alike_;
  std::vector<Class> classes_;
  std::uint64_t flow_classes_ = 0;
};

}  // namespace

// One round of a multiplicative hash. The colours of a link are summed, so high bits must affect
// low ones.
Colour mixed(Colour a, Colour b) {
  const Colour x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 29) ^ (x >> 47);
}

Colour mixed(Colour a, double b) { return mixed(a, std::bit_cast<Colour>(b)); }

std::optional<Alike> find_alike(std::span<const ColouredFlows> lists, std::size_t links,
                                const ColourOfLink& colour_of) {
  return Writer(Refinement(lists, links, colour_of)).write(lists);
}

Topology trunk_topology(std::span<const Alike::Trunk> trunks, const Topology& topology) {
  Topology folded;
  folded.add_vertex({});
  for (const Alike::Trunk& trunk : trunks) {
    const Alike::Links* narrowest = &trunk.front();
    const auto width = [&](const Alike::Links& of) {
      return topology.capacity(of.first) * of.count;
    };
    for (const Alike::Links& of : trunk)
      if (width(of) < width(*narrowest)) narrowest = &of;
    folded.add_link(0, 0, width(*narrowest), topology.link(narrowest->first).kind);
  }
  return folded;
}

}  // namespace lambcast
