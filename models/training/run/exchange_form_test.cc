#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "kernels/exchange_bytes.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/step_plan.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// Returns a training on 32 GPUs: 8 nodes of 4.
TrainingPlan in_form(const std::string& exchange, const Overrides& settings = {}) {
  TrainingPlan training =
      training_of({.optimizer = OptimizerType::adam, .gpus = 32, .settings = settings});
  training.exchange = parse_exchange(exchange, {"", 0, "--exchange"});
  return training;
}

StepMetrics step_in_form(const std::string& exchange, const Overrides& settings = {}) {
  return metrics_of(in_form(exchange, settings), StepKind::uniform);
}

// Returns a training under a layout that divides nothing.
TrainingPlan data_parallel(FrameworkName framework) {
  TrainingPlan training = training_of({OptimizerType::adam, 32, "dgx-a100-80g"});
  Parallelism how;
  how.layout = {1, 1, 1, 32, 1, 1, 8, parallel::default_order};
  how.framework = framework_of(framework);
  training.parallelism = how;
  return training;
}

Exchange parsed(const std::string& text) { return parse_exchange(text, {"", 0, "--exchange"}); }

TEST_CASE("exchange form: pattern and timing are written behind the codec, in any order") {
  for (const char* text :
       {"int8 / two-level / overlapped", "onebit / flat / after", "topk:1% / flat",
        "powersgd:4:2 / overlapped", "neighbours:ring / two-level", "onebit / sharded / overlapped",
        "int8 / relay / after", "topk:1% / store",
        "int4:owed / every 24 / sites:4 / fragments 3 / overlap 2", "local:24:4 / fragments 3"})
    CHECK(name_of(parsed(text)) == text);
  CHECK(parsed("int8/overlapped/two-level") == parsed("int8 / two-level / overlapped"));
  CHECK(codec_name(parsed("topk:1% / flat")) == "topk:1%");
  CHECK_FALSE(parsed("int8 / flat") == parsed("int8"));
  for (const char* text : {"int8 /", "int8 / ring", "int8 / flat / flat", "int8 / flat / two-level",
                           "int8 / after / overlapped", "/ flat", "int8 / overlapped / after"}) {
    INFO(text);
    CHECK_THROWS_WITH(parsed(text),
                      Contains("flat, two-level, sharded, relay or store, / after or overlapped"));
  }
}

TEST_CASE("exchange form: hooks run a codec as its library does, unless the form is set") {
  const auto hooked = [](const char* text) { return name_of(in_hooks(parsed(text))); };
  for (const char* between_leaders :
       {"onebit", "fp8", "int8", "int4:owed", "neighbours:ring", "neighbours:exponential"})
    CHECK(hooked(between_leaders) == std::string(between_leaders) + " / two-level / overlapped");
  for (const char* among_all : {"powersgd:4", "topk:1%", "randomk:1%"})
    CHECK(hooked(among_all) == std::string(among_all) + " / flat / overlapped");
  for (const char* own : {"all_reduce", "local:16", "localsgd:4", "qgz", "loco:int8"})
    CHECK(hooked(own) == own);
  CHECK(hooked("int8 / flat") == "int8 / flat / overlapped");
  CHECK(hooked("int8 / after") == "int8 / two-level / after");
}

TEST_CASE("exchange form: exchanges without forms, and ZeRO, reject one") {
  for (const char* own : {"all_reduce / flat", "qgz / two-level", "loco / after",
                          "local:16 / overlapped", "localsgd:4:8 / two-level"})
    CHECK_FALSE(refused_form(parsed(own)).empty());
  CHECK(refused_form(parsed("int8 / two-level")).empty());
  CHECK(refused_form(parsed("topk:1% / sharded")).empty());
  CHECK_THAT(refused_form(parsed("powersgd:4 / sharded")), Contains("whole matrices"));
  CHECK(refused_form(parsed("all_reduce")).empty());
  for (const int stage : {1, 2, 3}) {
    CHECK_THAT(refused_with_zero(parsed("int8 / two-level"), stage),
               Contains("ZeRO keeps a share"));
    CHECK_FALSE(refused_with_zero(parsed("fp8 / overlapped"), stage).empty());
  }
  CHECK(refused_with_zero(parsed("int8 / flat / after"), 1).empty());
}

