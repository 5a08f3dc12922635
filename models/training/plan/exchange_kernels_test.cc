#include "models/training/plan/exchange_kernels.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "models/training/plan/optimizer_cost.h"
#include "models/training/run/forecast.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

constexpr Quantiser fp8{WireFormat::fp8_e4m3, 0}, int8{WireFormat::int8, 2048},
    int4{WireFormat::int4, 2048};

// Reads the rows `name` | counted | of a table that the kernels' own test compares with their
// traffic.
std::map<std::string, double> counted_in_limits() {
  std::ifstream file(LAMBCAST_KERNEL_LIMITS);
  std::map<std::string, double> counted;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) inside = line == "## Counted, kernel by kernel";
    if (!inside || !line.starts_with("| `")) continue;
    std::istringstream cells(line.substr(3));
    std::string name, value;
    std::getline(cells, name, '`');
    cells.ignore(3, '|');
    std::getline(cells, value, '|');
    counted[name] = std::stod(value);
  }
  return counted;
}

TEST_CASE("exchange kernels: the bytes of each kernel match the table of limits") {
  std::vector<Passes> all{fused::widen,           fused::narrow,      fused::compress_signs,
                          fused::add_owed,        fused::top_k(0.01), fused::random_k(0.01),
                          fused::add_at(0.01, 4), fused::outer_step,  fused::average(2)};
  for (const Quantiser& quantiser : {fp8, int8, int4})
    for (const Passes& passes :
         {fused::quantise(quantiser, false), fused::quantise(quantiser, true),
          fused::dequantise_sum(quantiser, 1), fused::dequantise_sum(quantiser, 8)})
      all.push_back(passes);
  const auto counted = counted_in_limits();
  for (const Passes& passes : all) {
    INFO(passes.kernel);
    REQUIRE(counted.count(std::string(passes.kernel)) == 1);
    CHECK(passes.bytes_per_element ==
          Approx(counted.at(std::string(passes.kernel))).epsilon(0.02).margin(0.003));
  }
}

TEST_CASE("exchange kernels: a kernel that no profile measures has no name there") {
  CHECK(fused::top_k(0.02).kernel.empty());
  CHECK(fused::random_k(0.001).kernel.empty());
  CHECK(fused::dequantise_sum(int8, 4).kernel.empty());
  CHECK(fused::quantise({WireFormat::fp8_e5m2, 0}, false).kernel.empty());
  CHECK(fused::average(1).kernel.empty());
}

// Bytes per element of 32 ranks' 16-bit gradients: greatest magnitude 2; cast 2 + 1; sum of chunks
// 1 + 4 and cast 5; cast back 1 + 2. Error feedback reads the error and the gradient and writes
// their sum, 2 + 4 + 4; subtracting the sent values takes 8.
TEST_CASE("exchange kernels: the framework's own kernels move what PyTorch reads and writes") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  const auto bytes = [&](const char* exchange, Category part) {
    training.exchange = parse_exchange(exchange, {});
    double sum = 0;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 128, 1}).ops)
      if (const auto* work = std::get_if<KernelWork>(&op.work); work != nullptr && op.part == part)
        sum += work->passes.bytes_per_element * work->elements;
    return sum / static_cast<double>(parameters(*training.model));
  };
  const auto both = [&](const char* exchange) {
    return bytes(exchange, Category::compress) + bytes(exchange, Category::decompress);
  };
  for (const char* exchange : {"fp8", "int8", "int4"})
    CHECK(both(exchange) == Approx(2 + 3 + 5 + 5 + 3));
  CHECK(both("int8:owed") - both("int8") == Approx((10 + 8) * (1 + 1. / 32)));
  // Random selection takes 6 bytes; each sent value is read and written with its index.
  CHECK(both("randomk:1%") == Approx(10 + 6 + 16 * 0.01 + 8));
  CHECK(both("topk:1%") == Approx(10 + 7500 + 16 * 0.01 * 32 + 8));
  // PyTorch 1.8 took 7,500 bytes per element, and later releases may select in 32: the interval
  // contains both, and the source names the release.
  training.exchange = parse_exchange("topk:1%", {});
  CollectiveCosts costs;
  const Forecast largest = forecast(training, costs);
  const StepForecast& step = largest.steps.front();
  CHECK(step.step_time_low_us < step.step_time_us - 0.95 * step.compress_us);
  CHECK(step.step_time_low_us > step.step_time_us - step.compress_us - step.backward_us);
  CHECK(step.step_time_high_us < 2 * step.step_time_us);
  std::string source;
  for (const CostSource& each : largest.sources.shares())
    if (each.cost == "compression_kernels") source = each.provenance.source;
  CHECK_THAT(source, Catch::Contains("PyTorch 1.8") && Catch::Contains("later releases"));
  // Each neighbour's weights are added (12), divided (8) and cast to 16 bits (6), in addition to
  // Adam's own kernels.
  const auto averaged = [&](const char* exchange) {
    return bytes(exchange, Category::optimizer) - bytes("all_reduce", Category::optimizer);
  };
  CHECK(averaged("neighbours:ring") == Approx(2 * 12 + 8 + 6));
  CHECK(averaged("neighbours:exponential") == Approx(12 + 8 + 6));
  training.recipe.precision.weights = DataType::fp32;
  CHECK(averaged("neighbours:ring") == Approx(2 * 12 + 8));
}

