// Compares products and attention by their shapes (models/device/matrix_product.h,
// attention_kernel.h) with published timings of single kernels on an A100 PCIe, a B200, a V100 and
// a T4.
//
// One number per GPU and format is fitted: the level of its products, so that all products together
// take the measured time. The shapes have no parameter of their own. The V100's level in 16 bits is
// that of whole training steps, in which its power limits it.
//
//   build/validate/compute/kernel_shapes_test "[cases]"     prints errors by duration
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "models/device/attention_kernel.h"
#include "models/device/device.h"
#include "models/device/matrix_product.h"
#include "models/device/piece_writer.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// The level of the A100 PCIe; that of the B200 is its preset's share_half.
constexpr double share_of_a100 = 0.78;

struct MeasuredKernel {
  std::string gpu, precision;
  double measured_s, forecast_s;
  double off() const { return std::log(forecast_s / measured_s); }
};

using KernelForecast =
    std::function<Duration(const csv::Table&, std::size_t, const GpuRates&, double* flops)>;

GpuRates rates_of(const std::string& gpu) {
  const bool pcie = gpu == "a100-pcie-80g";
  GpuRates rates = load_device(pcie ? "a100-80g" : gpu).rates.value();
  if (pcie) rates.matrix[static_cast<std::size_t>(MatrixFormat::half)].share.value = share_of_a100;
  return rates;
}

std::vector<MeasuredKernel> kernels_of(const std::string& file, const KernelForecast& forecast) {
  const csv::Table table = csv::parse(read_file(std::string(LAMBCAST_COMPUTE) + "/" + file), file);
  std::vector<MeasuredKernel> kernels;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const GpuRates rates = rates_of(table.text(i, "gpu"));
    double flops = 0;
    const Duration time = forecast(table, i, rates, &flops);
    kernels.push_back(
        {table.text(i, "gpu"), table.has("precision") ? table.text(i, "precision") : "bf16",
         flops / (1e12 * table.number(i, "nominal_tflops") * table.number(i, "share")), time.s()});
  }
  return kernels;
}

std::int64_t whole(const csv::Table& table, std::size_t i, const char* title) {
  return static_cast<std::int64_t>(table.number(i, title));
}

Duration product_time(const csv::Table& table, std::size_t i, const GpuRates& rates,
                      double* flops) {
  Product product{whole(table, i, "m"), whole(table, i, "n"), whole(table, i, "k"),
                  whole(table, i, "b")};
  if (table.text(i, "precision") == "fp32") product.format = MatrixFormat::single;
  const bool single = table.text(i, "out_dtype") == "fp32";
  const bool added = table.text(i, "accumulate") == "True";
  product.output_bytes = (single ? 4 : 2) * (added ? 2 : 1);
  const KernelCost cost = product_cost(product, rates);
  *flops = cost.flops.value();
  return cost.duration;
}

Duration grouped_time(const csv::Table& table, std::size_t i, const GpuRates& rates,
                      double* flops) {
  Product product{whole(table, i, "m_per_group"), whole(table, i, "n"), whole(table, i, "k"),
                  whole(table, i, "groups")};
  if (table.text(i, "stage") == "bwd_grad_w") {
    std::swap(product.m, product.k);
    product.output_bytes = 8;
  }
  product.share = grouped_share;
  const KernelCost cost = product_cost(product, rates);
  *flops = cost.flops.value();
  return cost.duration;
}

Duration attention_time(const csv::Table& table, std::size_t i, const GpuRates& rates,
                        double* flops) {
  AttentionWork work;
  work.batch = whole(table, i, "batch");
  work.heads = whole(table, i, "heads"), work.kv_heads = whole(table, i, "kv_heads");
  work.head_size = whole(table, i, "qk_head_dim"), work.value_size = whole(table, i, "v_head_dim");
  work.queries = work.keys = whole(table, i, "seq_len");
  work.causal = true;
  const bool forward = table.text(i, "pass") == "fwd";
  const double square = static_cast<double>(work.queries) * static_cast<double>(work.keys) *
                        static_cast<double>(work.batch * work.heads);
  *flops = (forward ? 2 : 5) * square * static_cast<double>(work.head_size + work.value_size);
  Duration time;
  const AttentionKernel kernel = newest_attention(rates);
  for (const AttentionPiece& piece :
       forward ? attention_forward(kernel, work, rates) : attention_backward(kernel, work, rates))
    time += piece.cost.duration;
  return time;
}

