#include "kernels/emulated_world/transformer.h"

#include <Eigen/Core>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "sim/base/check.h"

namespace lambcast::text {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::Matrix<float, 1, Eigen::Dynamic, Eigen::RowMajor>;
using Column = Eigen::VectorXf;

constexpr std::size_t embeddings = 2, per_layer = 12;
constexpr int up = 4;  // inner width of a block's perceptron, in multiples of the width

// The tensors of flat weights or of their gradient, in the order of the layout.
template <typename Scalar>
class Views {
 public:
  using View = Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const Matrix, Matrix>>;
  Views(const Transformer& model, std::span<Scalar> flat) : model_(model), flat_(flat) {}
  // Returns tensor t as rows of `columns` elements.
  View at(std::size_t t, int columns) const {
    const auto part = model_.tensors.view(flat_, t);
    return {part.data(), static_cast<Eigen::Index>(part.size()) / columns, columns};
  }
  View in_layer(int layer, std::size_t t, int columns) const {
    return at(embeddings + static_cast<std::size_t>(layer) * per_layer + t, columns);
  }

 private:
  const Transformer& model_;
  std::span<Scalar> flat_;
};
using Weights = Views<const float>;
using Gradient = Views<float>;

// LayerNorm of every row. It overwrites x and keeps the values that backward() needs.
struct LayerNorm {
  Matrix normal;
  Column inverse;  // 1 / standard deviation

  template <typename Gain, typename Bias>
  Matrix forward(const Matrix& x, const Gain& gain, const Bias& bias) {
    normal = x.colwise() - x.rowwise().mean();
    inverse = (normal.rowwise().squaredNorm() / static_cast<float>(x.cols()) +
               Column::Constant(x.rows(), 1e-5f))
                  .cwiseSqrt()
                  .cwiseInverse();
    normal.array().colwise() *= inverse.array();
    return (normal.array().rowwise() * gain.row(0).array()).rowwise() + bias.row(0).array();
  }
  template <typename Gain, typename Into>
  Matrix backward(const Matrix& d, const Gain& gain, Into d_gain, Into d_bias) const {
    d_gain.row(0) += d.cwiseProduct(normal).colwise().sum();
    d_bias.row(0) += d.colwise().sum();
    Matrix dn = d.array().rowwise() * gain.row(0).array();
    const Column along = dn.cwiseProduct(normal).rowwise().mean();
    dn.colwise() -= Column(dn.rowwise().mean());
    dn.array() -= normal.array().colwise() * along.array();
    dn.array().colwise() *= inverse.array();
    return dn;
  }
};

// gelu(x) = x/2 (1 + tanh(c (x + 0.044715 x^3))), c = sqrt(2 / pi)
constexpr float gelu_c = 0.7978845608f, gelu_cubic = 0.044715f;

Matrix gelu(const Matrix& x, Matrix& tanh_of) {
  tanh_of = (gelu_c * (x.array() + gelu_cubic * x.array().cube())).tanh();
  return 0.5f * x.array() * (1 + tanh_of.array());
}
Matrix gelu_backward(const Matrix& d, const Matrix& x, const Matrix& tanh_of) {
  const auto slope = gelu_c * (1 + 3 * gelu_cubic * x.array().square());
  return d.array() *
         (0.5f * (1 + tanh_of.array()) + 0.5f * x.array() * (1 - tanh_of.array().square()) * slope);
}

// Causal attention, separately for every sequence and head.
struct Attention {
  Matrix qkv;                 // rows of query, key and value
  std::vector<Matrix> share;  // weights of earlier characters, by sequence and head

