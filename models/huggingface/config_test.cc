#include "models/huggingface/config.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "models/huggingface/config_case.h"
#include "models/huggingface/costless_keys.h"

namespace lambcast::huggingface {
namespace {

using Catch::Matchers::Contains;

// Files with keys and values as published by the models' authors.
const std::string llama = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "hidden_act": "silu",
  "hidden_size": 4096,
  "initializer_range": 0.02,
  "intermediate_size": 14336,
  "max_position_embeddings": 8192,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "rope_theta": 500000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "use_cache": true,
  "vocab_size": 128256
}
)";

const std::string mixtral = R"({
  "architectures": ["MixtralForCausalLM"],
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "max_position_embeddings": 32768,
  "model_type": "mixtral",
  "num_attention_heads": 32,
  "num_experts_per_tok": 2,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "num_local_experts": 8,
  "output_router_logits": false,
  "router_aux_loss_coef": 0.02,
  "sliding_window": null,
  "tie_word_embeddings": false,
  "vocab_size": 32000
}
)";

const std::string qwen3_moe = R"({
  "architectures": ["Qwen3MoeForCausalLM"],
  "attention_bias": false,
  "decoder_sparse_step": 1,
  "head_dim": 128,
  "hidden_size": 2048,
  "intermediate_size": 6144,
  "max_position_embeddings": 40960,
  "max_window_layers": 48,
  "mlp_only_layers": [],
  "model_type": "qwen3_moe",
  "moe_intermediate_size": 768,
  "norm_topk_prob": true,
  "num_attention_heads": 32,
  "num_experts": 128,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 48,
  "num_key_value_heads": 4,
  "sliding_window": null,
  "tie_word_embeddings": false,
  "use_sliding_window": false,
  "vocab_size": 151936
}
)";

const std::string gpt2 = R"({
  "activation_function": "gelu_new",
  "architectures": ["GPT2LMHeadModel"],
  "attn_pdrop": 0.1,
  "embd_pdrop": 0.1,
  "model_type": "gpt2",
  "n_ctx": 1024,
  "n_embd": 768,
  "n_head": 12,
  "n_layer": 12,
  "n_positions": 1024,
  "resid_pdrop": 0.1,
  "vocab_size": 50257
}
)";

