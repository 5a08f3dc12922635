// Compares every preset with the totals that its authors or frameworks print.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "models/shape/with_test.h"

using namespace lambcast;

namespace {

struct Expected {
  std::string name;
  std::int64_t parameters;
  std::int64_t optimized;
  std::size_t tensors;
  std::size_t optimized_tensors;
};

// bert: DeepSpeedExamples bing_bert, summed in the BERT test below. gpt: closed form L (12 h^2 + 13
// h) + (V + s + 2) h, 12 tensors per layer and 4 outside. llama, mixtral: litgpt prints 6.74, 68.98
// and 46.70 B; Mistral 7.24 B; meta 65.2, 8.03, 70.55 and 405.85 B (L (2 h^2 + 2 h k + 3 h f + 2 h)
// + 2 V h + h with k the width of keys). t5, switch: Hugging Face prints 737,668,096 and 3.79 B.
// Models with experts: closed forms of the shapes in the model cards, which print 30.5, 235, 671
// (without the 11.6 B of the predicting block), 1026, 20.91, 116.83 and 140.6 B; 26 and 52 B for
// Switch-Large and DeepSpeed-MoE. resnet*, vgg* and vit_l_16: torchvision's num_params. Tensors of
// resnets: 3 per convolution (L including projections and the first) and 2; of vgg 2 for each of 16
// and 19 layers. swin: closed form below; a layer of 2048 x 4096 has 2 h f + f + h.
const Expected expected[] = {
    {"bert-base", 110'112'578, 109'521'986, 208, 206},
    {"bert-large", 336'234'306, 335'184'706, 400, 398},
    {"gpt2", 124'439'808, 124'439'808, 148, 148},
    {"gpt2-xl", 1'557'611'200, 1'557'611'200, 580, 580},
    {"gpt3-175b", 174'604'259'328, 174'604'259'328, 1156, 1156},
    {"megatron-8.3b", 8'317'040'640, 8'317'040'640, 868, 868},
    {"llama2-7b", 6'738'415'616, 6'738'415'616, 291, 291},
    {"llama2-70b", 68'976'648'192, 68'976'648'192, 723, 723},
    {"mixtral-8x7b", 46'702'792'704, 46'702'792'704, 995, 995},
    {"switch-base-64", 3'790'748'928, 3'790'748'928, 1781, 1781},
    {"t5-large", 737'668'096, 737'668'096, 509, 509},
    {"resnet50", 25'557'032, 25'557'032, 161, 161},
    {"vit-l16", 304'326'632, 304'326'632, 296, 296},
    {"gpt3-5b", 5'051'228'160, 5'051'228'160, 292, 292},
    {"gpt3-20b", 20'262'014'976, 20'262'014'976, 532, 532},
    {"llama2-13b", 13'015'864'320, 13'015'864'320, 363, 363},
    {"llama-65b", 65'285'660'672, 65'285'660'672, 723, 723},
    {"llama3-8b", 8'030'261'248, 8'030'261'248, 291, 291},
    {"mistral-7b", 7'241'732'096, 7'241'732'096, 291, 291},
    {"llama3-70b", 70'553'706'496, 70'553'706'496, 723, 723},
    {"llama3-405b", 405'853'388'800, 405'853'388'800, 1137, 1137},
    {"nemotron-8b", 7'509'516'288, 7'509'516'288, 388, 388},
    {"nemotron-22b", 19'720'630'272, 19'720'630'272, 484, 484},
    {"nemotron-340b", 341'025'638'400, 341'025'638'400, 867, 867},
    {"mixtral-8x22b", 140'620'634'112, 140'620'634'112, 1739, 1739},
    {"qwen3-30b-a3b", 30'532'122'624, 30'532'122'624, 531, 531},
    {"qwen3-235b-a22b", 235'093'634'560, 235'093'634'560, 1037, 1037},
    {"deepseek-v3", 682'636'472'320, 682'636'472'320, 928, 928},
    {"kimi-k2", 1'026'408'209'408, 1'026'408'209'408, 915, 915},
    {"gpt-oss-20b", 20'914'757'184, 20'914'757'184, 411, 411},
    {"gpt-oss-120b", 116'829'156'672, 116'829'156'672, 615, 615},
    {"switch-large-128", 26'309'291'008, 26'309'291'008, 6629, 6629},
    {"deepspeed-moe-1.3b-128", 52'473'360'384, 52'473'360'384, 6400, 6400},
    {"swinv2-base", 109'296'081, 109'296'081, 377, 377},
    {"swinv2-moe-base", 955'501'521, 955'501'521, 387, 387},
    {"feed-forward", 16'783'360, 16'783'360, 4, 4},
    {"resnet18", 11'689'512, 11'689'512, 62, 62},
    {"resnet34", 21'797'672, 21'797'672, 110, 110},
    {"resnet101", 44'549'160, 44'549'160, 314, 314},
    {"resnet152", 60'192'808, 60'192'808, 467, 467},
    {"vgg16", 138'357'544, 138'357'544, 32, 32},
    {"vgg19", 143'667'240, 143'667'240, 38, 38},
};

}  // namespace

