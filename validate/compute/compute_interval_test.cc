// Checks the constants of models/device/compute_interval.h against the forecasts from which they
// were derived. Each published compute time is forecast from other data only. A constant must cover
// all of its cases, and must not be wider than needed.
//
//   build/validate/compute/compute_interval_test "[cases]"     prints every case
#include "models/device/compute_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "experiments/scenario/scenario.h"
#include "models/device/compute.h"
#include "models/shape/load.h"
#include "models/training/run/forecast.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "validate/replay/replay.h"

namespace lambcast {
namespace {

struct Case {
  std::string group;  // machine, program or curve; cases of one group resemble one another
  std::string name;
  double off;  // log(measured / forecast); per doubling if the constant is per doubling
};
using Cases = std::vector<Case>;

double seconds(const MicroBatchTime& time) { return time.forward.s() + time.backward.s(); }

csv::Table carried(const std::string& name) {
  return csv::parse(read_file(std::string(LAMBCAST_COMPUTE) + "/" + name), name);
}

// --- parts of a step, timed one by one ---

struct Parts {
  std::string id, cluster;
  double compute_s, step_s;
};

std::vector<Parts> step_parts() {
  const csv::Table table = carried("step_parts.csv");
  std::vector<Parts> parts;
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    parts.push_back({table.text(i, "id"), table.text(i, "cluster"),
                     1e-3 * (table.number(i, "forward_ms") + table.number(i, "backward_ms")),
                     1e-3 * table.number(i, "step_ms")});
  return parts;
}

// Forecasts each machine's time from the mean of the other machines of its cluster.
Cases parts_from_same_machine(const char* part, double Parts::*time) {
  Cases cases;
  const std::vector<Parts> all = step_parts();
  for (const Parts& one : all) {
    double sum = 0, count = 0;
    for (const Parts& other : all)
      if (other.cluster == one.cluster && other.id != one.id) sum += other.*time, count += 1;
    cases.push_back({one.cluster, one.id + " " + part, std::log(one.*time / (sum / count))});
  }
  return cases;
}

const std::string unscaled = R"({value = 1, kind = "assumed", source = "held out"})";

// Returns the mean step, forecast without the measured scales of the machine.
StepForecast unscaled_step(WhatIf what_if) {
  what_if["cluster.stack.compute_scale"] = unscaled;
  what_if["cluster.stack.optimizer_scale"] = unscaled;
  Catalog catalog;
  CollectiveCosts costs;
  const Scenario scenario = resolve(what_if, catalog);
  return forecast(scenario.training, costs).steps.front();
}

Cases parts_from_another_machine() {
  Cases cases;
  for (const Parts& one : step_parts()) {
    const StepForecast step = unscaled_step({{"model", "bert-large"},
                                             {"cluster", one.cluster},
                                             {"gpus", "4"},
                                             {"micro_batch", "16"},
                                             {"grad_accum", "1"},
                                             {"optimizer", "adam"}});
    const double compute_s = 1e-6 * (step.forward_us + step.backward_us);
    cases.push_back(
        {one.cluster, one.id + " forward, backward", std::log(one.compute_s / compute_s)});
    cases.push_back(
        {one.cluster, one.id + " step", std::log(one.step_s / (1e-6 * step.optimizer_us))});
  }
  return cases;
}

// --- whole steps of one node, in which communication is a small part. The time of the forward and
// backward passes is the measured time minus the forecast of all other parts. ---

Cases one_node_steps(const std::string& table) {
  Cases cases;
  for (const ReplayCase& published : published_cases()) {
    if (published.table != table) continue;
    const std::string& cluster = published.what_if.at("cluster");
    const int gpus = std::stoi(published.what_if.at("gpus"));
    if (gpus > load_cluster(cluster, {}).gpus_per_node) continue;
    const StepForecast step = unscaled_step(published.what_if);
    const double compute_us = step.forward_us + step.backward_us;
    const double measured_us = step.step_time_us * step.samples_per_s / published.measured;
    cases.push_back({cluster, published.id,
                     std::log((measured_us - (step.step_time_us - compute_us)) / compute_us)});
  }
  return cases;
}

// --- training curves ---

ModelShape bert_large() { return load_model("bert-large"); }

Device with_curves(Device device, std::vector<TrainingCurve> curves) {
  device.training_curves = std::move(curves);
  return device;
}

TrainingCurve without_point(TrainingCurve curve, std::size_t point) {
  const auto at = static_cast<std::ptrdiff_t>(point);
  curve.micro_batch.erase(curve.micro_batch.begin() + at);
  curve.samples_per_s.erase(curve.samples_per_s.begin() + at);
  return curve;
}

std::string name_of(const Device& device, const TrainingCurve& curve) {
  return fmt::format("{} {} {}", device.name, curve.implementation, curve.seq_len);
}

// Returns log(measured / forecast) of a point of a curve, forecast with `device`.
double off_at(const Device& device, const ModelShape& model, const TrainingCurve& measured,
              std::size_t point) {
  const double micro_batch = measured.micro_batch[point];
  return std::log(
      micro_batch / measured.samples_per_s[point] /
      seconds(micro_batch_time(device, model, measured.implementation,
                               static_cast<std::int64_t>(micro_batch), measured.seq_len)));
}

// Returns the device without its curves for images, which have no sequence lengths to compare.
Device timed(const std::string& name) {
  Device device = load_device(name);
  std::erase_if(device.training_curves,
                [](const TrainingCurve& curve) { return curve.seq_len == 0; });
  return device;
}

// Devices with curves. v100-16g is left out, since it has the same curves as v100-32g.
std::vector<Device> timed_devices() {
  return {timed("v100-32g"), timed("a100-40g"), timed("a100-80g")};
}

// Forecasts the points of NVIDIA's curves with the curves of DeepSpeed's program.
Cases other_programs() {
  Cases cases;
  const Device v100 = load_device("v100-32g");
  for (const TrainingCurve& nvidia : v100.training_curves) {
    if (nvidia.implementation != "nvidia") continue;
    for (std::size_t i = 0; i < nvidia.micro_batch.size(); ++i) {
      TrainingCurve as_deepspeed = nvidia;
      as_deepspeed.implementation = "deepspeed";
      cases.push_back({"V100 programs",
                       fmt::format("{} of {}", nvidia.seq_len, nvidia.micro_batch[i]),
                       off_at(v100, bert_large(), as_deepspeed, i)});
    }
  }
  return cases;
}

// Forecasts each point of a curve from the other points, one doubling away.
Cases other_micro_batches() {
  Cases cases;
  const Device v100 = load_device("v100-32g");
  for (std::size_t c = 0; c < v100.training_curves.size(); ++c) {
    const TrainingCurve& whole = v100.training_curves[c];
    if (whole.micro_batch.size() < 2) continue;
    for (std::size_t i = 0; i < whole.micro_batch.size(); ++i) {
      std::vector<TrainingCurve> curves = v100.training_curves;
      curves[c] = without_point(whole, i);
      cases.push_back({name_of(v100, whole), fmt::format("{}", whole.micro_batch[i]),
                       off_at(with_curves(v100, curves), bert_large(), whole, i)});
    }
  }
  return cases;
}

// Forecasts the other points of a curve from two neighbouring ones. Each error is divided by the
// number of doublings to the nearer point.
Cases farther_micro_batches() {
  Cases cases;
  const Device v100 = load_device("v100-32g");
  for (const TrainingCurve& whole : v100.training_curves) {
    for (std::size_t first = 0; first + 1 < whole.micro_batch.size(); ++first) {
      TrainingCurve two = whole;
      two.micro_batch = {whole.micro_batch[first], whole.micro_batch[first + 1]};
      two.samples_per_s = {whole.samples_per_s[first], whole.samples_per_s[first + 1]};
      for (std::size_t i = 0; i < whole.micro_batch.size(); ++i) {
        if (i == first || i == first + 1) continue;
        const double nearer = two.micro_batch[i > first ? 1 : 0];
        const double doublings = std::abs(std::log2(whole.micro_batch[i] / nearer));
        cases.push_back({name_of(v100, whole),
                         fmt::format("{} from {}", whole.micro_batch[i], nearer),
                         off_at(with_curves(v100, {two}), bert_large(), whole, i) / doublings});
      }
    }
  }
  return cases;
}

// Forecasts sequence length 512 from the curve of 128, which is two doublings away.
Cases other_lengths() {
  Cases cases;
  for (const Device& device : timed_devices()) {
    for (const TrainingCurve& longer : device.training_curves) {
      if (longer.seq_len != 512) continue;
      std::vector<TrainingCurve> shorter;
      for (const TrainingCurve& curve : device.training_curves)
        if (curve.seq_len == 128 && curve.implementation == longer.implementation)
          shorter.push_back(curve);
      for (std::size_t i = 0; i < longer.micro_batch.size(); ++i)
        cases.push_back({fmt::format("{} {}", device.name, longer.implementation),
                         fmt::format("{} of 512", longer.micro_batch[i]),
                         off_at(with_curves(device, shorter), bert_large(), longer, i) / 2});
    }
  }
  return cases;
}

// --- other models ---

struct OtherModel {
  std::string id;
  Device device;
  ModelShape model;
  std::int64_t micro_batch, seq_len;
  double measured_s;  // time of all three passes
};

std::vector<OtherModel> other_models() {
  const csv::Table table = carried("other_models.csv");
  std::vector<OtherModel> models;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    std::vector<ModelOverride> shape;
    for (const char* key : {"layers", "hidden", "heads", "vocab"})
      shape.push_back({std::string("model.") + key, table.text(i, key)});
    shape.push_back({"model.ffn", fmt::format("{}", 4 * table.number(i, "hidden"))});
    shape.push_back({"model.max_seq_len", table.text(i, "seq_len")});
    OtherModel one{table.text(i, "id"),
                   load_device(table.text(i, "device")),
                   load_model("gpt2", shape),
                   static_cast<std::int64_t>(table.number(i, "batch") / table.number(i, "gpus")),
                   static_cast<std::int64_t>(table.number(i, "seq_len")),
                   0};
    const double flops =
        training_flops(one.model, one.seq_len).value() * static_cast<double>(one.micro_batch);
    one.measured_s = table.text(i, "step_ms").empty()
                         ? flops / (1e12 * table.number(i, "tflops_per_gpu"))
                         : 0.75 * 1e-3 * table.number(i, "step_ms");
    models.push_back(std::move(one));
  }
  return models;
}

Cases from_curves_of_bert() {
  Cases cases;
  for (const OtherModel& one : other_models()) {
    std::set<std::string> programs;
    for (const TrainingCurve& curve : one.device.training_curves)
      programs.insert(curve.implementation);
    for (const std::string& program : programs)
      cases.push_back(
          {one.id, "from curves of " + program,
           std::log(one.measured_s / seconds(micro_batch_time(one.device, one.model, program,
                                                              one.micro_batch, one.seq_len)))});
  }
  return cases;
}

Cases from_share_of_peak() {
  Cases cases;
  for (const Device& device : timed_devices()) {
    const Device bare = with_curves(device, {});
    for (const TrainingCurve& curve : device.training_curves)
      for (std::size_t i = 0; i < curve.micro_batch.size(); ++i)
        cases.push_back({fmt::format("{} {}", device.name, curve.implementation),
                         fmt::format("{} of {}", curve.seq_len, curve.micro_batch[i]),
                         off_at(bare, bert_large(), curve, i)});
  }
  for (const OtherModel& one : other_models())
    cases.push_back(
        {one.device.name + " Megatron-LM", one.id,
         std::log(one.measured_s / seconds(micro_batch_time(with_curves(one.device, {}), one.model,
                                                            "", one.micro_batch, one.seq_len)))});
  return cases;
}

// --- the constants, each with its cases ---

Cases together(std::initializer_list<Cases> parts) {
  Cases all;
  for (const Cases& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A machine's figures set a single scale, so DGX-2H at sequence length 512 is forecast with the
// scale from length 128.
Case other_length_of_machine() {
  const Cases steps = one_node_steps("nvidia_bert_v100.csv");
  const auto of = [&](const char* name) {
    return std::find_if(steps.begin(), steps.end(),
                        [&](const Case& one) {
                          return one.name == fmt::format("dgx2h-v100 seq {} 16 GPUs", name);
                        })
        ->off;
  };
  return {"dgx2h-v100", "512 from 128", of("512") - of("128")};
}

struct Constant {
  const char* name;
  HeldOut value;
  Cases cases;
};

std::vector<Constant> constants() {
  return {
      {"this_machine", held_out::this_machine,
       together({parts_from_same_machine("forward, backward", &Parts::compute_s),
                 parts_from_same_machine("step", &Parts::step_s),
                 one_node_steps("nvidia_bert_a100.csv"),
                 {other_length_of_machine()}})},
      {"this_device", held_out::this_device,
       together({parts_from_another_machine(), one_node_steps("nvidia_bert_v100.csv"),
                 other_programs()})},
      {"other_model", held_out::other_model, from_curves_of_bert()},
      {"rate", held_out::rate, from_share_of_peak()},
      {"micro_batch", held_out::micro_batch, other_micro_batches()},
      {"seq_len", held_out::seq_len, other_lengths()},
  };
}

std::set<std::string> groups_of(const Cases& cases) {
  std::set<std::string> groups;
  for (const Case& one : cases) groups.insert(one.group);
  return groups;
}

double largest(const Cases& cases) {
  double most = 0;
  for (const Case& one : cases) most = std::max(most, std::abs(one.off));
  return most;
}

TEST_CASE("compute interval: each constant is the largest of its held-out cases") {
  for (const Constant& constant : constants()) {
    INFO(constant.name << ": " << constant.cases.size() << " cases");
    CHECK(constant.value.groups == static_cast<int>(groups_of(constant.cases).size()));
    CHECK(constant.value.off >= largest(constant.cases));
    CHECK(constant.value.off < largest(constant.cases) + 0.01);
  }
}

TEST_CASE("compute interval: the error per doubling does not grow with the number of doublings") {
  const Cases cases = farther_micro_batches();
  CHECK(cases.size() >= 17);
  CHECK(largest(cases) <= held_out::micro_batch.off);
}

TEST_CASE("compute interval: prints the cases", "[.][cases]") {
  for (const Constant& constant : constants()) {
    fmt::print("{}: {} cases of {} groups within {:.3f}, held by {}\n", constant.name,
               constant.cases.size(), groups_of(constant.cases).size(), largest(constant.cases),
               constant.value.off);
    for (const Case& one : constant.cases)
      fmt::print("  {:<24} {:<32} {:+.3f}\n", one.group, one.name, one.off);
  }
}

}  // namespace
}  // namespace lambcast
