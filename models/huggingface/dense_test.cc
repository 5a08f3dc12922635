// Compares dense decoders of Hugging Face with the parameters counted by their authors or model
// cards.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "models/huggingface/config.h"
#include "models/huggingface/config_case.h"

namespace lambcast::huggingface {
namespace {

using Catch::Matchers::Contains;

// Sizes of a model; `more` lists further keys of its file.
struct Sizes {
  int layers, hidden, heads, ffn, vocab, longest;
};

std::string decoder(const char* type, const Sizes& size, const char* more) {
  return fmt::format(R"({{"model_type": "{}", "num_hidden_layers": {}, "hidden_size": {},
  "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {},
  "max_position_embeddings": {}, "initializer_range": 0.02, "hidden_act": "silu",
  "bos_token_id": 1, "torch_dtype": "bfloat16", "use_cache": true, "rope_theta": 10000.0{}{}}})",
                     type, size.layers, size.hidden, size.heads, size.ffn, size.vocab, size.longest,
                     *more == 0 ? "" : ", ", more);
}

const std::string qwen2_5_half =
    decoder("qwen2", {24, 896, 14, 4864, 151936, 32768},
            R"("num_key_value_heads": 2, "tie_word_embeddings": true, "sliding_window": 32768,
               "max_window_layers": 24, "use_sliding_window": false, "attention_dropout": 0.0)");
const std::string gemma2_9b =
    decoder("gemma2", {42, 3584, 16, 14336, 256000, 8192},
            R"("num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096,
               "sliding_window_size": 4096, "query_pre_attn_scalar": 256, "attention_bias": false,
               "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
               "cache_implementation": "hybrid", "hidden_activation": "gelu_pytorch_tanh")");
const std::string gemma3_1b =
    decoder("gemma3_text", {26, 1152, 4, 6912, 262144, 32768},
            R"("num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512,
               "sliding_window_pattern": 6, "query_pre_attn_scalar": 256, "rope_scaling": null,
               "rope_local_base_freq": 10000, "attention_bias": false)");
const std::string phi2 =
    decoder("phi", {32, 2560, 32, 10240, 51200, 2048},
            R"("num_key_value_heads": 32, "partial_rotary_factor": 0.4, "qk_layernorm": false,
               "embd_pdrop": 0.0, "resid_pdrop": 0.1, "attention_dropout": 0.0,
               "tie_word_embeddings": false)");
const std::string opt_125m = R"({"model_type": "opt", "num_hidden_layers": 12, "hidden_size": 768,
  "num_attention_heads": 12, "ffn_dim": 3072, "vocab_size": 50272, "max_position_embeddings": 2048,
  "word_embed_proj_dim": 768, "do_layer_norm_before": true, "activation_function": "relu",
  "attention_dropout": 0.0, "dropout": 0.1, "layerdrop": 0.0, "prefix": "</s>"})";
const std::string falcon_7b = R"({"model_type": "falcon", "num_hidden_layers": 32,
  "hidden_size": 4544, "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true,
  "parallel_attn": true, "alibi": false, "bias": false, "new_decoder_architecture": false,
  "hidden_dropout": 0.0, "attention_dropout": 0.0, "layer_norm_epsilon": 1e-05})";
const std::string falcon_40b = R"({"model_type": "falcon", "num_hidden_layers": 60,
  "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024,
  "new_decoder_architecture": true, "multi_query": true, "parallel_attn": true, "alibi": false,
  "bias": false, "hidden_dropout": 0.0, "attention_dropout": 0.0})";
const std::string pythia_1b4 =
    decoder("gpt_neox", {24, 2048, 16, 8192, 50304, 2048},
            R"("rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": true,
               "tie_word_embeddings": false, "layer_norm_eps": 1e-05)");

struct Published {
  std::string config;
  std::int64_t parameters;
  std::size_t tensors;
};

