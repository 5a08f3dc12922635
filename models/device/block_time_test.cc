#include "models/device/block_time.h"

#include <catch2/catch.hpp>

#include "models/device/pieces_case.h"
#include "models/shape/load.h"

namespace lambcast {
namespace {

double ms(const std::vector<Piece>& pieces, std::optional<Pass> pass = {}) {
  return total_time(pieces, {}, pass).ms();
}

// With even loads, experts compute the shape's FLOPs, including router and shared experts.
// Attention in one kernel computes the causal part of the square.
TEST_CASE("block time: experts and latent attention have the model's FLOPs") {
  const GpuRates h100 = rates_of("h100");
  for (const char* name : {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"}) {
    INFO(name);
    const ModelShape shape = load_model(name);
    BlockWork work = block_work(shape, 2, 4096);
    work.attention = AttentionKernel::cudnn;
    const double tokens = 2 * 4096;
    ExpertWork experts;
    experts.all = experts.local = shape.experts;
    experts.ffn = shape.ffn, experts.shared_ffn = shape.shared_ffn;
    experts.tokens = tokens;
    experts.rows = experts.sent = experts.received =
        tokens * static_cast<double>(shape.experts_per_token);
    work.experts = experts;
    const Cost& block = shape.blocks.back();
    const double causal = 0.5 * (1 + 128 / 4096.);
    const double core = 2 * block.forward_flops.per_token_pair * 4096 * 4096 * causal;
    const double forward = tokens * block.forward_flops.per_token + core;
    CHECK(flops(block_forward(work, h100)) == Approx(forward).epsilon(1e-3));
    // Attention has two products forward and five backward, which multiply the head sizes of
    // queries and values.
    const double q = static_cast<double>(work.head_size), v = static_cast<double>(work.value_size);
    CHECK(flops(block_backward(work, h100)) ==
          Approx(2 * tokens * block.forward_flops.per_token + core * (3 * q + 2 * v) / (q + v))
              .epsilon(1e-3));
  }
}

TEST_CASE("block time: only products for weight gradients read and write fp32 gradients") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  const auto bytes = [&](const auto& pass) { return bytes_of(pass(work, a100), "up"); };
  const double forward = bytes(block_forward), backward = bytes(block_backward);
  work.fp32_gradients = true;
  CHECK(bytes(block_forward) == forward);
  CHECK(bytes(block_backward) - backward == (8 - 2) * 6144. * 4 * 6144 / 8);
}

TEST_CASE("block time: many small experts take longer than one product with all their rows") {
  const GpuRates h100 = rates_of("h100");
  BlockWork work = block_work(load_model("qwen3-30b-a3b"), 1, 4096);
  const auto time = [&](std::int64_t local, double rows) {
    ExpertWork experts;
    experts.all = 128, experts.local = local, experts.ffn = 768;
    experts.tokens = 4096, experts.sent = experts.received = experts.rows = rows;
    work.experts = experts;
    return ms(block_forward(work, h100));
  };
  CHECK(time(16, 32768) > time(1, 32768));
  CHECK(time(128, 20000) > time(16, 20000));  // 157 rows each: edge tiles are partly wasted
  CHECK(time(16, 40000) > time(16, 32768));
  // Recomputing experts repeats only them, not the attention.
  work.repeated = Repeated::experts;
  for (const Piece& piece : block_backward(work, h100))
    if (piece.pass == Pass::recompute) CHECK(piece.part == BlockPart::feed_forward);
}

TEST_CASE("block time: FLOPs are those of the model, divided over tensor parallel ranks") {
  const ModelShape llama = load_model("llama2-70b");
  const GpuRates h100 = rates_of("h100");
  BlockWork work = block_work(llama, 2, 4096);
  CHECK((work.gated && work.causal && work.rotary && work.kv_heads == 8));
  work.attention = AttentionKernel::unfused;  // the whole square, as in forward_flops()
  const double forward = 2 * block_forward_flops(llama, 0, 4096).value();
  CHECK(flops(block_forward(work, h100)) == Approx(forward));
  CHECK(flops(block_backward(work, h100)) == Approx(2 * forward));
  CHECK(flops(head_forward(work, h100)) == Approx(2 * outside_forward_flops(llama, 4096).value()));
  CHECK(flops(head_backward(work, h100)) == Approx(2 * flops(head_forward(work, h100))));
  for (const int t : {2, 4, 8}) {
    work.tensor_parallel = t;
    CHECK(t * flops(block_forward(work, h100)) == Approx(forward));
    CHECK(t * flops(block_backward(work, h100)) == Approx(2 * forward));
  }
  // The weight gradients of all linear layers cost as much as the forward products.
  const double linear = 2. * 2 * 4096 * 8192 * (8192 + 2 * 1024 + 8192 + 3 * 28672) / 8;
  CHECK(flops(block_backward(work, h100), Pass::weight_gradient) == Approx(linear));
}

TEST_CASE("block time: the parts that each recompute repeats") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  const double forward = ms(block_forward(work, a100)), backward = ms(block_backward(work, a100));
  work.repeated = Repeated::block;
  CHECK(ms(block_backward(work, a100)) == Approx(forward + backward));
  CHECK(ms(block_backward(work, a100), Pass::recompute) == Approx(forward));
  work.repeated = Repeated::until_last_product;
  const std::vector<Piece> early = block_backward(work, a100);
  // A block that ends early recomputes all products except the second one of the feed-forward: 4
  // h^2 of 12 h^2 + 2 s h are left out.
  CHECK(flops(early, Pass::recompute) / flops(block_forward(work, a100)) ==
        Approx(1 - 4 * 6144. / (12 * 6144 + 2 * 2048)));
  work.repeated = Repeated::attention_core;
  const std::vector<Piece> selective = block_backward(work, a100);
  CHECK(flops(selective, Pass::recompute) == Approx(4 * 4 * 2048. * 2048 * 6144 / 8));
  CHECK(total_time(selective, BlockPart::feed_forward, Pass::recompute) == Duration());
  work.repeated = Repeated::alternate_products;
  const std::vector<Piece> alternate = block_backward(work, a100);
  // Every second product means key, projection and up: 1 + 1 + 4 of the 12 h^2, half of the linear
  // FLOPs.
  CHECK(flops(alternate, Pass::recompute) == Approx(6 * 2 * 4 * 2048. * 6144 * 6144 / 8));
}

TEST_CASE("block time: the head of BERT computes only the masked tokens") {
  const GpuRates rates = rates_of("a100-80g");
  const auto head = [&](const char* share) {
    const ModelShape bert =
        load_model("bert-large", std::vector<ModelOverride>{{"model.masked_fraction", share}});
    return flops(head_forward(block_work(bert, 8, 512), rates));
  };
  CHECK(head("0.25") == Approx(head("1.0") / 4).epsilon(0.01));
}

TEST_CASE("block time: sequence parallelism divides only norms, dropout and residual") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  const std::vector<Piece> whole = block_forward(work, a100);
  work.sequence_parallel = true;
  const std::vector<Piece> split = block_forward(work, a100);
  for (const char* name : {"norm", "residual"})
    CHECK(bytes_of(whole, name) == Approx(8 * bytes_of(split, name)));
  for (const char* name : {"activation", "softmax", "up", "projection"})
    CHECK(bytes_of(whole, name) == bytes_of(split, name));
  CHECK(bytes_of(whole, "residual") == 2 * 7 * 4 * 2048. * 6144);
  CHECK(bytes_of(whole, "softmax") == 4 * 4 * 8 * 2048. * 2048);
}

