#include "models/training/run/forecast.h"

#include <catch2/catch.hpp>

#include "models/codes_test.h"
#include "models/training/plan/buffers.h"
#include "models/training/run/training_case.h"
#include "sim/collectives/incast.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("forecast: 1000 warm-up steps of 5993 reduce the volume 4.57 times") {
  for (const int gpus : {8, 64, 256}) {
    const Forecast result = forecast_of(training_of({OptimizerType::onebit_lamb, gpus}));
    REQUIRE(result.steps.size() == 2);
    CHECK(result.steps[0].steps == 1000);
    CHECK(result.steps[1].steps == 4993);
    // 5993 W / (1000 W + 4993 C). W counts all 336.2 M parameters and C the 335.2 M of the
    // optimizer, so W / C is 16.05 instead of 16.
    const double n = gpus, share = 2 * (n - 1) / n;
    const double warmup = share * 2 * 336'234'306;
    const double compression = share *
                                   static_cast<double>(compressed_buffers(
                                       training_of({OptimizerType::onebit_lamb, gpus}))[0]) /
                                   8 +
                               8 * (n - 1) + share;
    // Plain LAMB also all_reduces an overflow flag of four bytes in each step.
    CHECK(
        result.run.volume_reduction ==
        Approx(5993 * (warmup + share * 4) / (1000 * warmup + 4993 * compression)).epsilon(1e-12));
    CHECK(result.run.volume_reduction == Approx(4.57).margin(0.005));
    CHECK(result.run.wire_bytes_per_gpu ==
          Approx(1000 * warmup + 4993 * compression).epsilon(1e-12));
    CHECK(result.run.baseline_optimizer == "lamb");
  }
}

TEST_CASE("forecast: the time of a run is the sum of its steps") {
  for (const auto type : {OptimizerType::lamb, OptimizerType::onebit_lamb,
                          OptimizerType::onebit_adam, OptimizerType::zero_one_adam}) {
    TrainingPlan training = training_of({type, 16});
    training.recipe.onebit.var_freeze_step = 1000;
    const Forecast result = forecast_of(training);
    double time_us = 0, bytes = 0;
    std::int64_t steps = 0;
    for (const StepForecast& step : result.steps) {
      const auto of_kind = static_cast<double>(step.steps);
      time_us += of_kind * step.step_time_us;
      bytes += of_kind * step.wire_bytes_per_gpu;
      steps += step.steps;
      CHECK(step.step_time_us == Approx(step.forward_us + step.backward_us + step.gradient_comm_us +
                                        step.compress_us + step.decompress_us + step.optimizer_us));
      CHECK(step.samples_per_s == Approx(256 / (step.step_time_us * 1e-6)));
      CHECK(step.tokens_per_s == Approx(128 * step.samples_per_s));
      // 3 x forward FLOPs of 16 samples per step on each GPU.
      CHECK(step.tflops_per_gpu == Approx(16 * training_flops(*training.model, 128).value() *
                                          1e-12 / (step.step_time_us * 1e-6)));
    }
    CHECK(steps == 5993);
    CHECK(result.run.steps == 5993);
    CHECK(result.run.time_s == Approx(time_us * 1e-6));
    CHECK(result.run.wire_bytes_per_gpu == Approx(bytes));
    CHECK(result.run.samples_per_s == Approx(5993 * 256 / result.run.time_s));
    CHECK(result.run.gpu_hours == Approx(16 * result.run.time_s / 3600));
    CHECK_FALSE(result.run.cost_usd.has_value());
  }
}

TEST_CASE("forecast: a price per GPU-hour gives the cost of the run") {
  TrainingPlan training = training_of(
      {OptimizerType::lamb, 16, "paper-eth40-v100", "bert-large", {{"usd_per_gpu_hour", "2.5"}}});
  const Forecast result = forecast_of(training);
  REQUIRE(result.run.cost_usd.has_value());
  CHECK(*result.run.cost_usd == Approx(2.5 * result.run.gpu_hours));
}

