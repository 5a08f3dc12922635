#include "models/training/run/shared_step.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/training/price/measured_program.h"
#include "models/training/price/nic_sharing.h"
#include "models/training/price/shared_network.h"
#include "models/training/price/stretches.h"
#include "sim/engine/fold.h"

namespace lambcast {
namespace {

// Slices of a segment of passes, between which its flows pause.
constexpr std::int64_t slices = 8;

// Rounds of finding what stages wait for, and the change, as a share of the step, that ends them.
constexpr int most_rounds = 4;
constexpr double least_change = 1e-3;

// Differences of segments from the rounding of flow rates stay below this.
constexpr Duration least_felt = Duration::picoseconds(10'000);

int nodes_reached(const Call& call) { return call.place.node + call.group.node_span(); }

int nodes_of(const StepPlan& plan, const std::vector<Price>& prices) {
  int nodes = 1;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (const Call* call = std::get_if<Call>(&plan.ops[i].work))
      nodes = std::max(nodes, nodes_reached(*call));
    for (const Load& load : prices[i].loads) nodes = std::max(nodes, nodes_reached(load.call));
  }
  return nodes;
}

class SharedStep {
 public:
  SharedStep(const StepPlan& plan, const std::vector<Price>& prices, const TrainingPlan& training,
             CollectiveCosts& costs)
      : plan_(plan),
        prices_(prices),
        training_(training),
        costs_(costs),
        network_(
            costs.shared_network(training.cluster, nodes_of(plan, prices), training.gpus_per_node)),
        laid_(plan.ops.size()),
        loads_(plan.ops.size()) {
    using Key = std::tuple<ProcessGroup, int, int, Op, double>;
    std::map<Key, int> class_of;  // a pair of stages makes one call, though both list it
    for (OpId op = 0; op < plan.ops.size(); ++op) {
      if (const Call* call = std::get_if<Call>(&plan.ops[op].work)) {
        const Key key{call->group, call->place.node, call->place.slot, call->op,
                      call->bytes.value()};
        const int of = plan.ops[op].rank_class;
        if (class_of.try_emplace(key, of).first->second == of) laid_[op] = lay(*call);
      }
      if (!prices[op].loads.empty()) loads_[op].program = together(prices[op].loads);
    }
    topology_ = network_.topology();
    if (!training.expand) fold_alike();
    for (Loads& loads : loads_)
      if (loads.program != nullptr) loads.alone = time_alone(*loads.program, *topology_);
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
      const Duration whole = time + execution.waits[op];  // nothing where it waits for so much less
      if (time == Duration()) continue;
      if (laid_[op].alone > Duration())
        execution.programs[op] = std::make_shared<const CommProgram>(on_links(op, time));
      else if (loads_[op].alone > Duration() && whole > Duration())
        execution.programs[op] = passes(loads_[op], prices_[op].hidden, whole);
    }
    execution.graph = graph_of(plan_, prices_, end, execution.programs, execution.waits);
    return run(execution.graph, *make_network(NetworkModel::flow, *topology_));
  }

  // The program of a call that lasts `time` alone.
  CommProgram on_links(OpId op, Duration time) {
    const NicUse& nics = prices_[op].nics;
    return nics.used.empty() ? scaled(*laid_[op].program, time / laid_[op].alone)
                             : paced(laid_[op], *topology_, time, time.scaled(nics.share));
  }

  // Finds, for each segment of passes, the wait for other stages beyond its price, if the network
  // made some longer in `timeline`. The first round takes the replayed value, later ones move half
  // way there, since each overshoots. Returns the largest change.
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

  // The sends of a segment's passes, all at once, and their time alone.
  struct Loads {
    std::shared_ptr<const CommProgram> program;
    Duration alone;
  };

  // Replaces flows that are alike by one. Later scaling keeps them alike: it is that of whole sets.
  void fold_alike() {
    std::vector<std::shared_ptr<const CommProgram>> programs;
    for (const SharedNetwork::Laid& laid : laid_) programs.push_back(laid.program);
    for (const Loads& loads : loads_) programs.push_back(loads.program);
    const FoldedPrograms folded = fold(programs, topology_);
    topology_ = folded.topology;
    for (OpId op = 0; op < laid_.size(); ++op) {
      laid_[op].program = folded.programs[op];
      loads_[op].program = folded.programs[laid_.size() + op];
    }
  }

  const CollectiveCost& cost_of(const Call& call) {
    return costs_.cost({training_.cluster, call.group, training_.network, training_.expand},
                       call.backend, call.op, call.bytes, call.algorithm);
  }

  SharedNetwork::Laid lay(const Call& call) {
    SharedNetwork::Laid laid = network_.lay(call, cost_of(call));
    flows_ += laid.flows;
    return laid;
  }

  std::shared_ptr<const CommProgram> together(const std::vector<Load>& loads) {
    std::vector<std::vector<LinkId>> paths;
    std::vector<Flow> flows;
    for (const Load& load : loads) {
      const SharedNetwork::Laid laid = lay(load.call);
      if (laid.alone == Duration()) continue;
      const double times = load.times * (cost_of(load.call).time / laid.alone);
      for (const CommPhase& phase : laid.program->phases) {
        const LinkLists& links = phase.flows->paths->links();
        for (std::size_t i = 0; i < links.size(); ++i)
          paths.emplace_back(links.of(i).begin(), links.of(i).end());
        for (Flow flow : phase.flows->flows) {
          flow.bytes = flow.bytes * (times * static_cast<double>(phase.times));
          flows.push_back(flow);
        }
      }
    }
    if (flows.empty()) return nullptr;
    const auto set = std::make_shared<const FlowSet>(paths, std::move(flows));
    return std::make_shared<const CommProgram>(CommProgram{{}, {{set, {}, 1, 0}}, false});
  }

  std::shared_ptr<const CommProgram> passes(const Loads& loads, double hidden, Duration time) {
    const double slice = time.s() / slices;
    const double factor = std::min(1.0 / slices, slice / loads.alone.s());
    const double flows = loads.alone.s() * factor, rest = std::max(0.0, slice - flows);
    const Duration latency = Duration::seconds(std::sqrt(rest * (rest + 2 * hidden * flows)));
    const auto& set = loads.program->phases.front().flows;
    return std::make_shared<const CommProgram>(
        scaled({{}, {{set, latency.scaled(1 / factor), slices, hidden}}, true}, factor));
  }

  const StepPlan& plan_;
  const std::vector<Price>& prices_;
  const TrainingPlan& training_;
  CollectiveCosts& costs_;
  SharedNetwork& network_;
  std::shared_ptr<const Topology> topology_;
  std::vector<SharedNetwork::Laid> laid_;  // by operation; nothing where it makes no call
  std::vector<Loads> loads_;
  std::size_t flows_ = 0;
};

}  // namespace

Execution execute_shared(const StepPlan& plan, const std::vector<Price>& prices,
                         const TrainingPlan& training, CollectiveCosts& costs,
                         Intervals intervals) {
  const auto in_streams = [&] {
    Execution execution = execute(plan, prices, intervals);
    execution.apart = true;
    return execution;
  };
  if (training.gpus > SharedNetwork::most_ranks) return in_streams();
  SharedStep step(plan, prices, training, costs);
  if (step.flows() > SharedNetwork::most_flows) return in_streams();
  Execution execution;
  run_at_ends(execution, intervals, least_on_nics(plan, prices),
              [&](End end) { return step.run_at(end, execution); });
  return execution;
}

}  // namespace lambcast