TEST_CASE("block time: measured times of one layer, without its all-reduces") {
  // Korthikanti et al., arXiv 2205.05198, table 4, one DGX A100, tp 8: 7.7 ms forward and 11.9
  // backward; 7.2 and 13.1 with sequence parallelism and selective recompute. Two all-reduces of s
  // b h elements of 2 bytes are exposed in the forward pass; in the backward pass they overlap the
  // weight gradients. Assumed bus bandwidth: 230 GB/s.
  const GpuRates a100 = rates_of("a100-80g");
  const double all_reduces_ms = 2 * 2 * 7 / 8. * (2048 * 4 * 6144 * 2) / 230e9 * 1e3;
  BlockWork work = block_22b();
  CHECK(ms(block_forward(work, a100)) == Approx(7.7 - all_reduces_ms).epsilon(0.12));
  CHECK(ms(block_backward(work, a100)) == Approx(11.9).epsilon(0.12));
  work.sequence_parallel = true;
  work.repeated = Repeated::attention_core;
  CHECK(ms(block_forward(work, a100)) == Approx(7.2 - all_reduces_ms).epsilon(0.12));
  CHECK(ms(block_backward(work, a100)) == Approx(13.1).epsilon(0.12));
}

TEST_CASE("block time: heads of 108 elements, no multiple of 8, compared with heads of 216") {
  // BigScience, 78 layers of hidden 13824, tp 8, micro batch 4, recompute of every layer: 121.3 s
  // with 64 heads, 162.7 s with 128, a ratio of 1.34. Bubble and traffic are the same in both.
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  work.hidden = 13824, work.ffn = 4 * 13824, work.repeated = Repeated::block;
  const auto step = [&](std::int64_t heads) {
    work.heads = work.kv_heads = heads;
    return ms(block_forward(work, a100)) + ms(block_backward(work, a100));
  };
  CHECK(step(128) / step(64) > 1.25);
  CHECK(step(128) / step(64) < 1.6);
  CHECK(step(96) / step(64) < 1.06);  // heads of 144
}