TEST_CASE("forecast: the baseline is the plain optimizer of the family") {
  CHECK(baseline_of(OptimizerType::onebit_lamb) == OptimizerType::lamb);
  CHECK(baseline_of(OptimizerType::onebit_adam) == OptimizerType::adam);
  CHECK(baseline_of(OptimizerType::zero_one_adam) == OptimizerType::adam);
  for (const auto type : {OptimizerType::adam, OptimizerType::adamw, OptimizerType::lamb})
    CHECK(baseline_of(type) == type);
  TrainingPlan onebit = training_of({OptimizerType::onebit_lamb, 32});
  TrainingPlan plain = training_of({OptimizerType::lamb, 32});
  const Forecast compressed = forecast_of(onebit), baseline = forecast_of(plain);
  CHECK(compressed.run.speedup_vs_baseline == Approx(baseline.run.time_s / compressed.run.time_s));
  CHECK(baseline.run.speedup_vs_baseline == 1);
  CHECK(baseline.run.volume_reduction == 1);
  // At 4.1 Gbit/s compression pays; with NVLink only it does not.
  CHECK(compressed.run.speedup_vs_baseline > 1);
  CHECK(forecast_of(training_of({OptimizerType::onebit_lamb, 8, "paper-edr100-v100"}))
            .run.speedup_vs_baseline < 1);
}

TEST_CASE("forecast: less warm-up saves time if compression pays") {
  double last = 0;
  for (const std::int64_t freeze_step : {2, 500, 1000, 3000, 5993, 6000}) {
    TrainingPlan training = training_of({OptimizerType::onebit_lamb, 64});
    training.recipe.onebit.freeze_step = freeze_step;
    const double now = forecast_of(training).run.time_s;
    CHECK(now > last);
    last = now;
  }
}

// A step of a curriculum equals the step of a run with its sequence length, under every layout. A
// step of a batch ramp equals the step of a run with its batch.
TEST_CASE(
    "forecast: steps of a curriculum and a ramp are those of runs of their own, every layout") {
  Curriculum curriculum;
  curriculum.schedule = CurriculumSchedule::fixed_discrete;
  curriculum.difficulty = {256, 1024};
  curriculum.max_step = {60};
  curriculum.min_difficulty = 256;
  curriculum.max_difficulty = 1024;
  struct Layout {
    FrameworkName framework;
    int tp, cp, dp, pp, chunks;
    parallel::Sharding sharding;
    bool sequence_parallel;
  };
  const auto plan_of = [](const Layout& of, std::int64_t seq_len, std::int64_t steps) {
    TrainingPlan training =
        training_of({OptimizerType::adamw, of.tp * of.cp * of.dp * of.pp, "dgx-a100-80g"});
    training.model = std::make_shared<const ModelShape>(load_model("llama2-7b", {}));
    training.seq_len = seq_len;
    training.steps = steps;
    training.batch = {of.dp * std::int64_t{8}, 1, 8};
    Parallelism how;
    how.layout = {of.tp, of.cp, 1, of.dp, of.pp, of.chunks, 8, parallel::default_order};
    how.schedule = of.chunks > 1 ? parallel::PipelineSchedule::interleaved
                                 : parallel::PipelineSchedule::one_f_one_b;
    how.framework = framework_of(of.framework);
    how.sharding = of.sharding;
    how.shard_ranks = of.sharding == parallel::Sharding::none ? 1 : how.replicas();
    how.sequence_parallel = of.sequence_parallel;
    training.parallelism = how;
    return training;
  };
  using parallel::Sharding;
  for (const Layout& of :
       {Layout{FrameworkName::deepspeed, 4, 1, 2, 1, 1, Sharding::none, false},
        Layout{FrameworkName::megatron, 4, 1, 2, 1, 1, Sharding::optimizer, true},
        Layout{FrameworkName::deepspeed, 1, 1, 2, 4, 1, Sharding::none, false},
        Layout{FrameworkName::megatron, 1, 1, 2, 4, 2, Sharding::none, false},
        Layout{FrameworkName::deepspeed, 1, 4, 2, 1, 1, Sharding::none, false},
        Layout{FrameworkName::megatron, 1, 4, 2, 1, 1, Sharding::none, false},
        Layout{FrameworkName::torchtitan, 1, 4, 2, 1, 1, Sharding::weights, false},
        Layout{FrameworkName::deepspeed, 1, 1, 8, 1, 1, Sharding::weights, false},
        Layout{FrameworkName::megatron, 2, 2, 2, 2, 1, Sharding::optimizer, true}}) {
    INFO(name_of(of.framework) << " tp " << of.tp << " cp " << of.cp << " pp " << of.pp);
    CollectiveCosts costs;
    const auto time_s = [&](const TrainingPlan& training) {
      return forecast(training, costs).run.time_s;
    };
    TrainingPlan growing = plan_of(of, 1024, 100);
    growing.recipe.curriculum = curriculum;
    const double both = time_s(plan_of(of, 256, 60)) + time_s(plan_of(of, 1024, 40));
    CHECK(time_s(growing) == Approx(both).epsilon(1e-9));
    CHECK(time_s(growing) < time_s(plan_of(of, 1024, 100)));

    const auto batches_of = [&](std::int64_t gas, std::int64_t steps) {
      TrainingPlan training = plan_of(of, 1024, steps);
      training.batch = {of.dp * gas, 1, gas};
      return training;
    };
    TrainingPlan ramped = batches_of(8, 50);
    ramped.ramp =
        BatchRamp{of.dp * std::int64_t{4}, of.dp * std::int64_t{4}, of.dp * std::int64_t{80}};
    const Forecast whole = forecast(ramped, costs);
    CHECK(whole.run.time_s ==
          Approx(time_s(batches_of(4, 20)) + time_s(batches_of(8, 30))).epsilon(1e-9));
    CHECK(whole.run.samples_per_s * whole.run.time_s == Approx(of.dp * (20 * 4 + 30 * 8)));
    CHECK(whole.steps.front().samples_per_s == Approx(whole.run.samples_per_s));
    CHECK(whole.steps.front().step_time_high_us < 10 * whole.steps.front().step_time_us);
  }
}