double quantile_of(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Errors {
  std::size_t count;
  double median, p90, level;
};

Errors errors_of(const std::vector<MeasuredKernel>& kernels, const std::string& gpu,
                 double least_s = 0, const std::string& precision = "") {
  std::vector<double> off, errors;
  double measured_s = 0, forecast_s = 0;
  for (const MeasuredKernel& kernel : kernels) {
    if (kernel.gpu != gpu || kernel.measured_s < least_s) continue;
    if (!precision.empty() && kernel.precision != precision) continue;
    errors.push_back(std::abs(kernel.off()));
    measured_s += kernel.measured_s, forecast_s += kernel.forecast_s;
  }
  if (errors.empty()) return {};
  return {errors.size(), quantile_of(errors, 0.5), quantile_of(errors, 0.9),
          std::log(forecast_s / measured_s)};
}

// On the B200 the median and the 90th percentile cover products of 1 ms and more: shorter ones end
// before its power limit reduces the clock, and run up to 40 % faster. A training step keeps the
// GPU busy.
TEST_CASE("kernel shapes: products of all shapes have one level") {
  const std::vector<MeasuredKernel> products = kernels_of("products.csv", product_time);
  for (const auto& [gpu, least_s] : {std::pair("a100-pcie-80g", 0.0), std::pair("b200", 1e-3)}) {
    INFO(gpu);
    const Errors errors = errors_of(products, gpu, least_s);
    CHECK(errors.count >= 180);
    CHECK(errors.median <= 0.04);
    CHECK(errors.p90 <= 0.15);
    CHECK(std::abs(errors_of(products, gpu).level) < 0.01);
  }
}

// In fp32 the V100 and the T4 multiply outside the matrix units. For the T4 only the total time is
// compared: its limit of 70 W reduces the clock, depending on how long it has run.
TEST_CASE("kernel shapes: products outside the matrix units have one level") {
  const std::vector<MeasuredKernel> products = kernels_of("deepbench_products.csv", product_time);
  const Errors v100 = errors_of(products, "v100-16g", 0, "fp32");
  CHECK(v100.count == 100);
  CHECK(v100.median <= 0.05);
  CHECK(v100.p90 <= 0.15);
  CHECK(std::abs(v100.level) < 0.01);
  for (const char* precision : {"fp32", "fp16"})
    CHECK(std::abs(errors_of(products, "t4", 0, precision).level) < 0.05);
}

// Grouped products reached 0.96 (A100) and 0.86 (B200) of the rate of single ones. They are
// forecast slower, since grouped_share comes from whole steps. Single attention kernels are
// forecast faster, since papers and whole steps are faster than these timings.
TEST_CASE("kernel shapes: grouped products and attention are within a quarter of the level") {
  for (const char* gpu : {"a100-pcie-80g", "b200"}) {
    INFO(gpu);
    const double grouped = errors_of(kernels_of("grouped_products.csv", grouped_time), gpu).level;
    CHECK(grouped > 0);
    CHECK(grouped < 0.2);
    const double attention = errors_of(kernels_of("attention.csv", attention_time), gpu).level;
    CHECK(attention < 0);
    CHECK(attention > -0.25);
  }
}

TEST_CASE("kernel shapes: prints errors by duration", "[.][cases]") {
  for (const auto& [file, forecast] :
       std::vector<std::pair<std::string, KernelForecast>>{{"products.csv", product_time},
                                                           {"deepbench_products.csv", product_time},
                                                           {"grouped_products.csv", grouped_time},
                                                           {"attention.csv", attention_time}}) {
    const std::vector<MeasuredKernel> kernels = kernels_of(file, forecast);
    for (const char* gpu : {"a100-pcie-80g", "b200", "v100-16g", "t4"})
      for (const double least_s : {0.0, 1e-4, 3e-4, 1e-3, 3e-3}) {
        const Errors all = errors_of(kernels, gpu, least_s);
        if (all.count == 0) continue;
        fmt::print(
            "{:<22} {:<14} from {:>5.0f} us: {:>4}, median {:.3f}, 90th {:.3f}, total {:+.3f}\n",
            file, gpu, 1e6 * least_s, all.count, all.median, all.p90, all.level);
      }
  }
}

}  // namespace
}  // namespace lambcast
