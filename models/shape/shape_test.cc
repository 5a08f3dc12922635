// Compares costs with closed forms, and tests lengths of samples.
#include "models/shape/shape.h"

#include <catch2/catch.hpp>
#include <tuple>

#include "models/shape/adapters.h"
#include "models/shape/with_test.h"

using namespace lambcast;

namespace {

double gflop(const ModelShape& shape, std::int64_t seq_len) {
  return forward_flops(shape, seq_len).value() * 1e-9;
}

// Returns the number of elements of tensors whose name contains `part`.
double elements(const ModelShape& shape, const std::string& part) {
  double sum = 0;
  for (const Tensor& tensor : shape.tensors)
    if (tensor.name.find(part) != std::string::npos) sum += static_cast<double>(tensor.elements);
  return sum;
}

}  // namespace

TEST_CASE("gpt FLOPs follow Narayanan et al. 2021") {
  // Published FLOPs per step and sample: 96 s L h^2 (1 + s/6h + V/16Lh) with recomputation, which
  // repeats the blocks' forward pass but not the head's. Without recomputation they are 72 s L h^2
  // (1 + s/6h) + 6 s h V.
  for (const char* name : {"gpt2", "gpt2-xl", "gpt3-175b", "megatron-8.3b"}) {
    const ModelShape shape = load_model(name);
    const auto L = static_cast<double>(shape.layers);
    const auto h = static_cast<double>(shape.hidden);
    const auto V = static_cast<double>(shape.vocab);
    for (const std::int64_t seq_len : {std::int64_t{64}, shape.max_seq_len}) {
      const auto s = static_cast<double>(seq_len);
      const double closed = 72 * s * L * h * h * (1 + s / (6 * h)) + 6 * s * h * V;
      CHECK(training_flops(shape, seq_len).value() == Approx(closed).epsilon(1e-12));
      const double recomputed = 24 * s * L * h * h * (1 + s / (6 * h));
      const double published = 96 * s * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
      CHECK(closed + recomputed == Approx(published).epsilon(1e-12));
    }
  }
}

TEST_CASE("image FLOPs are twice the published multiply-adds") {
  // GFLOPS printed by torchvision, which count a multiply-add once.
  constexpr std::pair<const char*, double> published[] = {
      {"resnet18", 1.814},   {"resnet34", 3.664}, {"resnet50", 4.089}, {"resnet101", 7.801},
      {"resnet152", 11.514}, {"vgg16", 15.47},    {"vgg19", 19.632},   {"vit-l16", 61.55}};
  for (const auto& [model, gigas] : published) {
    INFO(model);
    CHECK(gflop(load_model(model), 0) == Approx(2 * gigas).epsilon(5e-4));
  }
}

TEST_CASE("a token uses each matrix once: 2 FLOPs per element") {
  // Scores and context add 4 s h per block.
  const double s = 1000;
  const ModelShape llama = load_model("llama2-70b");
  const double dense = elements(llama, "_proj.") + elements(llama, "lm_head");
  CHECK(forward_flops(llama, 1000).value() ==
        Approx(2 * s * dense + 80 * 4 * s * s * 8192).epsilon(1e-12));
  const ModelShape mixtral = load_model("mixtral-8x7b");
  const double visited = elements(mixtral, "_proj.") + elements(mixtral, "gate") +
                         elements(mixtral, "experts.") * 2 / 8 + elements(mixtral, "lm_head");
  CHECK(forward_flops(mixtral, 1000).value() ==
        Approx(2 * s * visited + 32 * 4 * s * s * 4096).epsilon(1e-12));
}

TEST_CASE("bert's heads compute only the tokens that they need") {
  // bert-large with 15 % of the tokens masked has, per token, 24 L h^2 + 0.15 (2 h^2 + 2 h V); per
  // pair of tokens 4 L h; per sample 2 h^2 + 4 h for pooler and next sentence.
  const ModelShape shape = load_model("bert-large");
  const double h = 1024, s = 128;
  const double blocks = s * 24 * 24 * h * h + s * s * 24 * 4 * h;
  const double heads = 0.15 * s * (2 * h * h + 2 * h * 30528) + 2 * h * h + 4 * h;
  CHECK(forward_flops(shape, 128).value() == Approx(blocks + heads).epsilon(1e-12));
  // With the head on every token, the model computes the head for the other 85 % of tokens too.
  const ModelShape all = with("bert-large", {{"model.masked_fraction", "1.0"}});
  CHECK((forward_flops(all, 128) - forward_flops(shape, 128)).value() ==
        Approx(0.85 * s * (2 * h * h + 2 * h * 30528)).epsilon(1e-9));
}