TEST_CASE("forecast: a length curriculum changes computation but not communication") {
  TrainingPlan constant = training_of({OptimizerType::onebit_lamb, 16});
  TrainingPlan growing = constant;
  Curriculum curriculum;
  curriculum.min_difficulty = 32;
  curriculum.max_difficulty = 128;
  curriculum.total_step = 3000;
  curriculum.difficulty_step = 32;
  growing.recipe.curriculum = curriculum;
  const Forecast full = forecast_of(constant), shorter = forecast_of(growing);
  REQUIRE(shorter.steps.size() == full.steps.size());
  for (std::size_t i = 0; i < full.steps.size(); ++i) {
    const StepForecast &a = full.steps[i], &b = shorter.steps[i];
    CHECK(b.steps == a.steps);
    CHECK(b.forward_us < a.forward_us);
    CHECK(b.backward_us < a.backward_us);
    CHECK(b.gradient_comm_us == Approx(a.gradient_comm_us));
    CHECK(b.compress_us == Approx(a.compress_us));
    CHECK(b.optimizer_us == Approx(a.optimizer_us));
    CHECK(b.wire_bytes_per_gpu == Approx(a.wire_bytes_per_gpu));
    CHECK(b.num_collectives == Approx(a.num_collectives));
  }
}

TEST_CASE("forecast: its sources are listed, and the weakest one determines its kind") {
  const Forecast alone = forecast_of(training_of({OptimizerType::lamb, 1}));
  for (const CostSource& source : alone.sources.shares()) {
    CHECK_FALSE(source.cost.empty());
    CHECK_FALSE(source.provenance.source.empty());
    CHECK(source.cost.find("nic") == std::string::npos);
  }
  const Forecast many = forecast_of(training_of({OptimizerType::onebit_lamb, 64}));
  std::vector<std::string> costs;
  for (const CostSource& source : many.sources.shares()) {
    CHECK_FALSE(source.provenance.source.empty());
    costs.push_back(source.cost);
  }
  CHECK_THAT(costs, Catch::Matchers::VectorContains(std::string("nic_bandwidth")));
  CHECK_THAT(costs, Catch::Matchers::VectorContains(std::string("compression_kernels")));
  const auto source_of = [](const Forecast& forecast, const std::string& cost) {
    for (const CostSource& source : forecast.sources.shares())
      if (source.cost == cost) return source.provenance;
    FAIL("nothing is said of " << cost);
    return Provenance();
  };
  // The sources of gpu_nic and of the oversubscription are those of the cluster description.
  TrainingCase rails{OptimizerType::lamb, 64, "azure-ndv2"};
  const Forecast single_switch = forecast_of(training_of(rails));
  const Provenance to_nic = source_of(single_switch, "gpu_nic");
  CHECK(to_nic.kind == load_cluster("azure-ndv2", {}).gpu_nic.provenance.kind);
  CHECK(to_nic.source == load_cluster("azure-ndv2", {}).gpu_nic.provenance.source);
  const Provenance blocks_nothing = source_of(single_switch, "fabric_oversubscription");
  CHECK(blocks_nothing.kind == Kind::assumed);
  CHECK(blocks_nothing.source == "a single switch, which blocks nothing");
  rails.settings = {{"fabric.kind", "fat-tree"},
                    {"fabric.nodes_per_leaf", "4"},
                    {"fabric.oversubscription",
                     R"({value = 8.0, kind = "published", source = "the operator's page"})"}};
  const Forecast blocking = forecast_of(training_of(rails));
  CHECK(source_of(blocking, "fabric_oversubscription").kind == Kind::published);
  CHECK(source_of(blocking, "fabric_oversubscription").source == "the operator's page");
  CHECK(blocking.run.time_s > single_switch.run.time_s);
  CHECK(many.sources.weakest() == Kind::assumed);
}

// All numbers of this run are measured, except one that determines how long the optimizer of its
// warm-up takes: PyTorch launches one kernel after another.
TEST_CASE("forecast: one assumed number matters to a run only if it affects its time") {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 1});
  Device device = *training.device;
  const Provenance measured{Kind::measured, "this machine"};
  device.copy_bandwidth.provenance = device.sync_overhead.provenance = measured;
  device.forward_share.provenance = measured;
  for (TrainingCurve& curve : device.training_curves) curve.provenance = measured;
  Cluster cluster = *training.cluster;
  for (Sourced<double>* scale : {&cluster.stack.compute_scale, &cluster.stack.compute_spread,
                                 &cluster.stack.gpu_spread, &cluster.stack.optimizer_scale})
    scale->provenance = measured;
  training.cluster = std::make_shared<const Cluster>(cluster);
  const auto rests_on = [&](double launch_us, Kind kind) {
    device.framework_launch = {Duration::microseconds(launch_us), {kind, "a guess"}};
    training.device = std::make_shared<const Device>(device);
    return forecast_of(training).sources;
  };
  const auto share_of = [](const RunSources& sources, const std::string& cost) {
    for (const CostSource& source : sources.shares())
      if (source.cost == cost) return source.share;
    return 0.0;
  };
  CHECK(rests_on(20, Kind::measured).weakest() == Kind::measured);
  const RunSources slow = rests_on(20, Kind::assumed);
  CHECK(slow.weakest() == Kind::assumed);
  CHECK(share_of(slow, "framework_launch") > 0.1);
  CHECK(share_of(slow, "framework_launch") + share_of(slow, "forward_backward") <= 1 + 1e-9);
  // Launches of 0.001 us take less time than the kernels' memory traffic.
  const RunSources fast = rests_on(0.001, Kind::assumed);
  CHECK(fast.weakest() == Kind::measured);
  CHECK(share_of(fast, "framework_launch") < 0.01);
  CHECK(share_of(fast, "optimizer_memory_bandwidth") > 0.01);
}

