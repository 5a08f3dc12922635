#include "experiments/output/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
const WhatIf pipeline = with({{"model", "megatron-8.3b"},
                              {"cluster", "selene-a100"},
                              {"optimizer", "adam"},
                              {"gpus", "64"},
                              {"tp", "8"},
                              {"pp", "4"},
                              {"global_batch", "32"},
                              {"micro_batch", "1"},
                              {"steps", "10"}},
                             without({"freeze_step"}));

Json trace_of(const WhatIf& what_if) {
  return Json::parse(chrome_trace(resolved(what_if).training));
}

std::vector<Json> events(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

// Returns the slices of a process by name of their thread, in order of time.
std::map<std::string, std::vector<Json>> lanes(const Json& trace, int process) {
  std::map<int, std::string> names;
  std::map<std::string, std::vector<Json>> found;
  for (const Json& event : events(trace, "M"))
    if (event.at("pid") == process && event.at("name") == "thread_name")
      names[event.at("tid").get<int>()] = event.at("args").at("name").get<std::string>();
  for (const Json& event : events(trace, "X"))
    if (event.at("pid") == process) found[names.at(event.at("tid").get<int>())].push_back(event);
  for (auto& [name, lane] : found)
    std::sort(lane.begin(), lane.end(),
              [](const Json& a, const Json& b) { return a.at("ts") < b.at("ts"); });
  return found;
}

double end_of(const Json& slice) {
  return slice.at("ts").get<double>() + slice.at("dur").get<double>();
}

}  // namespace

TEST_CASE("trace: all fields that viewers read, and no two slices of a thread at once") {
  for (const WhatIf& what_if :
       {complete(), with({{"optimizer", "lamb"}, {"overlap", "ddp"}}, without({"freeze_step"})),
        with({{"optimizer", "zero_one_adam"}, {"freeze_step", "500"}}),
        with({{"gpus", "8"}, {"symmetry", "off"}}), pipeline,
        with({{"pipeline_schedule", "zb1p"}}, pipeline)}) {
    const TrainingPlan training = resolved(what_if).training;
    CollectiveCosts costs;
    const Forecast result = forecast(training, costs);
    const Json trace = trace_of(what_if);
    CHECK(trace.at("displayTimeUnit") == "ms");
    CHECK(trace.at("otherData").at("model") == training.model->name);
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
    std::map<int, double> end_us;
    for (const Json& slice : events(trace, "X")) {
      const int process = slice.at("pid").get<int>();
      const double begin = slice.at("ts").get<double>();
      CHECK(begin >= 0);
      CHECK(end_of(slice) > begin);
      CHECK_FALSE(slice.at("name").get<std::string>().empty());
      CHECK_FALSE(slice.at("cat").get<std::string>().empty());
      CHECK(slice.at("args").is_object());
      threads[{process, slice.at("tid").get<int>()}].emplace_back(begin, end_of(slice));
      end_us[process] = std::max(end_us[process], end_of(slice));
    }
    for (auto& [thread, spans] : threads) {
      std::sort(spans.begin(), spans.end());
      // Slices must not overlap by a single bit, at any time origin of a viewer: viewers nest
      // slices that overlap.
      const double zero = spans.front().first;
      for (std::size_t i = 1; i < spans.size(); ++i) {
        CHECK(spans[i].first >= spans[i - 1].second);
        CHECK(std::fmod(spans[i].first * 1024, 1) == 0);
        CHECK(std::fmod(spans[i].second * 1024, 1) == 0);
        CHECK(spans[i].first - zero >= spans[i - 1].second - zero);
      }
    }
    const std::vector<DistinctStep> steps = distinct_steps(training);
    REQUIRE(end_us.size() == steps.size());
    // A stage is the mean over its kinds of step: rounds of 0/1 Adam count as compression.
    for (const StepForecast& step : result.steps) {
      double sum_us = 0;
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (counted_as(steps[i].kind) == step.kind)
          sum_us += end_us.at(static_cast<int>(i)) * static_cast<double>(steps[i].steps);
      CHECK(sum_us / static_cast<double>(step.steps) == Approx(step.step_time_us));
    }
    // Every thread that is drawn has a name and a position.
    std::map<std::string, std::set<std::pair<int, int>>> named;
    for (const Json& event : events(trace, "M"))
      named[event.at("name")].insert({event.at("pid").get<int>(), event.at("tid").get<int>()});
    for (const auto& [thread, spans] : threads) {
      CHECK(named["thread_name"].count(thread) == 1);
      CHECK(named["thread_sort_index"].count(thread) == 1);
    }
    CHECK(named["process_name"].size() == steps.size());
  }
}

