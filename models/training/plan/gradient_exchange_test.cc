#include "models/training/plan/gradient_exchange.h"

#include <catch2/catch.hpp>

#include "kernels/exchange_bytes.h"
#include "models/training/memory/memory.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/run/forecast.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TrainingPlan with(const std::string& exchange) {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  training.exchange = parse_exchange(exchange, {"", 0, "--exchange"});
  return training;
}

double wire_bytes(const std::string& exchange) {
  return metrics_of(with(exchange), StepKind::uniform).wire_bytes_per_gpu.value();
}

// Returns the bytes kept per element.
double kept(const std::string& exchange, int ranks, bool shared = false) {
  const AveragedGradients gradients{.ranks = {ranks, 4}, .elements = 1000, .shared = shared};
  return exchange_state_bytes(with(exchange), gradients) / 1000;
}

TEST_CASE(
    "exchange: the server's error of 1-bit is divided over ranks, and not kept with shared "
    "states") {
  for (const int ranks : {1, 8, 64})
    CHECK(kept("onebit", ranks) == Approx(kept("onebit", ranks, true) + 4.0 / ranks));
  CHECK(kept("int8", 8) == kept("int8", 8, true));
}

TEST_CASE("exchange: bytes kept per element, by exchange") {
  CHECK(kept("topk:1%", 8) == 4);
  CHECK(kept("lossless:50%", 8) == 0);
  CHECK(kept("local:16", 8) == 8);  // weights at the last exchange, and the outer momentum
  CHECK(kept("localsgd:16", 8) == 0);
  CHECK(kept("qgz:int8", 8) == 0);
  CHECK(kept("int4:owed", 8) == 4 + 4. / 8);
  CHECK(kept("int8:owed", 8, true) == 4);
  // With four ranks on a node: errors of whole gradients, and of the quarter that is sent between
  // nodes.
  CHECK(kept("loco", 8, true) == 1 + 0.25);
  TrainingPlan fused = with("loco:int8");
  fused.kernels = Kernels::fused;
  CHECK(exchange_state_bytes(fused, {.ranks = {8, 4}, .elements = 1, .shared = true}) == 5);
}

TEST_CASE(
    "exchange: PowerSGD keeps errors of the matrices that it factors, and a factor to start from") {
  const TrainingPlan warm = with("powersgd:4"), anew = with("powersgd:4:2");
  const ModelShape& bert = *warm.model;
  const auto bytes = [](const TrainingPlan& training) {
    return exchange_state_bytes(training, averaged_gradients(training));
  };
  const double factored = factored_elements(bert, 4);
  CHECK(factored < static_cast<double>(parameters(bert)));
  CHECK(bytes(anew) == 4 * factored);
  double columns = 0;
  for (const Tensor& tensor : bert.tensors)
    if (const StateTensor of = state_tensor(bert, tensor);
        4 * (of.rows + of.columns) < of.elements / 2)
      columns += of.columns;
  CHECK(bytes(warm) == 4 * factored + 4 * 4 * columns);
  CHECK(bytes(with("powersgd:1024")) == 0);  // all tensors are sent whole
}

TEST_CASE(
    "exchange: sites sum gradients internally, and each rank averages a share of the weights") {
  // 32 ranks on nodes of 4. Per rank, a site of s ranks sums 16-bit gradients: 2 (s - 1) / s 2 K
  // bytes. Every 500 steps, 2 (32/s - 1) / (32/s) 4 K / s bytes of weights go between sites and (s
  // - 1) / s 4 K bytes within each site.
  const double all = static_cast<double>(parameters(load_model("bert-large")));
  for (const int s : {2, 4, 8, 16}) {
    INFO(s);
    const TrainingPlan training = with("local:500:" + std::to_string(s));
    const double inside = 2. * (s - 1) / s * 2 * all;
    const double sites = 32. / s;
    const double between = 2 * (sites - 1) / sites * 4 * all / s;
    const StepMetrics silent = metrics_of(training, StepKind::silent);
    const StepMetrics meeting = metrics_of(training, StepKind::uniform);
    CHECK(silent.wire_bytes_per_gpu.value() == Approx(inside).epsilon(1e-6));
    CHECK(meeting.wire_bytes_per_gpu.value() ==
          Approx(inside + between + (s - 1.) / s * 4 * all).epsilon(1e-6));
    // Sites within a node send nothing over the NICs. Between sites, one link of each ring uses a
    // NIC.
    if (s <= 4) {
      CHECK(silent.network_bytes_per_node.value() == 0);
      CHECK(meeting.network_bytes_per_node.value() == Approx(s * between).epsilon(0.01));
    }
    CHECK(exchange_state_bytes(training, averaged_gradients(training)) == 8 * all / s);
  }
  CHECK(exchange_state_bytes(with("localsgd:500:4"), averaged_gradients(with("localsgd:500:4"))) ==
        0);
  // Weights are averaged in one of 500 steps. Sites of one rank are the same as local:H.
  TrainingPlan training = with("local:500:4");
  training.steps = 1000;
  REQUIRE(distinct_steps(training).size() == 2);
  CHECK(distinct_steps(training)[1].steps == 2);
  CHECK(wire_bytes("local:500:1") == wire_bytes("local:500"));
}