TEST_CASE(
    "forecast: a shallow queue of the switch costs compressed steps a timer, with a finding") {
  TrainingCase deep{OptimizerType::onebit_lamb, 64}, shallow = deep;
  shallow.settings = {{"nic.port_queue", "64 KiB"}, {"nic.rto_min", "150 ms"}};
  const auto with_mpi = [](const TrainingCase& of) {
    TrainingPlan training = training_of(of);
    training.recipe.backend = Backend::mpi_host;
    return forecast_of(training);
  };
  const Forecast without = with_mpi(deep), with = with_mpi(shallow);
  // Rings of the warm-up do not share ports. In the exchange of 4 GPUs on each of 16 nodes, 240
  // flows share a queue of 43 packets.
  CHECK(with.steps[0].step_time_us == Approx(without.steps[0].step_time_us));
  CHECK(with.steps[1].step_time_us == Approx(without.steps[1].step_time_us + 150e3).epsilon(1e-3));
  std::vector<std::string> costs;
  for (const CostSource& source : with.sources.shares()) costs.push_back(source.cost);
  CHECK_THAT(costs, Catch::Matchers::VectorContains(std::string("port_queue")));
  CHECK_THAT(costs, Catch::Matchers::VectorContains(std::string("rto_min")));

  const auto incast = [](const char* port_queue, int gpus) {
    TrainingCase of{OptimizerType::onebit_lamb, gpus};
    of.settings = {{"nic.port_queue", port_queue}};
    TrainingPlan training = training_of(of);
    training.recipe.backend = Backend::mpi_host;
    for (const Finding& finding : judge(training, forecast_of(training)))
      if (finding.code == "incast") return finding.message;
    return std::string();
  };
  CHECK_THAT(incast("64 KiB", 64), Contains("240 TCP flows meet at a port of the switch that holds "
                                            "43 packets") &&
                                       Contains("wait 200 ms") && Contains("100% of exchanges"));
  CHECK_THAT(incast("800 KiB", 64),
             Contains("which is low here") &&
                 Contains(fmt::format("{:.0f}% of exchanges",
                                      100 * stalled_share(Bytes(800 * 1024), 240))));
  CHECK(incast("2 MiB", 64).empty());
  CHECK(incast("64 KiB", 8).empty());  // two nodes
}