TEST_CASE("trace: arrows lead from a slice that ended to one that waited, on another thread") {
  for (const WhatIf& what_if :
       {with({{"optimizer", "lamb"}, {"overlap", "ddp"}}, without({"freeze_step"})), pipeline}) {
    const Json trace = trace_of(what_if);
    const std::vector<Json> slices = events(trace, "X");
    const auto around = [&](const Json& arrow) {
      const double at = arrow.at("ts").get<double>();
      return std::count_if(slices.begin(), slices.end(), [&](const Json& slice) {
        return slice.at("pid") == arrow.at("pid") && slice.at("tid") == arrow.at("tid") &&
               slice.at("ts").get<double>() <= at + 1e-6 && at < end_of(slice);
      });
    };
    std::map<std::string, Json> begun;
    for (const Json& arrow : events(trace, "s"))
      CHECK(begun.emplace(arrow.at("id").get<std::string>(), arrow).second);
    const std::vector<Json> ended = events(trace, "f");
    REQUIRE(ended.size() == begun.size());
    CHECK(ended.size() > 5);
    for (const Json& to : ended) {
      const Json& from = begun.at(to.at("id").get<std::string>());
      CHECK(to.at("bp") == "e");
      CHECK(to.at("tid") != from.at("tid"));
      CHECK(to.at("ts").get<double>() >= from.at("ts").get<double>());
      CHECK(around(from) == 1);
      CHECK(std::any_of(slices.begin(), slices.end(), [&](const Json& slice) {
        return slice.at("pid") == to.at("pid") && slice.at("tid") == to.at("tid") &&
               slice.at("ts") == to.at("ts");
      }));
    }
  }
}

TEST_CASE("trace: layers in the order that they run, micro batch by micro batch") {
  const Json trace = trace_of(with({{"global_batch", "2048"}}));
  const auto of = lanes(trace, 0);
  const std::vector<Json>& compute = of.at("compute");
  for (int layer = 0; layer < 24; ++layer) {
    const Json& forward = compute.at(static_cast<std::size_t>(layer));
    CHECK(forward.at("name") == fmt::format("forward block {}", layer));
    CHECK(forward.at("args").at("layer") == layer);
    CHECK(forward.at("cat") == "forward");
    const Json& backward = compute.at(static_cast<std::size_t>(24 + layer));
    CHECK(backward.at("name") == fmt::format("backward block {}", 23 - layer));
    CHECK(backward.at("args").at("layer") == 23 - layer);
  }
  // 2048 samples / (64 GPUs * 16) are two micro batches.
  const std::vector<Json>& micro = of.at("micro batches");
  REQUIRE(micro.size() == 2);
  CHECK(micro[1].at("name") == "micro batch 1");
  CHECK(micro[0].at("ts") == compute[0].at("ts"));
  CHECK(end_of(micro[0]) == Approx(end_of(compute[47])));
  CHECK(micro[1].at("ts") == compute[48].at("ts"));
}

TEST_CASE("trace: a collective states its bytes, group, library and algorithm, and its interval") {
  const Json trace = trace_of(complete());
  const std::vector<Json> found = lanes(trace, 1).at("communication");
  bool sent = false;
  for (const Json& slice : found) {
    const Json& args = slice.at("args");
    if (!args.contains("op")) continue;
    CHECK(args.at("bytes").get<double>() > 0);
    CHECK_THAT(args.at("group").get<std::string>(), Contains("64 ranks, 4 on each of 16 nodes"));
    CHECK(args.at("library") == "nccl");
    CHECK_FALSE(args.at("algorithm").get<std::string>().empty());
    // The ends are not rounded, but slices are rounded to 1,024ths of a microsecond.
    CHECK(args.at("low_us").get<double>() <= slice.at("dur").get<double>() + 1e-3);
    CHECK(args.at("high_us").get<double>() >= slice.at("dur").get<double>() - 1e-3);
    sent = sent || args.at("wire_bytes_per_gpu").get<double>() > 0;
  }
  CHECK(sent);
}

