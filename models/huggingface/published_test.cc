// Compares families of Hugging Face with the parameters counted in model cards and checkpoints.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "models/huggingface/config.h"
#include "models/huggingface/config_case.h"

namespace lambcast::huggingface {
namespace {

using Catch::Matchers::Contains;

// Returns a config.json of `type` with `keys`. `sizes` lists "layers hidden heads ffn vocab
// longest", which get their usual key names.
std::string config_of(const char* type, const char* sizes, const char* keys) {
  std::istringstream read(sizes);
  std::string json = fmt::format(R"({{"model_type": "{}")", type);
  for (const char* name : {"num_hidden_layers", "hidden_size", "num_attention_heads",
                           "intermediate_size", "vocab_size", "max_position_embeddings"})
    if (std::string value; read >> value) json += fmt::format(R"(, "{}": {})", name, value);
  return json + (*keys == 0 ? "" : ", ") + keys + "}";
}

struct PublishedSize {
  const char *type, *sizes, *keys;
  double parameters;
};

const PublishedSize published_sizes[] = {
    // Dense models: InternLM2-7B, Seed-OSS-36B, GLM-4-9B-0414, Minitron-8B, StableLM-2-1.6B, EXAONE
    // 4.0 1.2B, ERNIE 4.5 0.3B, AFM-4.5B, Apertus-8B, Command R7B, OLMo-7B, Qwen2.5-VL-7B (text).
    {"internlm2", "32 4096 32 14336 92544 32768", R"("num_key_value_heads": 8, "bias": false)",
     7.738e9},
    {"seed_oss", "64 5120 80 27648 155136 524288",
     R"("num_key_value_heads": 8, "head_dim": 128, "attention_bias": true,
        "attention_out_bias": false, "mlp_bias": false, "tie_word_embeddings": false)",
     36.151e9},
    {"glm4", "40 4096 32 13696 151552 32768",
     R"("num_key_value_heads": 2, "head_dim": 128, "attention_bias": true,
        "partial_rotary_factor": 0.5, "tie_word_embeddings": false)",
     9.400e9},
    {"nemotron", "32 4096 48 16384 256000 4096",
     R"("num_key_value_heads": 8, "head_dim": 128, "hidden_act": "relu2",
        "tie_word_embeddings": false)",
     8.272e9},
    {"stablelm", "24 2048 32 5632 100352 4096",
     R"("num_key_value_heads": 32, "use_qkv_bias": true, "use_parallel_residual": false)",
     1.6444e9},
    {"exaone4", "30 2048 32 4096 102400 65536",
     R"("num_key_value_heads": 8, "sliding_window": null, "tie_word_embeddings": true)", 1.279e9},
    {"ernie4_5", "18 1024 16 3072 103424 131072",
     R"("num_key_value_heads": 2, "head_dim": 128, "use_bias": false, "tie_word_embeddings": true)",
     0.3607e9},
    {"arcee", "36 2560 20 18432 128004 65536", R"("num_key_value_heads": 4, "head_dim": 128)",
     4.62e9},
    {"apertus", "32 4096 32 21504 131072 65536",
     R"("num_key_value_heads": 8, "hidden_act": "xielu", "qk_norm": true)", 8.053e9},
    {"cohere2", "32 4096 32 14336 256000 132096",
     R"("num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_pattern": 4)", 8.028e9},
    {"olmo", "32 4096 32 11008 50304 2048", R"("tie_word_embeddings": false)", 6.888e9},
    {"qwen2_5_vl", "28 3584 28 18944 152064 128000",
     R"("num_key_value_heads": 4, "tie_word_embeddings": false, "vision_config": {"depth": 32})",
     7.616e9},
    {"bloom", "", R"("hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880)",
     559.2e6},
    {"bloom", "", R"("n_embed": 14336, "n_layer": 70, "n_head": 112, "vocab_size": 250880)",
     176.247e9},
    {"bloom", "24 1024 16", R"("vocab_size": 250880)", 559.2e6},
    {"gpt_bigcode", "",
     R"("n_embd": 6144, "n_head": 48, "n_layer": 40, "n_positions": 8192, "n_inner": 24576,
        "vocab_size": 49152, "multi_query": true)",
     15.517e9},
    {"modernbert", "22 768 12 1152 50368 8192",
     R"("architectures": ["ModernBertForMaskedLM"], "attention_bias": false,
        "global_attn_every_n_layers": 3, "local_attention": 128)",
     149.66e6},
    // Models with experts: Qwen1.5-MoE-A2.7B, OLMoE-1B-7B, Phi-3.5-MoE, DeepSeek-V2-Lite and V2,
    // Moonlight, Kimi K2, GLM-4.5-Air without its predicting block, MiniMax-M2, Llama 4 Scout and
    // Maverick (text), ERNIE 4.5 21B-A3B, Granite 3.0 3B-A800M.
    {"qwen2_moe", "24 2048 16 5632 151936 8192",
     R"("num_key_value_heads": 16, "moe_intermediate_size": 1408, "num_experts": 60,
        "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4,
        "decoder_sparse_step": 1, "tie_word_embeddings": false)",
     14.316e9},
    {"olmoe", "16 2048 16 1024 50304 4096",
     R"("num_key_value_heads": 16, "num_experts": 64, "num_experts_per_tok": 8)", 6.919e9},
    {"phimoe", "32 4096 32 6400 32064 131072",
     R"("num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2,
        "attention_bias": true, "lm_head_bias": true, "sliding_window": 131072)",
     41.873e9},
    {"deepseek_v2", "27 2048 16 10944 102400 163840",
     R"("q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "moe_intermediate_size": 1408, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1)",
     15.706e9},
    {"deepseek_v2", "60 5120 128 12288 102400 163840",
     R"("q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "moe_intermediate_size": 1536, "n_routed_experts": 160,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1)",
     235.74e9},
    {"deepseek_v3", "27 2048 16 11264 163840 8192",
     R"("q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "moe_intermediate_size": 1408, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0)",
     15.96e9},
    {"kimi_k2", "61 7168 64 18432 163840 131072",
     R"("q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "moe_intermediate_size": 2048, "n_routed_experts": 384,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0)",
     1026.4e9},
    {"glm4_moe", "46 4096 96 10944 151552 131072",
     R"("num_key_value_heads": 8, "head_dim": 128, "moe_intermediate_size": 1408,
        "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "first_k_dense_replace": 1, "attention_bias": true, "use_qk_norm": false,
        "num_nextn_predict_layers": 0)",
     106.85e9},
    {"minimax_m2", "62 3072 48 1536 200064 196608",
     R"("num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 256,
        "num_experts_per_tok": 8, "use_qk_norm": true)",
     228.69e9},
    {"llama4_text", "48 5120 40 8192 202048 10485760",
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size_mlp": 16384,
        "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1)",
     107.77e9},
    {"llama4_text", "48 5120 40 8192 202048 1048576",
     R"("num_key_value_heads": 8, "head_dim": 128, "intermediate_size_mlp": 16384,
        "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2)",
     400.71e9},
    {"ernie4_5_moe", "28 2560 20 12288 103424 131072",
     R"("num_key_value_heads": 4, "head_dim": 128, "moe_intermediate_size": 1536,
        "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1, "tie_word_embeddings": true)",
     21.83e9},
    {"granitemoe", "32 1536 24 512 49155 4096",
     R"("num_key_value_heads": 8, "num_local_experts": 40, "num_experts_per_tok": 8,
        "tie_word_embeddings": true)",
     3.30e9},
    // Encoders: BERT-Base, RoBERTa-Base, XLM-R-Base, DistilBERT, ELECTRA-Base, T5-Base,
    // Flan-T5-Base, mT5-Small, BART-Base and Large, ViT-B/16; ELECTRA-Small, ALBERT-Base and
    // XXLarge, DeBERTa-Base, DeBERTa-v3-Base and Large as transformers counts their classes.
    {"electra", "12 256 4 1024 30522 512",
     R"("architectures": ["ElectraModel"], "embedding_size": 128)", 13.483e6},
    {"albert", "12 768 12 3072 30000 512",
     R"("architectures": ["AlbertModel"], "embedding_size": 128, "num_hidden_groups": 1,
        "inner_group_num": 1)",
     11.684e6},
    {"albert", "12 4096 64 16384 30000 512",
     R"("architectures": ["AlbertModel"], "embedding_size": 128)", 222.596e6},
    {"deberta", "12 768 12 3072 50265 512",
     R"("relative_attention": true, "pos_att_type": "c2p|p2c", "max_relative_positions": -1,
        "position_biased_input": false, "type_vocab_size": 0, "architectures": ["DebertaModel"])",
     138.602e6},
    {"deberta-v2", "12 768 12 3072 128100 512",
     R"("relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
        "share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false,
        "type_vocab_size": 0, "architectures": ["DebertaV2Model"])",
     183.832e6},
    {"deberta-v2", "24 1024 16 4096 128100 512",
     R"("relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
        "share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false,
        "type_vocab_size": 0, "architectures": ["DebertaV2Model"])",
     434.012e6},
    {"bert", "12 768 12 3072 30522 512", R"("architectures": ["BertForMaskedLM"])", 109.514e6},
    {"roberta", "12 768 12 3072 50265 514",
     R"("architectures": ["RobertaForMaskedLM"], "type_vocab_size": 1)", 124.697e6},
    {"xlm-roberta", "12 768 12 3072 250002 514",
     R"("architectures": ["XLMRobertaForMaskedLM"], "type_vocab_size": 1)", 278.295e6},
    {"distilbert", "",
     R"("architectures": ["DistilBertForMaskedLM"], "dim": 768, "n_heads": 12, "n_layers": 6,
        "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512)",
     66.986e6},
    {"electra", "12 768 12 3072 30522 512",
     R"("architectures": ["ElectraForSequenceClassification"], "embedding_size": 768)", 109.483e6},
    {"t5", "", R"("d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12,
        "vocab_size": 32128, "relative_attention_num_buckets": 32, "n_positions": 512)",
     222.904e6},
    {"t5", "", R"("d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_heads": 12,
        "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false,
        "num_decoder_layers": 12)",
     247.578e6},
    {"mt5", "", R"("d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_heads": 6,
        "vocab_size": 250112, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false,
        "num_decoder_layers": 8)",
     300.177e6},
    {"bart", "", R"("d_model": 768, "encoder_layers": 6, "decoder_layers": 6,
        "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072,
        "decoder_ffn_dim": 3072, "vocab_size": 50265, "max_position_embeddings": 1024)",
     139.420e6},
    {"bart", "", R"("d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
        "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096,
        "decoder_ffn_dim": 4096, "vocab_size": 50265, "max_position_embeddings": 1024)",
     406.291e6},
    {"vit", "12 768 12 3072", R"("architectures": ["ViTForImageClassification"],
        "image_size": 224, "patch_size": 16, "num_labels": 1000, "num_channels": 3,
        "qkv_bias": true)",
     86.568e6},
};