TEST_CASE("block time: context parallelism divides queries, and keys stay whole") {
  const GpuRates h100 = rates_of("h100");
  BlockWork work = block_work(load_model("llama2-7b"), 1, 4096);
  work.attention = AttentionKernel::cudnn;
  const double alone = flops(block_forward(work, h100));
  work.context_parallel = 4;
  CHECK(4 * flops(block_forward(work, h100)) == Approx(alone));
}

// Transformer Engine writes the first of c partial contexts and adds the others, on a rank that has
// whole contexts. Gradients of keys and values come in halves, except the last one. In fp8 they are
// converted to fp32, and their sum back. Joined tensor by tensor (eager), a ring adds 45 bytes for
// each partial context and 18 for each gradient; compiled, 10 c and 10 (c + 1). If heads are
// exchanged for tokens, nothing is joined and the FLOPs are the same.
TEST_CASE("block time: partial attention is joined, exchanged heads are not") {
  const GpuRates h100 = rates_of("h100");
  BlockWork work = block_work(load_model("llama2-7b"), 1, 4096);
  work.attention = AttentionKernel::flash2;
  const double alone = flops(block_forward(work, h100));
  CHECK(bytes_of(block_forward(work, h100), "join ring") == 0);
  work.context_parallel = 4;
  const double context = 1024. * 4096;  // elements; keys and values have as many
  CHECK(bytes_of(block_forward(work, h100), "join ring") == (2 + 2 + 3 * 6) * context);
  CHECK(bytes_of(block_backward(work, h100), "join ring") ==
        (2 + 2 + 3 * 6) * context + (3 + 2 * 3 + 6) * 2 * context);
  CHECK(bytes_of(block_forward(work, h100), "pack ring") == 4 * 2 * context);
  CHECK(bytes_of(block_backward(work, h100), "pack ring") == 4 * 2 * context);
  work.fp8_attention = true;
  CHECK(bytes_of(block_forward(work, h100), "join ring") == (4 * 5 + 8 + 3 * 12 + 6 + 3) * context);
  CHECK(bytes_of(block_backward(work, h100), "join ring") == (4 * 5 + 4 * 4 + 4 + 6) * 3 * context);
  work.fp8_attention = false;
  work.ring = Ring::eager;
  CHECK(bytes_of(block_forward(work, h100), "join ring") == 4 * 45 * 1024. * 4096);
  CHECK(bytes_of(block_backward(work, h100), "join ring") == 4 * 18 * 1024. * 3 * 4096);
  work.ring = Ring::traced;
  CHECK(bytes_of(block_forward(work, h100), "join ring") == 4 * 10 * 1024. * 4096);
  CHECK(bytes_of(block_backward(work, h100), "join ring") == 5 * 10 * 1024. * 3 * 4096);
  work.exchanges_heads = true;
  CHECK(bytes_of(block_forward(work, h100), "join ring") == 0);
  CHECK(4 * flops(block_forward(work, h100)) == Approx(alone));
}

