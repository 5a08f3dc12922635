// Encoders, encoder-decoders and image transformers.
// Source: transformers 4.57, models/*/configuration_*.py and modeling_*.py.
#include <fmt/format.h>

#include <algorithm>

#include "models/huggingface/architectures.h"

namespace lambcast::huggingface {
namespace {

// Key names that an architecture uses for the sizes of its blocks.
struct Names {
  const char *hidden, *heads, *layers, *ffn;
};

std::int64_t add_blocks(ConfigReader& config, const Names& names, Description& model,
                        const char* layers = "layers") {
  const std::int64_t hidden = config.whole(names.hidden, 1, most_width);
  const std::int64_t heads = config.whole(names.heads, 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where(names.heads),
               fmt::format("{} {} is not divisible by {} heads", names.hidden, hidden, heads));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set(layers, config.whole(names.layers, 1, 10'000));
  model.set("ffn", config.whole(names.ffn, 1, most_ffn));
  return hidden;
}

void add_words(ConfigReader& config, Description& model) {
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  model.set("pre_layer_norm", false);
}

constexpr Names bert_names{"hidden_size", "num_attention_heads", "num_hidden_layers",
                           "intermediate_size"};

// Reads the parts that are the same as in BERT. RoBERTa's first two positions are padding
// (`unused_positions`).
void add_bert(ConfigReader& config, std::int64_t unused_positions, Description& model) {
  add_blocks(config, bert_names, model);
  add_words(config, model);
  model.set("type_vocab", config.optional_whole("type_vocab_size", 1, 1000).value_or(2));
  const std::int64_t longest = config.whole("max_position_embeddings", 1, 1 << 24);
  model.set("max_seq_len", longest);
  model.set("default_seq_len", std::max<std::int64_t>(1, longest - unused_positions));
  read_dropout(config, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, model);
}

}  // namespace

void describe_roberta(ConfigReader& config, Description& model) { add_bert(config, 2, model); }

void describe_electra(ConfigReader& config, Description& model) {
  model.set("embedding", config.optional_whole("embedding_size", 1, most_width).value_or(128));
  add_bert(config, 0, model);
}

void describe_albert(ConfigReader& config, Description& model) {
  for (const char* key : {"num_hidden_groups", "inner_group_num"})
    if (config.optional_whole(key, 1, 10'000).value_or(1) != 1)
      config.refuse(key, "more than one block of weights", "1");
  describe_electra(config, model);
  model.set("shared_block", true);
}

// DeBERTa multiplies queries and keys by vectors of distances. Version 2, also used by DeBERTa-v3,
// groups far distances into buckets, and may project the vectors by the weights of its queries and
// keys.
void describe_deberta(ConfigReader& config, Description& model) {
  const bool first = config.word("model_type") == "deberta";
  if (!config.truth("relative_attention", false))
    config.refuse("relative_attention", "attention without distances", "true");
  const hjson::Value* terms = config.find("pos_att_type");
  std::string named = terms == nullptr ? "" : terms->text;
  if (terms != nullptr)
    for (const hjson::Value& item : terms->items) named += item.text + "|";
  if (named.find("c2p") == named.npos || named.find("p2c") == named.npos)
    config.refuse("pos_att_type", "attention without both products of distances", "c2p|p2c");
  if (config.optional_whole("conv_kernel_size", 0, 10'000).value_or(0) > 0)
    config.refuse("conv_kernel_size", "a convolution next to the first block", "0");
  // Version 1 has no buckets. Without buckets, the largest distance is max_relative_positions, or
  // max_position_embeddings if that is not set.
  std::int64_t far =
      first ? -1 : config.optional_whole("position_buckets", -1, 1 << 24).value_or(-1);
  if (far < 1) far = config.optional_whole("max_relative_positions", -1, 1 << 24).value_or(-1);
  if (far < 1) far = config.whole("max_position_embeddings", 1, 1 << 24);
  model.set("distances", 2 * far);
  model.set("distance_weights", first || !config.truth("share_att_key", false));
  model.set("distance_norm",
            !first && config.has("norm_rel_ebd") &&
                config.word("norm_rel_ebd").find("layer_norm") != std::string::npos);
  model.set("learned_positions", config.truth("position_biased_input", true));
  model.set("key_bias", !first);
  if (!config.has("architectures")) model.set("pooler", false);
  const std::int64_t hidden = config.whole("hidden_size", 1, most_width);
  const std::int64_t heads = config.whole("num_attention_heads", 1, 10'000);
  if (config.optional_whole("attention_head_size", 1, 10'000).value_or(hidden / heads) * heads !=
      hidden)
    config.refuse("attention_head_size", "heads that do not add up to hidden_size",
                  fmt::format("{}", hidden / heads));
  add_blocks(config, bert_names, model);
  add_words(config, model);
  if (const auto types = config.optional_whole("type_vocab_size", 0, 1000); types.value_or(0) > 0)
    model.set("type_vocab", *types);
  add_lengths(config, "max_position_embeddings", model);
  read_dropout(config, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, model);
}

void describe_distilbert(ConfigReader& config, Description& model) {
  add_blocks(config, {"dim", "n_heads", "n_layers", "hidden_dim"}, model);
  add_words(config, model);
  model.set("type_vocab", std::int64_t{1});
  add_lengths(config, "max_position_embeddings", model);
  read_dropout(config, {"dropout", "attention_dropout"}, model);
}

void describe_t5(ConfigReader& config, Description& model) {
  constexpr std::int64_t usual_length = 512;  // length of its pre-training; no key states it
  model.set("hidden", config.whole("d_model", 1, most_width));
  model.set("heads", config.whole("num_heads", 1, 10'000));
  model.set("head_dim", config.whole("d_kv", 1, 10'000));
  model.set("ffn", config.whole("d_ff", 1, most_ffn));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  const std::int64_t layers = config.whole("num_layers", 1, 10'000);
  model.set("encoder_layers", layers);
  model.set("decoder_layers",
            config.optional_whole("num_decoder_layers", 1, 10'000).value_or(layers));
  model.set("relative_buckets",
            config.optional_whole("relative_attention_num_buckets", 1, 1'000'000).value_or(32));
  const bool gated =
      config.has("feed_forward_proj") && config.word("feed_forward_proj").starts_with("gated-");
  model.set("gated", gated);
  if (!config.truth("tie_word_embeddings", true)) model.set("tied_head", false);
  model.set("max_seq_len", config.optional_whole("n_positions", 1, 1 << 24).value_or(usual_length));
  model.set("dropout", config.has("dropout_rate") ? config.share("dropout_rate") > 0 : true);
}

// BART and mBART have equal stacks, learned positions with two extra rows, and biases everywhere.
void describe_bart(ConfigReader& config, Description& model) {
  const std::int64_t hidden = add_blocks(
      config, {"d_model", "encoder_attention_heads", "encoder_layers", "encoder_ffn_dim"}, model,
      "encoder_layers");
  const std::int64_t heads = config.whole("encoder_attention_heads", 1, 10'000);
  for (const auto& [decoders, encoders] :
       {std::pair("decoder_ffn_dim", "encoder_ffn_dim"),
        std::pair("decoder_attention_heads", "encoder_attention_heads")})
    if (config.whole(decoders, 1, most_ffn) != config.whole(encoders, 1, most_ffn))
      config.refuse(decoders, "a decoder of other blocks than the encoder",
                    fmt::format("{}", config.whole(encoders, 1, most_ffn)));
  model.set("head_dim", hidden / heads);
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  model.set("decoder_layers", config.whole("decoder_layers", 1, 10'000));
  add_lengths(config, "max_position_embeddings", model);
  model.set("positions", config.whole("max_position_embeddings", 1, 1 << 24) + 2);
  model.set("biases", true);
  model.set("target_fraction", 1.0);
  read_dropout(config, {"dropout", "attention_dropout"}, model);
}

void describe_vit(ConfigReader& config, Description& model) {
  add_blocks(config, bert_names, model);
  model.set("image_size", config.optional_whole("image_size", 1, 10'000).value_or(224));
  if (!config.truth("qkv_bias", true))
    config.refuse("qkv_bias", "attention without biases", "true");
  if (config.optional_whole("num_channels", 1, 1000).value_or(3) != 3)
    config.refuse("num_channels", "images of other than three colours", "3");
  model.set("patch_size", config.optional_whole("patch_size", 1, 10'000).value_or(16));
  const hjson::Value* labels = config.find("id2label");
  const bool named = labels != nullptr && !labels->members.empty();
  const auto count = config.optional_whole("num_labels", 1, 10'000'000).value_or(2);
  model.set("classes", named ? static_cast<std::int64_t>(labels->members.size()) : count);
  read_dropout(config, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, model);
}

}  // namespace lambcast::huggingface