TEST_CASE("config.json: families have the parameters of their published models") {
  for (const PublishedSize& model : published_sizes) {
    const std::string json = config_of(model.type, model.sizes, model.keys);
    INFO(json);
    CHECK(static_cast<double>(parameters(shape_of(json))) ==
          Approx(model.parameters).epsilon(0.005));
  }
}

TEST_CASE("config.json: ALBERT computes each layer with one layer's weights") {
  const char* keys = R"("architectures": ["AlbertModel"], "embedding_size": 128)";
  const ModelShape twelve = shape_of(config_of("albert", "12 768 12 3072 30000 512", keys));
  const ModelShape one = shape_of(config_of("albert", "1 768 12 3072 30000 512", keys));
  CHECK(parameters(twelve) == parameters(one));
  CHECK(twelve.blocks.size() == 12);
  const auto of_blocks = [](const ModelShape& shape) {
    return (forward_flops(shape, 128) - outside_forward_flops(shape, 128)).value();
  };
  CHECK(of_blocks(twelve) == Approx(12 * of_blocks(one)));
}

TEST_CASE("config.json: DeBERTa multiplies queries and keys by vectors of distances") {
  const auto flops = [](const char* keys) {
    const std::string json =
        config_of("deberta-v2", "1 768 12 3072 128100 512",
                  fmt::format(R"("relative_attention": true, "pos_att_type": "p2c|c2p",
                       "architectures": ["DebertaV2Model"]{})",
                              keys)
                      .c_str());
    return forward_flops(shape_of(json), 128).value();
  };
  // 256 more vectors of 768 elements, in one product with queries and one with keys, for 128
  // tokens.
  CHECK(flops(R"(, "position_buckets": 256)") - flops(R"(, "position_buckets": 128)") ==
        Approx(2.0 * 2 * 256 * 768 * 128));
  CHECK_THAT(refusal(R"({"model_type": "deberta-v2", "relative_attention": true,
                         "pos_att_type": "c2p"})"),
             Contains("pos_att_type"));
}