// Three products with one input sum three gradients of it (r r r w), the two halves of a gated
// feed-forward sum two (r r w). The FLOPs stay the same.
TEST_CASE("block time: separate products each read their input, and sum its gradients") {
  const GpuRates h100 = rates_of("h100");
  BlockWork work = block_work(load_model("llama3-8b"), 1, 4096);
  const auto called = [](const std::vector<Piece>& pieces, std::string_view name) {
    return std::count_if(pieces.begin(), pieces.end(),
                         [&](const Piece& piece) { return piece.name == name; });
  };
  const std::vector<Piece> joined = block_forward(work, h100);
  const double backward = flops(block_backward(work, h100));
  CHECK(bytes_of(block_backward(work, h100), "sum of input gradients") == 0);
  work.separate_products = true;
  const std::vector<Piece> apart = block_forward(work, h100);
  CHECK(called(joined, "query-key-value") == 1);
  CHECK(called(apart, "query-key-value") == 3);
  CHECK(called(apart, "up") == 2);
  CHECK(flops(apart) == Approx(flops(joined)));
  CHECK(flops(block_backward(work, h100)) == Approx(backward));
  CHECK(bytes_of(apart, "up") > bytes_of(joined, "up"));
  CHECK(bytes_of(block_backward(work, h100), "sum of input gradients") == (8 + 6) * 4096. * 4096);
}

TEST_CASE("block time: norms of queries and keys, biases of experts") {
  const GpuRates h100 = rates_of("h100");
  const ModelShape qwen = load_model("qwen3-30b-a3b"), oss = load_model("gpt-oss-20b");
  CHECK(qwen.norms_queries);
  CHECK_FALSE(qwen.biased_experts);
  CHECK(oss.biased_experts);
  // The model has 32 heads of queries and 4 of keys, of 128 elements each.
  const BlockWork normed = block_work(qwen, 1, 1024);
  CHECK(bytes_of(block_forward(normed, h100), "query-key norm") == 4 * 1024. * 36 * 128);
  CHECK(bytes_of(block_backward(normed, h100), "query-key norm") == 6 * 1024. * 36 * 128);
  BlockWork biased = block_work(oss, 1, 1024);
  ExpertWork experts;
  experts.all = experts.local = oss.experts;
  experts.ffn = oss.ffn;
  experts.tokens = 1024;
  experts.rows = experts.sent = experts.received = 4 * 1024;
  biased.experts = experts;
  CHECK(bytes_of(block_forward(biased, h100), "expert bias") == 24 * 4096. * 2880);
  CHECK(bytes_of(block_backward(biased, h100), "expert bias") == 40 * 4096. * 2880);
  biased.biased_experts = false;
  CHECK(bytes_of(block_forward(biased, h100), "expert bias") == 0);
}

// Each size is increased from a base of 4 x 2,048 tokens, hidden 6,144, with dropout.
TEST_CASE("block time: longer and wider work never takes less time") {
  for (const char* device : {"v100-32g", "a100-80g", "h100", "b200"}) {
    const GpuRates rates = rates_of(device);
    double last_batch = 0, last_length = 0;
    for (std::int64_t size = 1; size <= 40; ++size) {
      BlockWork work = block_work(load_model("gpt2-xl"), size, 512);
      work.attention = AttentionKernel::unfused;
      const double batch = ms(block_forward(work, rates)) + ms(block_backward(work, rates));
      CHECK(batch >= last_batch);
      last_batch = batch;
      work.micro_batch = 1;
      work.seq_len = 8 * size;
      const double length = ms(block_forward(work, rates)) + ms(block_backward(work, rates));
      CHECK(length >= last_length);
      last_length = length;
    }
  }
}