TEST_CASE("trace: a thread for each pipeline stage, with its slots and the layers they hold") {
  const Json trace = trace_of(pipeline);
  const auto of = lanes(trace, 0);
  // 32 samples / 2 replicas are 16 micro batches per stage, each forward and backward.
  for (int stage = 0; stage < 4; ++stage) {
    int forward = 0, backward = 0;
    for (const Json& slice : of.at(fmt::format("stage {}: compute", stage))) {
      if (!slice.at("args").contains("micro_batch")) continue;
      ++(slice.at("cat") == "forward" ? forward : backward);
      CHECK(slice.at("args").at("communication_us").get<double>() > 0);
      CHECK_THAT(slice.at("args").at("layers").get<std::string>(),
                 Contains(fmt::format("{} to {}", 18 * stage, 18 * stage + 17)));
    }
    CHECK(forward == 16);
    CHECK(backward == 16);
  }
  CHECK_THAT(of.at("stage 0: compute")[0].at("args").at("layers").get<std::string>(),
             Contains("embedding"));
  CHECK(of.at("stage 1: compute")[0].at("name") == "forward 0");
}

TEST_CASE("trace: a stage's layers in their order, and the collectives of its tensor parallelism") {
  const Json trace = trace_of(pipeline);
  const auto of = lanes(trace, 0);
  for (int stage = 0; stage < 4; ++stage) {
    const std::vector<Json>& layers = of.at(fmt::format("stage {}: layers", stage));
    const std::vector<Json>& compute = of.at(fmt::format("stage {}: compute", stage));
    for (int i = 0; i < 18; ++i)
      CHECK_THAT(layers.at(static_cast<std::size_t>(i)).at("name").get<std::string>(),
                 Contains("forward ") && Contains(fmt::format("block {}", 18 * stage + i)));
    CHECK(layers.front().at("ts") == compute.front().at("ts"));
    CHECK(end_of(layers.at(17)) == end_of(compute.front()));
    CHECK(layers.size() == 2 * 16 * 18);
    const auto backward = std::find_if(layers.begin(), layers.end(), [](const Json& slice) {
      return slice.at("cat") == "backward";
    });
    CHECK_THAT(backward->at("name").get<std::string>(),
               Contains(fmt::format("block {}", 18 * stage + 17)));
    // Each block has two all-reduces in each direction. The embedding's rows, the head's input
    // gradient and three values of the loss are summed too (Shoeybi et al. 2019).
    std::int64_t calls = 0;
    for (const Json& slice : of.at(fmt::format("stage {}: collectives of passes", stage))) {
      const Json& args = slice.at("args");
      calls += args.at("times").get<std::int64_t>();
      CHECK(args.at("op") == "all_reduce");
      CHECK_THAT(args.at("group").get<std::string>(), Contains("8 ranks, 8 on each of 1 nodes"));
      CHECK_FALSE(args.at("algorithm").get<std::string>().empty());
      if (slice.at("name") == "all_reduce activations") CHECK(args.at("bytes") == 2 * 1024 * 3072);
      CHECK(slice.at("dur").get<double>() ==
            Approx(args.at("time_us").get<double>()).epsilon(0.001).margin(0.01));
    }
    CHECK(calls == 16 * (18 * 4 + (stage == 0 ? 1 : 0) + (stage == 3 ? 4 : 0)));
  }
}

