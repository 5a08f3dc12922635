#include "models/training/cost_source.h"

#include <algorithm>

#include "models/device/compute.h"
#include "models/training/buffers.h"

namespace lambcast {
namespace {

class Sources {
 public:
  Sources(const TrainingPlan& training, std::int64_t seq_len)
      : training_(training),
        cluster_(*training.cluster),
        device_(*training.device),
        seq_len_(seq_len) {}

  std::vector<CostSource> of(const PlanOp& op) {
    std::visit([&](const auto& work) { add_of(op, work); }, op.work);
    return std::move(sources_);
  }

 private:
  void add(const char* cost, const Provenance& from) { sources_.push_back({cost, from}); }

  void add_of(const PlanOp&, const PassWork&) {
    add("forward_backward",
        micro_batch_time(device_, *training_.model, cluster_.stack.implementation,
                         training_.batch.micro, seq_len_)
            .provenance);
    if (cluster_.stack.compute_scale.value != 1)
      add("compute_scale", cluster_.stack.compute_scale.provenance);
    if (cluster_.stack.compute_spread.value > 0)
      add("compute_spread", cluster_.stack.compute_spread.provenance);
  }

  void add_of(const PlanOp&, const StageWork&) {
    const GpuRates& rates = *device_.rates;
    const MatrixRate& products = rates.of(training_.parallelism->format);
    add("matrix_peak", products.peak.provenance);
    add("matrix_share", products.share.provenance);
    add("memory_rate", rates.memory.provenance);
    if (training_.model->experts > 0) add_experts(training_.parallelism->experts);
    const Parallelism& how = *training_.parallelism;
    if (how.sharding == parallel::Sharding::weights && how.framework.shard_handling_us > 0)
      add("shard_handling",
          {Kind::fitted, "DeepSpeed blog of 2022-07-26, 175B on 128 and 1,024 A100"});
    if (cluster_.stack.compute_scale.value != 1)
      add("compute_scale", cluster_.stack.compute_scale.provenance);
    if (cluster_.stack.compute_spread.value > 0)
      add("compute_spread", cluster_.stack.compute_spread.provenance);
  }

  void add_experts(const ExpertUse& use) {
    add("expert_imbalance", use.imbalance.provenance);
    add("grouped_products",
        {Kind::assumed, "80 % of one large product's rate, from one published rate of a GB200"});
    if (use.kernels == ExpertKernels::each)
      add("framework_launch", device_.framework_launch.provenance);
  }

  void add_of(const PlanOp&, const MemoryWork&) {
    add("optimizer_memory_bandwidth", device_.copy_bandwidth.provenance);
  }

  void add_of(const PlanOp& op, const KernelWork& work) {
    const bool update = op.part == Category::optimizer;
    if (const KernelCurve* measured = find_kernel(device_, work.passes.kernel))
      return add(update ? "optimizer_kernels" : "compression_kernels", measured->provenance);
    const bool fused = training_.kernels == Kernels::fused;
    add("optimizer_memory_bandwidth", device_.copy_bandwidth.provenance);
    if (cluster_.stack.optimizer_scale.value != 1)
      add("optimizer_scale", cluster_.stack.optimizer_scale.provenance);
    if (update && training_.kernels == Kernels::unfused_adam)
      add("unfused_adam", cluster_.stack.unfused_adam_from);
    if (!update)
      add("compression_kernels",
          {Kind::assumed, training_.exchange != Exchange{}
                              ? "bytes and launches of the exchange's kernels, counted, over copy "
                                "bandwidth"
                          : fused ? "bytes of the fused kernels over copy bandwidth (kernels/cuda)"
                                  : "bytes of DeepSpeed's unfused operations over copy bandwidth"});
    if (work.passes.launches + work.passes.launches_per_tensor > 0)
      add(fused ? "launch_overhead" : "framework_launch",
          (fused ? device_.launch_overhead : device_.framework_launch).provenance);
    if (work.passes.syncs + work.passes.syncs_per_tensor > 0)
      add("sync_overhead", device_.sync_overhead.provenance);
  }

  void add_of(const PlanOp&, const ProductWork& work) {
    add("matrix_peak", device_.peak_half.provenance);
    add("share_of_peak", work.share_of_peak.provenance);
  }