TEST_CASE("exchange form: every node has a leader for each sibling group") {
  const ProcessGroup leaders = node_leaders({16, 2, 4, 1, 4});
  CHECK(leaders == ProcessGroup{8, 1, 1, 1, 4});
  CHECK(node_leaders({6, 4}).ranks == 2);
  CHECK(node_leaders({4, 4}).ranks == 1);
}

// A leader exchanges with 7 others the bytes that a rank in the flat form exchanges with 31, and
// only leaders use the NICs: 2 7/8 (K + 4 bytes of scales for each 2,048) bytes of int8 per node.
TEST_CASE("exchange form: on two levels only the leaders' messages pass a NIC") {
  const auto all = static_cast<std::size_t>(parameters(load_model("bert-large")));
  const auto of_node = [](const char* exchange) {
    return step_in_form(exchange).network_bytes_per_node.value();
  };
  const auto closed = [](std::size_t bytes) {
    return Approx(static_cast<double>(bytes)).epsilon(1e-4);
  };
  CHECK(of_node("int8 / two-level") ==
        closed(quantised_allreduce_bytes(all, 8, {WireFormat::int8, 2048})));
  CHECK(of_node("int4 / two-level / overlapped") ==
        closed(quantised_allreduce_bytes(all, 8, {WireFormat::int4, 2048})));
  CHECK(of_node("onebit / two-level") == closed(onebit_allreduce_bytes(all, 8)));
  CHECK(of_node("neighbours:exponential / two-level") ==
        closed(neighbour_bytes(all, 1, WireFormat::fp32)));
  CHECK(of_node("neighbours:ring / two-level / overlapped") ==
        closed(neighbour_bytes(all, 2, WireFormat::fp32)));
}

TEST_CASE(
    "exchange form: a leader first sums its node's gradients, and then distributes the result") {
  const TrainingPlan training = in_form("int8 / two-level");
  const auto all = static_cast<double>(parameters(*training.model));
  const std::vector<StepPart> parts = gradient_exchange(training, averaged_gradients(training));
  REQUIRE(parts.size() == 7);
  const Call& first = std::get<Call>(parts.front().work);
  const Call& last = std::get<Call>(parts.back().work);
  CHECK(first.op == Op::reduce);
  CHECK(last.op == Op::broadcast);
  for (const Call& in_node : {first, last}) {
    CHECK(in_node.group.ranks == 4);
    CHECK(in_node.group.nodes() == 1);
    CHECK(in_node.bytes.value() == 2 * all);  // fp16
  }
  // One message each way: scales precede their chunks.
  CHECK(std::get<Call>(parts[2].work).op == Op::all_to_all);
  CHECK(std::get<Call>(parts[4].work).op == Op::all_gather);
  CHECK(gradient_exchange(in_form("int8"), averaged_gradients(training)).size() == 7);
  // Leaders keep the error feedback of gradients; the error feedback of sums is divided over them.
  const TrainingPlan owed = in_form("int8:owed / two-level");
  CHECK(exchange_state_bytes(owed, averaged_gradients(owed)) == Approx((4 + 4. / 8) * all));
  // With one node there are no peers; with one GPU per node all ranks are leaders.
  TrainingPlan one = training_of({.optimizer = OptimizerType::adam, .gpus = 4});
  one.exchange = training.exchange;
  CHECK(metrics_of(one, StepKind::uniform).network_bytes_per_node.value() == 0);
  TrainingPlan alone =
      training_of({.optimizer = OptimizerType::adam, .gpus = 8, .gpus_per_node = 1});
  const auto names = [&](const char* exchange) {
    alone.exchange = parsed(exchange);
    std::vector<std::string> found;
    for (const StepPart& part : gradient_exchange(alone, averaged_gradients(alone)))
      found.push_back(part.name);
    return found;
  };
  CHECK(names("int8 / two-level / overlapped") == names("int8 / flat / overlapped"));
}

