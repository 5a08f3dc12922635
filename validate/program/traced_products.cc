#include "validate/program/traced_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "validate/measurement.h"

namespace lambcast {
namespace {

constexpr std::size_t most_products = 8;

// An operator, and the index of its first factor among the inputs.
constexpr std::pair<std::string_view, std::size_t> operators[] = {{"aten::mm", 0},
                                                                  {"aten::addmm", 1},
                                                                  {"aten::bmm", 0},
                                                                  {"aten::baddbmm", 1},
                                                                  {"aten::_scaled_mm", 0}};

constexpr std::pair<std::string_view, MatrixFormat> types[] = {
    {"c10::BFloat16", MatrixFormat::half},
    {"c10::Half", MatrixFormat::half},
    {"float", MatrixFormat::single},
    {"c10::Float8_e4m3fn", MatrixFormat::fp8},
    {"c10::Float8_e5m2", MatrixFormat::fp8}};

Duration total_of(const TracedProduct& product) {
  return std::accumulate(product.times.begin(), product.times.end(), Duration());
}

}  // namespace

bool TracedProduct::same_shape(const TracedProduct& other) const {
  return std::tie(m, n, k, batch, type) ==
         std::tie(other.m, other.n, other.k, other.batch, other.type);
}

std::optional<Duration> TracedProduct::forecast(const GpuRates& rates) const {
  const auto format =
      std::ranges::find(types, type, &std::pair<std::string_view, MatrixFormat>::first);
  if (format == std::end(types)) return std::nullopt;
  Product product{m, n, k, batch, format->second};
  if (format->second == MatrixFormat::single) product.output_bytes = 4;
  product.aligned_rows = rows_aligned(format->second, {k, n});
  return product_cost(product, rates).duration;
}

std::optional<TracedProduct> product_of(const std::string& name,
                                        const std::vector<TensorDims>& inputs,
                                        const std::string& type) {
  const auto known =
      std::ranges::find(operators, name, &std::pair<std::string_view, std::size_t>::first);
  if (known == std::end(operators) || inputs.size() < known->second + 2) return std::nullopt;
  const TensorDims &a = inputs[known->second], &b = inputs[known->second + 1];
  if (a.size() != b.size() || (a.size() != 2 && a.size() != 3)) return std::nullopt;
  const std::size_t rows = a.size() - 2, columns = a.size() - 1;
  if (a[columns] != b[rows]) return std::nullopt;
  return TracedProduct{a[rows], b[columns], a[columns], rows == 1 ? a[0] : 1, type, {}};
}

void ProductCalls::add(const TracedProduct& product, std::int64_t thread, double begin_us,
                       double end_us) {
  const auto known = std::ranges::find_if(
      products_, [&](const TracedProduct& other) { return other.same_shape(product); });
  calls_.push_back({thread, begin_us, end_us, static_cast<std::size_t>(known - products_.begin())});
  if (known == products_.end()) products_.push_back(product);
}

void ProductCalls::add_launch(std::uint32_t correlation, std::int64_t thread, double at_us) {
  launches_.push_back({at_us, thread, correlation});
}

int ProductCalls::call_of(std::uint32_t correlation) {
  const auto place = [](const auto& of, double at_us) { return std::pair(of.thread, at_us); };
  const auto begin = [&](const Made& call) { return place(call, call.begin_us); };
  if (calls_.empty()) return -1;
  if (!sorted_) {
    std::ranges::sort(calls_, {}, begin);
    std::ranges::sort(launches_, {}, &Launch::correlation);
    sorted_ = true;
  }
  const auto launch = std::ranges::lower_bound(launches_, correlation, {}, &Launch::correlation);
  if (launch == launches_.end() || launch->correlation != correlation) return -1;
  const auto after = std::ranges::upper_bound(calls_, place(*launch, launch->at_us), {}, begin);
  if (after == calls_.begin()) return -1;
  const Made& call = *std::prev(after);
  return call.thread == launch->thread && launch->at_us <= call.end_us
             ? static_cast<int>(std::prev(after) - calls_.begin())
             : -1;
}

std::vector<TracedProduct> ProductCalls::products() const {
  std::vector<TracedProduct> products = products_;
  for (const Made& call : calls_)
    if (call.spent_us > 0)
      products[call.product].times.push_back(Duration::microseconds(call.spent_us));
  std::erase_if(products, [](const TracedProduct& product) { return product.times.empty(); });
  return products;
}

std::string products_report(const std::vector<TracedProduct>& products, int steps,
                            const GpuRates& rates) {
  if (products.empty()) return "";
  std::vector<const TracedProduct*> longest;
  Duration measured, forecast;
  for (const TracedProduct& product : products) {
    longest.push_back(&product);
    const auto one = product.forecast(rates);
    if (!one) continue;
    measured += total_of(product);
    forecast += *one * static_cast<std::int64_t>(product.times.size());
  }
  std::ranges::sort(longest, std::greater(), [](const auto* of) { return total_of(*of); });
  if (longest.size() > most_products) longest.resize(most_products);
  std::string out = fmt::format("{:<32} {:<15} {:>8} {:>13} {:>14}\n", "product (m x n x k)",
                                "inputs", "a step", "median (us)", "by shape (us)");
  for (const TracedProduct* of : longest) {
    const auto one = of->forecast(rates);
    out += fmt::format(
        "{:<32} {:<15} {:>8.4g} {:>13.1f} {:>14}\n",
        fmt::format("{}{} x {} x {}", of->batch > 1 ? fmt::format("{} of ", of->batch) : "", of->m,
                    of->n, of->k),
        of->type, static_cast<double>(of->times.size()) / steps, validate::median(of->times).us(),
        one ? fmt::format("{:.1f}", one->us()) : "-");
  }
  if (products.size() > longest.size())
    out += fmt::format("and {} more\n", products.size() - longest.size());
  if (forecast > Duration())
    out += fmt::format(
        "Products with shapes: {:.2f} ms a step measured, {:.2f} ms by their shapes ({:.2f} times "
        "as long).\n",
        measured.us() * 1e-3 / steps, forecast.us() * 1e-3 / steps, measured / forecast);
  return out + "\n";
}

}  // namespace lambcast
