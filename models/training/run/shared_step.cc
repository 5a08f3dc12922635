#include "models/training/run/shared_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/training/price/measured_program.h"
#include "models/training/price/nic_sharing.h"
#include "models/training/price/peer_groups.h"
#include "models/training/price/shared_network.h"
#include "models/training/price/stretches.h"
#include "models/training/run/calls_in_order.h"

namespace lambcast {
namespace {

// Number of slices of a segment of passes, between which its flows pause.
constexpr std::int64_t slices = 8;

// Limits of the iteration for the waits of stages: the most rounds, and the change of a wait, as a
// share of the step, below which it ends.
constexpr int most_rounds = 4;
constexpr double least_change = 1e-3;

// Differences of segments due to rounding of flow rates are below this.
constexpr Duration least_felt = Duration::picoseconds(10'000);

int nodes_reached(const Call& call) { return call.place.node + call.group.node_span(); }

int nodes_of(const StepPlan& plan, const std::vector<Price>& prices,
             const std::vector<std::vector<int>>& by_stage) {
  int nodes = 1;
  for (const std::vector<int>& stage : by_stage)
    if (!stage.empty()) nodes = std::max(nodes, stage.back() + 1);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (const Call* call = std::get_if<Call>(&plan.ops[i].work))
      nodes = std::max(nodes, nodes_reached(*call));
    for (const Load& load : prices[i].loads) nodes = std::max(nodes, nodes_reached(load.call));
  }
  return nodes;
}

// Returns the nodes of each stage if groups on other nodes can contend; empty on a single switch,
// where they cannot.
std::vector<std::vector<int>> stages_that_meet(const StepPlan& plan, const TrainingPlan& training) {
  if (!plan.pipeline || training.cluster->fabric.kind == FabricKind::single_switch) return {};
  return nodes_by_stage(parallel::dense_grid(training.parallelism->layout));
}

class SharedStep {
 public:
  SharedStep(const StepPlan& plan, const std::vector<Price>& prices, const TrainingPlan& training,
             CollectiveCosts& costs)
      : plan_(plan),
        prices_(prices),
        training_(training),
        costs_(costs),
        stages_(stages_that_meet(plan, training)),
        network_(costs.shared_network(training.cluster, nodes_of(plan, prices, stages_),
                                      training.gpus_per_node)),
        laid_(plan.ops.size()),
        loads_(plan.ops.size()) {
    using Key = std::tuple<ProcessGroup, int, int, Op, double>;
    std::map<Key, int> class_of;  // a pair of stages lists the same call twice
    for (OpId op = 0; op < plan.ops.size(); ++op) {
      if (const Call* call = std::get_if<Call>(&plan.ops[op].work)) {
        const Key key{call->group, call->place.node, call->place.slot, call->op,
                      call->bytes.value()};
        const int of = plan.ops[op].rank_class;
        if (class_of.try_emplace(key, of).first->second == of) {
          laid_[op] = lay(*call);
          flows_ += laid_[op].flows;
          if (flows_ > SharedNetwork::most_flows) return;
        }
      }
      if (!prices[op].loads.empty()) loads_[op].program = together(prices[op].loads, false);
    }
    if (flows_ > SharedNetwork::most_flows) return;
    if (stages_.empty()) {
      fold_all();
      find_loads_alone({topology_, programs_of(loads_)});
      return;
    }
    find_loads_alone(alike_as_one(programs_of(loads_)));
    for (OpId op = 0; op < plan.ops.size(); ++op)
      if (!prices[op].loads.empty()) loads_[op].program = together(prices[op].loads, true);
    if (flows_ <= SharedNetwork::most_flows) fold_all();
  }

  std::size_t flows() const { return flows_; }

  Timeline run_at(End end, Execution& execution) {
    execution.waits.assign(plan_.ops.size(), Duration());
    Timeline timeline = run_once(end, execution);
    if (!plan_.pipeline || plan_.pipeline->pipeline.stages == 1) return timeline;
    for (int round = 0; round < most_rounds; ++round) {
      const Duration change = find_waits(end, timeline, round, execution.waits);
      if (change == Duration()) break;
      timeline = run_once(end, execution);
      if (change < timeline.end.since_start().scaled(least_change)) break;
    }
    return timeline;
  }