TEST_CASE("block time: fusion moves fewer bytes; fp8 halves product times and adds casts") {
  const GpuRates h100 = rates_of("h100");
  BlockWork work = block_work(load_model("llama2-70b"), 1, 4096);
  work.attention = AttentionKernel::cudnn;
  work.fusion = Fusion::compiled;
  const double compiled = ms(block_forward(work, h100)) + ms(head_forward(work, h100));
  work.fusion = Fusion::eager;
  CHECK(ms(block_forward(work, h100)) + ms(head_forward(work, h100)) > compiled);
  work.fusion = Fusion::compiled;
  CHECK(bytes_of(block_forward(work, h100), "cast") == 0);
  const double half = ms(block_backward(work, h100));
  work.format = MatrixFormat::fp8;
  CHECK(bytes_of(block_forward(work, h100), "cast") == 4 * 4096. * 8192);
  CHECK(ms(block_backward(work, h100)) < half);
  CHECK(ms(block_backward(work, h100)) > half / 2);
  // The head stays in 16 bits, without casts.
  CHECK(bytes_of(head_backward(work, h100), "cast") == 0);
}

TEST_CASE("block time: odd and empty sizes") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  work.micro_batch = 0;
  CHECK(block_forward(work, a100).empty());
  CHECK(block_backward(work, a100).empty());
  CHECK(head_forward(work, a100).empty());
  CHECK(embedding_backward(work, a100).empty());
  work.micro_batch = 1;
  work.seq_len = 1;
  CHECK(ms(block_forward(work, a100)) > 0);
  work.seq_len = 1023;
  work.heads = work.kv_heads = 63;
  work.tensor_parallel = 2;
  CHECK(ms(block_backward(work, a100)) > ms(block_forward(work, a100)));
  CHECK(ms(embedding_forward(work, a100)) > 0);
}

// Llama 2 70B's frozen block has as many product FLOPs backward as forward, and attention has five
// products instead of two. An adapter of rank r has 2 M r (in + out) FLOPs forward and twice that
// backward.
TEST_CASE("block time: frozen products have no weight gradients, their adapters do") {
  const GpuRates h100 = rates_of("h100");
  BlockWork plain = block_work(load_model("llama2-70b"), 1, 4096);
  plain.attention = AttentionKernel::cudnn;
  BlockWork frozen = plain;
  frozen.adapters = Adapters{16};
  const double thin = 2 * 4096. * 16 * (8192 + 10240 + 8192 + 8192);
  const auto forward = block_forward(plain, h100), backward = block_backward(plain, h100);
  const auto adapted = block_forward(frozen, h100), back = block_backward(frozen, h100);
  CHECK(flops(adapted) == Approx(flops(forward) + thin).epsilon(1e-12));
  CHECK(flops(back, Pass::weight_gradient) == Approx(thin).epsilon(1e-12));
  CHECK(flops(back, Pass::input_gradient) ==
        Approx(flops(backward, Pass::input_gradient) + thin).epsilon(1e-12));
  CHECK(ms(back) < 0.7 * ms(backward));
  // Each of four ranks computes a fourth of the output columns of projection and down.
  BlockWork divided = frozen;
  divided.tensor_parallel = 4;
  divided.adapters->targets = AdapterTargets::all;
  const double quarter = 2 * 4096. * 16 *
                         ((8192 + 10240 / 4.) + (8192 / 4. + 8192 / 4.) + (8192 + 57344 / 4.) +
                          (28672 / 4. + 8192 / 4.));
  CHECK(flops(block_backward(divided, h100), Pass::weight_gradient) ==
        Approx(quarter).epsilon(1e-12));
  // Weights of 4.5 bits are converted to 16 bits before each product in both passes: 0.5625 bytes
  // read and 2 written per element.
  BlockWork narrow = frozen;
  narrow.adapters->frozen_bits = 4.5;
  const double matrices = 8192. * (10240 + 8192 + 3 * 28672);
  const auto dequantized = [&](const std::vector<Piece>& pieces) {
    double bytes = 0;
    for (const Piece& piece : pieces)
      if (piece.name == "dequantize") bytes += piece.bytes.value();
    return bytes;
  };
  CHECK(dequantized(block_forward(narrow, h100)) == Approx(2.5625 * matrices));
  CHECK(dequantized(block_backward(narrow, h100)) == Approx(2.5625 * matrices));
  CHECK(dequantized(adapted) + dequantized(head_forward(narrow, h100)) == 0);
  CHECK(embedding_backward(frozen, h100).empty());
  CHECK(flops(head_backward(frozen, h100)) == Approx(flops(head_backward(plain, h100)) / 2));
}