  Matrix forward(Matrix all, const TransformerShape& s) {
    qkv = std::move(all);
    const Eigen::Index rows = s.context, head = s.width / s.heads;
    const float scale = 1 / std::sqrt(static_cast<float>(head));
    Matrix out(qkv.rows(), s.width);
    for (Eigen::Index begin = 0; begin < qkv.rows(); begin += rows) {
      for (Eigen::Index h = 0; h < s.heads; ++h) {
        const auto part = [&](Eigen::Index which) {
          return qkv.block(begin, which * s.width + h * head, rows, head);
        };
        Matrix p = scale * part(0) * part(1).transpose();
        for (Eigen::Index i = 0; i < rows; ++i) {
          auto seen = p.row(i).head(i + 1);
          seen = (seen.array() - seen.maxCoeff()).exp();
          seen /= seen.sum();
          p.row(i).tail(rows - i - 1).setZero();
        }
        out.block(begin, h * head, rows, head) = p * part(2);
        share.push_back(std::move(p));
      }
    }
    return out;
  }
  Matrix backward(const Matrix& d, const TransformerShape& s) const {
    const Eigen::Index rows = s.context, head = s.width / s.heads;
    const float scale = 1 / std::sqrt(static_cast<float>(head));
    Matrix d_qkv(qkv.rows(), qkv.cols());
    auto p = share.begin();
    for (Eigen::Index begin = 0; begin < qkv.rows(); begin += rows) {
      for (Eigen::Index h = 0; h < s.heads; ++h, ++p) {
        const auto part = [&](const Matrix& of, Eigen::Index which) {
          return of.block(begin, which * s.width + h * head, rows, head);
        };
        const auto into = [&](Eigen::Index which) {
          return d_qkv.block(begin, which * s.width + h * head, rows, head);
        };
        const Matrix d_out = d.block(begin, h * head, rows, head);
        into(2) = p->transpose() * d_out;
        Matrix ds = d_out * part(qkv, 2).transpose();
        const Column mean = ds.cwiseProduct(*p).rowwise().sum();
        ds.colwise() -= mean;
        ds = scale * ds.cwiseProduct(*p);
        into(0) = ds * part(qkv, 1);
        into(1) = ds.transpose() * part(qkv, 0);
      }
    }
    return d_qkv;
  }
};

// linear() returns x W + b. linear_backward() adds the gradients of W and b and returns d W^T.
template <typename W, typename B>
Matrix linear(const Matrix& x, const W& w, const B& b) {
  return (x * w).rowwise() + b.row(0);
}
template <typename W, typename Into>
Matrix linear_backward(const Matrix& d, const Matrix& x, const W& w, Into dw, Into db) {
  dw.noalias() += x.transpose() * d;
  db.row(0) += d.colwise().sum();
  return d * w.transpose();
}

struct Block {
  LayerNorm first, second;
  Attention attention;
  Matrix into_attention, attended, into_up, raised, tanh_of, active;

