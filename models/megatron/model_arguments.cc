#include "models/megatron/model_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "models/megatron/vocabulary.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

bool is_rotary(const ArgumentReader& read) {
  return read.flag("use-rotary-position-embeddings") ||
         read.word("position-embedding-type").value_or("learned_absolute") != "learned_absolute";
}

std::int64_t query_groups(const ArgumentReader& read, std::int64_t heads) {
  if (read.has("num-key-value-heads")) return read.needed("num-key-value-heads", heads);
  if (!read.flag("group-query-attention")) return heads;
  return read.whole("num-query-groups", heads).value_or(1);
}

std::int64_t longest_sequence(const ArgumentReader& read) {
  const std::int64_t length = read.needed("seq-length", 1 << 24);
  return std::max(length, read.whole("max-position-embeddings", 1 << 24).value_or(length));
}

std::int64_t expert_interval(const ArgumentReader& read) {
  return read.whole("expert-interval", 10'000).value_or(2);
}

// Returns the vocabulary of the tokenizer's type, or the one indicated by the names of its files.
// Only GPT-2 has --merge-file, and pretrain_bert.py's usual tokenizer is BERT's uncased one.
std::optional<std::int64_t> words_of_tokenizer(const ArgumentReader& read) {
  const auto taken = [&](const std::string& key, const Vocabulary& of) {
    read.note(key, "vocab-size-assumed",
              fmt::format("--vocab-size not given: taken as {}, {}'s; try: --set model.vocab=N",
                          of.words, of.tokenizer));
    return of.words;
  };
  const auto type = read.word("tokenizer-type");
  if (type)
    if (const auto of = vocabulary_of_type(*type)) return taken("tokenizer-type", *of);
  for (const char* key : {"tokenizer-name-or-path", "tokenizer-model", "vocab-file"})
    for (const std::string& name : read.values(key))
      if (const auto of = vocabulary_of_name(name)) return taken(key, *of);
  if (!type && read.has("merge-file"))
    return taken("merge-file", *vocabulary_of_type("GPT2BPETokenizer"));
  if (!type && read.is_bert() && read.has("vocab-file"))
    return taken("vocab-file", *vocabulary_of_type("BertWordPieceLowerCase"));
  return std::nullopt;
}

class ModelWriter {
 public:
  explicit ModelWriter(const ArgumentReader& read)
      : read_(read), deepspeed_(read.flag("deepspeed")) {}

  ModelDescription write() {
    model();
    return {std::move(toml_), lacks_vocabulary_};
  }

 private:
  void line(std::string_view key, std::int64_t value) {
    toml_ += fmt::format("{} = {}\n", key, value);
  }
  void yes(std::string_view key) { toml_ += fmt::format("{} = true\n", key); }

  // Sets the parts of a dense decoder.
  void parts(bool gated) {
    const bool biases = !read_.flag("disable-bias-linear");
    if (biases || read_.flag("add-qkv-bias")) yes("qkv_bias");
    if (!gated) toml_ += "gated = false\njoined = true\n";
    if (biases) toml_ += "projection_bias = true\nffn_bias = true\n";
    if (read_.word("normalization").value_or("LayerNorm") == "LayerNorm") yes("norm_bias");
    if (!is_rotary(read_)) line("positions", longest_sequence(read_));
  }

  // Adds findings for parts that a model of experts does not have: it has RMS norms, rotary
  // positions and no biases.
  void name_other_parts() {
    const auto other = [&](const char* key, bool differs, const char* sentence) {
      if (read_.has(key) && differs) read_.note(key, "not-modelled", sentence);
    };
    other("num-experts", !read_.flag("disable-bias-linear"),
          "matrices are taken to have no biases, as with --disable-bias-linear");
    other("add-qkv-bias", true, "matrices are taken to have no biases");
    other("normalization", read_.word("normalization") != "RMSNorm",
          "norms are assumed to be RMSNorm");
    other(read_.has("position-embedding-type") ? "position-embedding-type" : "num-experts",
          !is_rotary(read_), "rotary position embeddings are assumed");
  }

  void model() {
    const std::int64_t hidden = read_.needed("hidden-size", 1'000'000);
    const std::int64_t heads = read_.needed("num-attention-heads", 10'000);
    const std::int64_t channels = read_.whole("kv-channels", 10'000).value_or(hidden / heads);
    // BLOOM's fork names the activation (--glu-activation); its gate doubles the first product.
    const bool gated =
        read_.flag("swiglu") || read_.flag("quick-geglu") || read_.has("glu-activation");
    const bool experts = has_experts(read_), bert = read_.is_bert();
    if (bert && gated) read_.refuse("swiglu", "a BERT with gates");
    const bool own_width = channels * heads != hidden;
    if (own_width && (bert || !(read_.has("kv-channels") || experts)))
      read_.refuse(read_.has("kv-channels") ? "kv-channels" : "num-attention-heads",
                   fmt::format("attention of {} heads x {} does not match a hidden size of {}",
                               heads, channels, hidden));
    const bool normed = read_.flag("qk-layernorm");
    const bool gpt = !gated && !own_width && !normed && !is_rotary(read_) &&
                     query_groups(read_, heads) == heads &&
                     !read_.flag("untie-embeddings-and-output-weights");
    if (experts && !gated && !(gpt && deepspeed_))
      read_.refuse("num-experts", "experts without --swiglu");
    if (experts && gated && deepspeed_ && expert_interval(read_) > 1)
      read_.refuse("num-experts", "experts in some layers of a model with --swiglu");
    const char* family = bert                               ? "bert"
                         : gpt                              ? "gpt"
                         : experts && (own_width || normed) ? "moe"
                         : experts                          ? "moe-llama"
                         : gated && !own_width              ? "llama"
                                                            : "decoder";
    toml_ = fmt::format(
        "[model]\nname = 'megatron-{}'\nfamily = '{}'\nkind = 'published'\n"
        "source = 'arguments of Megatron-LM'\n",
        family, family);
    line("layers", read_.needed("num-layers", 10'000));
    line("hidden", hidden);
    line("heads", heads);
    if (own_width) line("head_dim", channels);
    if (!gpt && !bert) {
      line("kv_heads", query_groups(read_, heads));
      if (normed) yes("qk_norm");
      if (experts)
        name_other_parts();
      else
        parts(gated);
    }
    window();
    feed_forward(hidden, gated, experts);
    vocabulary(!gpt && !bert);
    if (!gated)
      toml_ += fmt::format("dropout = {}\n", read_.real("hidden-dropout", 0.1) > 0 ||
                                                 read_.real("attention-dropout", 0.1) > 0);
    toml_ += "flash_attention = true\n";
    // Megatron's BERT has norms first, and its head computes every token
    // (core/models/bert/bert_model.py).
    if (bert) toml_ += "pre_layer_norm = true\nmasked_fraction = 1.0\n";
  }

  // Reads --window-size BACK,AHEAD for every layer, or with --window-attn-skip-freq N for all
  // except each N-th (core/transformer/utils.py, is_layer_window_attention).
  void window() {
    if (!read_.has("window-size")) return;
    const std::string text = fmt::format("{}", fmt::join(read_.values("window-size"), ","));
    std::int64_t back = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), back);
    if (error != std::errc() || back < 1 || back > 1 << 24 ||
        (std::string_view(end, text.data() + text.size()) != ",0"))
      fail_input(read_.where("window-size"), fmt::format("{} is not a window", text),
                 "\"TOKENS,0\": tokens back, none ahead");
    const auto whole_every = read_.whole("window-attn-skip-freq", 1 << 20);
    if (whole_every == 1) return;
    line("window", back);
    line("window_every", whole_every.value_or(1));
    line("window_layers", whole_every.value_or(2) - 1);
  }

  // Megatron-LM's default with --swiglu is 8 h / 3, rounded down to a multiple of 64.
  void feed_forward(std::int64_t hidden, bool gated, bool experts) {
    const std::int64_t usual = read_.flag("swiglu") ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
    const std::int64_t dense = read_.whole("ffn-hidden-size", 10'000'000).value_or(usual);
    line("ffn", experts ? read_.whole("moe-ffn-hidden-size", 10'000'000).value_or(dense) : dense);
    if (!experts) return;
    const std::int64_t count = read_.needed("num-experts", 4096);
    line("experts", count);
    if (deepspeed_) {
      line("experts_per_token", read_.whole("topk", count).value_or(1));
      if (!gated) line("sparse_every", expert_interval(read_));
    } else {
      line("experts_per_token", read_.whole("moe-router-topk", count).value_or(2));
    }
  }

  void vocabulary(bool decoder) {
    auto words = read_.whole("vocab-size", 10'000'000);
    if (!words) words = read_.whole("pad-vocab-size-to", 10'000'000);
    if (!words) words = words_of_tokenizer(read_);
    lacks_vocabulary_ = !words;
    if (words) line("vocab", read_.whole("pad-vocab-size-to", 10'000'000).value_or(*words));
    line("vocab_multiple", read_.whole("make-vocab-size-divisible-by", 1'000'000).value_or(128) *
                               read_.whole("tensor-model-parallel-size").value_or(1));
    const std::int64_t length = read_.needed("seq-length", 1 << 24);
    line("max_seq_len", longest_sequence(read_));
    line("default_seq_len", length);
    if (decoder && !read_.flag("untie-embeddings-and-output-weights")) yes("tied_head");
  }

  const ArgumentReader& read_;
  bool deepspeed_;
  std::string toml_;
  bool lacks_vocabulary_ = false;
};

}  // namespace

bool has_experts(const ArgumentReader& read) {
  const bool one =
      read.flag("deepspeed") && read.values("num-experts") == std::vector<std::string>{"1"};
  return read.has("num-experts") && !one;
}

ModelDescription describe_model(const ArgumentReader& read) { return ModelWriter(read).write(); }

}  // namespace lambcast::megatron