TEST_CASE("t5's decoder has 114 tokens for 512 of the encoder") {
  // With h = inner = 1024, the decoder computes keys and values of cross-attention for the
  // encoder's 512 tokens, and everything else for its own 114. Scores are computed for 512^2, 114^2
  // and 114 * 512 pairs.
  const ModelShape shape = load_model("t5-large");
  const double h2 = 1024.0 * 1024, ff = 1024.0 * 4096, s = 512, t = 114;
  const double encoder = s * 2 * (4 * h2 + 2 * ff) + 4 * 1024 * s * s;
  const double decoder =
      t * 2 * (4 * h2 + 2 * h2 + 2 * ff) + s * 2 * 2 * h2 + 4 * 1024 * (t * t + t * s);
  const double head = t * 2 * 1024 * 32128;
  CHECK(forward_flops(shape, 512).value() ==
        Approx(24 * (encoder + decoder) + head).epsilon(1e-12));
  CHECK(block_forward_flops(shape, 0, 512).value() == Approx(encoder));
  CHECK(block_forward_flops(shape, 47, 512).value() == Approx(decoder));
}

TEST_CASE("a switch layer costs its dense layer and the router") {
  // A token visits one expert (top-1), and the router has 2 h E FLOPs.
  const ModelShape shape = load_model("switch-base-64");
  const double router = 512 * 2.0 * 768 * 64;
  CHECK((block_forward_flops(shape, 1, 512) - block_forward_flops(shape, 2, 512)).value() ==
        Approx(router).epsilon(1e-9));
  CHECK((block_forward_flops(shape, 13, 512) - block_forward_flops(shape, 14, 512)).value() ==
        Approx(router * 114 / 512).epsilon(1e-9));
}

TEST_CASE("activations follow Korthikanti et al. 2022") {
  // A block keeps s h (34 + 5 a s / h). Outside the blocks, a GPT keeps the embedding mask s h, the
  // final norm 2 s h, the head input 2 s h and logits 4 s V.
  const ModelShape shape = load_model("gpt3-175b");
  const double h = 12288, a = 96, s = 2048, V = 50257, L = 96;
  const double closed = L * s * h * (34 + 5 * a * s / h) + s * h * (1 + 2 + 2) + 4 * s * V;
  CHECK(activation_bytes(shape, 1, 2048, true).value() == Approx(closed).epsilon(1e-12));
  CHECK(activation_bytes(shape, 3, 2048, true).value() == Approx(3 * closed).epsilon(1e-12));
  // bert-large also has the embedding norm and, for masked tokens, the transform's norm and
  // product.
  const ModelShape bert = load_model("bert-large");
  const double blocks = 24 * 128 * 1024 * (34 + 5 * 16 * 128 / 1024.0);
  const double outside =
      128 * 1024 * (1 + 2 + 2) + 0.15 * 128 * (1024 * (2 + 4 + 2) + 4 * 30528) + 4 * 1024;
  CHECK(activation_bytes(bert, 1, 128, true).value() == Approx(blocks + outside).epsilon(1e-12));
}

TEST_CASE("flash attention keeps no scores, dropout keeps masks") {
  const Bytes kept = activation_bytes(load_model("gpt2"), 1, 1024, true);
  const Bytes flash = activation_bytes(load_model("gpt2"), 1, 1024, false);
  CHECK((kept - flash).value() == Approx(12.0 * 5 * 12 * 1024 * 1024));  // L 5 a s^2
  // Without dropout, 3 a s^2 and two masks of s h are saved per block, and one mask outside.
  const Bytes dry = activation_bytes(with("gpt2", {{"model.dropout", "false"}}), 1, 1024, true);
  CHECK((kept - dry).value() ==
        Approx(12.0 * (3 * 12 * 1024 * 1024 + 2 * 1024 * 768) + 1024 * 768));
  // ViT saves the same masks for 196 patches and a class token.
  const auto vit = [](const char* dropout) {
    return activation_bytes(with("vit-l16", {{"model.dropout", dropout}}), 1, 0, false).value();
  };
  CHECK(vit("true") - vit("false") == (24 * 2 + 1) * 197. * 1024);
  CHECK(vit("false") ==
        24 * 197 * 1024 * 32. + 2 * 197 * 1024. + 2 * 196 * 768. + 2 * 1024 + 4 * 1000);
}