  void forward(Matrix& x, const Weights& w, int layer, const TransformerShape& s) {
    const auto t = [&](std::size_t tensor, int columns) {
      return w.in_layer(layer, tensor, columns);
    };
    const int d = s.width;
    into_attention = first.forward(x, t(0, d), t(1, d));
    attended = attention.forward(linear(into_attention, t(2, 3 * d), t(3, 3 * d)), s);
    x += linear(attended, t(4, d), t(5, d));
    into_up = second.forward(x, t(6, d), t(7, d));
    raised = linear(into_up, t(8, up * d), t(9, up * d));
    active = gelu(raised, tanh_of);
    x += linear(active, t(10, d), t(11, d));
  }
  // Replaces `dx`, the gradient of the output, by the gradient of the input.
  void backward(Matrix& dx, const Weights& w, const Gradient& g, int layer,
                const TransformerShape& s) const {
    const auto t = [&](std::size_t tensor, int columns) {
      return w.in_layer(layer, tensor, columns);
    };
    const auto dt = [&](std::size_t tensor, int columns) {
      return g.in_layer(layer, tensor, columns);
    };
    const int d = s.width;
    Matrix inner = linear_backward(dx, active, t(10, d), dt(10, d), dt(11, d));
    inner = gelu_backward(inner, raised, tanh_of);
    inner = linear_backward(inner, into_up, t(8, up * d), dt(8, up * d), dt(9, up * d));
    dx += second.backward(inner, t(6, d), dt(6, d), dt(7, d));
    inner = linear_backward(dx, attended, t(4, d), dt(4, d), dt(5, d));
    inner = attention.backward(inner, s);
    inner = linear_backward(inner, into_attention, t(2, 3 * d), dt(2, 3 * d), dt(3, 3 * d));
    dx += first.backward(inner, t(0, d), dt(0, d), dt(1, d));
  }
};

// Replaces the logits by the gradient of the mean cross entropy; returns the loss.
double cross_entropy(Matrix& logits, std::span<const std::uint8_t> targets) {
  double sum = 0;
  const float share = 1 / static_cast<float>(targets.size());
  for (Eigen::Index i = 0; i < logits.rows(); ++i) {
    auto row = logits.row(i);
    const Eigen::Index truth = targets[static_cast<std::size_t>(i)];
    const float highest = row.maxCoeff(), of_truth = row(truth);
    row = (row.array() - highest).exp();
    const float total = row.sum();
    sum += std::log(static_cast<double>(total)) + static_cast<double>(highest - of_truth);
    row *= share / total;
    row(truth) -= share;
  }
  return sum * static_cast<double>(share);
}

// Returns every character of the text as its index among the characters in use, in their order.
std::vector<std::uint8_t> numbers(const std::string& text, int& vocabulary) {
  std::array<int, 256> number{};
  for (const char c : text) number[static_cast<unsigned char>(c)] = 1;
  vocabulary = 0;
  for (int& n : number) n = n != 0 ? vocabulary++ : 0;
  std::vector<std::uint8_t> result;
  for (const char c : text)
    result.push_back(static_cast<std::uint8_t>(number[static_cast<unsigned char>(c)]));
  return result;
}

std::string play() {
  std::ifstream file(LAMBCAST_PLAY, std::ios::binary);
  LAMBCAST_CHECK(file.good(), "{} cannot be read", LAMBCAST_PLAY);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the initial weights: matrices are uniform with twice GPT-2's deviation of 0.02, since
// there are few layers; gains are 1 and biases 0.
std::vector<float> initial_weights(const Transformer& model, unsigned draw) {
  std::mt19937 bits(1608 + draw);
  std::vector<float> w(model.tensors.elements());
  const auto last_norm = model.tensors.tensors() - 2;
  for (std::size_t t = 0; t < model.tensors.tensors(); ++t) {
    const std::size_t in_layer = t < embeddings ? per_layer : (t - embeddings) % per_layer;
    const bool gain = t == last_norm || (t < last_norm && (in_layer == 0 || in_layer == 6));
    for (float& x : model.tensors.view(std::span(w), t))
      x = gain ? 1.0f : decays(model, t) ? static_cast<float>(0.07 * (bits() * 0x1p-31 - 1)) : 0.0f;
  }
  return w;
}

}  // namespace

Transformer transformer(const TransformerShape& shape, unsigned draw) {
  LAMBCAST_CHECK(shape.width % shape.heads == 0, "{} heads of a width of {}", shape.heads,
                 shape.width);
  Transformer model;
  model.shape = shape;
  auto all = numbers(play(), model.vocabulary);
  const auto behind = all.begin() + static_cast<std::ptrdiff_t>(all.size() - all.size() / 10);
  model.train.assign(all.begin(), behind);
  model.held_out.assign(behind, all.end());
  const auto size = [](int x) { return static_cast<std::size_t>(x); };
  const std::size_t d = size(shape.width), inner = up * d;
  std::vector<std::size_t> sizes{size(model.vocabulary) * d, size(shape.context) * d};
  for (int layer = 0; layer < shape.layers; ++layer) {
    for (const std::size_t tensor :
         {d, d, 3 * d * d, 3 * d, d * d, d, d, d, inner * d, inner, inner * d, d})
      sizes.push_back(tensor);
  }
  sizes.push_back(d);
  sizes.push_back(d);
  model.tensors = tensor_layout(sizes);
  model.draw = draw;
  model.initial = initial_weights(model, draw);
  return model;
}

bool decays(const Transformer& model, std::size_t t) {
  if (t < embeddings) return true;
  if (t + 2 >= model.tensors.tensors()) return false;
  const std::size_t in_layer = (t - embeddings) % per_layer;
  return in_layer == 2 || in_layer == 4 || in_layer == 8 || in_layer == 10;
}

reference::MatrixShape shape_of(const Transformer& model, std::size_t t) {
  const std::size_t size = model.tensors.size(t);
  const std::size_t width = static_cast<std::size_t>(model.shape.width);
  if (!decays(model, t)) return {1, size};
  // The tensors for queries, keys and values and the up projection are wider than their inputs.
  const std::size_t in_layer = t < embeddings ? per_layer : (t - embeddings) % per_layer;
  return in_layer == 2 || in_layer == 8 ? reference::MatrixShape{width, size / width}
                                        : reference::MatrixShape{size / width, width};
}

std::vector<std::size_t> batch(const Transformer& model, int step, int rank, int sequences) {
  // Draw 0 keeps the seeds of the single-draw version.
  std::vector<int> of{step, rank};
  if (model.draw > 0) of.push_back(static_cast<int>(model.draw));
  std::seed_seq seed(of.begin(), of.end());
  std::mt19937 bits(seed);
  const std::size_t last = model.train.size() - static_cast<std::size_t>(model.shape.context) - 1;
  std::vector<std::size_t> starts;
  for (int i = 0; i < sequences; ++i) starts.push_back(bits() % (last + 1));
  return starts;
}

double loss(const Transformer& model, std::span<const float> weights,
            std::span<const std::uint8_t> text, std::span<const std::size_t> starts,
            std::span<float> gradient) {
  const TransformerShape& s = model.shape;
  const std::size_t context = static_cast<std::size_t>(s.context);
  const Weights w(model, weights);
  const auto token = w.at(0, s.width), position = w.at(1, s.width);
  Matrix x(static_cast<Eigen::Index>(starts.size() * context), s.width);
  std::vector<std::uint8_t> inputs, targets;
  for (const std::size_t start : starts) {
    LAMBCAST_CHECK(start + context < text.size(), "a sequence from {} on ends behind {}", start,
                   text.size());
    for (std::size_t i = 0; i < context; ++i) {
      x.row(static_cast<Eigen::Index>(inputs.size())) =
          token.row(text[start + i]) + position.row(static_cast<Eigen::Index>(i));
      inputs.push_back(text[start + i]);
      targets.push_back(text[start + i + 1]);
    }
  }
  std::vector<Block> blocks(static_cast<std::size_t>(s.layers));
  for (int layer = 0; layer < s.layers; ++layer)
    blocks[static_cast<std::size_t>(layer)].forward(x, w, layer, s);
  const std::size_t norm = model.tensors.tensors() - 2;
  LayerNorm last;
  const Matrix out = last.forward(x, w.at(norm, s.width), w.at(norm + 1, s.width));
  Matrix logits = out * token.transpose();
  const double result = cross_entropy(logits, targets);
  if (gradient.empty()) return result;

  const Gradient g(model, gradient);
  auto d_token = g.at(0, s.width), d_position = g.at(1, s.width);
  d_token.noalias() += logits.transpose() * out;
  Matrix dx = last.backward(logits * token, w.at(norm, s.width), g.at(norm, s.width),
                            g.at(norm + 1, s.width));
  for (int layer = s.layers; layer-- > 0;)
    blocks[static_cast<std::size_t>(layer)].backward(dx, w, g, layer, s);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto row = dx.row(static_cast<Eigen::Index>(i));
    d_token.row(inputs[i]) += row;
    d_position.row(static_cast<Eigen::Index>(i % context)) += row;
  }
  return result;
}

double held_out_loss(const Transformer& model, std::span<const float> weights) {
  const std::size_t context = static_cast<std::size_t>(model.shape.context);
  std::vector<std::size_t> starts;
  for (std::size_t start = 0; start + context < model.held_out.size(); start += context)
    starts.push_back(start);
  return loss(model, weights, model.held_out, starts, {});
}

}  // namespace lambcast::text