// A prior gives the rate of one TCP stream. A NIC above the rate of all streams has no effect,
// which is reported; more streams make the run faster.
TEST_CASE("judge: TCP streams that are slower than the NIC are reported, and more streams help") {
  const auto run = [](const char* connections, const char* nic, const char* channels = "1",
                      int gpus = 64) {
    TrainingPlan training = training_of({OptimizerType::lamb, gpus});
    training.cluster = std::make_shared<const Cluster>(
        load_cluster("commodity-100gbe", {{"nccl.connections", connections},
                                          {"nccl.min_ctas", channels},
                                          {"nic.bandwidth", nic},
                                          {"nic.nominal", "200 Gbit/s"}}));
    const Forecast forecast = forecast_of(training);
    for (const Finding& finding : judge(training, forecast))
      if (finding.code == "stream-limit") return std::pair(forecast.run.time_s, finding.message);
    return std::pair(forecast.run.time_s, std::string());
  };
  const auto [one, said] = run("1", "100 Gbit/s");
  CHECK_THAT(said, Contains("100 Gbit/s: 2 TCP streams to a peer carry"));
  // The streams carry as much as a NIC of 10.32 Gbit/s: a faster NIC has no effect, a slower NIC
  // takes longer.
  CHECK_THAT(said, Contains("For them a NIC beyond 10.32 Gbit/s is no faster"));
  CHECK(run("1", "10.33 Gbit/s").first == one);
  CHECK(run("1", "10.2 Gbit/s").first > one);
  CHECK(run("1", "200 Gbit/s").first == one);
  CHECK(run("4", "100 Gbit/s").first < one);
  // Twice the channels (NCCL_MIN_CTAS) carry as much as twice the connections.
  CHECK_THAT(run("1", "100 Gbit/s", "4").second, Contains("at most 20.64 Gbit/s of this NIC's"));
  CHECK(run("1", "100 Gbit/s", "4").first == run("2", "100 Gbit/s").first);
  CHECK(run("21", "200 Gbit/s").second.empty());
  // Two nodes are joined by streams; a single node has no network.
  const int node = load_cluster("commodity-100gbe", {}).gpus_per_node;
  CHECK(run("1", "100 Gbit/s", "1", 2 * node).second == said);
  CHECK(run("1", "100 Gbit/s", "1", node).second.empty());
  CHECK(run("16", "50 Gbit/s").first <
        run("16", "25 Gbit/s").first);  // above that rate PCIe is the limit
}

// AWS's plugin chooses LL128 on its own, only on p5.
TEST_CASE("judge: a note reports a protocol that a plugin's tuner uses and the description lacks") {
  const auto named = [](const char* cluster, int gpus, const Overrides& overrides) {
    TrainingPlan training = training_of({OptimizerType::lamb, gpus, cluster});
    training.cluster = std::make_shared<const Cluster>(load_cluster(cluster, overrides));
    const auto found = codes(judge(training, forecast_of(training)));
    return std::find(found.begin(), found.end(), "plugin-tuner") != found.end();
  };
  CHECK(named("aws-p5", 16, {}));
  CHECK_FALSE(named("aws-p5", 8, {}));
  CHECK_FALSE(named("aws-p5", 16, {{"nccl.protocols", R"(["LL", "LL128", "Simple"])"}}));
  CHECK_FALSE(named("aws-p4d", 16, {}));
  CHECK_FALSE(named("hgx-h100-ndr", 16, {}));
}

