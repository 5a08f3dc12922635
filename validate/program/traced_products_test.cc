#include "validate/program/traced_products.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "models/device/device.h"
#include "sim/base/temporary_folder.h"
#include "validate/program/job_trace.h"
#include "validate/program/trace_report.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("traced products: shapes follow from the inputs of each operator") {
  const auto shape = [](const char* name, const std::vector<TensorDims>& inputs) {
    const auto product = product_of(name, inputs, "c10::Half");
    return product ? fmt::format("{} x {} x {} x {}", product->batch, product->m, product->n,
                                 product->k)
                   : "none";
  };
  CHECK(shape("aten::mm", {{4, 8}, {8, 16}}) == "1 x 4 x 16 x 8");
  CHECK(shape("aten::addmm", {{16}, {4, 8}, {8, 16}}) == "1 x 4 x 16 x 8");
  CHECK(shape("aten::bmm", {{3, 4, 8}, {3, 8, 16}}) == "3 x 4 x 16 x 8");
  CHECK(shape("aten::linear", {{4, 8}, {16, 8}}) == "none");  // its mm is counted
  CHECK(shape("aten::mm", {{4, 8}, {9, 16}}) == "none");
  CHECK(shape("aten::mm", {{4, 8}}) == "none");
}

TEST_CASE("traced products: a kernel belongs to the operator during which it was launched") {
  ProductCalls calls;
  const TracedProduct product{4, 16, 8, 1, "float", {}};
  calls.add(product, 1, 0, 10);
  calls.add(product, 1, 20, 30);
  calls.add_launch(7, 1, 25);
  calls.add_launch(8, 1, 15);  // between two operators
  calls.add_launch(9, 2, 25);  // on another thread
  CHECK(calls.call_of(7) == 1);
  for (const std::uint32_t none : {8U, 9U, 10U}) CHECK(calls.call_of(none) == -1);
  calls.spend(1, 30);
  calls.spend(1, 12);
  REQUIRE(calls.products().size() == 1);
  CHECK(calls.products().front().times == std::vector{Duration::microseconds(42)});
}

// Kineto's events of two steps, each with one product of 8192 x 4096 x 4096 in bf16.
std::string trace_of_products() {
  std::string events;
  for (int step = 0; step < 2; ++step) {
    const int begin = 1000 * step;
    events += fmt::format(
        R"({}{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","tid":1,"ts":{},"dur":1000}},
{{"ph":"X","cat":"cpu_op","name":"aten::mm","tid":1,"ts":{},"dur":50,"args":{{"Input type":["c10::BFloat16","c10::BFloat16"],"Input Dims":[[8192,4096],[4096,4096]]}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":1,"ts":{},"dur":5,"args":{{"correlation":{}}}}},
{{"ph":"X","cat":"kernel","name":"nvjet","tid":7,"ts":{},"dur":500,"args":{{"correlation":{}}}}})",
        step == 0 ? "" : ",\n", step, begin, begin + 10, begin + 20, step + 1, begin + 100,
        step + 1);
  }
  return "{\"traceEvents\": [\n" + events + "\n]}";
}

TEST_CASE("traced products: a trace lists them next to the time that the shape gives") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trace.json").string();
  std::ofstream(path) << trace_of_products();
  const JobTrace trace = read_job_trace(path);
  REQUIRE(trace.products.size() == 1);
  const TracedProduct& product = trace.products.front();
  CHECK(product.m == 8192);
  CHECK(product.n == 4096);
  CHECK(product.times == std::vector(2, Duration::microseconds(500)));
  const GpuRates rates = *load_device("h100").rates;
  const Duration by_shape = product_cost({8192, 4096, 4096}, rates).duration;
  CHECK(product.forecast(rates) == by_shape);
  const std::string report = products_report(trace.products, 2, rates);
  CHECK_THAT(report, Contains(fmt::format("8192 x 4096 x 4096               c10::BFloat16"
                                          "          1         500.0 {:>14.1f}\n",
                                          by_shape.us())));
  CHECK_THAT(report, Contains(fmt::format("0.50 ms a step measured, {:.2f} ms by their shapes",
                                          by_shape.us() * 1e-3)));
}

TEST_CASE("traced products: levels of several traces are the median of each kind") {
  const KindLevels none, one{0.9, 1.2, 1.0}, two{1.0, 1.4, 1.1}, three{1.1, 1.1, 1.3};
  CHECK(median_of({one}) == one);
  CHECK(median_of({one, none, two, three}) == KindLevels{1.0, 1.2, 1.1});
  CHECK(median_of({none}) == none);
}

}  // namespace
}  // namespace lambcast