 private:
  Timeline run_once(End end, Execution& execution) {
    execution.programs.assign(plan_.ops.size(), nullptr);
    for (OpId op = 0; op < plan_.ops.size(); ++op) {
      const Duration time = prices_[op].at(end);
      const Duration whole = time + execution.waits[op];  // the wait may be -time
      if (time == Duration()) continue;
      if (laid_[op].alone > Duration())
        execution.programs[op] = std::make_shared<const CommProgram>(on_links(op, time));
      else if (loads_[op].alone > Duration() && whole > Duration())
        execution.programs[op] = passes(loads_[op], prices_[op].hidden, whole);
    }
    execution.graph = graph_of(plan_, prices_, end, execution.programs, execution.waits);
    return run(execution.graph, *make_network(NetworkModel::flow, *topology_));
  }

  // Returns the program of a call that takes `time` without contention.
  CommProgram on_links(OpId op, Duration time) {
    const NicUse& nics = prices_[op].nics;
    return nics.used.empty() ? scaled(*laid_[op].with_peers, time / laid_[op].alone)
                             : paced(laid_[op], *topology_, time, time.scaled(nics.share));
  }

  // For each segment of passes, finds its additional wait for other stages, if the network made
  // some of them longer in `timeline`. The first round takes the replayed value; later rounds move
  // half way to it, because each overshoots. Returns the largest change.
  Duration find_waits(End end, const Timeline& timeline, int round, std::vector<Duration>& waits) {
    const PipelinePlan& pipeline = *plan_.pipeline;
    std::vector<Duration> longer(static_cast<std::size_t>(pipeline.pipeline.stages));
    const auto longer_by = [&](OpId op) {
      return timeline.spans[op].end - timeline.spans[op].begin - prices_[op].at(end) - waits[op];
    };
    const auto for_stretches = [&](const auto& visit) {
      for (OpId op = 0; op < plan_.ops.size(); ++op)
        if (const StageWork* work = std::get_if<StageWork>(&plan_.ops[op].work)) visit(op, *work);
    };
    for_stretches([&](OpId op, const StageWork& work) {
      longer[static_cast<std::size_t>(work.stage)] += std::max(Duration(), longer_by(op));
    });
    if (*std::max_element(longer.begin(), longer.end()) <= least_felt) return {};
    const double width = width_of_passes(training_).log;
    const PipelinePrice alone = price_pipeline(pipeline, training_, costs_, end, width);
    const PipelinePrice met = replayed(pipeline, alone, longer);
    Duration most;
    for_stretches([&](OpId op, const StageWork& work) {
      const Duration grew = stretch_time(pipeline, met, work) - stretch_time(pipeline, alone, work);
      const Duration whole = grew - longer_by(op) - waits[op];
      const Duration change = Duration::picoseconds(whole.ps() / (round == 0 ? 1 : 2));
      waits[op] = std::max(waits[op] + change, Duration() - prices_[op].at(end));
      most = std::max({most, change, Duration() - change});
    });
    return most;
  }

  using ProgramPtr = std::shared_ptr<const CommProgram>;

  // The calls of a segment's passes, as one round for each phase (calls_in_order.h), and their
  // times without contention and peers.
  struct Loads {
    ProgramPtr program;
    std::vector<Duration> phases_alone;
    Duration alone;  // sum of all phases
  };

  static std::vector<ProgramPtr> programs_of(const std::vector<Loads>& loads) {
    std::vector<ProgramPtr> programs;
    for (const Loads& of : loads) programs.push_back(of.program);
    return programs;
  }

  // Folds equal flows. Later scaling applies to whole sets, so equal flows stay equal.
  FoldedPrograms alike_as_one(const std::vector<ProgramPtr>& programs) {
    if (training_.expand) return {network_.topology(), programs};
    return network_.folded(programs);
  }

  void fold_all() {
    std::vector<ProgramPtr> programs = programs_of(loads_);
    for (const SharedNetwork::Laid& laid : laid_) programs.push_back(laid.with_peers);
    const FoldedPrograms folded = alike_as_one(programs);
    topology_ = folded.topology;
    for (OpId op = 0; op < laid_.size(); ++op) {
      loads_[op].program = folded.programs[op];
      laid_[op].with_peers = folded.programs[laid_.size() + op];
    }
  }

  void find_loads_alone(const FoldedPrograms& alone) {
    for (OpId op = 0; op < loads_.size(); ++op) {
      if (alone.programs[op] == nullptr) continue;
      for (const CommPhase& phase : alone.programs[op]->phases) {
        loads_[op].phases_alone.push_back(time_alone({{}, {phase}, false}, *alone.topology));
        loads_[op].alone += loads_[op].phases_alone.back();
      }
    }
  }