// On 8 nodes an all_to_all takes one hop and a ring's all_gather 7, so a hop that is 10 ms longer
// delays one message by 80 ms, and B buckets B times. A large message also waits for its channels'
// buffers (channel_bounds.h), so the exchange without buckets uses one bit here. With three
// connections per channel no TCP window is smaller than these.
TEST_CASE("exchange form: every bucket has the latencies of an exchange") {
  const auto with_hop = [](const char* exchange, const char* hop) {
    return step_in_form(exchange, {{"nccl.Simple.network_hop", hop},
                                   {"nccl.LL.network_hop", hop},
                                   {"nccl.connections", "3"}})
        .step_time.s();
  };
  const auto later = [&](const char* exchange) {
    return with_hop(exchange, "20ms") - with_hop(exchange, "10ms");
  };
  const auto buckets =
      static_cast<double>(gradient_reduction(in_form("int8 / overlapped")).buckets.size());
  REQUIRE(buckets > 10);
  CHECK(later("int8 / two-level / overlapped") == Approx(buckets * 0.08).epsilon(0.05));
  CHECK(later("onebit / two-level / overlapped") == Approx(buckets * 0.08).epsilon(0.05));
  CHECK(later("onebit / two-level / after") == Approx(0.08).epsilon(0.05));
}

// The 8 ranks at the same position of their nodes exchange a quarter of the elements. All 4 ranks
// of a node use its NICs: together they send the same bytes as a leader.
TEST_CASE("exchange form: sharded, each rank of a node exchanges its share of the node's sum") {
  const TrainingPlan training = in_form("onebit / sharded");
  const auto all = static_cast<double>(parameters(*training.model));
  const std::vector<StepPart> parts = gradient_exchange(training, averaged_gradients(training));
  const auto call_at = [&](std::size_t i) { return std::get<Call>(parts.at(i).work); };
  REQUIRE(parts.size() ==
          9);  // sum, widen, compress, scatter, average, gather, all_gather in the node, decode
  CHECK(call_at(0).op == Op::reduce_scatter);
  CHECK(call_at(0).group.ranks == 4);
  CHECK(call_at(0).bytes.value() == 2 * all);  // fp16
  CHECK(std::get<KernelWork>(parts[2].work).elements == Approx(all / 4).epsilon(1e-4));
  CHECK(call_at(3).op == Op::all_to_all);
  CHECK(call_at(3).group == ProcessGroup{8, 1, 4, 1, 4});
  // Signs of all elements, and a scale for each of 8 chunks of 4 shares.
  CHECK(call_at(6).op == Op::all_gather);
  CHECK(call_at(6).group.ranks == 4);
  CHECK(call_at(6).bytes.value() == Approx(all / 8 + 4 * 32).epsilon(1e-4));
  CHECK(std::get<KernelWork>(parts[7].work).elements == Approx(all).epsilon(1e-4));
  const auto of_node = [](const char* exchange) {
    return step_in_form(exchange).network_bytes_per_node.value();
  };
  for (const std::string codec : {"onebit", "int8", "int4", "fp8", "randomk:1%"})
    CHECK(of_node((codec + " / sharded").c_str()) ==
          Approx(of_node((codec + " / two-level").c_str())).epsilon(1e-3));
  // Error feedback of a quarter of the elements, and of sums of a thirty-second.
  CHECK(exchange_state_bytes(training, averaged_gradients(training)) ==
        Approx((4 + 4. / 8) * all / 4));
  // Sums of sparse values are gathered uncompressed.
  const TrainingPlan sparse = in_form("randomk:1% / sharded");
  const Call last =
      std::get<Call>(gradient_exchange(sparse, averaged_gradients(sparse)).back().work);
  CHECK(last.op == Op::all_gather);
  CHECK(last.bytes.value() == 2 * all);
}

TEST_CASE(
    "exchange form: a composition of codec, pattern, schedule and scope is parsed and printed") {
  for (const char* text : {"int4:owed / two-level / every 30 / nodes", "onebit / every 4",
                           "topk:1% / sharded / every 16 / sites:8", "local:16 / nodes"}) {
    CHECK(name_of(parsed(text)) == text);
    CHECK(refused_form(parsed(text)).empty());
  }
  CHECK(parsed("int4+ef / two-level / every 30 / sites") ==
        parsed("int4:owed / two-level / every 30 / nodes"));
  CHECK(parsed("topk:1%+ef") == parsed("topk:1%"));
  for (const char* text : {"sites:8 / every 30", "int8 / every 0", "int8 / every 4 / every 8",
                           "int8 / sites:0", "qgz+ef", "fp8:e5m2+ef"})
    CHECK_THROWS_WITH(parsed(text), Contains("/ every STEPS with"));
}