TEST_CASE("exchange: a slow network between sites is used in only one step of H") {
  CollectiveCosts costs;
  const auto run_s = [&](const std::string& exchange) {
    TrainingPlan training = with(exchange);
    training.steps = 1000;
    return forecast(training, costs).run.time_s;
  };
  // The fewer exchanges there are, the closer the mean step is to a step without any.
  const double never = metrics_of(with("local:500:4"), StepKind::silent).step_time.s() * 1000;
  const double rare = run_s("local:500:4"), often = run_s("local:10:4");
  CHECK(never < rare);
  CHECK(rare < 1.05 * never);
  CHECK(rare < often);
  CHECK(often < run_s("all_reduce"));
  const double meeting =
      metrics_of(with("local:500:4"), StepKind::uniform).step_time.s() - never / 1000;
  CHECK(rare == Approx(never + 2 * meeting).epsilon(1e-6));
}

TEST_CASE("exchange: the bytes on the wire match the closed forms") {
  const ModelShape bert = load_model("bert-large");
  const auto all = static_cast<std::size_t>(parameters(bert));
  const double least = wire_bytes("all_reduce");
  CHECK(wire_bytes("onebit") == Approx(static_cast<double>(onebit_allreduce_bytes(all, 32))));
  CHECK(wire_bytes("fp8") ==
        Approx(static_cast<double>(quantised_allreduce_bytes(all, 32, {WireFormat::fp8_e4m3, 0}))));
  CHECK(wire_bytes("int8") ==
        Approx(static_cast<double>(quantised_allreduce_bytes(all, 32, {WireFormat::int8, 2048}))));
  CHECK(wire_bytes("int4") ==
        Approx(static_cast<double>(quantised_allreduce_bytes(all, 32, {WireFormat::int4, 2048}))));
  const auto kept = static_cast<std::size_t>(std::ceil(0.01 * static_cast<double>(all)));
  CHECK(wire_bytes("topk:1%") == Approx(static_cast<double>(top_k_bytes(kept, 32))));
  CHECK(wire_bytes("randomk:1%") == Approx(static_cast<double>(random_k_bytes(kept, 32))));
  CHECK(wire_bytes("chunktopk:64") ==
        Approx(static_cast<double>(chunked_bytes(ChunkCode::largest, all, 64, 32))));
  CHECK(wire_bytes("dctsign:4") ==
        Approx(static_cast<double>(chunked_bytes(ChunkCode::cosines, all, 4, 32))));
  CHECK(wire_bytes("lossless:50%") == Approx(2 * 31. / 32 * static_cast<double>(all)));  // fp16
  CHECK(wire_bytes("fp8:e5m2") == wire_bytes("fp8"));
  CHECK(wire_bytes("localsgd:16") == wire_bytes("local:16"));
  // Each further iteration sends the factors once more.
  double factors = 0;
  for (const Tensor& tensor : bert.tensors)
    if (const StateTensor of = state_tensor(bert, tensor);
        4 * (of.rows + of.columns) < of.elements / 2)
      factors += static_cast<double>(power_sgd_bytes(static_cast<std::size_t>(of.rows),
                                                     static_cast<std::size_t>(of.columns), 4, 32));
  CHECK(wire_bytes("powersgd:4:1") == wire_bytes("powersgd:4"));
  CHECK(wire_bytes("powersgd:4:3") - wire_bytes("powersgd:4") == Approx(2 * factors).epsilon(1e-3));
  CHECK(wire_bytes("powersgd:4") < least / 30);
  CHECK(wire_bytes("powersgd:8") > 1.5 * wire_bytes("powersgd:4"));
  // With 32 ranks, gathering 1 % of the values sends 31 x 8 x 1 % = 2.5 bytes per element, and an
  // fp16 all-reduce 3.9.
  CHECK(wire_bytes("topk:1%") > least / 2);
}