TEST_CASE("presets have the published sizes") {
  std::vector<std::string> names;
  for (const Expected& model : expected) {
    INFO(model.name);
    const ModelShape shape = load_model(model.name);
    CHECK(shape.name == model.name);
    CHECK(parameters(shape) == model.parameters);
    CHECK(optimized_parameters(shape) == model.optimized);
    CHECK(tensor_count(shape) == model.tensors);
    CHECK(optimized_tensor_count(shape) == model.optimized_tensors);
    CHECK(shape.provenance.kind == Kind::published);
    CHECK_FALSE(shape.provenance.source.empty());
    names.push_back(model.name);
  }
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == std::size(expected));
  std::vector<std::string> shipped = model_presets();
  CHECK(std::set<std::string>(shipped.begin(), shipped.end()) ==
        std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("presets are consistent: unique names, and every block has tensors and costs") {
  for (const std::string& name : model_presets()) {
    INFO(name);
    const ModelShape shape = load_model(name);
    std::set<std::string> names;
    std::set<int> layers;
    for (const Tensor& tensor : shape.tensors) {
      CHECK(tensor.elements > 0);
      names.insert(tensor.name);
      layers.insert(tensor.layer);
    }
    CHECK(names.size() == shape.tensors.size());
    const bool outside = shape.family != "feed-forward";  // this family has only blocks
    CHECK(*layers.begin() == (outside ? -1 : 0));
    CHECK(*layers.rbegin() == shape.layers - 1);
    CHECK(layers.size() == static_cast<std::size_t>(shape.layers + (outside ? 1 : 0)));
    CHECK(shape.blocks.size() == static_cast<std::size_t>(shape.layers));
    std::int64_t elements = 0;
    for (const GroupSize& group : optimizer_groups(shape)) elements += group.elements;
    CHECK(elements == optimized_parameters(shape));

    // The FLOPs of the parts sum to the total, and no block has zero FLOPs.
    double flops = outside_forward_flops(shape, shape.default_seq_len).value();
    CHECK((flops > 0) == outside);
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      const double block = block_forward_flops(shape, layer, shape.default_seq_len).value();
      CHECK(block > 0);
      flops += block;
    }
    CHECK(forward_flops(shape, shape.default_seq_len).value() == Approx(flops).epsilon(1e-12));
    CHECK(training_flops(shape, shape.default_seq_len).value() == Approx(3 * flops).epsilon(1e-12));
    const Bytes one = activation_bytes(shape, 1, shape.default_seq_len, true);
    CHECK(one.value() > 0);
    CHECK(activation_bytes(shape, 7, shape.default_seq_len, true) / one == Approx(7));
  }
}

TEST_CASE("bert-large has the tensors that DeepSpeed's bing_bert gives to a 1-bit optimizer") {
  const ModelShape shape = load_model("bert-large");
  CHECK(shape.vocab == 30528);  // 30522 rounded up to a multiple of 8
  const std::vector<GroupSize> groups = optimizer_groups(shape);
  REQUIRE(groups.size() == 3);
  // The group no_decay has 24 layers of biases (4 h + f + h) and norms (4 h) = 13,312, embedding
  // norm 2 h, final norm 2 h, transform bias h and norm 2 h, word bias 30,528, next-sentence bias
  // 2.
  CHECK(groups[0].name == "decay");
  CHECK(groups[0].elements == 334'303'232);
  CHECK(groups[1].name == "no_decay");
  CHECK(groups[1].elements == 24 * 13'312 + 7 * 1024 + 30'528 + 2);
  CHECK(groups[1].elements == 357'186);
  CHECK(groups[2].name == "position");
  CHECK(groups[2].elements == 512 * 1024);
  CHECK(groups[2].tensors == 1);
  // Only the pooler is not optimized: h^2 + h elements.
  for (const Tensor& tensor : shape.tensors)
    CHECK(tensor.optimized == (tensor.name.find("pooler") == std::string::npos));
  CHECK(parameters(shape) - optimized_parameters(shape) == 1024 * 1024 + 1024);
}

TEST_CASE("DeepSpeed's fused transformer kernel changes the tensors, not the number of elements") {
  const ModelShape plain = load_model("bert-large");
  const ModelShape fused = with("bert-large", {{"model.fused_transformer_kernel", "true"}});
  CHECK(optimized_tensor_count(fused) == 302);  // 24 * 12 + 14
  CHECK(optimized_parameters(fused) == optimized_parameters(plain));
  const auto a = optimizer_groups(plain);
  const auto b = optimizer_groups(fused);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].elements == b[i].elements);
}