// Every 4 steps the change of the weights is sent in int8 with a scale for each 2,048: 2 7/8 (K + 4
// K/2048) bytes per node, whose 4 ranks are a site. In between nothing is sent.
TEST_CASE("exchange form: sites exchange the change of their weights in few bits") {
  const auto in = [](const std::string& exchange) {
    TrainingPlan training = in_form(exchange);
    if (training.exchange.site == Exchange::of_a_node) training.exchange.site = 4;
    return training;
  };
  const auto all = static_cast<std::size_t>(parameters(load_model("bert-large")));
  const auto closed =
      static_cast<double>(quantised_allreduce_bytes(all, 8, {WireFormat::int8, 2048}));
  const auto sent = [&](const std::string& exchange) {
    return metrics_of(in(exchange), StepKind::uniform).network_bytes_per_node.value();
  };
  for (const char* by : {"int8 / every 4 / nodes", "int8 / two-level / every 4 / nodes"}) {
    INFO(by);
    CHECK(sent(by) == Approx(closed).epsilon(1e-3));
  }
  CHECK(steps_per_exchange(parsed("int8 / every 4")) == 4);
  // Uncompressed weights are local:4:4, which sends 4 bytes instead of one byte and its scale.
  CHECK(in("fp32 / every 4 / nodes").exchange == Exchange{ExchangeKind::local, 4, 0, 4});
  CHECK(sent("local:4:4") == Approx(3.99 * sent("int8 / every 4 / nodes")).epsilon(0.01));
  // State for a share: outer weights and momentum, error feedback of the share, and error feedback
  // of its sums, divided over 8 sites.
  const TrainingPlan owed = in("int4+ef / every 4 / nodes");
  CHECK(exchange_state_bytes(owed, averaged_gradients(owed)) ==
        Approx((8 + 4 + 4. / 8) * static_cast<double>(all) / 4));
  for (const char* not_so : {"powersgd:4 / every 4", "int8 / overlapped / every 4", "int8 / nodes",
                             "int8 / flat / every 4 / nodes", "neighbours:ring / every 4"}) {
    INFO(not_so);
    CHECK_FALSE(refused_form(parsed(not_so)).empty());
  }
}

TEST_CASE("exchange form: through a relay, which adds up, or an object store, which does not") {
  const auto all = static_cast<double>(parameters(load_model("bert-large")));
  const double kept = std::ceil(0.01 * all), nodes = 8;
  const auto sent = [](const char* exchange) {
    return step_in_form(exchange).network_bytes_per_node.value();
  };
  // A leader puts its message and gets the messages of all leaders. All of these pass the one port
  // of a relay.
  CHECK(sent("topk:1% / store") == Approx((1 + nodes) * 8 * kept));
  CHECK(sent("topk:1% / relay") == Approx(nodes * sent("topk:1% / store")));
  CHECK(sent("chunktopk:64 / store") == Approx((1 + nodes) * 0.21875 / 8 * all).epsilon(1e-3));
  // Leaders put the codes of K bytes and their scales, and get those of the sum: 8 / 7 of the bytes
  // that 8 leaders send directly. All of these pass one port, which multiplies by 8.
  CHECK(sent("int8 / relay") ==
        Approx(nodes * nodes / (nodes - 1) * sent("int8 / two-level")).epsilon(1e-3));
  CHECK(sent("randomk:1% / relay") == Approx(nodes * 2 * 4 * kept).epsilon(1e-3));
  for (const char* no_hub : {"int8 / store", "randomk:1% / store", "neighbours:ring / relay",
                             "all_reduce / relay", "qgz / relay", "local:8 / relay"}) {
    INFO(no_hub);
    CHECK_FALSE(refused_form(parsed(no_hub)).empty());
  }
}

