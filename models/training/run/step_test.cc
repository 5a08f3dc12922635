#include "models/training/run/step.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

constexpr OptimizerType all_types[] = {OptimizerType::adam, OptimizerType::lamb,
                                       OptimizerType::onebit_adam, OptimizerType::onebit_lamb,
                                       OptimizerType::zero_one_adam};

std::vector<StepKind> kinds_of(OptimizerType type) {
  if (!is_onebit(type)) return {StepKind::uniform};
  std::vector<StepKind> kinds{StepKind::warmup, StepKind::compression};
  if (type == OptimizerType::zero_one_adam) kinds.push_back(StepKind::silent);
  return kinds;
}

// A ring for every all-reduce, so that its time is bytes over bandwidth.
const Overrides force_ring{
    {"nccl.all_reduce", R"({value = "ring", kind = "assumed", source = "test"})"}};

TEST_CASE("step: without overlap a step is the sum of its parts") {
  for (const char* cluster : {"paper-eth40-v100", "paper-edr100-v100", "perlmutter-a100"}) {
    for (const OptimizerType type : all_types) {
      for (const StepKind kind : kinds_of(type)) {
        TrainingPlan training = training_of({type, 32, cluster});
        training.batch = {32 * 16 * 3, 16, 3};
        const StepMetrics step = metrics_of(training, kind);
        INFO(cluster << " " << name_of(type) << " " << name_of(kind));
        CHECK(step.step_time == parts_of(step));
        CHECK(step.exposed_comm == step.gradient_comm);
        CHECK(step.forward > Duration());
        CHECK(step.backward > step.forward);
        CHECK(step.optimizer > Duration());
        CHECK(step.bubble == Duration());
        CHECK((step.compress > Duration()) == (kind == StepKind::compression));
        CHECK((step.decompress > Duration()) == (kind == StepKind::compression));
      }
    }
  }
}

// Returns the logarithmic distances of both interval ends from the step time.
std::pair<double, double> ends_of(const StepMetrics& step) {
  return {std::log(step.step_time_high / step.step_time),
          std::log(step.step_time / step.step_time_low)};
}

TEST_CASE("step interval: with one GPU it is that of its computation") {
  TrainingPlan alone = training_of({OptimizerType::lamb, 1, "perlmutter-a100"});
  // At either end, forward and backward passes are off by `width`, and the optimizer by the error
  // of its bytes.
  const auto check_ends = [&](const StepMetrics& step, double width) {
    const double compute = step.forward.s() + step.backward.s();
    CHECK(step.step_time_high.s() - step.step_time.s() ==
          Approx(compute * std::expm1(width) +
                 step.optimizer.s() * std::expm1(held_out::this_device.off)));
    CHECK(step.step_time.s() - step.step_time_low.s() ==
          Approx(-compute * std::expm1(-width) -
                 step.optimizer.s() * std::expm1(-held_out::this_device.off)));
  };
  const StepMetrics by_kernels = metrics_of(alone, StepKind::uniform);
  CHECK(by_kernels.basis == Basis::kernels);
  const ComputeWidth of_kernels = rates_width(alone.device->rates->held_out);
  CHECK(by_kernels.coverage.value() == of_kernels.coverage.value());
  check_ends(by_kernels, of_kernels.log);
  Device bare = *alone.device;
  bare.rates.reset();
  bare.training_curves.clear();
  alone.device = std::make_shared<const Device>(bare);
  const StepMetrics by_flops = metrics_of(alone, StepKind::uniform);
  CHECK(by_flops.basis == Basis::rate);
  CHECK_FALSE(by_flops.coverage.has_value());
  check_ends(by_flops, held_out::rate.off);
  // A sequence length without held-out steps has less coverage than a known one.
  alone = training_of({OptimizerType::lamb, 1, "dgx1-v100"});
  CHECK(metrics_of(alone, StepKind::uniform).coverage.value() == Approx(5 / 6.));
  alone.seq_len = 256;
  CHECK(metrics_of(alone, StepKind::uniform).coverage.value() == Approx(4 / 5.));
}