// SparseLoCo sends 14 bits for each of 64 values of 4,096: 0.219 bits per element. A node sends the
// updates of its shares to the other 7 nodes. A cosine transform takes 256 FLOPs per element, three
// times.
TEST_CASE("exchange: chunks of weights every H steps, and the products of cosines") {
  const TrainingPlan sites = with("chunktopk:64 / every 30 / sites:4");
  const auto all = static_cast<std::size_t>(parameters(*sites.model));
  CHECK(metrics_of(sites, StepKind::uniform).network_bytes_per_node.value() ==
        Approx(7 * 0.21875 / 8 * static_cast<double>(all)).epsilon(1e-3));
  CHECK(kept("chunktopk:64", 8) == 4);
  CHECK(kept("dctsign:4", 8) == 4);
  double flops = 0;
  const TrainingPlan cosines = with("dctsign:4");
  for (const StepPart& part : gradient_exchange(cosines, averaged_gradients(cosines)))
    if (const auto* product = std::get_if<ProductWork>(&part.work)) flops += product->flops;
  CHECK(flops == Approx(3 * 256 * static_cast<double>(all)));
}

TEST_CASE(
    "exchange: neighbours send whole weights to each neighbour of the graph, for any number of "
    "ranks") {
  const ModelShape bert = load_model("bert-large");
  const auto all = static_cast<std::size_t>(parameters(bert));
  const auto sent = [&](int to) {
    return Approx(static_cast<double>(neighbour_bytes(all, to, WireFormat::fp32)));
  };
  CHECK(wire_bytes("neighbours:ring") == sent(2));
  CHECK(wire_bytes("neighbours:exponential") == sent(1));
  const auto time_of = [](const char* exchange, int gpus) {
    TrainingPlan training = training_of({OptimizerType::adam, gpus});
    training.exchange = parse_exchange(exchange, {});
    return metrics_of(training, StepKind::uniform).gradient_comm.s();
  };
  // With two ranks both graphs are one pair; on one node all hops are internal.
  CHECK(time_of("neighbours:ring", 2) == time_of("neighbours:exponential", 2));
  // A ring leaves a node of 4 from one rank on either side: a NIC carries 2 copies of the weights.
  // In the exponential graph long hops leave from all ranks: (log2 4 + 3/4) / log2 16 of 4 copies.
  const double ring = time_of("neighbours:ring", 16), peers = time_of("neighbours:exponential", 16);
  CHECK(peers / ring == Approx((2 + 0.75) / 4 * 4 / 2).epsilon(0.1));
  CHECK(time_of("neighbours:ring", 64) == Approx(ring).epsilon(0.02));
  const Exchange graph = parse_exchange("neighbours:ring", {});
  CHECK(kept("neighbours:ring", 8) == 8);
  CHECK(kept("neighbours:ring", 2) == 4);
  CHECK_THAT(refused_with_zero(graph, 1), Contains("none can share states"));
  CHECK_THAT(refused_with_zero(parse_exchange("qgz", {}), 0), Contains("it needs ZeRO"));
  for (const int stage : {1, 2, 3})
    CHECK(refused_with_zero(parse_exchange("qgz", {}), stage).empty());
}

TEST_CASE("exchange: local steps send in one of H steps, and errors are kept in fp32") {
  TrainingPlan training = with("local:16");
  training.steps = 1000;
  const std::vector<DistinctStep> distinct = distinct_steps(training);
  REQUIRE(distinct.size() == 2);
  CHECK(distinct[0].kind == StepKind::silent);
  CHECK(distinct[0].steps == 938);
  CHECK(distinct[1].steps == 62);
  // Silent steps send only the overflow flag, which fp32 does not have.
  CHECK(metrics_of(training, StepKind::silent).wire_bytes_per_gpu.value() < 2);
  CHECK(metrics_of(training, StepKind::silent).num_collectives == 1);
  TrainingPlan single = training;
  single.recipe.precision.weights = DataType::fp32;
  CHECK(metrics_of(single, StepKind::silent).num_collectives == 0);
  const double plain = forecast_memory(with("all_reduce")).peak.value();
  const auto state = [](const char* exchange) {
    for (const auto& [part, bytes] : forecast_memory(with(exchange)).parts)
      if (part == "exchange_state") return bytes.value();
    return 0.;
  };
  const TrainingPlan factors = with("powersgd:4");
  CHECK(state("powersgd:4") == exchange_state_bytes(factors, averaged_gradients(factors)));
  CHECK(state("fp8") == 0);
  // Plain averaging has no outer optimizer, and hence neither its states nor its kernel.
  const TrainingPlan outer = with("local:16"), none = with("localsgd:16");
  CHECK(forecast_memory(none).peak.value() == plain);
  CHECK(distinct_steps(none).size() == 2);
  CHECK(metrics_of(none, StepKind::uniform).optimizer <
        metrics_of(outer, StepKind::uniform).optimizer);
}

