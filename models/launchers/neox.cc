#include "models/launchers/neox.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lambcast::launchers {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const hjson::Value& value) {
  switch (value.kind) {
    case hjson::Kind::null:
      return nullptr;
    case hjson::Kind::boolean:
      return value.boolean;
    case hjson::Kind::number:
      return value.whole ? Json(*value.whole) : Json(value.number);
    case hjson::Kind::string:
      return value.text;
    case hjson::Kind::array: {
      Json list = Json::array();
      for (const hjson::Value& item : value.items) list.push_back(json_of(item));
      return list;
    }
    case hjson::Kind::object:
      break;
  }
  Json map = Json::object();
  for (const hjson::Member& member : value.members) map[member.key] = json_of(member.value);
  return map;
}

// Builds the description of the model, line by line.
class ModelLines {
 public:
  void set(std::string_view key, std::int64_t value) {
    text_ += fmt::format("{} = {}\n", key, value);
  }
  void set_true(std::string_view key, bool holds) {
    if (holds) text_ += fmt::format("{} = true\n", key);
  }
  void set_false(std::string_view key) { text_ += fmt::format("{} = false\n", key); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_ = "[model]\nname = \"gpt-neox\"\nfamily = \"decoder\"\njoined = true\n";
};

constexpr std::int64_t most_width = 1'000'000;

// Reads a whole number. A negative `otherwise` means that the key is required.
std::int64_t bounded(KeyReader& keys, std::string_view key, std::int64_t otherwise = -1) {
  const std::int64_t value = keys.whole(key).value_or(otherwise);
  if (value < 0)
    keys.refuse(key, "is missing", "one file with the model, the layout and the optimizer");
  if (value > most_width) keys.refuse(key, fmt::format("{} is too large", value), "up to 1000000");
  return value;
}

bool is_gated(const std::string& activation) {
  constexpr std::string_view gated[] = {"geglu", "reglu", "bilinear", "swiglu", "glu"};
  return std::ranges::find(gated, activation) != std::end(gated);
}

// A gated layer divides intermediate_size by three: gate and up each have a third of it.
void add_feed_forward(KeyReader& keys, std::int64_t hidden, ModelLines& model) {
  const bool gated = is_gated(keys.word("activation", "gelu"));
  const std::int64_t multiple = bounded(keys, "mlp_multiple_of", 1);
  const double factor = keys.number("expansion_factor").value_or(4);
  if (!(factor > 0 && factor <= 1000))
    keys.refuse("expansion_factor",
                fmt::format("a width of {} times the hidden size is not possible", factor),
                "up to 1000");
  std::int64_t width = bounded(keys, "intermediate_size",
                               static_cast<std::int64_t>(factor * static_cast<double>(hidden)));
  if (gated) width = width * 2 / 3 / 2;
  model.set("ffn", (width + multiple - 1) / multiple * multiple);
  model.set_true("ffn_bias", keys.truth("use_bias_in_mlp", true));
  if (!gated) model.set_false("gated");
}

// Expands "[[["global"], "all"]]" to a list of kinds of attention, in file order.
std::vector<std::string> attention_kinds(const hjson::Value* config) {
  std::vector<std::string> kinds;
  if (config == nullptr) return {"global"};
  for (const hjson::Value& group : config->items)
    if (!group.items.empty())
      for (const hjson::Value& kind : group.items.front().items) kinds.push_back(kind.text);
  return kinds;
}

void read_attention(KeyReader& keys) {
  const std::vector<std::string> kinds = attention_kinds(keys.find("attention_config"));
  const auto is = [](const char* kind) { return [kind](const auto& it) { return it == kind; }; };
  if (kinds.empty() || !std::ranges::all_of(kinds, [](const std::string& kind) {
        return kind == "global" || kind == "flash";
      }))
    keys.refuse("attention_config", fmt::format("{} is not modelled", fmt::join(kinds, ", ")),
                "global, flash");
  if (std::ranges::all_of(kinds, is("global")))
    keys.set("attention", "unfused");
  else if (!std::ranges::all_of(kinds, is("flash")))
    keys.leave_out("attention_config", "all layers are taken to have fused attention");
}

// The size of the vocabulary belongs to the tokenizer, and the file states at most its name.
void add_vocabulary(KeyReader& keys, ModelLines& model) {
  const std::string type = keys.text("tokenizer_type"), file = keys.text("vocab_file");
  const bool gpt2 = type == "GPT2BPETokenizer" || file.find("gpt2") != file.npos;
  const bool llama = type == "SPMTokenizer";
  if (file.find("gpt2") == file.npos && keys.find("vocab_file") != nullptr)
    keys.entry("vocab_file", Treatment::costless, "a file of the tokenizer");
  model.set("vocab", llama ? 32'000 : gpt2 ? 50'257 : 50'277);
  const std::int64_t multiple =
      bounded(keys, "make_vocab_size_divisible_by", 128) * bounded(keys, "model_parallel_size", 1);
  model.set("vocab_multiple", multiple);
  keys.leave_out("tokenizer_type",
                 fmt::format("the vocabulary is assumed to be that of {}: --set model.vocab=N",
                             llama  ? "Llama 2, 32000 words"
                             : gpt2 ? "GPT-2, 50257 words"
                                    : "GPT-NeoX-20B, 50277 words"));
}

std::string model_of(KeyReader& keys) {
  ModelLines model;
  const std::int64_t hidden = bounded(keys, "hidden_size");
  model.set("hidden", hidden);
  model.set("layers", bounded(keys, "num_layers"));
  const std::int64_t heads = bounded(keys, "num_attention_heads");
  model.set("heads", heads);
  model.set("kv_heads", keys.whole("num_kv_heads").value_or(heads));
  const std::int64_t length = bounded(keys, "seq_length");
  const std::int64_t positions =
      std::max(length, keys.whole("max_position_embeddings").value_or(length));
  model.set("max_seq_len", positions);
  keys.set("seq_len", fmt::format("{}", length));
  const std::string positional = keys.word("pos_emb", "learned");
  if (positional == "learned")
    model.set("positions", positions);
  else if (positional != "rotary" && positional != "none" && positional != "alibi")
    keys.refuse("pos_emb", fmt::format("{} is not modelled", positional),
                "learned, rotary, alibi, none");
  if (positional != "learned" && keys.find("max_position_embeddings") != nullptr)
    keys.entry("max_position_embeddings", Treatment::costless, "positions have no weights");
  add_feed_forward(keys, hidden, model);
  add_vocabulary(keys, model);
  const bool parallel = keys.truth("gpt_j_residual", false);
  const bool shared_norm = keys.truth("gpt_j_tied", false);
  model.set_true("parallel_block", parallel);
  if (parallel) model.set("norms", shared_norm ? 1 : 2);
  model.set_true("tied_head", !keys.truth("no_weight_tying", false));
  const bool bias = keys.truth("use_bias_in_attn_linear", true);
  model.set_true("qkv_bias", bias);
  model.set_true("projection_bias", bias);
  const bool norm_bias = keys.truth("use_bias_in_norms", true);
  const bool subtracts_mean = keys.word("norm", "layernorm") == "layernorm";
  model.set_true("norm_bias", subtracts_mean && norm_bias);
  if (!subtracts_mean && keys.find("use_bias_in_norms") != nullptr)
    keys.entry("use_bias_in_norms", Treatment::costless, "of LayerNorm");
  if (!norm_bias && keys.find("norm") != nullptr)
    keys.entry("norm", Treatment::costless, "norms without a bias have the same cost");
  const double hidden_dropout = keys.number("hidden_dropout").value_or(0);
  const double attention_dropout = keys.number("attention_dropout").value_or(0);
  model.set_true("dropout", hidden_dropout > 0 || attention_dropout > 0);
  if (const auto window = keys.whole("sliding_window_width")) model.set("window", *window);
  if (keys.whole("moe_num_experts").value_or(1) > 1)
    keys.refuse("moe_num_experts", "experts of GPT-NeoX are not modelled", "1");
  return model.take();
}

void read_layout(KeyReader& keys) {
  keys.copy("model_parallel_size", "tp");
  // A size of 0 selects an engine without a pipeline.
  keys.set("pp", fmt::format("{}", std::max<std::int64_t>(
                                       keys.whole("pipe_parallel_size", 0).value_or(0), 1)));
  keys.copy("global_num_gpus", "gpus");
  keys.copy("train_iters", "steps");
  if (keys.truth("sequence_parallel", false)) keys.set("sequence_parallel", "true");
  if (keys.whole("context_parallel_size").value_or(1) > 1)
    keys.refuse("context_parallel_size", "is not modelled in GPT-NeoX", "1");
  const bool recomputes = keys.truth("checkpoint_activations", false);
  if (recomputes) keys.set("recompute", "full");
  if (recomputes && keys.truth("checkpoint_in_cpu", false))
    keys.set("offload_activations", "checkpoints");
  if (const auto layers = keys.whole("checkpoint_num_layers"); recomputes && layers > 1)
    keys.leave_out("checkpoint_num_layers", "each layer is assumed to be a checkpoint");
  if (!keys.truth("partition_activations", false)) return;
  if (recomputes && keys.whole("model_parallel_size").value_or(1) > 1)
    keys.leave_out("partition_activations", "each rank is taken to keep whole checkpoints");
  else
    keys.entry("partition_activations", Treatment::costless, "no ranks could divide checkpoints");
}

// fp16 with "type": "bfloat16" means bf16, as does "precision": "bfloat16".
void add_precision(KeyReader& keys, Json& config) {
  const auto section = [&](const char* key) {
    const hjson::Value* value = keys.find(key);
    return value == nullptr ? Json() : json_of(*value);
  };
  Json fp16 = section("fp16"), bf16 = section("bf16");
  const std::string precision = keys.word("precision");
  const auto is_on = [](const Json& part) {
    return part.is_object() && part.value("enabled", Json(false)) == true;
  };
  if (fp16.contains("fp16")) keys.entry("fp16.fp16", Treatment::costless, "enabled says it");
  const bool narrow = fp16.is_object() && fp16.value("type", Json("")) == "bfloat16";
  const bool brain = is_on(bf16) || (is_on(fp16) && narrow) || precision == "bfloat16";
  if (precision == "bfloat16" && is_on(bf16))
    keys.entry("precision", Treatment::costless, "bf16 says it");
  if (brain && fp16.is_object())
    for (const auto& [key, value] : fp16.items())
      if (key != "enabled" && key != "type")
        keys.entry("fp16." + key, Treatment::costless, "bf16 scales no loss");
  if (brain) {
    config["bf16"] = {{"enabled", true}};
  } else if (is_on(fp16) || precision == "fp16") {
    if (!fp16.is_object()) fp16 = Json::object();
    for (const char* own : {"fp16", "type"}) fp16.erase(own);
    fp16["enabled"] = true;
    config["fp16"] = fp16;
  } else if (!precision.empty() && precision != "fp32") {
    keys.refuse("precision", fmt::format("unknown precision '{}'", precision),
                "fp16, fp32, bfloat16");
  }
}

// Returns the keys that GPT-NeoX passes to DeepSpeed (deepspeed_args.py).
std::string config_of(KeyReader& keys) {
  Json config = Json::object();
  if (const hjson::Value* extra = keys.find("deepspeed_extra_args")) config = json_of(*extra);
  for (const char* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
        "optimizer", "zero_optimization", "gradient_clipping", "data_types", "curriculum_learning",
        "zero_allow_untested_optimizer", "communication_data_type", "prescale_gradients",
        "sparse_gradients", "amp", "flops_profiler", "comms_logger", "elasticity"})
    if (const hjson::Value* value = keys.find(key)) config[key] = json_of(*value);
  // The batch may be in another file of the run, so flags must state it.
  if (!config.contains("train_batch_size") && !config.contains("train_micro_batch_size_per_gpu"))
    config["train_micro_batch_size_per_gpu"] = "auto";
  if (!config.contains("gradient_clipping")) config["gradient_clipping"] = 1.0;
  if (!config.contains("optimizer")) config["optimizer"] = {{"type", "Adam"}};
  add_precision(keys, config);
  return config.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void read_neox(KeyReader& keys, LauncherFile& result) {
  result.model = model_of(keys);
  read_layout(keys);
  read_attention(keys);
  result.config = config_of(keys);
  keys.finish(
      {{"logs, checkpoints, data or evaluation, outside a step",
        "save load checkpoint_* eval_* log_* logging_* steps_per_print keep_last_n_checkpoints "
        "tensorboard_* wandb_* use_wandb use_comet comet_* merge_file train_data_paths "
        "valid_data_paths test_data_paths data_path data_impl split num_workers "
        "extra_save_iters finetune tokenizer_* mmap_warmup print_vit comment profile_step_* "
        "memory_profiling_path text_gen_type maximum_tokens prompt_end temperature top_p top_k "
        "num_samples sample_input_file sample_output_file recompute wall_clock_breakdown"},
       {"a factor of the update",
        "lr_* min_lr weight_decay warmup warmup_iters init_method* output_layer_init_method "
        "decay_lr_to override_lr_scheduler rms_norm_epsilon layernorm_epsilon rotary_emb_base "
        "rotary_pct"},
       {"says how processes start",
        "distributed_backend hostfile launcher deepspeed_* master_* include exclude num_gpus"},
       {"the head is divided by columns either way", "output_layer_parallelism"},
       {"a kernel of DeepSpeed waits for a layer that is computed again", "synchronize_each_layer"},
       {"another key of the file decides", "attention_type"}});
}

}  // namespace lambcast::launchers