TEST_CASE("bert with the original post-norms and vocabulary has Hugging Face's total") {
  // BertForPreTraining of transformers has 336,226,108 parameters in 398 tensors for
  // bert-large-uncased, and 110,106,428 in 206 for bert-base-uncased.
  const std::vector<ModelOverride> original{{"model.pre_layer_norm", "false"},
                                            {"model.vocab_multiple", "1"},
                                            {"model.optimize_pooler", "true"}};
  const ModelShape large = with("bert-large", original);
  CHECK(parameters(large) == 336'226'108);
  CHECK(optimized_tensor_count(large) == 398);
  const ModelShape base = with("bert-base", original);
  CHECK(parameters(base) == 110'106'428);
  CHECK(optimized_tensor_count(base) == 206);
}

TEST_CASE("families reproduce published totals of further models") {
  // Hugging Face's switch-base-N have 0.619, 1.072, 1.979, 7.415 and 14.66 B parameters for N = 8,
  // 16, 32, 128 and 256.
  const auto switch_base = [](const char* experts) {
    return static_cast<double>(parameters(with("switch-base-64", {{"model.experts", experts}})));
  };
  CHECK(switch_base("8") == Approx(0.619e9).epsilon(1e-3));
  CHECK(switch_base("16") == Approx(1.072e9).epsilon(1e-3));
  CHECK(switch_base("32") == Approx(1.979e9).epsilon(1e-3));
  CHECK(switch_base("128") == Approx(7.415e9).epsilon(1e-3));
  CHECK(switch_base("256") == Approx(14.66e9).epsilon(1e-3));
  // torchvision's vit_b_16 has 86,567,656 parameters.
  CHECK(parameters(with("vit-l16", {{"model.layers", "12"},
                                    {"model.hidden", "768"},
                                    {"model.heads", "12"},
                                    {"model.ffn", "3072"}})) == 86'567'656);
  // Llama 3 8B has 8,030,261,248 parameters.
  CHECK(parameters(with("llama2-7b", {{"model.kv_heads", "8"},
                                      {"model.ffn", "14336"},
                                      {"model.vocab", "128256"}})) == 8'030'261'248);
  // Hugging Face's t5-small has 60,506,624 parameters.
  CHECK(parameters(with("t5-large", {{"model.encoder_layers", "6"},
                                     {"model.decoder_layers", "6"},
                                     {"model.hidden", "512"},
                                     {"model.heads", "8"},
                                     {"model.ffn", "2048"}})) == 60'506'624);
  // Hugging Face's google/t5-v1_1-large has 783,150,080 parameters, with an untied head.
  CHECK(parameters(with("t5-large", {{"model.ffn", "2816"}, {"model.gated", "true"}})) ==
        783'150'080 - 32'128 * 1024);
}

TEST_CASE("active parameters include only visited experts") {
  // Jiang et al. 2024 state 13 B active of 47 B: 46,702,792,704 - 32 * 6 * 3 * 4096 * 14336.
  const ModelShape mixtral = load_model("mixtral-8x7b");
  CHECK(active_parameters(mixtral) == 12'879'925'248);
  CHECK(active_parameters(mixtral) ==
        parameters(mixtral) - std::int64_t{32} * 6 * 3 * 4096 * 14336);
  // With one of 64 experts active, the model is a dense T5 with routers: its 12 sparse layers lose
  // 63 experts of 2 h f.
  const ModelShape sparse = load_model("switch-base-64");
  CHECK(active_parameters(sparse) == parameters(sparse) - std::int64_t{12} * 63 * 2 * 768 * 3072);
  CHECK(active_parameters(load_model("gpt2")) == 124'439'808);
}

TEST_CASE("in a model of small experts a token uses few parameters") {
  CHECK(active_parameters(load_model("qwen3-30b-a3b")) == 3'353'032'704);
  CHECK(active_parameters(load_model("qwen3-235b-a22b")) == 22'190'763'520);
  CHECK(active_parameters(load_model("deepseek-v3")) == 38'240'382'976);
  CHECK(active_parameters(load_model("gpt-oss-120b")) == 5'711'982'912);
}

TEST_CASE(
    "MLPerf counts 1,068 TFLOP for a sequence of DeepSeek-V3, with prediction and half of the "
    "square") {
  const ModelShape shape = load_model("deepseek-v3");
  double pairs = 0;
  for (const Cost& block : shape.blocks) pairs += block.forward_flops.per_token_pair;
  pairs += shape.outside.forward_flops.per_token_pair;
  const double causal = training_flops(shape, 4096).value() - 1.5 * pairs * 4096 * 4096;
  CHECK(causal == Approx(1068e12).epsilon(0.01));
}

TEST_CASE("latent attention passes through vectors of its ranks") {
  // DeepSeek-V3 has per token 2 (7168 1536 + 1536 128 192 + 7168 576 + 512 128 256 + 16384 7168)
  // FLOPs, and 2 128 (192 + 128) per pair of tokens.
  const ModelShape shape = load_model("deepseek-v3");
  const Cost& dense = shape.blocks.front();
  CHECK(dense.forward_flops.per_token_pair == 2 * 128 * 320);
  CHECK(dense.forward_flops.per_token ==
        2.0 * (7168 * 1536 + 1536 * 24576 + 7168 * 576 + 512 * 32768 + 16384.0 * 7168) +
            6.0 * 7168 * 18432);
  // A block keeps per token, at 2 bytes: the inputs of both norms and of both halves; both latent
  // vectors, before and after their norms; queries, keys of the same width, values and context;
  // four values of the feed-forward.
  const double whole = 2 * (4 * 7168. + 2 * (1536 + 512));
  CHECK(shape.blocks[0].whole_activation_bytes.per_token == whole);
  CHECK(shape.blocks[0].activation_bytes.per_token ==
        whole + 2 * (2 * 24576. + 2 * 16384) + 2 * 4 * 18432.);
  CHECK(shape.expert_layers[2] == false);
  CHECK(shape.expert_layers[3] == true);
}

TEST_CASE("a Swin pyramid doubles its width where it quarters its tokens, and attends in windows") {
  const ModelShape shape = load_model("swinv2-base");
  REQUIRE(shape.pyramid.size() == 4);
  const PyramidStage& first = shape.pyramid.front();
  CHECK(first.tokens == 48 * 48);
  CHECK(first.windows == 16);
  const PyramidStage& last = shape.pyramid.back();
  CHECK(last.hidden == 1024);
  CHECK(last.heads == 32);
  CHECK(last.tokens == 6 * 6);
  CHECK(last.windows == 1);  // the image is smaller than a window
  // A block of the first stage, with M tokens per window, has 2 M (3 h^2 + h^2 + 8 h^2) FLOPs, and
  // 4 h M per token for attention.
  CHECK(shape.blocks.front().forward_flops.fixed == 2304.0 * (24 * 128 * 128 + 4 * 128 * 144));
  // Outside the blocks there are patches of 48 values; the merging of four tokens into one of twice
  // the width (4 M h^2), whose norm and product keep 2 h values each, at 2 bytes; the last norm;
  // and the classes of one token.
  double merged = 0, kept = 0;
  for (const auto& [tokens, h] : {std::pair{24. * 24, 256.}, {12. * 12, 512.}, {6. * 6, 1024.}}) {
    merged += 4 * tokens * h * h;
    kept += 2 * 2 * tokens * 2 * h;
  }
  CHECK(shape.outside.forward_flops.fixed == 2 * 2304. * 128 * 48 + merged + 2 * 1024. * 21841);
  CHECK(shape.outside.activation_bytes.fixed ==
        2 * 2304. * 128 + kept + 2 * 1024. * (36 + 1) + 4 * 21841.);
  // Every second block of the last two stages has experts.
  const ModelShape experts = load_model("swinv2-moe-base");
  CHECK(std::count(experts.expert_layers.begin(), experts.expert_layers.end(), true) == 10);
  CHECK(experts.expert_layers[5]);
  CHECK_FALSE(experts.expert_layers[1]);
  CHECK(experts.expert_layers[23]);
  CHECK_THROWS_WITH(with("swinv2-base", {{"model.window_size", "7"}}),
                    Catch::Contains("do not divide into windows of 7"));
}