double wire_bytes(TrainingPlan training, const std::string& exchange) {
  training.exchange = parse_exchange(exchange, {"", 0, "--exchange"});
  return metrics_of(training, StepKind::uniform).wire_bytes_per_gpu.value();
}

TEST_CASE("exchange: if ranks share states, only the weights are gathered") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  training.batch = {32 * 16 * 4, 16, 4};
  training.recipe.zero.stage = 1;
  const auto all = static_cast<std::size_t>(parameters(*training.model));
  const double gathered = 2 * 31. / 32 * static_cast<double>(optimized_parameters(*training.model));
  const auto sums = [&](const char* exchange) { return wire_bytes(training, exchange) - gathered; };
  const double fp8 =
      static_cast<double>(quantised_allreduce_bytes(all, 32, {WireFormat::fp8_e4m3, 0})) / 2;
  CHECK(sums("fp8") == Approx(fp8).epsilon(1e-5));
  CHECK(sums("onebit") ==
        Approx(static_cast<double>(onebit_allreduce_bytes(all, 32)) / 2).epsilon(1e-4));
  const Quantiser int4{WireFormat::int4, 2048};
  const auto qgz = static_cast<double>(hierarchical_reduce_scatter_bytes(all, 8, 4, int4, int4));
  CHECK(sums("qgz") == Approx(qgz).epsilon(1e-4));
  const Quantiser int8{WireFormat::int8, 2048};
  const auto wide = static_cast<double>(hierarchical_reduce_scatter_bytes(all, 8, 4, int8, int8));
  CHECK(sums("qgz:int8") == Approx(wide).epsilon(1e-4));
  const Quantiser fine8{WireFormat::int8, 128}, fine4{WireFormat::int4, 128};
  const auto mixed =
      static_cast<double>(hierarchical_reduce_scatter_bytes(all, 8, 4, fine8, fine4));
  CHECK(sums("sdp4bit") == Approx(mixed).epsilon(1e-4));
  CHECK(sums("loco") == sums("qgz"));
  CHECK(sums("loco:int8") == sums("qgz:int8"));
  // At stage 2 gradients are exchanged after each of the four micro batches.
  training.recipe.zero.stage = 2;
  CHECK(sums("fp8") == Approx(4 * fp8).epsilon(1e-5));
  CHECK(sums("qgz") == Approx(4 * qgz).epsilon(1e-4));
}

TEST_CASE("exchange: bytes per element of qgZ's kernels, and of the average of a shard") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  training.recipe.zero.stage = 1;
  const auto passes = [&](const char* exchange, const char* kernel) {
    training.exchange = parse_exchange(exchange, {});
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 128, 1}).ops)
      if (op.name == kernel) return std::get<KernelWork>(op.work).passes;
    FAIL(kernel << " is in no step");
    return Passes{};
  };
  // In int4 half a byte of each element is read, and half a byte is written for each four after the
  // sum.
  CHECK(passes("qgz", "sum and quantize").bytes_per_element == 0.5 + 0.5 / 4);
  CHECK(passes("qgz:int8", "sum and quantize").bytes_per_element == 1 + 1. / 4);
  CHECK(passes("sdp4bit", "sum and quantize").bytes_per_element == 1 + 0.5 / 4);
  // LoCo's errors in 8 bits are widened, moved in 16 and narrowed: 10.
  CHECK(passes("loco", "quantize").bytes_per_element == 2 + 0.5 + 10);
  CHECK(passes("loco", "sum and quantize").bytes_per_element == 0.5 + 10.5 / 4);
  CHECK(passes("loco", "quantize").launches == 3);
  training.kernels = Kernels::fused;
  // Fused kernels read 32 bits: gradients are widened first, and summed before coding.
  CHECK(passes("qgz", "gradients to fp32").bytes_per_element == 6);
  CHECK(passes("qgz", "quantize").bytes_per_element == 4 + 0.5);
  CHECK(passes("loco", "quantize").bytes_per_element == 4 + 0.5 + 8);
  CHECK(passes("qgz:int8", "sum in the node").bytes_per_element == 1 + 4. / 4);
  CHECK(passes("qgz:int8", "quantize sums").bytes_per_element == 4 + 1);
  CHECK(passes("loco", "quantize sums").bytes_per_element == 4 + 0.5 + 8);
  CHECK(passes("qgz", "sum").bytes_per_element == 0.5 + 4. / 8);
  const Passes fused = passes("onebit", "average");
  CHECK(fused.bytes_per_element == 0.125 + 4. / 32);
  CHECK(fused.launches == 1);
  CHECK(fused.launches_per_tensor + fused.syncs + fused.syncs_per_tensor == 0);
  training.kernels = Kernels::deepspeed;
  const Passes whole = passes("onebit", "average");
  CHECK(whole.bytes_per_element == 34);
  CHECK(whole.launches == 20);
  CHECK(whole.syncs == 1);
  CHECK(whole.launches_per_tensor + whole.syncs_per_tensor == 0);
}

