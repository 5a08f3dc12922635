#include "sim/engine/fold.h"

#include <set>
#include <unordered_map>

#include "sim/network/alike.h"

namespace lambcast {

struct KnownFolds::Classes {
  std::vector<std::vector<Alike::Flows>> flows;     // by Paths object
  std::vector<std::shared_ptr<const Paths>> paths;  // folded, by Paths object
  std::shared_ptr<const Topology> topology;         // null if the programs cannot be folded
};

namespace {

// Returns a hash of the partition of flows by colour. It does not depend on the colours themselves.
Colour division_of(const std::vector<Colour>& colours) {
  std::unordered_map<Colour, std::uint32_t> numbers;
  Colour division = 0;
  for (std::size_t i = 0; i < colours.size();) {
    const std::size_t begin = i;
    while (i < colours.size() && colours[i] == colours[begin]) ++i;
    const std::uint32_t number =
        numbers.try_emplace(colours[begin], static_cast<std::uint32_t>(numbers.size()))
            .first->second;
    division = mixed(mixed(division, Colour{number}), Colour{i});
  }
  return division;
}

// Collects the flow sets of programs by their paths, and builds the folded ones.
class Folding {
 public:
  Folding(const std::vector<std::shared_ptr<const CommProgram>>& programs, const Topology& topology,
          KnownFolds& known) {
    KnownFolds::Key key;
    for (const auto& program : programs)
      if (program != nullptr)
        for (const CommPhase& phase : program->phases) add(*phase.flows, key);
    for (std::size_t i = 0; i < key.size(); ++i) key[i].second = division_of(coloured_[i].colours);
    std::shared_ptr<const KnownFolds::Classes>& classes = known.at(std::move(key));
    if (classes == nullptr) classes = find_classes(topology);
    classes_ = classes;
  }

  // Returns null if the programs cannot be folded.
  const std::shared_ptr<const Topology>& topology() const { return classes_->topology; }

  std::shared_ptr<const CommProgram> folded(const CommProgram& program) {
    CommProgram result{program.fixed, {}, program.expand};
    for (const CommPhase& phase : program.phases)
      result.phases.push_back({folded(*phase.flows), phase.latency, phase.times, phase.hidden});
    return std::make_shared<const CommProgram>(std::move(result));
  }

 private:
  std::shared_ptr<const KnownFolds::Classes> find_classes(const Topology& topology) const {
    KnownFolds::Classes classes;
    auto alike = find_alike(coloured_, topology.links().size(), [&](LinkId link) {
      return mixed(static_cast<Colour>(topology.link(link).kind), topology.capacity(link).value());
    });
    if (alike) {
      classes.flows = std::move(alike->flows);
      classes.topology = std::make_shared<const Topology>(trunk_topology(alike->trunks, topology));
      for (LinkLists& paths : alike->paths)
        classes.paths.push_back(std::make_shared<const Paths>(std::move(paths)));
    }
    return std::make_shared<const KnownFolds::Classes>(std::move(classes));
  }

  // Flows of sets that share a Paths object get one colour from the bytes, caps and weights of all
  // these sets.
  void add(const FlowSet& set, KnownFolds::Key& key) {
    if (!added_.insert(&set).second) return;
    const auto [known, is_new] = by_paths_.try_emplace(set.paths.get(), coloured_.size());
    if (is_new) {
      coloured_.push_back({&set.paths->links(), {}});
      key.emplace_back(set.paths, 0);
    }
    std::vector<Colour>& colours = coloured_[known->second].colours;
    colours.resize(set.size(), known->second);
    set.each([&](const Flow& flow, std::size_t path) {
      Colour& colour = colours[path];
      colour =
          mixed(mixed(mixed(colour, flow.bytes.value()), flow.cap.value()), Colour{flow.weight});
    });
  }

  std::shared_ptr<const FlowSet> folded(const FlowSet& set) {
    std::shared_ptr<const FlowSet>& result = sets_[&set];
    if (result != nullptr) return result;
    const std::size_t of = by_paths_.at(set.paths.get());
    const std::vector<Alike::Flows>& classes = classes_->flows[of];
    std::vector<Flow> flows;
    auto next = classes.begin();
    set.each([&](const Flow& flow, std::size_t path) {
      if (next == classes.end() || next->first != path) return;
      const std::uint32_t count = next++->count;
      flows.push_back({flow.bytes * count, flow.cap * count, flow.weight * count, 1});
    });
    return result = std::make_shared<const FlowSet>(classes_->paths[of], std::move(flows));
  }

  std::vector<ColouredFlows> coloured_;  // indexed by Paths object, as numbered in by_paths_
  std::map<const Paths*, std::size_t> by_paths_;
  std::set<const FlowSet*> added_;
  std::shared_ptr<const KnownFolds::Classes> classes_;
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> sets_;  // folded set of each set
};

}  // namespace

std::shared_ptr<const KnownFolds::Classes>& KnownFolds::at(Key key) {
  return known_[std::move(key)];
}

FoldedPrograms fold(const std::vector<std::shared_ptr<const CommProgram>>& programs,
                    const std::shared_ptr<const Topology>& topology, KnownFolds* known) {
  KnownFolds none;
  Folding folding(programs, *topology, known != nullptr ? *known : none);
  if (folding.topology() == nullptr) return {topology, programs};
  FoldedPrograms result;
  for (const auto& program : programs)
    result.programs.push_back(program == nullptr ? nullptr : folding.folded(*program));
  result.topology = folding.topology();
  return result;
}

}  // namespace lambcast