TEST_CASE("step interval: figures of the machine narrow it, single precision widens it") {
  const TrainingPlan own = training_of({OptimizerType::adam, 4, "paper-edr100-v100"});
  const TrainingPlan others = training_of(
      {OptimizerType::adam,
       4,
       "paper-edr100-v100",
       "bert-large",
       {{"stack.compute_scale", R"({value = 1.16, kind = "assumed", source = "test"})"}}});
  TrainingPlan single = own;
  single.recipe.precision.weights = DataType::fp32;
  const StepMetrics of_own = metrics_of(own, StepKind::uniform);
  const StepMetrics of_others = metrics_of(others, StepKind::uniform);
  CHECK(of_own.basis == Basis::this_machine);
  CHECK(of_others.basis == Basis::this_device);
  CHECK(of_own.step_time == of_others.step_time);
  CHECK(ends_of(of_own).first < ends_of(of_others).first);
  CHECK(ends_of(of_own).second < ends_of(of_others).second);
  CHECK(metrics_of(single, StepKind::uniform).basis == Basis::rate);
}

TEST_CASE("step interval: communication and compute add as squares; compression has no coverage") {
  for (const char* cluster : {"paper-eth40-v100", "dgx1-v100", "dgx-a100-80g"}) {
    for (const OptimizerType type : all_types) {
      for (const StepKind kind : kinds_of(type)) {
        const TrainingPlan training = training_of({type, 16, cluster});
        const StepMetrics step = metrics_of(training, kind);
        INFO(cluster << " " << name_of(type) << " " << name_of(kind));
        CHECK(step.step_time_low > Duration());
        CHECK(step.step_time_low < step.step_time);
        CHECK(step.step_time < step.step_time_high);
        // The interval is no wider than the interval of the less certain part would be for the
        // whole step. This part is communication, nearly all of it in large messages.
        const Duration second = Duration::seconds(1);
        const auto large =
            uncalibrated_interval(Bytes(1 << 30), 16, NicRate::effective, Typical::none, second);
        CHECK(ends_of(step).first < std::log(large.high / second));
        CHECK(step.coverage.has_value() ==
              (cluster == std::string("dgx-a100-80g") && kind != StepKind::compression));
      }
    }
  }
}

TEST_CASE("step: gradient accumulation multiplies only computation") {
  for (const OptimizerType type : all_types) {
    for (const StepKind kind : kinds_of(type)) {
      const TrainingPlan once = training_of({type, 16});
      TrainingPlan thrice = once;
      thrice.batch = {16 * 16 * 3, 16, 3};
      const StepMetrics one = metrics_of(once, kind), three = metrics_of(thrice, kind);
      CHECK(three.forward == one.forward * 3);
      CHECK(three.backward == one.backward * 3);
      CHECK(three.gradient_comm == one.gradient_comm);
      CHECK(three.optimizer == one.optimizer);
      CHECK(three.wire_bytes_per_gpu == one.wire_bytes_per_gpu);
    }
  }
}