// Measured on a V100 for the 54 matrices of ResNet-50 (arXiv:2103.00543): 45, 64 and 130 ms at
// ranks 4, 8 and 16. This fits 8 + 10 r launches per factor, two factors per matrix.
TEST_CASE("exchange kernels: PowerSGD launches more kernels for every column of a factor") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  const auto launches = [&](const char* exchange) {
    training.exchange = parse_exchange(exchange, {});
    double most = 0;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 128, 1}).ops)
      if (const auto* work = std::get_if<KernelWork>(&op.work);
          work != nullptr && op.part == Category::compress)
        most = std::max(most, work->passes.launches_per_tensor);
    return most;
  };
  CHECK(launches("powersgd:4") == 2 * (8 + 10 * 4));
  CHECK(launches("powersgd:16") - launches("powersgd:4") ==
        3 * (launches("powersgd:8") - launches("powersgd:4")));
  CHECK(launches("powersgd:8") > 1.5 * launches("powersgd:4"));
}

// Returns a profile in which a kernel takes a microsecond for every thousand elements.
KernelCurve measured(const std::string& name) {
  return {name, {1e6, 1e9}, {1e3, 1e6}, {}, 0, {Kind::measured, "a profile"}};
}

TEST_CASE(
    "exchange kernels: an older profile's times are used for kernels that move as many bytes") {
  TrainingPlan training = training_of({OptimizerType::zero_one_adam, 8});
  training.kernels = Kernels::fused;
  const auto rests_on = [&](double bytes_per_element) {
    Device device = *training.device;
    device.kernels.push_back(measured("zero_one_onebit_step"));
    device.kernels.back().bytes_per_element = bytes_per_element;
    TrainingPlan profiled = training;
    profiled.device = std::make_shared<const Device>(device);
    return metrics_of(profiled, StepKind::round).optimizer;
  };
  const Duration unprofiled = metrics_of(training, StepKind::round).optimizer;
  CHECK(rests_on(26) == unprofiled);  // the older kernel did not decode in its update
  CHECK(rests_on(22.125) != unprofiled);
}

TEST_CASE(
    "exchange kernels: the 1-bit optimizers decode in their update, without a kernel of its own") {
  TrainingPlan training = training_of({OptimizerType::onebit_adam, 8});
  for (const OptimizerType type :
       {OptimizerType::onebit_adam, OptimizerType::zero_one_adam, OptimizerType::onebit_lamb})
    CHECK(compression_passes(type, Backend::nccl, Kernels::fused, 8).decode.bytes_per_element == 0);
  training.kernels = Kernels::fused;
  CHECK(metrics_of(training, StepKind::compression).decompress == Duration());
  training.kernels = Kernels::deepspeed;
  CHECK(metrics_of(training, StepKind::compression).decompress > Duration());
}

TEST_CASE("exchange kernels: times of a profile that has them are used as measured") {
  TrainingPlan training = training_of({OptimizerType::adam, 8});
  training.kernels = Kernels::fused;
  Device device = *training.device;
  for (const char* name : {"unscale_fp16", "round_to_fp16", "onebit_worker", "onebit_server_n8",
                           "onebit_decode", "quantise_int8_owed", "dequantise_sum_int8_n8",
                           "dequantise_int8", "top_k_1_percent", "add_at_1_percent"})
    device.kernels.push_back(measured(name));
  training.device = std::make_shared<const Device>(device);
  const double thousands = static_cast<double>(parameters(*training.model)) / 1e3;
  const auto kernel_us = [&](const char* exchange) {
    training.exchange = parse_exchange(exchange, {});
    const StepMetrics step = metrics_of(training, StepKind::uniform);
    return (step.compress + step.decompress).us();
  };
  // Widen, code, sum, code an eighth again, decode, narrow: each kernel's time, in microseconds, is
  // its number of elements in thousands.
  CHECK(kernel_us("int8:owed") == Approx(5.125 * thousands).epsilon(1e-4));
  CHECK(kernel_us("onebit") == Approx(5 * thousands).epsilon(1e-4));
  CHECK(kernel_us("topk:1%") == Approx((2 + 8) * thousands).epsilon(1e-4));

  CollectiveCosts costs;
  const auto rests_on = [&] {
    for (const CostSource& source : forecast(training, costs).sources.shares())
      if (source.cost == "compression_kernels") return source.provenance;
    return Provenance();
  };
  CHECK(rests_on().kind == Kind::measured);
  CHECK(rests_on().source == "a profile");
  training.kernels = Kernels::deepspeed;
  CHECK(rests_on().kind == Kind::assumed);
}

}  // namespace
}  // namespace lambcast