bool compresses_or_back(Category part) {
  return part == Category::compress || part == Category::decompress;
}

// Bytes of kernels/cuda/{quantisation,sparse,top_k,low_rank}.h, plus 6 for widening or narrowing
// gradients.
TEST_CASE("exchange: the bytes of the fused kernels match those in their headers") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  training.kernels = Kernels::fused;
  const auto bytes = [&](const char* exchange) {
    training.exchange = parse_exchange(exchange, {});
    double sum = 0;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 128, 1}).ops)
      if (const auto* work = std::get_if<KernelWork>(&op.work))
        if (compresses_or_back(op.part)) sum += work->passes.bytes_per_element * work->elements;
    return sum / static_cast<double>(parameters(*training.model));
  };
  CHECK(bytes("fp8") == Approx(6 + 9 + (1 + 4. / 32) + 9. / 32 + 5 + 6));
  CHECK(bytes("int8") == Approx(6 + 5 + (1 + 4. / 32) + 5. / 32 + 5 + 6));
  CHECK(bytes("int4") == Approx(6 + 4.5 + (0.5 + 4. / 32) + 4.5 / 32 + 4.5 + 6));
  CHECK(bytes("int4:owed") - bytes("int4") == Approx(8 + 8. / 32));
  CHECK(wire_bytes("int4:owed") == wire_bytes("int4"));
  CHECK(bytes("fp8:owed") - bytes("fp8") == Approx(8 + 8. / 32));
  CHECK(bytes("onebit") == Approx(6 + 12.125 + (0.125 + 8.125 / 32) + 4.125 + 6).epsilon(1e-4));
  CHECK(bytes("topk:1%") ==
        Approx(6 + 12 + 0.25 + 24. / 512 + 0.44 + 16 * 0.01 * 32).epsilon(1e-6));
  CHECK(bytes("randomk:1%") == Approx(6 + 12 + 16 * 0.01 + 16 * 0.01).epsilon(1e-6));
  CHECK(bytes("powersgd:4") == Approx(6 + 28 + 6).epsilon(0.01));
  CHECK(bytes("powersgd:8") - bytes("powersgd:4") == Approx(12).epsilon(0.01));
  CHECK(bytes("powersgd:4:3") - bytes("powersgd:4") == Approx(2 * (4 + 4)).epsilon(0.01));
}