TEST_CASE("step: the number of collectives per step is DeepSpeed's") {
  struct Row {
    OptimizerType type;
    bool fp16;
    std::int64_t buffers;
  };
  // compressed_allreduce is 4 collectives; with MPI on the host it is 5, because a barrier follows.
  // It runs once for LAMB's fused buffer, once per group for the Adams with fp16 (bing_bert has 3),
  // and once per tensor without fp16 (398). With fp16 the overflow flag is one more.
  const Row rows[] = {
      {OptimizerType::onebit_lamb, true, 1},   {OptimizerType::onebit_lamb, false, 1},
      {OptimizerType::onebit_adam, true, 3},   {OptimizerType::onebit_adam, false, 398},
      {OptimizerType::zero_one_adam, true, 3}, {OptimizerType::zero_one_adam, false, 398},
  };
  for (const Row& row : rows) {
    for (const auto backend : {Backend::nccl, Backend::mpi_host, Backend::compressed}) {
      TrainingPlan training = training_of({row.type, 16});
      training.recipe.precision.weights = row.fp16 ? DataType::fp16 : DataType::fp32;
      training.recipe.backend = backend;
      INFO(name_of(row.type) << " fp16 " << row.fp16 << " " << traits_of(backend).label);
      // Four collectives. MPI on the host adds a barrier, but scatters signs and scales in one
      // call.
      const std::int64_t each = 4;
      CHECK(metrics_of(training, StepKind::compression).num_collectives ==
            static_cast<double>(row.buffers * each + row.fp16));
      // One bucket holds all gradients of BERT-Large.
      CHECK(metrics_of(training, StepKind::warmup).num_collectives == 1);
    }
  }
  // Between its sync points 0/1 Adam sends no gradients, only the flag.
  TrainingPlan silent = training_of({OptimizerType::zero_one_adam, 16});
  CHECK(metrics_of(silent, StepKind::silent).num_collectives == 1);
  silent.recipe.precision.weights = DataType::fp32;
  const StepMetrics nothing = metrics_of(silent, StepKind::silent);
  CHECK(nothing.num_collectives == 0);
  CHECK(nothing.wire_bytes_per_gpu == Bytes());
  CHECK(nothing.gradient_comm == Duration());
}

TEST_CASE("step: one GPU communicates nothing") {
  for (const OptimizerType type : all_types) {
    for (const StepKind kind : kinds_of(type)) {
      for (const auto overlap : {Overlap::none, Overlap::ddp}) {
        TrainingPlan training = training_of({type, 1});
        training.overlap = overlap;
        const StepMetrics step = metrics_of(training, kind);
        CHECK(step.num_collectives == 0);
        CHECK(step.wire_bytes_per_gpu == Bytes());
        CHECK(step.network_bytes_per_node == Bytes());
        CHECK(step.gradient_comm == Duration());
        CHECK(step.step_time == parts_of(step));
      }
    }
  }
}

TEST_CASE("step: unrolling every rank, round and micro step gives the same time and bytes") {
  struct Shape {
    int gpus, gpus_per_node;
  };
  // One node; three nodes; two nodes, one of them not full (4 + 1 ranks); three nodes with one GPU,
  // and with two GPUs; and a single rank.
  for (const Shape shape : {Shape{4, 4}, {12, 4}, {5, 4}, {3, 1}, {6, 2}, {1, 1}}) {
    for (const char* cluster : {"paper-eth40-v100", "blog-qdr40-v100"}) {
      for (const OptimizerType type : all_types) {
        for (const StepKind kind : kinds_of(type)) {
          for (const auto backend : {Backend::nccl, Backend::mpi_host}) {
            TrainingPlan training =
                training_of({type, shape.gpus, cluster, "bert-large", {}, shape.gpus_per_node});
            training.recipe.backend = backend;
            training.batch = {shape.gpus * 16 * 3, 16, 3};
            const StepMetrics collapsed = metrics_of(training, kind);
            training.expand = training.per_block = true;
            const StepMetrics unrolled = metrics_of(training, kind);
            INFO(cluster << " " << shape.gpus << " GPUs, " << shape.gpus_per_node << " a node, "
                         << name_of(type) << " " << name_of(kind) << " "
                         << traits_of(backend).label);
            CHECK(unrolled.step_time.s() == Approx(collapsed.step_time.s()).epsilon(1e-9));
            CHECK(unrolled.gradient_comm.s() == Approx(collapsed.gradient_comm.s()).epsilon(1e-9));
            CHECK(unrolled.forward == collapsed.forward);
            CHECK(unrolled.backward == collapsed.backward);
            CHECK(unrolled.compress == collapsed.compress);
            CHECK(unrolled.optimizer == collapsed.optimizer);
            CHECK(unrolled.wire_bytes_per_gpu.value() ==
                  Approx(collapsed.wire_bytes_per_gpu.value()).epsilon(1e-12));
            CHECK(unrolled.network_bytes_per_node.value() ==
                  Approx(collapsed.network_bytes_per_node.value()).epsilon(1e-12));
            CHECK(unrolled.num_collectives == collapsed.num_collectives);
          }
        }
      }
    }
  }
}

