// A real problem of the kind that compressed optimizers are made for, small enough to train in
// minutes on one core: a transformer that reads a play and predicts the next character at every
// position. A LayerNorm precedes each attention and each feed-forward, as in the BERT of
// DeepSpeed's recipe. The output layer uses the weights of the embedding, and GELU has the tanh
// form. Forward and backward passes are written by hand in float.
//
// The text is William Shakespeare's Coriolanus (1605-1608, public domain), 154,468 characters; its
// last tenth is never trained on. Sources: GPT-2 for the form of a block; the electronic text of
// the "tiny Shakespeare" collection (github.com/karpathy/char-rnn, data/tinyshakespeare), its first
// play.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/layout.h"
#include "kernels/reference/low_rank.h"

namespace lambcast::text {

struct TransformerShape {
  int width = 64;
  int layers = 4;
  int heads = 4;     // must divide width
  int context = 32;  // characters in a sequence
};

struct Transformer {
  TransformerShape shape;
  int vocabulary = 0;               // characters that occur in the text
  std::vector<std::uint8_t> train;  // the text as numbers below `vocabulary`
  std::vector<std::uint8_t> held_out;
  // Embeddings of characters and of positions. For every layer: gain and bias of the LayerNorm;
  // weight and bias of query, key and value, and of the output; LayerNorm; up; down. Last, a
  // LayerNorm.
  TensorLayout tensors;
  std::vector<float> initial;
  unsigned draw = 0;
};
// `draw` selects the initial weights, and the sequences that ranks read.
Transformer transformer(const TransformerShape& shape, unsigned draw = 0);

// Whether a tensor is a weight matrix, which recipes decay, instead of a bias or part of a
// LayerNorm.
bool decays(const Transformer& model, std::size_t tensor);
// Returns the shape of a tensor: a row per input and a column per output of a weight matrix, a row
// per character or position of an embedding; other tensors are one row.
reference::MatrixShape shape_of(const Transformer& model, std::size_t tensor);

// Returns the starts of the sequences that a rank reads in a step, the same for each optimizer.
std::vector<std::size_t> batch(const Transformer& model, int step, int rank, int sequences);

// Returns the mean cross entropy per character, in nats, over the sequences of `text` that begin at
// `starts`; adds its gradient to `gradient` unless that is empty.
double loss(const Transformer& model, std::span<const float> weights,
            std::span<const std::uint8_t> text, std::span<const std::size_t> starts,
            std::span<float> gradient);
// Returns the loss over the whole held-out text.
double held_out_loss(const Transformer& model, std::span<const float> weights);

}  // namespace lambcast::text