TEST_CASE("judge: memory that fits by less than its forecast error gives a warning") {
  TrainingPlan training = training_of({OptimizerType::lamb, 32});
  Device device = *training.device;
  const Bytes peak = forecast_memory(training).peak;
  const auto codes_at = [&](double share) {
    device.memory_capacity = peak * share;
    training.device = std::make_shared<const Device>(device);
    return codes(judge(training, forecast_of(training)));
  };
  CHECK(codes_at(1.1).empty());
  CHECK(codes_at(1.08) == std::vector<std::string>{"memory-tight"});
  CHECK(codes_at(0.99) == std::vector<std::string>{"out-of-memory"});
}

TEST_CASE("judge: a run that does not fit, one that loses, and one without peers") {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 8, "dgx2h-v100"});
  const std::vector<Finding> losing = judge(training, forecast_of(training));
  CHECK(codes(losing) == std::vector<std::string>{"compression-loses"});
  CHECK_THAT(losing[0].message, Contains("times as long as lamb here"));

  training = training_of({OptimizerType::onebit_lamb, 1, "dgx2h-v100"});
  CHECK(codes(judge(training, forecast_of(training))) ==
        std::vector<std::string>{"nothing-to-compress"});
  training = training_of({OptimizerType::lamb, 1});
  CHECK(judge(training, forecast_of(training)).empty());
  training.exchange = parse_exchange("topk:1%", {});
  CHECK(codes(judge(training, forecast_of(training))) ==
        std::vector<std::string>{"nothing-to-compress"});

  training = training_of({OptimizerType::lamb, 64});
  CHECK(judge(training, forecast_of(training)).empty());
  training.batch = {64 * 4096, 4096, 1};
  const std::vector<Finding> full = judge(training, forecast_of(training));
  CHECK(codes(full) == std::vector<std::string>{"out-of-memory"});
  CHECK(full[0].severity == Severity::error);
  CHECK_THAT(full[0].message, Contains("what fits: --micro-batch "));

  // If weights and states alone exceed the memory, no micro batch helps.
  const auto advice = [](OptimizerType type, const char* model, std::int64_t micro) {
    TrainingPlan large = training_of({type, 64, "dgx-a100-80g", model});
    large.batch = {64 * micro, micro, 1};
    const std::vector<Finding> found = judge(large, forecast_of(large));
    for (const Finding& finding : found)
      if (finding.code == "out-of-memory") return finding.message;
    return std::string();
  };
  CHECK_THAT(advice(OptimizerType::adamw, "mixtral-8x7b", 4),
             Contains("even --micro-batch 1 needs") &&
                 Contains("747.2 GB of it weights, gradients and optimizer state") &&
                 Contains("--zero-stage 3") && !Contains("what fits"));
  CHECK_THAT(advice(OptimizerType::adamw, "llama2-7b", 1),
             Contains("; what fits: --zero-stage 1 ("));
  CHECK_THAT(advice(OptimizerType::onebit_adam, "llama2-7b", 4),
             Contains("DeepSpeed cannot divide among ranks with onebit_adam"));

  training = training_of({OptimizerType::onebit_lamb, 64});
  Device roomy = *training.device;
  roomy.memory_capacity = Bytes(32e9);
  training.device = std::make_shared<const Device>(roomy);
  CHECK(judge(training, forecast_of(training)).empty());

  // With 4096 ranks each of 398 tensors is padded to a multiple of 4096 * 4096.
  training = training_of({OptimizerType::onebit_adam, 4096});
  training.recipe.precision.weights = DataType::fp32;
  CHECK_THAT(codes(judge(training, forecast_of(training))),
             Catch::Matchers::VectorContains(std::string("padding-dominates")));
  // The padding of a rank's shards of both groups also dominates.
  training.recipe.precision.weights = DataType::bf16;
  training.recipe.precision.sums = DataType::fp32;
  CHECK(training.shards() == 4096);
  CHECK_THAT(codes(judge(training, forecast_of(training))),
             Catch::Matchers::VectorContains(std::string("padding-dominates")));
}

}  // namespace
}  // namespace lambcast