const std::string bert = R"({
  "architectures": ["BertForMaskedLM"],
  "attention_probs_dropout_prob": 0.1,
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1,
  "hidden_size": 768,
  "intermediate_size": 3072,
  "layer_norm_eps": 1e-12,
  "max_position_embeddings": 512,
  "model_type": "bert",
  "num_attention_heads": 12,
  "num_hidden_layers": 12,
  "pad_token_id": 0,
  "type_vocab_size": 2,
  "vocab_size": 30522
}
)";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("config.json: models have the parameters counted by their authors") {
  CHECK(parameters(shape_of(llama)) == 8'030'261'248);
  CHECK(parameters(shape_of(mixtral)) == 46'702'792'704);
  CHECK(parameters(shape_of(gpt2)) == 124'439'808);
  const ModelShape of_llama = shape_of(llama);
  CHECK(of_llama.name == "x");
  CHECK(of_llama.max_seq_len == 8192);
  CHECK(of_llama.default_seq_len == 4096);
  CHECK(of_llama.kv_heads == 8);
  // The number is that of transformers' BertForMaskedLM, which has no pooler.
  const ModelShape of_bert = shape_of(bert);
  CHECK(of_bert.layers == 12);
  CHECK(parameters(of_bert) == 109'514'298);
}

TEST_CASE("config.json: a width that no model has is refused") {
  const auto wide = [](const char* width) { return changed(llama, "14336", width); };
  CHECK(refusal(wide("10000000")).empty());
  CHECK_THAT(refusal(wide("10000001")), Catch::Contains("intermediate_size"));
}

TEST_CASE("config.json: a head tied to the embedding is not counted twice") {
  const std::string tied =
      changed(llama, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  CHECK(parameters(shape_of(llama)) - parameters(shape_of(tied)) == 128256L * 4096);
}

TEST_CASE("config.json: biases of matrices are tensors") {
  const std::string biased =
      changed(llama, "\"attention_bias\": false", "\"attention_bias\": true, \"mlp_bias\": true");
  // Each of 32 layers has biases of queries, keys and values, projection, gate, up and down.
  CHECK(parameters(shape_of(biased)) - parameters(shape_of(llama)) ==
        32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096));
  CHECK(tensor_count(shape_of(biased)) - tensor_count(shape_of(llama)) == 32 * 7);
}

TEST_CASE("config.json: Mistral's and Mixtral's sliding window applies to every layer") {
  const std::string mistral =
      changed(changed(llama, "\"llama\"", "\"mistral\""), "{", "{ \"sliding_window\": 4096,");
  CHECK(shape_of(mistral).window == 4096);
  CHECK(shape_of(mistral).window_every == 1);
  CHECK(shape_of(changed(llama, "\"llama\"", "\"mistral\"")).window == 0);
  CHECK(shape_of(changed(mixtral, "\"sliding_window\": null", "\"sliding_window\": 4096")).window ==
        4096);
}

TEST_CASE("config.json: many small experts are described with their own widths") {
  const std::string text = description_of(qwen3_moe, "qwen/config.json");
  for (const char* line : {"name = 'qwen'\n", "family = 'moe'\n", "head_dim = 128\n", "ffn = 768\n",
                           "experts = 128\n", "experts_per_token = 8\n"})
    CHECK_THAT(text, Contains(line));
}

TEST_CASE("config.json: a missing, ill-typed or unmodelled part is one line with its place") {
  const std::pair<std::string, const char*> cases[] = {
      {changed(llama, "\"llama\"", "\"llamma\""),
       "config.json:11: model_type: unknown architecture 'llamma', did you mean 'llama'?"},
      {changed(llama, "\"llama\"", "\"mamba2\""),
       "model_type: mamba2 with layers of a state-space model (Mamba) is not modelled"},
      {changed(llama, "  \"model_type\": \"llama\",\n", ""), "config.json: model_type: is missing"},
      {changed(llama, "num_hidden_layers\"", "num_hidden_layer\""),
       "config.json:13: num_hidden_layer: unknown key, did you mean 'num_hidden_layers'?"},
      {changed(llama, "num_key_value_heads", "num_key_value_head"),
       "config.json:14: num_key_value_head: unknown key, did you mean 'num_key_value_heads'?"},
      {changed(llama, "\"hidden_size\": 4096", "\"hidden_size\": \"4096\""),
       "config.json:7: hidden_size: the text '4096' is not a whole number in range"},
      {changed(llama, "\"hidden_size\": 4096", "\"hidden_size\": -1"), "hidden_size: -1 is not"},
      {changed(llama, "\"hidden_size\": 4096", "\"hidden_size\": 1e30"), "(allowed: 1 to 1000000)"},
      {changed(llama, "\"hidden_size\": 4096", "\"hidden_size\": 4100"), "attention of 32 heads"},
      {changed(llama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7"),
       "32 heads are not divisible by 7"},
      {changed(qwen3_moe, "\"attention_bias\": false", "\"attention_bias\": true"),
       "config.json:3: attention_bias: a bias of matrices is not modelled (allowed: false)"},
      {changed(llama, "\"attention_bias\": false", "\"attention_bias\": []"),
       "attention_bias: an array is not true or false"},
      {changed(changed(qwen3_moe, "\"sliding_window\": null", "\"sliding_window\": 4096"),
               "\"use_sliding_window\": false", "\"use_sliding_window\": true"),
       "sliding_window: attention within a window"},
      {changed(mixtral, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9"), "1 to 8"},
      {changed(qwen3_moe, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [3]"),
       "mlp_only_layers: a list of layers without experts"},
      {changed(gpt2, "\"n_head\": 12", "\"n_head\": 11"), "n_embd 768 is not divisible by 11"},
      {changed(gpt2, "\"attn_pdrop\": 0.1", "\"attn_pdrop\": 7"),
       "attn_pdrop: 7 is not a fraction"},
      {changed(llama, "\"max_position_embeddings\": 8192", "\"max_position_embeddings\": 16777217"),
       "(allowed: 1 to 16777216)"},
      {"[]", "config.json"},
      {"{ \"model_type\": 3 }", "model_type: 3 is not text"},
      {"{ \"model_type\": ", "config.json"}};
  for (const auto& [json, words] : cases) {
    const std::string sentence = refusal(json);
    CHECK_THAT(sentence, Contains(words));
    CHECK(sentence.find('\n') == std::string::npos);
  }
  // A dropout probability of 1 is allowed.
  CHECK(refusal(changed(gpt2, "\"attn_pdrop\": 0.1", "\"attn_pdrop\": 1")).empty());
}

// Regression: a key with a space was once compared with several list entries.
TEST_CASE("config.json: only whole names of keys are costless") {
  CHECK_FALSE(costless_reason("bos_token_id").empty());
  for (const char* key :
       {"", " ", " bos_token_id", "bos_token_id ", "bos_token", "torchscript tie_encoder_decoder"})
    CHECK(costless_reason(key).empty());
}

TEST_CASE("config.json: the keys that a file's ledger applies are in the list of all classes") {
  const KeysOfFormat keys = keys_read();
  for (const std::string& json : {llama, mixtral, qwen3_moe, gpt2, bert})
    for (const LedgerEntry& entry : key_ledger(json, "config.json")) {
      CAPTURE(entry.key);
      CHECK((entry.treatment != Treatment::applied || keys.applied.contains(entry.key) ||
             entry.key == "model_type" || entry.key == "architectures"));
    }
  CHECK(keys.named.contains("attn_logit_softcapping"));
}

TEST_CASE("config.json: any text gives a description or an error") {
  for (const std::string& whole : {llama, mixtral, qwen3_moe, gpt2, bert})
    for (std::size_t end = 0; end < whole.size(); end += 7) {
      const std::string cut = whole.substr(0, end);
      try {
        description_of(cut, "config.json");
      } catch (const Error& error) {
        CHECK(error.code() == Exit::usage);
      }
    }
  CHECK(description_of(llama, "'\"\\/../\n.json").find("name = 'model'") != std::string::npos);
}

}  // namespace
}  // namespace lambcast::huggingface