TEST_CASE("gated feed-forwards and grouped heads keep their outputs") {
  // A block of llama2-70b keeps, per token and with k = 1024 of 8 key heads: norms 4 h, attention 2
  // h + 4 h + 4 k, feed-forward 2 h + 8 f. Outside the blocks: norm 2 h, head input 2 h, logits 4
  // V.
  const ModelShape shape = load_model("llama2-70b");
  const double h = 8192, k = 1024, f = 28672, V = 32000, s = 4096;
  const double block = 4 * h + 6 * h + 4 * k + 2 * h + 8 * f;
  CHECK(activation_bytes(shape, 1, 4096, false).value() ==
        Approx(s * (80 * block + 4 * h + 4 * V)).epsilon(1e-12));
}

TEST_CASE("resnet50 keeps the outputs of convolutions and ReLUs") {
  // With u = 64 * 56^2 = 200,704: convolutions write 55.375 u = 11,113,984 elements (Radosavovic et
  // al. 2020 print 11.1 M activations), ReLUs and the pooling 48.875 u, at 2 bytes; the classifier
  // reads 2048 values and writes 1000 at 4 bytes.
  const double u = 64.0 * 56 * 56;
  const double spatial = 2 * (55.375 + 48.875) * u;
  const double head = 2 * 2048 + 4 * 1000;
  CHECK(activation_bytes(load_model("resnet50"), 1, 0, true).value() == Approx(spatial + head));
  const ModelShape large = with("resnet50", {{"model.image_size", "448"}});
  CHECK(activation_bytes(large, 1, 0, true).value() == Approx(4 * spatial + head));
  // Stages and blocks are numbered as in torchvision.
  for (const char* name :
       {"layer1.0.conv1", "layer1.2.conv3", "layer4.0.downsample", "layer4.2.bn3"})
    CHECK(elements(load_model("resnet50"), name) > 0);
  CHECK(elements(load_model("resnet50"), "layer4.2.conv2") == 9. * 512 * 512);
}

