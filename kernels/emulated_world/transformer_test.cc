#include "kernels/emulated_world/transformer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

using namespace lambcast;

TEST_CASE("the transformer's gradient is the slope of its loss, tensor by tensor") {
  const text::Transformer model =
      text::transformer({.width = 8, .layers = 2, .heads = 2, .context = 6});
  const std::vector<std::size_t> starts = text::batch(model, 1, 0, 3);
  // Uses weights away from the start, where gains are 1 and biases 0.
  std::vector<float> w = model.initial;
  for (std::size_t e = 0; e < w.size(); ++e) w[e] += 0.2f * static_cast<float>(std::sin(1.7 * e));
  std::vector<float> g(w.size());
  text::loss(model, w, model.train, starts, g);
  for (std::size_t t = 0; t < model.tensors.tensors(); ++t) {
    // Along the tensor's gradient the loss increases by its squared norm.
    const auto own = model.tensors.view(std::span<const float>(g), t);
    const double squares = std::inner_product(own.begin(), own.end(), own.begin(), 0.0);
    CHECK(squares > 0);
    const double by = 1e-2 / std::sqrt(squares);
    const auto moved = [&](double factor) {
      std::vector<float> at = w;
      const auto part = model.tensors.view(std::span<float>(at), t);
      for (std::size_t e = 0; e < part.size(); ++e)
        part[e] += static_cast<float>(factor * by) * own[e];
      return text::loss(model, at, model.train, starts, {});
    };
    CHECK((moved(1) - moved(-1)) / (2 * by) ==
          Approx(squares).epsilon(0.01).margin(1e-5 * squares / by));
  }
}

TEST_CASE("the play, its parts and the loss of a uniform guess") {
  const text::Transformer model = text::transformer({});
  CHECK(model.train.size() + model.held_out.size() == 154468);
  CHECK(model.vocabulary == 61);
  CHECK(model.tensors.elements() == 61 * 64 + 32 * 64 + 4 * 49984 + 128);
  CHECK(text::held_out_loss(model, model.initial) == Approx(std::log(61.0)).epsilon(0.05));
  CHECK(text::batch(model, 7, 1, 4) == text::batch(model, 7, 1, 4));
  CHECK(text::batch(model, 7, 1, 4) != text::batch(model, 7, 2, 4));
}

TEST_CASE("matrices have the shape in which the forward pass reads them") {
  // For a single character the gradient of a weight is one outer product of input and returned
  // gradient: g(i, j) g(a, b) = g(i, b) g(a, j), if it is read with its own rows.
  const text::Transformer model =
      text::transformer({.width = 8, .layers = 1, .heads = 2, .context = 1});
  std::vector<float> gradient(model.tensors.elements());
  text::loss(model, model.initial, model.train, std::vector<std::size_t>{100}, gradient);
  const auto is_outer_product = [&](std::size_t t, reference::MatrixShape shape) {
    const auto own = model.tensors.view(std::span<const float>(gradient), t);
    const auto at = [&](std::size_t i, std::size_t j) {
      return static_cast<double>(own[i * shape.columns + j]);
    };
    const auto larger = [](float x, float y) { return std::fabs(x) < std::fabs(y); };
    const auto largest = std::max_element(own.begin(), own.end(), larger) - own.begin();
    const std::size_t a = static_cast<std::size_t>(largest) / shape.columns;
    const std::size_t b = static_cast<std::size_t>(largest) % shape.columns;
    double apart = 0;
    for (std::size_t i = 0; i < shape.rows; ++i) {
      for (std::size_t j = 0; j < shape.columns; ++j)
        apart = std::max(apart, std::fabs(at(i, j) * at(a, b) - at(i, b) * at(a, j)));
    }
    return apart < 1e-5 * at(a, b) * at(a, b);
  };
  constexpr std::size_t qkv = 4, out = 6, up = 10, down = 12;
  for (const std::size_t t : {qkv, out, up, down}) {
    const reference::MatrixShape shape = text::shape_of(model, t);
    CHECK(shape.elements() == model.tensors.size(t));
    CHECK(shape.rows == (t == down ? 32u : 8u));
    CHECK(is_outer_product(t, shape));
    // A single character changes only the values, not queries and keys: a third of the columns.
    if (t == up || t == down) CHECK(!is_outer_product(t, {shape.columns, shape.rows}));
  }
  CHECK(text::shape_of(model, 0).columns == 8);
  CHECK(text::shape_of(model, up + 1).rows == 1);
}