// Gemma: embedding and other parameters from the tables of the reports (1: arXiv 2403.08295, 2:
// 2408.00118) at the 256,000 words of the files; 3: the 1B of the card. Pythia: the table of its
// README. Falcon, OPT, Phi, StarCoder2, Qwen, OLMo 2, Mistral Nemo, Granite, SmolLM3, Command R:
// elements of the published checkpoints.
const Published published[] = {
    {qwen2_5_half, 494'032'768, 290},
    {decoder("qwen2", {28, 3584, 28, 18944, 152064, 131072},
             R"("num_key_value_heads": 4, "tie_word_embeddings": false, "use_sliding_window": false,
                "sliding_window": 131072, "max_window_layers": 28)"),
     7'615'616'512, 339},
    {decoder("qwen3", {36, 4096, 32, 12288, 151936, 40960},
             R"("num_key_value_heads": 8, "head_dim": 128, "attention_bias": false,
                "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": null,
                "max_window_layers": 36)"),
     8'190'735'360, 399},
    {decoder("gemma", {18, 2048, 8, 16384, 256000, 8192},
             R"("num_key_value_heads": 1, "head_dim": 256, "attention_bias": false)"),
     2'506'172'416, 164},
    {decoder("gemma", {28, 3072, 16, 24576, 256000, 8192},
             R"("num_key_value_heads": 16, "head_dim": 256)"),
     8'537'680'896, 254},
    {decoder("gemma2", {26, 2304, 8, 9216, 256000, 8192},
             R"("num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096)"),
     2'614'341'888, 288},
    {gemma2_9b, 9'241'705'984, 464},
    {decoder("gemma2", {46, 4608, 32, 36864, 256000, 8192},
             R"("num_key_value_heads": 16, "head_dim": 128, "sliding_window": 4096)"),
     27'227'128'320, 508},
    {gemma3_1b, 999'885'952, 340},
    {phi2, 2'779'683'840, 453},
    {decoder("phi3", {32, 3072, 32, 8192, 32064, 4096},
             R"("num_key_value_heads": 32, "sliding_window": 2047, "resid_pdrop": 0.0,
                "embd_pdrop": 0.0, "attention_bias": false, "tie_word_embeddings": false,
                "original_max_position_embeddings": 4096)"),
     3'821'079'552, 195},
    {decoder("phi3", {40, 5120, 40, 17920, 100352, 16384},
             R"("num_key_value_heads": 10, "sliding_window": null, "resid_pdrop": 0.0)"),
     14'659'507'200, 243},
    {decoder("olmo2", {32, 4096, 32, 11008, 100352, 4096},
             R"("num_key_value_heads": 32, "attention_bias": false, "tie_word_embeddings": false)"),
     7'298'617'344, 355},
    {decoder("starcoder2", {30, 3072, 24, 12288, 49152, 16384},
             R"("num_key_value_heads": 2, "use_bias": true, "sliding_window": 4096,
                "attention_dropout": 0.1, "residual_dropout": 0.1, "embedding_dropout": 0.1,
                "mlp_type": "default", "norm_type": "layer_norm", "norm_epsilon": 1e-05)"),
     3'030'371'328, 483},
    {pythia_1b4, 1'414'647'808, 292},
    {decoder("gpt_neox", {36, 5120, 40, 20480, 50688, 2048}, R"("rotary_pct": 0.25)"),
     11'846'072'320, 436},
    {decoder("gpt_neox", {44, 6144, 64, 24576, 50432, 2048}, R"("rotary_pct": 0.25)"),
     20'554'567'680, 532},
    {opt_125m, 125'239'296, 196},
    {falcon_7b, 6'921'720'704, 195},
    {falcon_40b, 41'303'293'952, 483},
    {decoder("granite", {40, 2048, 32, 8192, 49155, 4096},
             R"("num_key_value_heads": 8, "tie_word_embeddings": true, "attention_bias": false,
                "mlp_bias": false, "attention_multiplier": 0.015625, "logits_scaling": 8.0)"),
     2'533'531'648, 362},
    {decoder("smollm3", {36, 2048, 16, 11008, 128256, 65536},
             R"("num_key_value_heads": 4, "tie_word_embeddings": true, "attention_bias": false,
                "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4,
                "use_sliding_window": false, "max_window_layers": 28)"),
     3'075'098'624, 326},
    {decoder("cohere", {40, 8192, 64, 22528, 256000, 131072},
             R"("num_key_value_heads": 64, "logit_scale": 0.0625, "use_qk_norm": false,
                "attention_bias": false)"),
     34'980'831'232, 322},
    {decoder("mistral", {40, 5120, 32, 14336, 131072, 1024000},
             R"("num_key_value_heads": 8, "head_dim": 128, "sliding_window": null)"),
     12'247'782'400, 363},
};

TEST_CASE("config.json: dense decoders have the parameters counted by their authors") {
  for (const Published& model : published) {
    INFO(model.config);
    const ModelShape shape = shape_of(model.config);
    CHECK(parameters(shape) == model.parameters);
    CHECK(tensor_count(shape) == model.tensors);
    CHECK(shape.causal);
    CHECK(shape.flash_attention);
    // Every matrix except the embedding is multiplied once per token. A tied embedding is also the
    // head's matrix, which is multiplied.
    double matrices = 0;
    for (const Tensor& tensor : shape.tensors)
      if (group_of(shape, tensor) == "decay" && !tensor.name.starts_with("model.embed"))
        matrices += static_cast<double>(tensor.elements);
    const bool tied = shape.tensors.back().name.starts_with("model.norm");
    if (tied) matrices += static_cast<double>(shape.vocab * shape.hidden);
    const double one = forward_flops(shape, 1).value();
    const auto scores = static_cast<double>(4 * shape.layers * shape.heads * shape.head_size);
    CHECK(one - scores == Approx(2 * matrices).epsilon(1e-12));
  }
}

TEST_CASE("config.json: windows of some layers are counted") {
  const ModelShape gemma2 = shape_of(gemma2_9b);
  CHECK(gemma2.window == 4096);
  CHECK(gemma2.window_layers * 2 == gemma2.window_every);
  const ModelShape gemma3 = shape_of(gemma3_1b);
  CHECK(gemma3.window == 512);
  CHECK(gemma3.window_layers * 6 == gemma3.window_every * 5);
  const auto olmo3 = [](const char* types) {
    return decoder("olmo3", {4, 4096, 32, 11008, 100278, 65536},
                   fmt::format(R"("sliding_window": 4096, "layer_types": [{}])", types).c_str());
  };
  const ModelShape mixed = shape_of(
      olmo3(R"("sliding_attention", "sliding_attention", "sliding_attention", "full_attention")"));
  CHECK(mixed.window_layers == 3);
  CHECK(mixed.window_every == 4);
  const std::string whole = R"("full_attention", "full_attention", "full_attention",)";
  CHECK(shape_of(olmo3((whole + R"("full_attention")").c_str())).window == 0);
  CHECK_THAT(refusal(olmo3(R"("full_attention")")), Contains("layer_types: lists 1 layers"));
}

TEST_CASE("config.json: blocks differ according to their architectures") {
  const ModelShape gemma = shape_of(gemma3_1b);
  CHECK(gemma.norms == 4);
  CHECK(gemma.norms_queries);
  CHECK(gemma.head_size == 256);
  const ModelShape neox = shape_of(pythia_1b4);
  CHECK(neox.parallel_block);
  CHECK(neox.norms == 2);
  CHECK_FALSE(neox.gated);
  CHECK_FALSE(neox.dropout);
  CHECK(shape_of(falcon_7b).norms == 1);
  CHECK(shape_of(falcon_7b).kv_heads == 1);
  CHECK(shape_of(falcon_40b).norms == 2);
  const ModelShape opt = shape_of(opt_125m);
  CHECK_FALSE(opt.rotary);
  CHECK_FALSE(opt.parallel_block);
  CHECK(opt.dropout);
  CHECK(shape_of(phi2).dropout);
}

TEST_CASE("config.json: an unmodelled part of a dense decoder is one line") {
  const auto with = [](std::string json, const char* from, const char* to) {
    const auto at = json.find(from);
    REQUIRE(at != std::string::npos);
    return json.replace(at, std::string_view(from).size(), to);
  };
  const std::pair<std::string, const char*> cases[] = {
      {with(falcon_7b, "\"alibi\": false", "\"alibi\": true"), "alibi: a bias of attention"},
      {with(opt_125m, "\"word_embed_proj_dim\": 768", "\"word_embed_proj_dim\": 512"),
       "word_embed_proj_dim: an embedding of another width"},
      {with(opt_125m, "before\": true", "before\": false"), "do_layer_norm_before"},
      {with(phi2, "\"qk_layernorm\": false", "\"qk_layernorm\": true"), "qk_layernorm"},
      {with(phi2, "embeddings\": false", "embeddings\": true"), "tie_word_embeddings"},
      {with(qwen2_5_half, "\"use_sliding_window\": false", "\"use_sliding_window\": true"),
       "sliding_window: attention within a window"},
      {with(falcon_7b, "\"num_attention_heads\": 71", "\"num_attention_heads\": 72"),
       "not divisible by 72"},
      {with(gemma3_1b, "\"sliding_window_pattern\": 6", "\"layer_types\": 6"),
       "layer_types: other than a list"}};
  for (const auto& [json, words] : cases) {
    const std::string sentence = refusal(json);
    CHECK_THAT(sentence, Contains(words));
    CHECK(sentence.find('\n') == std::string::npos);
  }
}

TEST_CASE("config.json: parts that cost time and are left out are reported") {
  CHECK(left_out(qwen2_5_half, "config.json").empty());
  const std::vector<std::string> of_gemma = left_out(gemma2_9b, "config.json");
  REQUIRE(of_gemma.size() == 2);
  CHECK_THAT(of_gemma[0], Contains("attn_logit_softcapping: not modelled: a cap on the scores"));
  CHECK_THAT(of_gemma[1], Contains("final_logit_softcapping"));
  CHECK(left_out(pythia_1b4, "config.json").size() == 1);
}

// Llama 3 8B has 8,030,261,248 parameters: minus its head of 128,256 * 4096, plus 2 labels of 4096
// weights. BERT-Large's encoder and pooler have 335,141,888, plus 2 * 1024 + 2 (transformers' model
// cards).
TEST_CASE("config.json: a classifier has labels instead of the vocabulary") {
  const std::string llama =
      R"({"architectures": ["LlamaForSequenceClassification"], "model_type": "llama",
          "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
          "max_position_embeddings": 8192, "id2label": {"0": "a", "1": "b"}})";
  const ModelShape shape = shape_of(llama);
  CHECK(parameters(shape) == 7'504'932'864);
  CHECK(shape.head_share == 0);
  const std::string bert =
      R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert",
          "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
          "intermediate_size": 4096, "vocab_size": 30522, "max_position_embeddings": 512})";
  CHECK(parameters(shape_of(bert)) == 335'143'938);
}

TEST_CASE("config.json: the class determines the head") {
  const std::string sizes =
      R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 32})";
  const auto count = [&](const char* type, const char* name) {
    return parameters(shape_of(
        fmt::format(R"({{"model_type": "{}", "architectures": ["{}"], {})", type, name, sizes)));
  };
  // The classes have, in turn: no head, a head of two labels with 64 weights each (twice), and a
  // head of 1000 words with 64 weights each.
  const std::int64_t llama = count("llama", "LlamaModel");
  CHECK(count("llama", "LlamaForTokenClassification") == llama + 128);
  CHECK(count("llama", "LlamaForQuestionAnswering") == llama + 128);
  CHECK(count("llama", "LlamaForCausalLM") == llama + 64'000);
  // BERT's pooler has 64 x 64 + 64 parameters (4160), two labels have 2 * 64 + 2, and the word head
  // has a product with bias (4160), a norm (128) and 1000 biases.
  const std::int64_t bert = count("bert", "BertModel");
  CHECK(count("bert", "BertForSequenceClassification") == bert + 130);
  CHECK(count("bert", "BertForTokenClassification") == bert - 4160 + 130);
  CHECK(count("bert", "BertForMaskedLM") == bert - 4160 + 1000 + 4160 + 128);
  CHECK(count("bert", "BertForPreTraining") == bert + 1000 + 4160 + 128 + 130);
  for (const char* name : {"LlamaForRewardModel", "Qwen2ForProcessRewardModel", "LlamaForScoring"})
    CHECK_THAT(refusal(fmt::format(R"({{"model_type": "llama", "architectures": ["{}"], {})", name,
                                   sizes)),
               Contains(fmt::format("architectures: the head of {} is not modelled", name)));
}

TEST_CASE("config.json: parts that cost time and belong to no family are reported") {
  const std::vector<std::string> told =
      left_out(R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
                   "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32, "vocab_size": 1000,
                   "add_cross_attention": true, "quantization_config": {"quant_method": "gptq"}})",
               "c.json");
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[0], Contains("c.json:3: add_cross_attention: not modelled: attention to an"));
  CHECK_THAT(told[1], Contains("quantization_config: not modelled: weights of fewer bits"));
  CHECK(left_out(R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2,
                     "n_positions": 32, "vocab_size": 1000, "add_cross_attention": false})",
                 "c.json")
            .empty());
}

TEST_CASE("config.json: weights quantized by bitsandbytes have its bits") {
  const auto bits = [](const char* how) {
    const std::string json =
        fmt::format(R"({{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2,
                         "n_positions": 32, "vocab_size": 1000, "quantization_config": {{{}}}}})",
                    how);
    CHECK(left_out(json, "c.json").empty() == (shape_of(json).quantized_bits > 0));
    return shape_of(json).quantized_bits;
  };
  CHECK(bits(R"("load_in_4bit": true)") == 4.5);
  CHECK(bits(R"("_load_in_4bit": true, "bnb_4bit_use_double_quant": true)") ==
        Approx(4.127).epsilon(1e-4));
  CHECK(bits(R"("quant_method": "bitsandbytes", "load_in_8bit": true)") == 8);
  CHECK(bits(R"("quant_method": "awq", "bits": 4)") == 0);
}

TEST_CASE(
    "config.json: in a multimodal file the text model is read, with the defaults of its class") {
  // LLaVA 1.5 7B has Llama's defaults, 64 more words, and otherwise Vicuna's 6,738,415,616
  // parameters.
  const std::string llava =
      R"({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
          "text_config": {"model_type": "llama", "max_position_embeddings": 4096,
                          "vocab_size": 32064},
          "vision_config": {"model_type": "clip_vision_model"}})";
  const ModelShape shape = shape_of(llava);
  CHECK(parameters(shape) == 6'738'415'616 + 2 * 64 * 4096);
  CHECK(shape.max_seq_len == 4096);
  const std::vector<std::string> told = left_out(llava, "c.json");
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Contains("c.json:2: text_config: images and sound are not modelled"));
}

TEST_CASE("config.json: an unmodelled architecture is refused with the part that is missing") {
  const std::pair<const char*, const char*> cases[] = {
      {"deepseek_v32", "deepseek_v32 with attention to the tokens that an indexer picks is"},
      {"qwen3_next", "qwen3_next with layers of linear attention is"},
      {"qwen9", "unknown architecture 'qwen9' (allowed"},
      {"deepseek_v9", "unknown architecture 'deepseek_v9' (allowed"},
      {"deepseek_ref", "unknown architecture 'deepseek_ref' (allowed"},
      {"nemotron-nas", "nemotron-nas with blocks of sizes of their own is"},
      {"gpt_neo", "unknown architecture 'gpt_neo' (allowed"},
      {"umt5", "unknown architecture 'umt5' (allowed"},
      {"mixtrall", "did you mean 'mixtral'?"}};
  for (const auto& [type, words] : cases)
    CHECK_THAT(refusal(fmt::format(R"({{"model_type": "{}"}})", type)), Contains(words));
  CHECK_THAT(refusal(R"({"model_type": "llama", "layer_types": ["mamba"]})"),
             Contains("layer_types: a layer of 'mamba' is not modelled"));
}

TEST_CASE("config.json: other files of a checkpoint are named") {
  const std::pair<const char*, const char*> files[] = {
      {R"({"peft_type": "LORA", "r": 16})", "config.json:1: peft_type: belongs to an adapter"},
      {R"({"dim": 4096, "n_layers": 32})", "in the format of its authors"},
      {R"({"metadata": {}, "weight_map": {}})", "the index of a checkpoint's files"},
      {R"({"tokenizer_class": "LlamaTokenizer"})", "belongs to a tokenizer"},
      {R"({"eos_token_id": 2, "temperature": 0.6})", "settings that generate text"}};
  for (const auto& [json, words] : files) CHECK_THAT(refusal(json), Contains(words));
}

TEST_CASE("config.json: keys that begin with '_' belong to a class, and are no slips") {
  const char* gemma = R"({"model_type": "gemma3_text", "_sliding_window_pattern": 6})";
  CHECK_NOTHROW(description_of(gemma, "gemma.json"));
}

TEST_CASE("config.json: a Gemma 3 text model has the defaults of its class") {
  const std::string text = description_of(
      R"({"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
          "intermediate_size": 10240, "sliding_window": 1024})",
      "gemma.json");
  for (const char* line : {"heads = 8", "kv_heads = 4", "head_dim = 256", "vocab = 262208",
                           "hidden = 2560", "layers = 34"})
    CHECK_THAT(text, Contains(line));
  CHECK_THROWS_WITH(
      description_of(R"({"model_type": "gemma3_text", "num_attention_head": 4})", "gemma.json"),
      Contains("num_attention_head"));
}

}  // namespace
}  // namespace lambcast::huggingface