TEST_CASE("exchange form: fragments of weights go at steps of their own, during the passes") {
  CHECK(steps_per_exchange(parsed("int4+ef / every 24 / sites:4 / fragments 3 / overlap 2")) == 4);
  CHECK(steps_per_exchange(parsed("local:24:4 / fragments 3")) == 8);
  CHECK(parsed("fp32 / every 24 / sites:4 / fragments 3") == parsed("local:24:4 / fragments 3"));
  for (const char* whole : {"int8 / every 24 / sites:4", "local:24:4", "local:24"}) {
    INFO(whole);
    const auto step = [&](const std::string& form) { return step_in_form(whole + form); };
    const StepMetrics at_once = step(""), third = step(" / fragments 3"),
                      beside = step(" / fragments 3 / overlap 1"),
                      sixth = step(" / fragments 3 / overlap 2");
    // Gradients are summed inside the node in every step, which uses links and no NIC.
    const double bytes = at_once.network_bytes_per_node.value();
    CHECK(third.network_bytes_per_node.value() == Approx(bytes / 3).epsilon(1e-3));
    CHECK(beside.network_bytes_per_node == third.network_bytes_per_node);
    CHECK(sixth.network_bytes_per_node.value() == Approx(bytes / 6).epsilon(1e-3));
    CHECK(third.step_time < at_once.step_time);
    CHECK(beside.step_time < third.step_time);
    CHECK(sixth.step_time <= beside.step_time);
  }
  for (const char* not_so : {"int8 / fragments 2", "int8 / overlap 1", "local:8:4 / fragments 3",
                             "int8 / every 8 / fragments 4 / overlap 4"}) {
    INFO(not_so);
    CHECK_FALSE(refused_form(parsed(not_so)).empty());
  }
}

TEST_CASE("exchange form: passes do not wait for weights that travel beside them") {
  for (const char* text : {"neighbours:ring / overlapped", "local:24 / fragments 3 / overlap 1",
                           "int8 / every 24 / sites:4 / fragments 3 / overlap 1"}) {
    INFO(text);
    const std::vector<PlanOp> ops = plan_step(in_form(text), {StepKind::uniform, 128, 1}).ops;
    const auto first_pass = std::ranges::find(ops, Category::forward, &PlanOp::part);
    REQUIRE(first_pass != ops.end());
    CHECK(first_pass != ops.begin());
    CHECK(first_pass->after.empty());
  }
}

// Sites of 8, the ranks of a node, on 4 nodes.
TEST_CASE("exchange form: ranks of a site share states, and send their share every H steps") {
  using parallel::Sharding;
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::weights})
    for (const FrameworkName framework : {FrameworkName::megatron, FrameworkName::torchtitan}) {
      TrainingPlan training = data_parallel(framework);
      training.parallelism->sharding = sharding;
      training.parallelism->shard_ranks = 8;
      const auto sent = [&](const char* exchange, StepKind kind) {
        training.exchange = parsed(exchange);
        return metrics_of(training, kind).network_bytes_per_node.value();
      };
      const auto all = static_cast<double>(parameters(*training.model));
      CHECK(sent("all_reduce", StepKind::uniform) > 4 * all);  // sums between copies, in every step
      CHECK(sent("local:16:8", StepKind::silent) < 1e4);       // norms
      CHECK(sent("local:16:8", StepKind::uniform) == Approx(2 * 0.75 * 4 * all).epsilon(0.01));
      CHECK(sent("int8 / every 16 / sites:8", StepKind::uniform) ==
            Approx(2 * 0.75 * (1 + 4. / 2048) * all).epsilon(0.01));
      CHECK(refused_with_zero(training.exchange, static_cast<int>(sharding)).empty());
    }
  CHECK_THAT(refused_with_zero(parsed("local:16"), 1), Contains("without sites"));
}