  void add_of(const PlanOp&, const HostCopy& work) {
    const HostCopies copies = host_copies(cluster_, device_);
    add("host_copies", (work.pinned ? copies.staged_to_host : copies.pageable_to_host).provenance);
    if (work.waits > 0) add("sync_overhead", device_.sync_overhead.provenance);
  }

  void add_of(const PlanOp&, const Call& call) {
    const bool mpi = call.channel != Channel::nccl;
    const LibrarySpec& library = mpi ? cluster_.mpi : cluster_.nccl;
    if (call.channel == Channel::mpi_host)
      add("host_link", cluster_.host_link.provenance);
    else
      add("gpu_link", cluster_.gpu_link.provenance);
    if (training_.nodes() > 1) {
      if (call.channel != Channel::mpi_host) add("gpu_nic", cluster_.gpu_nic.provenance);
      add("nic_bandwidth", cluster_.nic_bandwidth.provenance);
      add("fabric_oversubscription", cluster_.fabric.oversubscription.provenance);
      add(mpi ? "mpi_nic_efficiency" : "nccl_nic_efficiency", library.nic_efficiency.provenance);
      if (cluster_.port_queue) {
        add("port_queue", cluster_.port_queue->depth.provenance);
        add("rto_min", cluster_.port_queue->rto_min.provenance);
      }
      if (call.op == Op::all_reduce && call.algorithm.empty() && !library.all_reduce.empty())
        add(mpi ? "mpi_all_reduce" : "nccl_all_reduce", library.all_reduce_from);
    }
    const ProtocolSpec& protocol = library.protocols.back();
    add(mpi ? "mpi_latency" : "nccl_latency",
        (training_.nodes() > 1 ? protocol.network_hop : protocol.local_hop).provenance);
  }

  void add_of(const PlanOp&, const Wait&) {}

  void add_of(const PlanOp& op, const Slowdown& work) {
    add_of(op, work.beside);
    add("lost_to_collectives",
        {Kind::assumed, "blocks of NCCL on the multiprocessors that compute"});
  }

  const TrainingPlan& training_;
  const Cluster& cluster_;
  const Device& device_;
  std::int64_t seq_len_;
  std::vector<CostSource> sources_;
};

// Operations that rest on the same costs.
bool same_costs(const PlanOp& a, const PlanOp& b) {
  if (a.work.index() != b.work.index() || a.part != b.part) return false;
  if (const auto* kernel = std::get_if<KernelWork>(&a.work)) {
    const Passes &one = kernel->passes, &other = std::get<KernelWork>(b.work).passes;
    return one.kernel == other.kernel &&
           (one.syncs + one.syncs_per_tensor > 0) == (other.syncs + other.syncs_per_tensor > 0) &&
           (one.launches + one.launches_per_tensor > 0) ==
               (other.launches + other.launches_per_tensor > 0);
  }
  if (const auto* call = std::get_if<Call>(&a.work)) {
    const Call& other = std::get<Call>(b.work);
    return call->channel == other.channel && call->op == other.op &&
           call->algorithm.empty() == other.algorithm.empty();
  }
  if (const auto* copy = std::get_if<HostCopy>(&a.work))
    return copy->pinned == std::get<HostCopy>(b.work).pinned;
  return true;
}

}  // namespace

std::vector<CostSource> sources_of(const PlanOp& op, const TrainingPlan& training,
                                   std::int64_t seq_len) {
  return Sources(training, seq_len).of(op);
}

void add_sources(const StepPlan& plan, const TrainingPlan& training,
                 std::vector<CostSource>& sources) {
  std::vector<const PlanOp*> seen;
  for (const PlanOp& op : plan.ops) {
    const auto is_like = [&](const PlanOp* other) { return same_costs(op, *other); };
    if (std::any_of(seen.begin(), seen.end(), is_like)) continue;
    seen.push_back(&op);
    for (CostSource& source : sources_of(op, training, plan.seq_len))
      if (std::none_of(sources.begin(), sources.end(),
                       [&](const CostSource& known) { return known.cost == source.cost; }))
        sources.push_back(std::move(source));
  }
}

Kind weakest(const std::vector<CostSource>& sources) {
  Kind kind = Kind::measured;
  for (const CostSource& source : sources) kind = std::max(kind, source.provenance.kind);
  return kind;
}

}  // namespace lambcast