std::string description_or_refusal(const std::string& json) {
  try {
    return description_of(json, "c.json");
  } catch (const Error& error) {
    return error.what();
  }
}

// An applied key changes the description if its value changes, or is refused. Any other key is not
// read, and the ledger states why.
TEST_CASE("config.json: no key is ignored silently") {
  for (const PublishedSize& model : published_sizes) {
    const std::string json = config_of(model.type, model.sizes, model.keys);
    const std::string whole = description_of(json, "c.json");
    for (const LedgerEntry& entry : key_ledger(json, "c.json")) {
      INFO(json << " " << entry.key);
      const std::string quoted = fmt::format(R"("{}":)", entry.key);
      const std::size_t key = json.find(quoted), value = key + quoted.size();
      REQUIRE(key != std::string::npos);
      if (entry.treatment != Treatment::applied) {
        CHECK_FALSE(entry.reason.empty());
        CHECK(description_of(std::string(json).insert(key + 1, "zz_other_"), "c.json") == whole);
        continue;
      }
      const std::size_t end = json.find_first_of(",}", value);
      bool changes = false;
      for (const char* other : {"false", "true", "3", "null", "0.1", "[]", R"(["OtherModel"])"})
        changes = changes || description_or_refusal(std::string(json).replace(
                                 value, end - value, std::string(" ") + other)) != whole;
      CHECK(changes);
    }
  }
  const std::vector<std::string> told =
      left_out(config_of("llama", "2 64 4 128 1000 32", R"("rope_theta": 1e6, "zzz": 3, "yyy": 0)"),
               "c.json");
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Contains("c.json:1: zzz: unknown key: not applied"));
}

}  // namespace
}  // namespace lambcast::huggingface