TEST_CASE("step: both network models agree if there is no contention") {
  // One GPU per node on one switch: every flow has its own links, in both phases.
  for (const int nodes : {2, 3, 8, 16}) {
    for (const OptimizerType type : all_types) {
      for (const StepKind kind : kinds_of(type)) {
        TrainingPlan training =
            training_of({type, nodes, "paper-edr100-v100", "bert-large", force_ring, 1});
        const StepMetrics analytic = metrics_of(training, kind);
        training.network = NetworkModel::flow;
        const StepMetrics flow = metrics_of(training, kind);
        INFO(nodes << " nodes, " << name_of(type) << " " << name_of(kind));
        CHECK(flow.step_time.s() == Approx(analytic.step_time.s()).epsilon(1e-6));
        CHECK(flow.wire_bytes_per_gpu == analytic.wire_bytes_per_gpu);
      }
    }
  }
}

TEST_CASE("step: no forecast is faster than bytes over bandwidth") {
  for (const std::string& cluster : cluster_names()) {
    for (const OptimizerType type : {OptimizerType::lamb, OptimizerType::onebit_lamb}) {
      for (const int nodes : {1, 2, 3, 8}) {
        const int gpus = nodes * load_cluster(cluster, {}).gpus_per_node;
        const TrainingPlan training = training_of({type, gpus, cluster});
        for (const StepKind kind : kinds_of(type)) {
          const StepMetrics step = metrics_of(training, kind);
          const Cluster& on = *training.cluster;
          INFO(cluster << " " << nodes << " nodes, " << name_of(type) << " " << name_of(kind));
          // All bytes that leave a node pass its NICs, at the share of the rate that the library
          // reaches.
          const Bandwidth out = on.nic_bandwidth.value * on.nccl.nic_efficiency.value * on.nics;
          CHECK(step.gradient_comm >= (step.network_bytes_per_node / out).scaled(1 - 1e-9));
          if (nodes == 1) {
            CHECK(step.network_bytes_per_node == Bytes());
            CHECK(step.gradient_comm >=
                  (step.wire_bytes_per_gpu / on.gpu_link.value).scaled(1 - 1e-9));
          }
          // Computation is not faster than the peak of the device.
          const double flops = 16 * training_flops(*training.model, 128).value();
          CHECK((step.forward + step.backward).s() >=
                flops / training.device->peak_half.value.value());
        }
      }
    }
  }
}

TEST_CASE("step: time falls with bandwidth and grows with bytes") {
  for (const OptimizerType type : {OptimizerType::lamb, OptimizerType::onebit_lamb}) {
    for (const StepKind kind : kinds_of(type)) {
      Duration last = Duration::seconds(1e6);
      for (const char* rate : {"1 Gbit/s", "2 Gbit/s", "5 Gbit/s", "10 Gbit/s", "40 Gbit/s",
                               "100 Gbit/s", "400 Gbit/s", "1 Tbit/s"}) {
        const TrainingPlan training =
            training_of({type, 64, "paper-eth40-v100", "bert-large", {{"nic.bandwidth", rate}}});
        const Duration now = metrics_of(training, kind).step_time;
        CHECK(now <= last);
        last = now;
      }
    }
  }
  // Sending twice the bytes of a gradient is never faster.
  TrainingPlan fp16 = training_of({OptimizerType::lamb, 64});
  TrainingPlan fp32 = fp16;
  fp32.recipe.precision.gradients = DataType::fp32;
  const StepMetrics half = metrics_of(fp16, StepKind::uniform);
  const StepMetrics full = metrics_of(fp32, StepKind::uniform);
  CHECK(full.gradient_comm > half.gradient_comm);
  CHECK(full.wire_bytes_per_gpu.value() == Approx(2 * half.wire_bytes_per_gpu.value()));
  // Communication of a larger model is never faster.
  Duration last;
  for (const char* model : {"bert-base", "bert-large", "gpt2-xl", "llama2-7b"}) {
    const Duration now =
        metrics_of(training_of({OptimizerType::lamb, 64, "paper-eth40-v100", model}),
                   StepKind::uniform)
            .gradient_comm;
    CHECK(now > last);
    last = now;
  }
}