TEST_CASE("trace: sends between stages, with arrows through them") {
  const Json trace = trace_of(pipeline);
  const auto of = lanes(trace, 0);
  for (int stage = 0; stage < 4; ++stage) {
    const bool first = stage == 0, last = stage == 3;
    for (const auto& [lane, sends] :
         {std::pair("sent activations", !last), std::pair("received activations", !first),
          std::pair("sent gradients", !first), std::pair("received gradients", !last)}) {
      const auto found = of.find(fmt::format("stage {}: {}", stage, lane));
      CHECK((found != of.end()) == sends);
      if (found == of.end()) continue;
      CHECK(found->second.size() == 16);
      for (const Json& send : found->second) {
        CHECK(send.at("args").at("op") == "send_recv");
        // DeepSpeed sends each rank's part, and the receiving ranks gather the parts.
        CHECK(send.at("args").at("bytes") == 2 * 1024 * 3072 / 8);
        CHECK(send.at("args").at("then") == "all_gather over 8 ranks");
        CHECK_THAT(send.at("args").at("group").get<std::string>(), Contains("2 ranks"));
      }
    }
  }
  const Json& slot = of.at("stage 0: compute").front();
  const Json& send = of.at("stage 0: sent activations").front();
  const Json& receive = of.at("stage 1: received activations").front();
  CHECK(send.at("name") == "send activations 0");
  CHECK(send.at("args").at("to") == "stage 1");
  CHECK(receive.at("name") == "receive activations 0");
  CHECK(receive.at("args").at("from") == "stage 0");
  CHECK(send.at("ts") == end_of(slot));
  CHECK(receive.at("ts") == send.at("ts"));
  CHECK(end_of(send) == of.at("stage 1: compute").front().at("ts"));
  // Arrows lead from the slot to the send, and from the send to the slot that waited.
  std::map<std::string, Json> begun;
  for (const Json& arrow : events(trace, "s")) begun[arrow.at("id")] = arrow;
  int arrows = 0;
  for (const Json& arrow : events(trace, "f")) {
    const Json& from = begun.at(arrow.at("id").get<std::string>());
    const bool to_send = arrow.at("tid") == send.at("tid") && arrow.at("ts") == send.at("ts");
    const bool from_send = from.at("tid") == send.at("tid") && from.at("ts") < end_of(send);
    arrows += to_send && from.at("tid") == slot.at("tid") ? 1 : 0;
    arrows += from_send && arrow.at("ts") == end_of(send) ? 1 : 0;
  }
  CHECK(arrows == 2);
}

TEST_CASE("trace: numbers of bytes are whole") {
  for (const WhatIf& what_if : {complete(), pipeline,
                                with({{"zero_stage", "3"},
                                      {"framework", "torchtitan"},
                                      {"tp", "1"},
                                      {"pp", "1"},
                                      {"global_batch", "64"}},
                                     pipeline)}) {
    int found = 0;
    for (const Json& slice : events(trace_of(what_if), "X"))
      for (const auto& [key, value] : slice.at("args").items()) {
        if (key.find("bytes") == std::string::npos) continue;
        CHECK(value.is_number_integer());
        ++found;
      }
    CHECK(found > 5);
  }
}

TEST_CASE("trace: copies to the host and back, the update there, and an optimizer's products") {
  // Returns the arguments of the last slice with this name.
  const auto said = [](const WhatIf& changes, const std::string& name) {
    Json args;
    for (const Json& slice : events(trace_of(with(changes, without({"freeze_step"}))), "X"))
      if (slice.at("name") == name) args = slice.at("args");
    INFO(name);
    REQUIRE(args.is_object());
    return args;
  };
  const WhatIf offloads{{"optimizer", "adam"}, {"zero_stage", "2"}, {"offload_optimizer", "cpu"}};
  const Json down = said(offloads, "gradients to the host"),
             up = said(offloads, "weights to the GPU");
  CHECK(down.at("bytes_down") > 0);
  CHECK(down.at("memory") == "pinned");
  CHECK(up.at("bytes_down") == 0);
  CHECK(up.at("bytes_up") > 0);
  const Json update = said(offloads, "optimizer on the host");
  CHECK(update.at("ranks_at_once") == 4);  // all ranks of a node
  CHECK(update.at("bytes") > 0);
  CHECK(said({{"optimizer", "galore_adamw8bit"}}, "products of the optimizer").at("flops") > 1e9);
}

TEST_CASE("trace: passes are merged if there are too many for viewers") {
  // 4,194,304 samples / (64 GPUs * 16) are 4096 micro batches of 24 layers.
  const Json trace = trace_of(with({{"global_batch", "4194304"}}));
  CHECK(events(trace, "X").size() < 500);
  const auto of = lanes(trace, 0);
  CHECK(of.at("compute")[0].at("args").at("times") == 4096);
  CHECK(of.count("micro batches") == 0);
}

}  // namespace lambcast