TEST_CASE("block time: attention in fp8 multiplies at the fp8 rate, between casts") {
  const GpuRates h100 = rates_of("h100");
  BlockWork half = block_work(load_model("llama2-70b"), 1, 4096);
  half.attention = AttentionKernel::cudnn;
  half.format = MatrixFormat::fp8;
  BlockWork fp8 = half;
  fp8.fp8_attention = true;
  const auto core = [&](const std::vector<Piece>& pieces) {
    double sum = 0;
    for (const Piece& piece : pieces)
      if (piece.kind == PieceKind::attention) sum += piece.duration.ms();
    return sum;
  };
  // The exponentials take the same time, so the speed-up is less than two.
  for (const auto& pass : {block_forward, block_backward}) {
    CHECK(core(pass(fp8, h100)) < 0.8 * core(pass(half, h100)));
    CHECK(core(pass(fp8, h100)) > 0.5 * core(pass(half, h100)));
  }
  const auto casts = [&](const BlockWork& work) {
    return bytes_of(block_forward(work, h100), "cast");
  };
  CHECK(casts(fp8) - casts(half) == Approx(3 * 4096. * 10240));
}

// T = 64 tokens of 32 elements, 4 experts of 48 columns, two per token, all places filled.
BlockWork one_hot(std::int64_t choices) {
  BlockWork work;
  work.hidden = 32, work.ffn = 48;
  work.micro_batch = 1, work.seq_len = 64;
  ExpertWork experts;
  experts.all = experts.local = 4, experts.ffn = 48, experts.one_hot = choices;
  experts.tokens = 64;
  experts.sent = experts.received = experts.rows = 128;
  work.experts = experts;
  return work;
}

BlockWork of_data(BlockWork work) {
  work.input_is_data = true;
  return work;
}

TEST_CASE("block time: one-hot routing multiplies tokens by places in five products") {
  const GpuRates a100 = rates_of("a100-80g");
  const BlockWork copied = one_hot(0), multiplied = one_hot(2);
  const double product = 2.0 * 64 * 128 * 32;
  CHECK(flops(block_forward(multiplied, a100)) - flops(block_forward(copied, a100)) ==
        Approx(2 * product));
  CHECK(flops(block_backward(multiplied, a100)) - flops(block_backward(copied, a100)) ==
        Approx(3 * product));
  CHECK(bytes_of(block_forward(multiplied, a100), "permute") == 0);
  CHECK(bytes_of(block_forward(multiplied, a100), "one-hot weights") == 64 * 128 * (8 + 12 + 14));
  CHECK(bytes_of(block_backward(multiplied, a100), "one-hot weights") == 64 * 128 * (6 + 8));
}

TEST_CASE("block time: a block without heads is only its feed-forward") {
  BlockWork work;
  work.hidden = 32, work.ffn = 48, work.micro_batch = 1, work.seq_len = 64;
  const GpuRates a100 = rates_of("a100-80g");
  CHECK(block_forward(work, a100).size() == 3);
  CHECK(flops(block_forward(work, a100)) == 4.0 * 64 * 32 * 48);
  CHECK(flops(block_backward(work, a100)) == 8.0 * 64 * 32 * 48);
  work.input_is_data = true;
  CHECK(flops(block_backward(work, a100)) == 6.0 * 64 * 32 * 48);
  CHECK(flops(block_backward(one_hot(2), a100)) -
            flops(block_backward(of_data(one_hot(2)), a100)) ==
        Approx(2.0 * 128 * 32 * 48 + 2.0 * 64 * 128 * 32 + 2.0 * 64 * 4 * 32));
  CHECK(embedding_forward(work, a100).empty());
  CHECK(head_backward(work, a100).empty());
}

}  // namespace
}  // namespace lambcast