TEST_CASE("step: a ring over more nodes takes longer") {
  // 2(n-1)/n S over one NIC per node, and 2(N-1) hops: both grow with the number of nodes.
  Duration last;
  for (const int nodes : {2, 3, 4, 8, 16, 32, 64, 128}) {
    const TrainingPlan training =
        training_of({OptimizerType::lamb, 4 * nodes, "paper-eth40-v100", "bert-large", force_ring});
    const Duration now = metrics_of(training, StepKind::uniform).gradient_comm;
    CHECK(now > last);
    last = now;
  }
}

TEST_CASE("step: copies through the host make the mpi backend slower, less so when cuda_aware") {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 32});
  training.recipe.backend = Backend::mpi_host;
  const StepMetrics staged = metrics_of(training, StepKind::compression);
  training.recipe.backend = Backend::mpi_device;
  const StepMetrics aware = metrics_of(training, StepKind::compression);
  CHECK(staged.gradient_comm > aware.gradient_comm);
  // Copies through the host: at least 2 Np/8 + Np/8n bytes to the host and 3 Np/8 + Np/8n back, at
  // 2 GB/s.
  const double signs = 335'184'896 / 8.;
  CHECK(staged.gradient_comm.s() > (5 * signs + 2 * signs / 32) / 2e9);
  CHECK(staged.compress == aware.compress);
  CHECK(staged.wire_bytes_per_gpu == aware.wire_bytes_per_gpu);
}

TEST_CASE("step: each direction of a copy through the host has its own rate") {
  // Two phases copy (n-1)/n of the signs to the host and back. numpy buffers copy 2 Np/8 + Np/8n to
  // the host and 3 Np/8 + Np/8n back, with a scale and the buffer for all ranks in each phase.
  const double signs = 335'184'896 / 8., scales = 2 * (4 + 4 * 32);
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 32, "hgx-h100-ndr"});
  struct Direction {
    Backend backend;
    Sourced<Bandwidth> Device::*rate;
    double bytes;
  };
  for (const auto& [backend, rate, bytes] :
       {Direction{Backend::mpi_device, &Device::pinned_d2h, 2 * signs * 31 / 32},
        Direction{Backend::mpi_device, &Device::pinned_h2d, 2 * signs * 31 / 32},
        Direction{Backend::mpi_host, &Device::pageable_d2h, 2 * signs + signs / 32 + scales},
        Direction{Backend::mpi_host, &Device::pageable_h2d, 3 * signs + signs / 32 + scales}}) {
    training.recipe.backend = backend;
    Device device = load_device(training.cluster->device);
    training.device = std::make_shared<const Device>(device);
    const StepMetrics before = metrics_of(training, StepKind::compression);
    const double was = (device.*rate).value.value();
    (device.*rate).value = Bandwidth(was / 2);
    training.device = std::make_shared<const Device>(device);
    const StepMetrics after = metrics_of(training, StepKind::compression);
    CHECK((after.step_time - before.step_time).s() == Approx(bytes / was).epsilon(1e-6));
  }
}