TEST_CASE("exchange: fp32 gradients are neither widened nor narrowed") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  const auto bytes = [&](const char* exchange) {
    training.exchange = parse_exchange(exchange, {});
    double sum = 0;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 128, 1}).ops) {
      const auto* work = std::get_if<KernelWork>(&op.work);
      if (work == nullptr || !compresses_or_back(op.part)) continue;
      CHECK_FALSE((op.name == "gradients to fp32" && !training.recipe.precision.is_half()));
      CHECK_FALSE((op.name == "gradients to half" && !training.recipe.precision.is_half()));
      sum += work->passes.bytes_per_element * work->elements;
    }
    return sum / static_cast<double>(parameters(*training.model));
  };
  const auto more_in_fp32 = [&](const char* exchange) {
    training.recipe.precision.weights = DataType::fp16;
    const double half = bytes(exchange);
    training.recipe.precision.weights = DataType::fp32;
    return bytes(exchange) - half;
  };
  training.kernels = Kernels::fused;
  for (const char* exchange : {"onebit", "fp8", "int4"}) {
    INFO(exchange);
    CHECK(more_in_fp32(exchange) == Approx(-12));
  }
  // Sparse messages are added to fp32 gradients, which stay in fp32.
  CHECK(more_in_fp32("topk:1%") == Approx(-6));
  CHECK(more_in_fp32("randomk:1%") == Approx(-6));
  CHECK(more_in_fp32("powersgd:4") == Approx(-12).epsilon(0.01));
  training.kernels = Kernels::deepspeed;
  CHECK(more_in_fp32("onebit") == Approx(-12));
  CHECK(more_in_fp32("fp8") == Approx(2 + 2 + 2));  // greatest, cast, cast back
  CHECK(more_in_fp32("topk:1%") == Approx(2));
}

TEST_CASE("exchange: kernels that select and average do not make the host wait") {
  const auto passes_of = [](const char* exchange, std::string_view name) {
    for (const StepKind kind : {StepKind::uniform, StepKind::compression, StepKind::round})
      for (const PlanOp& op : plan_step(with(exchange), {kind, 128, 1}).ops)
        if (const auto* work = std::get_if<KernelWork>(&op.work); work && op.name.starts_with(name))
          return work->passes;
    throw std::runtime_error(std::string(name));
  };
  for (const char* exchange : {"randomk:1%", "topk:1%"}) {
    const Passes passes = passes_of(exchange, exchange[0] == 'r' ? "pick" : "select the largest");
    CHECK(passes.syncs + passes.syncs_per_tensor == 0);
  }
  const Passes average = passes_of("localsgd:4", "average weights");
  CHECK(average.launches == 2);  // for all tensors together
  CHECK(average.launches_per_tensor + average.syncs + average.syncs_per_tensor == 0);
}

TEST_CASE("exchange: in a layout, ranks with the same parameters exchange gradients") {
  TrainingPlan training = training_of({OptimizerType::adam, 32, "dgx-a100-80g"});
  Parallelism how;
  how.layout = {2, 1, 1, 16, 1, 1, 8, parallel::default_order};
  how.framework = framework_of(FrameworkName::megatron);
  training.parallelism = how;
  training.batch = {16 * 16, 16, 1};
  const auto all = static_cast<double>(parameters(*training.model));
  const double plain = wire_bytes(training, "all_reduce");  // in fp32
  const double passes = plain - 2 * 15. / 16 * 4 * all / 2;
  CHECK(wire_bytes(training, "fp8") == Approx(passes + 2 * 15. / 16 * all / 2).epsilon(0.03));
  CHECK(wire_bytes(training, "powersgd:4") < passes + (plain - passes) / 20);
  training.exchange = parse_exchange("local:16", {});
  CHECK(metrics_of(training, StepKind::silent).wire_bytes_per_gpu.value() ==
        Approx(passes).epsilon(0.03));  // norms are on every rank and not halved
  // Sites of 4 among the 16 ranks with the same half: one node of 8.
  training.exchange = parse_exchange("local:16:4", {});
  CHECK(metrics_of(training, StepKind::silent).wire_bytes_per_gpu.value() ==
        Approx(passes + 2 * 3. / 4 * 4 * all / 2).epsilon(0.03));
  CHECK(metrics_of(training, StepKind::uniform).wire_bytes_per_gpu.value() -
            metrics_of(training, StepKind::silent).wire_bytes_per_gpu.value() ==
        Approx((2 * 3. / 4 * 4 / 4 + 3. / 4 * 4) * all / 2).epsilon(0.03));
  training.exchange = parse_exchange("powersgd:4", {});
  const double owed = forecast_memory(training).peak.value();
  training.exchange = {};
  // The error feedback of half of the model, and a buffer of the same size for the next sum.
  CHECK(owed - forecast_memory(training).peak.value() == Approx(2 * 4 * all / 2).epsilon(0.02));
}

TEST_CASE("exchange: the run is compared with an uncompressed all-reduce") {
  CollectiveCosts costs;
  CHECK(forecast(with("int4"), costs).run.speedup_vs_baseline > 1);
  CHECK(forecast(with("topk:1%"), costs).run.speedup_vs_baseline < 1);
  CHECK(forecast(with("int4"), costs).run.baseline_optimizer == "adam");
}

}  // namespace
}  // namespace lambcast