// 1-bit Adam's momenta, one buffer under fp16: 2 (m-1)/m Np/8 + 8 (m-1) bytes leave each of m
// nodes. In the flat form, 28 of 32 chunks of each of 4 ranks leave a node, and 31 of 32 in the
// ring of the gather: 4.47 Np/8 instead of 1.75.
TEST_CASE("exchange form: momenta of 1-bit optimizers go in two levels and in buckets") {
  const auto in = [](const std::string& exchange) {
    TrainingPlan training = training_of({.optimizer = OptimizerType::onebit_adam, .gpus = 32});
    if (!exchange.empty()) training.exchange = parsed(exchange);
    return training;
  };
  const auto sent = [&](const std::string& exchange) {
    return metrics_of(in(exchange), StepKind::compression).network_bytes_per_node.value();
  };
  const auto all = static_cast<std::size_t>(optimized_parameters(*in("").model));
  for (const char* levels : {"onebit / two-level", "onebit / sharded",
                             "onebit / two-level / overlapped", "onebit / sharded / overlapped"}) {
    INFO(levels);
    CHECK(sent(levels) ==
          Approx(static_cast<double>(onebit_allreduce_bytes(all, 8))).epsilon(0.01));
    CHECK(sent(levels) == Approx(1.75 / 4.47 * sent("")).epsilon(0.01));
    const StepMetrics warmup = metrics_of(in(levels), StepKind::warmup);
    CHECK(warmup.wire_bytes_per_gpu.value() > 1e9);  // uncompressed gradients
  }
  CHECK(sent("onebit / overlapped") == Approx(sent("")).epsilon(0.01));
  // Error feedback of a share, and of the sums that the rank computes.
  const auto held = [&](const std::string& exchange) {
    double bytes = 0;
    for (const auto& [part, size] : forecast_memory(in(exchange)).parts)
      if (part == "worker_error" || part == "server_error") bytes += size.value();
    return bytes;
  };
  CHECK(held("onebit / sharded") ==
        Approx((4 + 4. / 8) / 4 * static_cast<double>(all)).epsilon(0.01));
  const StepMetrics after = metrics_of(in("onebit / sharded"), StepKind::compression);
  const StepMetrics beside = metrics_of(in("onebit / sharded / overlapped"), StepKind::compression);
  CHECK(after.exposed_comm == after.gradient_comm);
  CHECK(beside.exposed_comm < beside.gradient_comm);
}

TEST_CASE(
    "exchange form: overlapped exchanges are hidden behind the backward pass, except at its end") {
  const StepMetrics after = step_in_form("int8 / two-level / after");
  const StepMetrics beside = step_in_form("int8 / two-level / overlapped");
  CHECK(beside.step_time < after.step_time);
  CHECK(beside.exposed_comm < beside.gradient_comm);
  CHECK(after.exposed_comm == after.gradient_comm);
  CHECK(beside.compress + beside.decompress ==
        Duration());  // coding kernels run on the communication stream
  // Weights of neighbours are exchanged during both passes.
  const StepMetrics weights = step_in_form("neighbours:exponential / two-level / overlapped");
  CHECK(weights.exposed_comm < weights.gradient_comm);
  CHECK(weights.exposed_comm + weights.forward + weights.backward >= weights.gradient_comm);
}

// Tensors of BERT-Large exceed 25 MiB with two matrices of a feed-forward, or with one of them and
// the four of an attention: 3 buckets for 2 of 24 layers, and one for the embeddings.
TEST_CASE("exchange form: PyTorch's buckets hold whole tensors, with and without a layout") {
  TrainingPlan training = data_parallel(FrameworkName::pytorch);
  const auto all = static_cast<double>(parameters(*training.model));
  CHECK(bucket_count(training, all) == 37);
  training.parallelism->framework = framework_of(FrameworkName::colossalai);
  CHECK(bucket_count(training, all) == std::ceil(all / 12e6));
  training.parallelism.reset();
  training.overlap = Overlap::ddp;
  training.recipe.precision.weights = DataType::fp32;
  CHECK(gradient_reduction(training).buckets.size() == 37);
}

TEST_CASE("exchange form: the same bytes are sent in buckets with and without a layout") {
  TrainingPlan training = data_parallel(FrameworkName::pytorch);
  training.recipe.precision.weights = DataType::fp32;
  const Parallelism how = *training.parallelism;
  for (const char* exchange : {"int8 / two-level / overlapped", "powersgd:4 / flat / overlapped",
                               "neighbours:exponential / two-level / overlapped"}) {
    INFO(exchange);
    training.exchange = parsed(exchange);
    training.parallelism = how;
    const StepMetrics divided = metrics_of(training, StepKind::uniform);
    CHECK(divided.exposed_comm < divided.gradient_comm);
    training.parallelism.reset();
    training.overlap = Overlap::ddp;
    const StepMetrics plain = metrics_of(training, StepKind::uniform);
    CHECK(divided.network_bytes_per_node.value() ==
          Approx(plain.network_bytes_per_node.value()).epsilon(0.02));
  }
}

}  // namespace
}  // namespace lambcast