TEST_CASE("step: fused kernels and the compressed backend take less time to compress") {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 32});
  const StepMetrics unfused = metrics_of(training, StepKind::compression);
  // About 175 bytes per element at 790 GB/s, times the fitted scale of this cluster's optimizer.
  const double bytes = (100 + 34 + 100 / 32. + 38) * 335'184'896;
  const double seconds = bytes / training.device->copy_bandwidth.value.value() *
                         training.cluster->stack.optimizer_scale.value;
  const double syncs = 2 * training.device->sync_overhead.value.s();
  CHECK((unfused.compress + unfused.decompress).s() == Approx(seconds + syncs).epsilon(1e-6));
  training.recipe.backend = Backend::compressed;
  const StepMetrics compressed = metrics_of(training, StepKind::compression);
  CHECK(compressed.compress < unfused.compress);
  CHECK(compressed.gradient_comm == unfused.gradient_comm);
  training.kernels = Kernels::fused;
  const StepMetrics fused = metrics_of(training, StepKind::compression);
  CHECK(fused.compress.s() < unfused.compress.s() / 5);
}

TEST_CASE("step: a wrapper that flattens launches no kernel per tensor") {
  TrainingPlan fp16 = training_of({OptimizerType::adam, 8, "paper-edr100-v100"});
  TrainingPlan bf16 = bf16_of({OptimizerType::adam, 8, "paper-edr100-v100"});
  bf16.recipe.engine.wraps_bf16_as_fp16 = false;
  for (const std::int64_t stage : {1, 2}) {
    fp16.recipe.zero.stage = bf16.recipe.zero.stage = stage;
    CHECK(metrics_of(bf16, StepKind::uniform).optimizer ==
          metrics_of(fp16, StepKind::uniform).optimizer);
  }
  // BF16_Optimizer accumulates gradients after every micro batch: 18 bytes per element.
  bf16.recipe.zero.stage = 0;
  const Duration once = metrics_of(bf16, StepKind::uniform).optimizer;
  bf16.batch = {16 * 8 * 4, 16, 4};
  const Duration four = metrics_of(bf16, StepKind::uniform).optimizer;
  const double pass = 18 * 335'184'706. / bf16.device->copy_bandwidth.value.value() *
                      bf16.cluster->stack.optimizer_scale.value;
  CHECK((four - once).s() == Approx(3 * pass).epsilon(1e-6));
  // Other update kernels do not replace DeepSpeed's wrapper.
  bf16.kernels = Kernels::nvidia;
  CHECK(metrics_of(bf16, StepKind::uniform).optimizer.s() > 4 * pass);
}

TEST_CASE("step: the timeline runs one task of a resource at a time") {
  for (const auto overlap : {Overlap::none, Overlap::ddp}) {
    TrainingPlan training = training_of({OptimizerType::lamb, 16});
    training.overlap = overlap;
    CollectiveCosts costs;
    const StepRun run = run_step(training, {StepKind::uniform, 128, 1}, costs);
    const auto& tasks = run.execution.graph.tasks();
    REQUIRE(tasks.size() == run.execution.timeline.spans.size());
    for (std::size_t a = 0; a < tasks.size(); ++a) {
      for (std::size_t b = a + 1; b < tasks.size(); ++b) {
        const Span &one = run.execution.timeline.spans[a], &other = run.execution.timeline.spans[b];
        if (tasks[a].resource != tasks[b].resource) continue;
        CHECK((one.end <= other.begin || other.end <= one.begin));
      }
    }
  }
}

TEST_CASE("step: if unrolled, backward blocks run from the last layer to the first") {
  TrainingPlan training = training_of({OptimizerType::lamb, 8, "dgx-a100-80g"});
  training.per_block = true;
  CollectiveCosts costs;
  const StepRun run = run_step(training, {StepKind::uniform, 128, 1}, costs);
  std::vector<std::string> names;
  for (const PlanOp& op : run.plan.ops)
    if (op.part == Category::backward) names.push_back(op.name);
  REQUIRE(names.size() == static_cast<std::size_t>(training.model->layers));
  CHECK(names.front() == "backward block 23");
  CHECK(names.back() == "backward block 0");
}

}  // namespace
}  // namespace lambcast
