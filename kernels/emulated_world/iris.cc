#include "kernels/emulated_world/iris.h"

#include <array>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "sim/base/csv.h"

namespace lambcast::iris {
namespace {

struct Flowers {
  std::vector<std::array<double, 4>> length;  // standardised: mean 0, variance 1
  std::vector<int> species;                   // 0, 1, 2
};

Flowers load() {
  std::ifstream file(LAMBCAST_IRIS_CSV);
  std::stringstream text;
  text << file.rdbuf();
  const csv::Table table = csv::parse(text.str(), LAMBCAST_IRIS_CSV);
  const std::array<std::string, 4> columns{"sepal_length", "sepal_width", "petal_length",
                                           "petal_width"};
  Flowers flowers;
  flowers.length.resize(table.rows.size());
  for (std::size_t c = 0; c < 4; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const double x = table.number(r, columns[c]);
      flowers.length[r][c] = x;
      sum += x;
      squares += x * x;
    }
    const double n = static_cast<double>(table.rows.size()), mean = sum / n;
    const double deviation = std::sqrt(squares / n - mean * mean);
    for (auto& row : flowers.length) row[c] = (row[c] - mean) / deviation;
  }
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const std::string& name = table.text(r, "species");
    flowers.species.push_back(name == "Iris-setosa" ? 0 : name == "Iris-versicolor" ? 1 : 2);
  }
  return flowers;
}

const Flowers& flowers() {
  static const Flowers all = load();
  return all;
}

std::vector<float> random_weights(std::size_t count, double spread) {
  std::mt19937 bits(1936);
  std::vector<float> w(count);
  for (float& x : w) x = static_cast<float>(spread * (bits() * 0x1p-31 - 1));
  return w;
}

constexpr std::size_t inputs = 4, hidden = 16, classes = 3;

// Returns the loss of one flower and adds its gradient; `g` may be empty.
double network_row(std::span<const float> w, std::size_t row, double weight, std::span<float> g) {
  const auto& x = flowers().length[row];
  const std::size_t b1 = inputs * hidden, w2 = b1 + hidden, b2 = w2 + hidden * classes;
  std::array<double, hidden> h{};
  for (std::size_t j = 0; j < hidden; ++j) {
    double sum = w[b1 + j];
    for (std::size_t i = 0; i < inputs; ++i) sum += w[j * inputs + i] * x[i];
    h[j] = std::tanh(sum);
  }
  std::array<double, classes> p{};
  double total = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    double sum = w[b2 + k];
    for (std::size_t j = 0; j < hidden; ++j) sum += w[w2 + k * hidden + j] * h[j];
    total += p[k] = std::exp(sum);
  }
  const std::size_t truth = static_cast<std::size_t>(flowers().species[row]);
  const double loss = -std::log(p[truth] / total);
  if (g.empty()) return loss;
  std::array<double, hidden> dh{};
  for (std::size_t k = 0; k < classes; ++k) {
    const double d = weight * (p[k] / total - (k == truth ? 1 : 0));
    g[b2 + k] += static_cast<float>(d);
    for (std::size_t j = 0; j < hidden; ++j) {
      g[w2 + k * hidden + j] += static_cast<float>(d * h[j]);
      dh[j] += d * w[w2 + k * hidden + j];
    }
  }
  for (std::size_t j = 0; j < hidden; ++j) {
    const double d = dh[j] * (1 - h[j] * h[j]);
    g[b1 + j] += static_cast<float>(d);
    for (std::size_t i = 0; i < inputs; ++i) g[j * inputs + i] += static_cast<float>(d * x[i]);
  }
  return loss;
}

double regression_row(std::span<const float> w, std::size_t row, double weight,
                      std::span<float> g) {
  const auto& x = flowers().length[row];
  double error = w[3] - x[3];
  for (std::size_t i = 0; i < 3; ++i) error += w[i] * x[i];
  for (std::size_t i = 0; !g.empty() && i < 3; ++i) {
    g[i] += static_cast<float>(weight * 2 * error * x[i]);
  }
  if (!g.empty()) g[3] += static_cast<float>(weight * 2 * error);
  return error * error;
}

using Row = double (*)(std::span<const float>, std::size_t, double, std::span<float>);

Problem problem(std::vector<std::size_t> sizes, double spread, Row row_loss) {
  const std::size_t rows = flowers().length.size();
  const TensorLayout tensors = tensor_layout(sizes);
  return {tensors, random_weights(tensors.elements(), spread), rows,
          [=](std::span<const float> w, std::size_t first, std::size_t stride, std::span<float> g) {
            const std::size_t count = (rows - first + stride - 1) / stride;
            double sum = 0;
            for (std::size_t r = first; r < rows; r += stride) {
              sum += row_loss(w, r, 1.0 / static_cast<double>(count), g);
            }
            return sum / static_cast<double>(count);
          }};
}

}  // namespace

Problem regression() { return problem({3, 1}, 1.0, regression_row); }
Problem network() {
  return problem({inputs * hidden, hidden, hidden * classes, classes}, 0.5, network_row);
}

double least_squares_loss() {
  // Normal equations A w = b in the three inputs; columns have mean 0, so the intercept is 0.
  double a[3][4] = {};
  double target = 0;
  for (const auto& x : flowers().length) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) a[i][j] += x[i] * x[j];
      a[i][3] += x[i] * x[3];
    }
    target += x[3] * x[3];
  }
  double b[3] = {a[0][3], a[1][3], a[2][3]};
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 3; ++i) {
      if (i == k) continue;
      const double f = a[i][k] / a[k][k];
      for (int j = k; j < 4; ++j) a[i][j] -= f * a[k][j];
    }
  }
  double explained = 0;
  for (int i = 0; i < 3; ++i) explained += b[i] * a[i][3] / a[i][i];
  return (target - explained) / static_cast<double>(flowers().length.size());
}

}  // namespace lambcast::iris
