// Numbers of kernels and bytes of a piece that depend on the program.
#include <catch2/catch.hpp>

#include "models/device/image_time.h"
#include "models/device/pieces_case.h"

namespace lambcast {
namespace {

// Returns the number of kernels, from the start times in the rates that a piece's time rests on.
double starts(const std::vector<Piece>& pieces, std::string_view name, const GpuRates& rates) {
  Duration sum;
  for (const Piece& piece : pieces)
    if (piece.name == name) sum += RateTimes(piece.rests_on)[Rate::start];
  return sum / rates.kernel_start.value;
}

BlockWork gpt_block(Fusion fusion) {
  BlockWork work;
  work.hidden = 1024, work.heads = work.kv_heads = 16, work.ffn = 4096, work.vocab = 50257;
  work.causal = work.dropout = true;
  work.micro_batch = 2, work.seq_len = 512;
  work.fusion = fusion, work.attention = AttentionKernel::unfused;
  return work;
}

TEST_CASE("kernels started: eager modules start a kernel for each of their operations") {
  const GpuRates a100 = rates_of("a100-80g");
  struct Row {
    const char* name;
    double eager, fused;  // numbers of kernels
  };
  const BlockWork eager = gpt_block(Fusion::eager), fused = gpt_block(Fusion::fused);
  // A block has two norms, bias and gelu, and an addition after each branch.
  for (const Row& row : {Row{"norm", 2, 2},
                         {"softmax", 4, 1},
                         {"scores dropout", 1, 1},
                         {"activation", 2, 1},
                         {"dropout", 2, 0},
                         {"residual", 2, 2}}) {
    INFO(row.name);
    CHECK(starts(block_forward(eager, a100), row.name, a100) == Approx(row.eager));
    CHECK(starts(block_forward(fused, a100), row.name, a100) == Approx(row.fused));
  }
  // The backward pass of an eager norm has three kernels: gradients of input, weight and bias.
  CHECK(starts(block_backward(eager, a100), "norm", a100) == Approx(2 * 3));
  CHECK(starts(block_backward(fused, a100), "norm", a100) == Approx(2));
  CHECK(starts(block_backward(eager, a100), "scores dropout", a100) == Approx(1));
}

TEST_CASE("kernels started: a compiled loss is one kernel in each pass") {
  const GpuRates a100 = rates_of("a100-80g");
  for (const Fusion fusion : {Fusion::eager, Fusion::fused, Fusion::compiled}) {
    const BlockWork work = gpt_block(fusion);
    const double logits = 2 * 512. * 50257;
    const bool compiled = has_compiled_loss(work);
    CHECK(starts(head_backward(work, a100), "loss", a100) == Approx(compiled ? 1 : 2));
    CHECK(bytes_of(head_backward(work, a100), "loss") == (compiled ? 4 : 12) * logits);
  }
}

// Each of 40 tokens is sent to two of four experts (80 copies); 90 copies arrive on the rank and
// are computed.
TEST_CASE("kernels started: experts sort arriving copies, and activate like dense layers") {
  const GpuRates a100 = rates_of("a100-80g");
  ExpertWork experts;
  experts.all = experts.local = 4, experts.ffn = 256;
  experts.tokens = 40, experts.sent = 80, experts.received = experts.rows = 90;
  const auto pieces = [&](Fusion fusion, bool gated) {
    BlockWork work = gpt_block(fusion);
    work.gated = gated;
    work.experts = experts;
    return block_forward(work, a100);
  };
  for (const char* name : {"permute", "unpermute"})
    CHECK(bytes_of(pieces(Fusion::fused, false), name) == 2 * (40 + 80) * 1024.);
  for (const char* name : {"sort", "unsort"})
    CHECK(bytes_of(pieces(Fusion::fused, false), name) == 2 * (90 + 90) * 1024.);
  const double activated = 90 * 256;
  CHECK(bytes_of(pieces(Fusion::eager, false), "expert activation") == 8 * activated);
  CHECK(bytes_of(pieces(Fusion::fused, false), "expert activation") == 4 * activated);
  for (const Fusion fusion : {Fusion::eager, Fusion::fused})
    CHECK(bytes_of(pieces(fusion, true), "expert activation") == 6 * activated);
  CHECK(starts(pieces(Fusion::eager, false), "expert activation", a100) == Approx(2));
  CHECK(starts(pieces(Fusion::fused, false), "expert activation", a100) == Approx(1));
  const auto back = [&](Fusion fusion, bool gated) {
    BlockWork work = gpt_block(fusion);
    work.gated = gated;
    work.experts = experts;
    return block_backward(work, a100);
  };
  CHECK(bytes_of(back(Fusion::fused, false), "expert activation") == 6 * activated);
  CHECK(starts(back(Fusion::fused, false), "expert activation", a100) == Approx(1));
  CHECK(starts(back(Fusion::eager, false), "expert activation", a100) == Approx(2));
  CHECK(starts(back(Fusion::eager, true), "expert activation", a100) == Approx(1));
  // In fp32, inputs and outputs of a product have 4 bytes per element. 90 copies on four experts
  // are 23 rows each.
  BlockWork single = gpt_block(Fusion::fused);
  single.format = MatrixFormat::single;
  single.experts = experts;
  CHECK(bytes_of(block_forward(single, a100), "expert down") ==
        4 * 4 * (23 * 256. + 256. * 1024 + 23 * 1024.));
  // There is one mask for each of two choices, and three kernels that combine, normalise and cast
  // them.
  experts.one_hot = 2;
  CHECK(starts(pieces(Fusion::eager, false), "one-hot weights", a100) == Approx(2 + 3));
}

TEST_CASE("kernels started: partial attention is joined by kernels for every block of keys") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = gpt_block(Fusion::fused);
  work.attention = AttentionKernel::flash2;
  work.context_parallel = 4;
  work.ring = Ring::traced;
  CHECK(starts(block_forward(work, a100), "join ring", a100) == Approx(2 * 4));
  work.ring = Ring::eager;
  CHECK(starts(block_forward(work, a100), "join ring", a100) == Approx(6 * 4));
}

TEST_CASE("kernels started: norms of images read and write once forward, and three times back") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = gpt_block(Fusion::eager);
  const double elements = 2 * 512. * 2 * 1024;  // tokens joined to twice the width
  CHECK(bytes_of(merging_forward(work, a100), "norm") == 4 * elements);
  CHECK(bytes_of(merging_backward(work, a100), "norm") == 16 * elements);
  CHECK(starts(merging_forward(work, a100), "norm", a100) == Approx(1));
  CHECK(starts(merging_backward(work, a100), "norm", a100) == Approx(3));
  work.autocast = true;
  CHECK(bytes_of(merging_forward(work, a100), "norm") == 2 * 4 * elements);
}

}  // namespace
}  // namespace lambcast