TEST_CASE("vgg16 keeps the outputs of convolutions and poolings") {
  // With u = 64 * 224^2 = 3,211,264 the stages write 2 u, 2 u / 2, 3 u / 4, 3 u / 8, 3 u / 32, and
  // their poolings u / 4, u / 8, u / 16, u / 32, u / 128, at 2 bytes. The linear layers read 25,088
  // values and write 4096 twice, and 1000 at 4 bytes.
  const double u = 64.0 * 224 * 224;
  const double convolutions = (2 + 1 + 3. / 4 + 3. / 8 + 3. / 32) * u;
  const double poolings = (1. / 4 + 1. / 8 + 1. / 16 + 1. / 32 + 1. / 128) * u;
  CHECK(activation_bytes(load_model("vgg16"), 1, 0, true).value() ==
        Approx(2 * (convolutions + poolings) + 2 * (25'088 + 2 * 4096) + 4 * 1000));
}

TEST_CASE("sequence lengths are the default or the requested one; invalid ones are refused") {
  const Where flag{{}, 0, "--seq-len"};
  const ModelShape bert = load_model("bert-large");
  CHECK(resolve_seq_len(bert, {}, flag) == 128);
  CHECK(resolve_seq_len(bert, 512, flag) == 512);
  CHECK_THROWS_WITH(resolve_seq_len(bert, 513, flag),
                    "--seq-len: 513 is out of range for bert-large (allowed: 1 to 512)");
  CHECK_THROWS_WITH(resolve_seq_len(bert, 0, flag),
                    "--seq-len: 0 is out of range for bert-large (allowed: 1 to 512)");
  for (const char* name : {"resnet50", "vit-l16"}) {
    const ModelShape image = load_model(name);
    CHECK(resolve_seq_len(image, {}, flag) == 0);
    CHECK_THROWS_WITH(resolve_seq_len(image, 128, flag),
                      std::string("--seq-len: ") + name + " has no sequence length to choose");
  }
}

TEST_CASE("costs grow with the sequence") {
  for (const std::string& name : model_presets()) {
    const ModelShape shape = load_model(name);
    for (std::int64_t s = 2; s <= shape.max_seq_len; s *= 2) {
      CHECK(forward_flops(shape, s) >= 2.0 * forward_flops(shape, s / 2) * 0.99);
      CHECK(activation_bytes(shape, 1, s, true) > activation_bytes(shape, 1, s / 2, true));
    }
  }
}

TEST_CASE("tensor parallelism divides a block except 6 h elements, and 24 of 34 s h bytes") {
  // Tensor parallelism leaves 10 + 24 / t of 34 bytes (Shoeybi et al. 2019; Korthikanti et al.
  // 2022, equation 2).
  const ModelShape gpt = load_model("gpt3-175b");
  const auto h = static_cast<double>(gpt.hidden);
  double divided = 0;
  double whole = 0;
  for (const Tensor& tensor : gpt.tensors)
    if (tensor.layer == 0)
      (tensor.split == TensorSplit::replicated ? whole : divided) +=
          static_cast<double>(tensor.elements);
  CHECK(divided == 12 * h * h + 7 * h);
  CHECK(whole == 6 * h);
  CHECK(gpt.blocks[0].whole_activation_bytes.per_token == 10 * h);
  CHECK(gpt.blocks[0].activation_bytes.per_token == 34 * h);
  // Outside the blocks, masks, last norm and head input are whole, and logits are divided.
  CHECK(gpt.outside.whole_activation_bytes.per_token == 5 * h);
  CHECK(gpt.embedding_activation_bytes.per_token == h);
  CHECK(load_model("gpt3-175b", std::vector<ModelOverride>{{"model.dropout", "false"}})
            .embedding_activation_bytes.per_token == 0);
  // 32 h is the number of Qi et al. 2024, table 1.
  CHECK(gpt.blocks[0].matrix_operand_bytes.per_token == 32 * h);
  // Tensor parallelism leaves the inputs of the first products and the output gradients of the last
  // ones whole.
  CHECK(gpt.blocks[0].whole_matrix_operand_bytes.per_token == 2 * 4 * h);
  // In a model of experts, this applies to each expert that a token visits.
  CHECK(load_model("mixtral-8x7b").blocks[0].whole_matrix_operand_bytes.per_token ==
        (1 + 2) * 4 * 4096.);
  // In every model, the whole part is at most the total.
  for (const std::string& name : model_presets())
    for (const Cost& block : load_model(name).blocks) {
      INFO(name);
      CHECK(block.whole_activation_bytes.per_token <= block.activation_bytes.per_token);
      CHECK(block.whole_product_input_bytes.per_token <= block.product_input_bytes.per_token);
      CHECK(block.whole_matrix_operand_bytes.per_token <= block.matrix_operand_bytes.per_token);
      CHECK(block.alternate_whole_bytes.per_token <= block.alternate_bytes.per_token);
    }
}

TEST_CASE("tensor parallelism divides the matrices of blocks in every family that supports it") {
  for (const char* name : {"bert-large", "gpt2", "llama2-70b", "mixtral-8x7b", "t5-large",
                           "switch-base-64", "vit-l16", "megatron-8.3b"}) {
    const ModelShape shape = load_model(name);
    INFO(name);
    for (const Tensor& tensor : shape.tensors) {
      INFO(tensor.name);
      // Matrices of blocks are divided, except routers. Norms and biases are in the other group.
      const bool router = tensor.name.find("gate.weight") != std::string::npos ||
                          tensor.name.find("router") != std::string::npos;
      if (tensor.layer >= 0 && group_of(shape, tensor) == "decay")
        CHECK((tensor.split == TensorSplit::replicated) == router);
      if (tensor.split == TensorSplit::vocabulary) CHECK(tensor.elements % shape.vocab == 0);
      if (tensor.split == TensorSplit::key_value)
        CHECK(tensor.elements % (shape.hidden * shape.kv_heads) == 0);
    }
  }
}

// Adapters of rank 16 on Llama 2 70B's attention have 16 x (8,192 + 10,240 + 2 x 8,192) x 80
// elements; NVIDIA NeMo prints 44.6 M trainable parameters.
TEST_CASE("adapters: only they are trained, next to frozen products") {
  const ModelShape plain = load_model("llama2-70b");
  const ModelShape attention = with_adapters(plain, {.rank = 16}, {});
  CHECK(trained_parameters(plain) == parameters(plain));
  CHECK(trained_parameters(attention) == 44'564'480);
  CHECK(optimized_parameters(attention) == 44'564'480);
  CHECK(parameters(attention) == parameters(plain) + 44'564'480);
  CHECK(optimized_tensor_count(attention) == 80 * 4);
  CHECK(optimizer_groups(attention).size() == 1);
  // These adapters are also on up, including the gate, and on down.
  const ModelShape all = with_adapters(plain, {16, AdapterTargets::all}, {});
  CHECK(trained_parameters(all) ==
        44'564'480 + 16 * (8192 + 2 * 28672 + 28672 + 8192) * std::int64_t{80});

  // Frozen weights save the weight gradients, a third of training. Attention scores still have
  // gradients of both factors.
  const double forward = forward_flops(plain, 2048).value();
  const double scores = 80 * 4 * 8192. * 2048 * 2048;
  CHECK(training_flops(attention, 2048).value() ==
        Approx(2 * forward + scores + 6. * 2048 * 44'564'480).epsilon(1e-12));

  // An adapted block keeps, per token, a mask of each adapted input and the context after dropout.
  // The two inputs of the frozen feed-forward are not kept.
  const auto kept = [](const ModelShape& shape) {
    return shape.blocks[0].activation_bytes.per_token;
  };
  CHECK(kept(attention) - kept(plain) == Approx(8192 + 3 * 8192. - 2 * 8192 - 2 * 28672.));
  CHECK(kept(all) - kept(plain) == Approx(8192 + 3 * 8192. + 8192 + 28672.));

  // Only the matrices of the 80 blocks are quantized.
  const ModelOverride bits{"model.quantized_bits", "4.5"};
  const ModelShape narrow = with_adapters(load_model("llama2-70b", {&bits, 1}), {.rank = 16}, {});
  std::int64_t quantized = 0;
  for (const Tensor& tensor : narrow.tensors)
    if (is_quantized(narrow, tensor)) quantized += tensor.elements;
  CHECK(quantized == 80 * 8192 * (10240 + 8192 + 3 * std::int64_t{28672}));
}

TEST_CASE("adapters: models that do not support them are refused") {
  using Catch::Contains;
  const Where where{"", 0, "lora_rank"};
  CHECK_THROWS_WITH(with_adapters(load_model("resnet50"), {.rank = 8}, where),
                    Contains("resnet50 has no transformer blocks to adapt"));
  CHECK_THROWS_WITH(with_adapters(load_model("deepseek-v3"), {.rank = 8}, where),
                    Contains("latent attention"));
  CHECK_THROWS_WITH(with_adapters(load_model("mixtral-8x7b"), {8, AdapterTargets::all}, where),
                    Contains("adapters on experts, which mixtral-8x7b has, are not modelled"));
  const ModelShape mixture = with_adapters(load_model("mixtral-8x7b"), {.rank = 8}, where);
  CHECK(trained_parameters(mixture) == 8 * (4096 + 6144 + 2 * 4096) * 32);
}

TEST_CASE("a parallel block has one norm, one input and one dropout mask less") {
  for (const auto& [name, norm, bytes] : {std::tuple{"gpt3-175b", 2, 5}, {"llama2-7b", 1, 4}}) {
    const ModelShape serial = load_model(name);
    const ModelShape parallel = with(name, {{"model.parallel_block", "true"}});
    const std::int64_t h = serial.hidden;
    CHECK(parameters(serial) - parameters(parallel) == serial.layers * norm * h);
    CHECK(tensor_count(serial) - tensor_count(parallel) ==
          static_cast<std::size_t>(serial.layers * norm));
    CHECK((activation_bytes(serial, 1, 100, true) - activation_bytes(parallel, 1, 100, true))
              .value() == Approx(static_cast<double>(serial.layers * bytes * h * 100)));
    CHECK(forward_flops(parallel, 100).value() == forward_flops(serial, 100).value());
  }
  CHECK_THROWS_AS(with("mixtral-8x7b", {{"model.parallel_block", "true"}}), Error);
  CHECK_THROWS_AS(with("gpt2", {{"model.parallel_block", "true"},
                                {"model.experts", "4"},
                                {"model.experts_per_token", "1"}}),
                  Error);
}

TEST_CASE("a window applies to every layer or to every n-th, and reduces no FLOPs") {
  CHECK(load_model("mistral-7b").window == 4096);
  CHECK(load_model("mistral-7b").window_every == 1);
  CHECK(load_model("gpt-oss-20b").window_every == 2);
  const ModelShape all = load_model("gpt2"), windowed = with("gpt2", {{"model.window", "256"}});
  CHECK(windowed.window == 256);
  CHECK(forward_flops(windowed, 1024).value() == forward_flops(all, 1024).value());
  CHECK_THROWS_AS(with("gpt2", {{"model.window_every", "2"}}), Error);
}
