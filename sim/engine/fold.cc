#include "sim/engine/fold.h"

#include <map>
#include <set>
#include <utility>

#include "sim/network/alike.h"

namespace lambcast {
namespace {

// Collects the flow sets of programs by their paths, and builds the folded ones.
class Folding {
 public:
  Folding(const std::vector<std::shared_ptr<const CommProgram>>& programs,
          const Topology& topology) {
    for (const auto& program : programs)
      if (program != nullptr)
        for (const CommPhase& phase : program->phases) add(*phase.flows);
    alike_ = find_alike(moved_, topology.links().size(), [&](LinkId link) {
      return mixed(static_cast<Colour>(topology.link(link).kind), topology.capacity(link).value());
    });
    if (!alike_) return;
    topology_ = std::make_shared<const Topology>(trunk_topology(alike_->trunks, topology));
    for (LinkLists& paths : alike_->paths)
      paths_.push_back(std::make_shared<const Paths>(std::move(paths)));
  }

  // Returns null if the programs cannot be folded.
  const std::shared_ptr<const Topology>& topology() const { return topology_; }

  std::shared_ptr<const CommProgram> folded(const CommProgram& program) {
    CommProgram result{program.fixed, {}, program.expand};
    for (const CommPhase& phase : program.phases)
      result.phases.push_back({folded(*phase.flows), phase.latency, phase.times, phase.hidden});
    return std::make_shared<const CommProgram>(std::move(result));
  }

 private:
  // Flows of sets that share a Paths object get one colour from the bytes, caps and weights of all
  // these sets.
  void add(const FlowSet& set) {
    if (!added_.insert(&set).second) return;
    const auto [known, is_new] = by_paths_.try_emplace(set.paths.get(), moved_.size());
    if (is_new) moved_.push_back({&set.paths->links(), {}});
    std::vector<Colour>& colours = moved_[known->second].colours;
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
    std::vector<Flow> flows;
    auto next = alike_->flows[of].begin();
    set.each([&](const Flow& flow, std::size_t path) {
      if (next == alike_->flows[of].end() || next->first != path) return;
      const std::uint32_t count = next++->count;
      flows.push_back({flow.bytes * count, flow.cap * count, flow.weight * count, 1});
    });
    return result = std::make_shared<const FlowSet>(paths_[of], std::move(flows));
  }

  std::vector<ColouredFlows> moved_;  // indexed by Paths object, as numbered in by_paths_
  std::map<const Paths*, std::size_t> by_paths_;
  std::set<const FlowSet*> added_;
  std::optional<Alike> alike_;
  std::shared_ptr<const Topology> topology_;
  std::vector<std::shared_ptr<const Paths>> paths_;                // folded
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> sets_;  // folded set of each set
};

}  // namespace

FoldedPrograms fold(const std::vector<std::shared_ptr<const CommProgram>>& programs,
                    const std::shared_ptr<const Topology>& topology) {
  Folding folding(programs, *topology);
  if (folding.topology() == nullptr) return {topology, programs};
  FoldedPrograms result;
  for (const auto& program : programs)
    result.programs.push_back(program == nullptr ? nullptr : folding.folded(*program));
  result.topology = folding.topology();
  return result;
}

}  // namespace lambcast
