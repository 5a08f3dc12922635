// A real problem of the kind that compressed optimizers are made for, small enough to train in
// minutes on one core: a transformer that reads a play and says at every character which comes
// next. Blocks stand behind their LayerNorm, as BERT's do in DeepSpeed's recipe, the output is the
// embedding again, GELU is the tanh form; forward and backward by hand in float.
//
// The text is William Shakespeare's Coriolanus (1605-1608, public domain), 154,468 characters; its
// last tenth is never trained on.
// Source: GPT-2 for the form of a block; the electronic text of the "tiny Shakespeare" collection
// (github.com/karpathy/char-rnn, data/tinyshakespeare), first of its plays.
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
  int heads = 4;     // divides width
  int context = 32;  // characters that a sequence has
};

struct Transformer {
  TransformerShape shape;
  int vocabulary = 0;               // characters that the text uses
  std::vector<std::uint8_t> train;  // the text as numbers below `vocabulary`
  std::vector<std::uint8_t> held_out;
  // Embeddings of characters and of positions; of every layer gain and bias of the LayerNorm,
  // weight and bias of query, key and value, of the output, again LayerNorm, up, down; LayerNorm.
  TensorLayout tensors;
  std::vector<float> initial;
  unsigned draw = 0;
};
// `draw` chooses the first weights, and the sequences that ranks read.
Transformer transformer(const TransformerShape& shape, unsigned draw = 0);

// A weight matrix, which recipes decay, rather than a bias or part of a LayerNorm.
bool decays(const Transformer& model, std::size_t tensor);
// A row per input and a column per output of a weight matrix, a row per character or place of an
// embedding; what is no matrix is one row.
reference::MatrixShape shape_of(const Transformer& model, std::size_t tensor);

// Returns the starts of the sequences that a rank reads in a step, the same for each optimizer.
std::vector<std::size_t> batch(const Transformer& model, int step, int rank, int sequences);

// Mean cross entropy per character, in nats, over the sequences of `text` that begin at `starts`;
// adds its gradient to `gradient` unless that is empty.
double loss(const Transformer& model, std::span<const float> weights,
            std::span<const std::uint8_t> text, std::span<const std::size_t> starts,
            std::span<float> gradient);
// Over the whole of what was held out.
double held_out_loss(const Transformer& model, std::span<const float> weights);

}  // namespace lambcast::text