  const CollectiveCost& cost_of(const Call& call) {
    return costs_.cost({training_.cluster, call.group, training_.network, training_.expand},
                       call.backend, call.op, call.bytes, call.algorithm);
  }

  SharedNetwork::Laid lay(const Call& call) {
    return network_.lay(call, cost_of(call), peer_nodes(call));
  }

  // Returns the nodes with peers of a call. Peers of a call within one node share no link with it.
  const std::vector<int>& peer_nodes(const Call& call) const {
    static const std::vector<int> none;
    for (std::size_t stage = 0; call.group.nodes() > 1 && stage < stages_.size(); ++stage)
      if (plan_.pipeline->places[stage] == call.place) return stages_[stage];
    return none;
  }

  ProgramPtr together(const std::vector<Load>& loads, bool peers) {
    CallsInOrder calls;
    for (const Load& load : loads) {
      const SharedNetwork::Laid laid = lay(load.call);
      if (laid.alone == Duration()) continue;
      const double times = load.times * (cost_of(load.call).time / laid.alone);
      IssuedFlows issued;
      for (const CommPhase& phase : (peers ? laid.with_peers : laid.program)->phases) {
        issued.paths.push_back(phase.flows->paths);
        for (Flow flow : phase.flows->flows) {
          flow.bytes = flow.bytes * (times * static_cast<double>(phase.times));
          issued.flows.push_back(flow);
        }
      }
      calls.add({load.call.group, load.call.place}, std::move(issued), times * laid.alone.s());
    }
    CommProgram program;
    for (IssuedFlows& phase : calls.phases())
      program.phases.push_back(
          {std::make_shared<const FlowSet>(joined(phase.paths), std::move(phase.flows)), {}, 1, 0});
    if (program.phases.empty()) return nullptr;
    return std::make_shared<const CommProgram>(std::move(program));
  }

  // Segments of a stage with the same calls share their paths.
  std::shared_ptr<const Paths> joined(const SharedNetwork::PathsList& paths) {
    std::shared_ptr<const Paths> one = network_.joined(paths);
    if (joined_.insert(one).second) flows_ += one->size();
    return one;
  }

  ProgramPtr passes(const Loads& loads, double hidden, Duration time) {
    const double slice = time.s() / slices;
    const double factor = std::min(1.0 / slices, slice / loads.alone.s());
    const double flows = loads.alone.s() * factor, rest = std::max(0.0, slice - flows);
    const Duration latency = Duration::seconds(std::sqrt(rest * (rest + 2 * hidden * flows)));
    CommProgram program;
    program.expand = true;
    for (std::int64_t of_slice = 0; of_slice < slices; ++of_slice)
      for (std::size_t i = 0; i < loads.phases_alone.size(); ++i)
        program.phases.push_back({loads.program->phases[i].flows,
                                  latency.scaled(loads.phases_alone[i] / loads.alone / factor), 1,
                                  hidden});
    return std::make_shared<const CommProgram>(scaled(program, factor));
  }

  const StepPlan& plan_;
  const std::vector<Price>& prices_;
  const TrainingPlan& training_;
  CollectiveCosts& costs_;
  std::vector<std::vector<int>>
      stages_;  // nodes of each stage, if groups on other nodes can contend
  SharedNetwork& network_;
  std::shared_ptr<const Topology> topology_;
  std::vector<SharedNetwork::Laid> laid_;  // by operation; empty if it makes no call
  std::vector<Loads> loads_;
  std::set<std::shared_ptr<const Paths>> joined_;  // paths of the loads
  std::size_t flows_ = 0;
};

}  // namespace

std::optional<Execution> execute_shared(const StepPlan& plan, const std::vector<Price>& prices,
                                        const TrainingPlan& training, CollectiveCosts& costs,
                                        Intervals intervals) {
  if (training.gpus > SharedNetwork::most_ranks) return std::nullopt;
  SharedStep step(plan, prices, training, costs);
  if (step.flows() > SharedNetwork::most_flows) return std::nullopt;
  Execution execution;
  run_at_ends(execution, intervals, least_on_nics(plan, prices),
              [&](End end) { return step.run_at(end, execution); });
  return execution;
}

}  // namespace lambcast
