#include "models/launchers/trainers.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/launchers/accelerate.h"

namespace lambcast::launchers {
namespace {

// Reads the optimizer by its name in transformers 4.57, training_args.py (OptimizerNames).
void read_optimizer(KeyReader& keys, std::string_view key) {
  std::string name = keys.word(key, "adamw_torch_fused");
  if (name.starts_with("paged_")) name.erase(0, 6);
  const bool narrow = name.ends_with("8bit") || name.ends_with("4bit");
  constexpr std::pair<std::string_view, const char*> families[] = {
      {"galore", "galore_adamw8bit"},
      {"adamw", "adamw"},
      {"lion", "lion"},
      {"adafactor", "adafactor"},
      {"muon", "muon"},
      {"sgd", "sgd_momentum"},
      {"schedule_free_adamw", "schedule_free_adamw"}};
  const auto family = std::ranges::find_if(
      families, [&](const auto& known) { return name.starts_with(known.first); });
  if (family == std::end(families))
    keys.refuse(key, fmt::format("optimizer {} is not modelled", name),
                "adamw_torch, adamw_torch_fused, paged_adamw_32bit, adamw_8bit, lion_32bit, "
                "adafactor, muon, schedule_free_adamw, sgd");
  keys.set("optimizer", family->second);
  if (narrow && family->first != "galore")
    keys.leave_out(key, "states of 8 bits and fewer are assumed to be of 32");
}

void read_length(KeyReader& keys, std::string_view epochs) {
  const auto steps = keys.whole("max_steps", -1);
  if (steps.value_or(-1) > 0)
    keys.set("steps", fmt::format("{}", *steps));
  else if (keys.number(epochs))
    keys.leave_out(epochs, "the steps of an epoch depend on the data: give --steps");
}

void read_batch(KeyReader& keys, std::string_view micro, std::int64_t usual_micro) {
  keys.set("micro_batch", fmt::format("{}", keys.whole(micro).value_or(usual_micro)));
  keys.set("grad_accum", fmt::format("{}", keys.whole("gradient_accumulation_steps").value_or(1)));
  if (const auto norm = keys.number("max_grad_norm"))
    keys.set("gradient_clipping", fmt::format("{}", *norm));
}

// Sets the modules that get adapters: those of attention, or all. `given` lists their names.
void set_targets(KeyReader& keys, std::string_view key, const std::string& given) {
  const auto has = [&](const char* name) { return given.find(name) != given.npos; };
  const bool feed_forward = given == "all" || has("all-linear") || has("gate") || has("up_proj") ||
                            has("down_proj") || has("fc") || has("mlp") || has("w1");
  keys.set("lora_targets", feed_forward ? "all" : "attention");
  const bool whole = feed_forward
                         ? given == "all" || has("all-linear") ||
                               (has("q_proj") && has("o_proj") && has("down_proj"))
                         : has("q_proj") && has("k_proj") && has("v_proj") && has("o_proj");
  if (!whole)
    keys.leave_out(key, feed_forward
                            ? "all products of attention and feed-forward are assumed to be adapted"
                            : "all products of attention are assumed to be adapted");
}

std::string joined(const hjson::Value* value) {
  if (value == nullptr) return {};
  std::string all = value->text;
  for (const hjson::Value& item : value->items) all += item.text + ",";
  return all;
}

void read_adapters(KeyReader& keys, std::string_view rank, std::string_view targets,
                   std::int64_t usual_rank, bool all) {
  keys.set("lora_rank", fmt::format("{}", keys.whole(rank).value_or(usual_rank)));
  const std::string given = joined(keys.find(targets));
  set_targets(keys, targets, all ? "all" : given);
}

// 4 bits mean NF4, in both programs with double quantization unless the file disables it
// (models/shape/adapters.h).
void set_bits(KeyReader& keys, std::int64_t bits, bool twice = true) {
  keys.set("model.quantized_bits", bits != 4 ? fmt::format("{}", bits)
                                   : twice   ? "4.126953125"
                                             : "4.5");
}

// Sets the DeepSpeed JSON that the file names; without one, PyTorch's DDP is used.
void read_engine(KeyReader& keys, LauncherFile& result) {
  result.config_path = keys.text("deepspeed");
  if (result.config_path.empty()) keys.set("framework", "pytorch");
}

constexpr CostlessKeys trainer_keys{
    "logs, checkpoints, data or evaluation, outside a step",
    "output_dir overwrite_output_dir logging_* save_* eval_* evaluation_* do_* report_to run_name "
    "plot_loss seed data_seed dataset* dataloader_* preprocessing_* max_samples template val_* "
    "per_device_eval_batch_size evals_per_epoch saves_per_epoch resume_* auto_resume_* "
    "predict_with_generate freeze_vision_tower freeze_multi_modal_projector freeze_mm_modules "
    "trust_remote_code hub_* push_to_hub* load_best_model_at_end metric_for_best_model "
    "greater_is_better ddp_timeout overwrite_cache cache_dir debug strict"};
constexpr CostlessKeys unused_keys{"another key of the file decides",
                                   "num_epochs num_train_epochs"};
constexpr CostlessKeys model_keys{"--model gives the model",
                                  "model_name_or_path base_model base_model_config model_type"};
constexpr CostlessKeys adapter_keys{"there is no adapter", "lora_*"};
constexpr CostlessKeys update_keys{
    "a factor of the update",
    "learning_rate lr_* cosine_* warmup_* weight_decay adam_* label_smoothing_* "
    "lora_alpha lora_dropout lora_bias loraplus_* use_rslora init_lora_weights pref_* simpo_* "
    "kto_* dpo_label_smoothing dpo_loss_type dpo_loss_weights rl_beta orpo_alpha"};
constexpr CostlessKeys sample_keys{
    "says how samples are made: each is assumed to be as long as the sequence",
    "neat_packing sample_packing_* pad_to_sequence_len pad_to_multiple_of "
    "eval_sample_packing group_by_length train_on_* mask_history streaming* buffer_size "
    "mix_strategy interleave_probs "
    "tokenized_path special_tokens tokens chat_template* tokenizer_* shuffle_* pretraining_dataset "
    "min_sample_len excess_length_strategy batch_flattening test_datasets skip_prepare_dataset "
    "image_* video_* media_dir remove_unused_columns roles_to_train message_* field_* type "
    "enable_thinking reasoning_effort resize_vocab eot_tokens default_system_message"};

// Completes the ledger with the costless keys of both trainers and of this trainer.
void finish(KeyReader& keys, bool adapted, const std::vector<CostlessKeys>& own) {
  std::vector<CostlessKeys> costless{trainer_keys, update_keys, sample_keys, unused_keys,
                                     model_keys};
  if (!adapted) costless.push_back(adapter_keys);
  costless.insert(costless.end(), own.begin(), own.end());
  keys.finish(costless);
}

void read_sequence(KeyReader& keys, std::string_view key, std::int64_t usual,
                   std::string_view packing) {
  keys.set("seq_len", fmt::format("{}", keys.whole(key).value_or(usual)));
  if (!keys.truth(packing, false))
    keys.leave_out(key, fmt::format("samples are assumed to be this long; without {} they are as "
                                    "long as the data",
                                    packing));
}

void find_second_model(KeyReader& keys, std::string_view key, std::string_view stage) {
  if (!stage.empty() && stage != "sft" && stage != "pt")
    keys.leave_out(key, "a reference or reward model beside the one that is trained");
}

}  // namespace

void read_llama_factory(KeyReader& keys, LauncherFile& result) {
  find_second_model(keys, "stage", keys.word("stage"));
  read_engine(keys, result);
  read_batch(keys, "per_device_train_batch_size", 8);
  read_length(keys, "num_train_epochs");
  read_sequence(keys, "cutoff_len", 2048, "packing");
  const bool pure = keys.truth("pure_bf16", false);
  keys.set("precision", keys.truth("bf16", false) || pure ? "bf16"
                        : keys.truth("fp16", false)       ? "fp16"
                                                          : "fp32");
  if (pure) keys.leave_out("pure_bf16", "states are assumed to be in fp32");
  read_optimizer(keys, "optim");
  const std::string type = keys.word("finetuning_type", "lora");
  const bool adapted = type == "lora";
  if (type == "lora")
    read_adapters(keys, "lora_rank", "lora_target", 8, !keys.find("lora_target"));
  else if (type != "full")
    keys.refuse("finetuning_type", fmt::format("{} is not modelled", type), "lora, full");
  if (const auto bits = keys.whole("quantization_bit"))
    set_bits(keys, *bits, keys.truth("double_quantization", true));
  if (const std::string how = keys.word("quantization_method", "bnb");
      how != "bnb" && how != "bitsandbytes")
    keys.leave_out("quantization_method", "weights are taken to have the bits of bitsandbytes");
  keys.truth("gradient_checkpointing", true);
  if (!keys.truth("disable_gradient_checkpointing", false)) keys.set("recompute", "full");
  if (keys.says("flash_attn", "disabled")) keys.set("attention", "unfused");
  finish(keys, adapted,
         {{"names a kernel of the same kind: --attention", "flash_attn"},
          {"how a block is computed again", "gradient_checkpointing_kwargs use_reentrant_gc"}});
}

void read_axolotl(KeyReader& keys, LauncherFile& result) {
  find_second_model(keys, "rl", keys.word("rl"));
  if (keys.says("model_type", "AutoModelForSequenceClassification"))
    keys.leave_out("model_type", "the head is assumed to be that of --model");
  const hjson::Value* units = keys.find("fsdp");
  const bool shares = units != nullptr && !units->items.empty();
  if (shares && !std::ranges::any_of(units->items, [](const hjson::Value& word) {
        return word.text == "full_shard";
      }))
    keys.leave_out("fsdp", "weights, gradients and states are assumed to be shared (full_shard)");
  const bool divided = keys.whole("tensor_parallel_size").value_or(1) > 1 ||
                       keys.whole("context_parallel_size").value_or(1) > 1;
  const bool second = keys.whole("fsdp_version").value_or(1) == 2;
  const auto fsdp = keys.section("fsdp_config");
  if (fsdp) {
    read_fsdp(*fsdp, 1, second);
    for (const char* key : {"fsdp", "fsdp_version"})
      if (keys.find(key) != nullptr)
        keys.entry(key, Treatment::costless, "fsdp_config says what is shared");
  }
  if (!fsdp && (divided || shares)) keys.set("framework", "torchtitan");
  if (!fsdp && shares) keys.set("zero_stage", "3");
  if (!fsdp && !divided && !shares) read_engine(keys, result);
  read_batch(keys, "micro_batch_size", 1);
  read_length(keys, "num_epochs");
  read_sequence(keys, "sequence_len", 512, "sample_packing");
  const bool bf16 = keys.truth("bf16", false) || keys.truth("bfloat16", false);
  const bool fp16 = keys.truth("fp16", false) || keys.truth("float16", false);
  keys.set("precision", keys.truth("fp8", false) ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
  read_optimizer(keys, "optimizer");
  const std::string adapter = keys.word("adapter");
  const bool adapted = !adapter.empty();
  if (adapter == "lora" || adapter == "qlora")
    read_adapters(keys, "lora_r", "lora_target_modules", 8,
                  keys.truth("lora_target_linear", false));
  else if (!adapter.empty())
    keys.refuse("adapter", fmt::format("{} is not modelled", adapter), "lora, qlora, none");
  const bool four = keys.truth("load_in_4bit", false), eight = keys.truth("load_in_8bit", false);
  if (four && eight) keys.refuse("load_in_8bit", "contradicts load_in_4bit", "one of the two");
  if (four || eight) set_bits(keys, four ? 4 : 8);
  if (const std::string how = keys.word("gradient_checkpointing", "false"); how != "false") {
    keys.set("recompute", "full");
    if (how == "offload") keys.set("offload_activations", "checkpoints");
    if (how != "true")
      keys.leave_out("gradient_checkpointing",
                     how == "offload" ? "checkpoints are assumed to be copied as DeepSpeed does it"
                                      : "checkpoints are assumed to stay on the GPU");
  }
  if (keys.truth("eager_attention", false) || keys.says("attn_implementation", "eager"))
    keys.set("attention", "unfused");
  if (!bf16 && !fp16 && keys.truth("tf32", false))
    keys.leave_out("tf32", "products are assumed to be in fp32");
  keys.copy("tensor_parallel_size", "tp");
  keys.copy("context_parallel_size", "cp");
  keys.copy("dp_replicate_size", "shard_groups");
  if (keys.truth("torch_compile", false)) keys.set("fusion", "compiled");
  finish(keys, adapted,
         {{"follows from the other sizes", "dp_shard_size world_size local_rank"},
          {"products have the precision of bf16 and fp16", "tf32"},
          {"names a kernel of the same kind: --attention",
           "flash_attention xformers_attention sdp_attention attn_implementation"},
          {"logs, checkpoints, data or evaluation, outside a step",
           "wandb_* mlflow_* swanlab_* use_swanlab use_tensorboard use_wandb loss_watchdog_* hf_* "
           "processor_type revision_of_model device_map low_cpu_mem_usage early_stopping_* "
           "lora_model_dir sequence_len_* "
           "is_llama_derived_model is_mistral_derived_model is_falcon_derived_model "
           "is_qwen_derived_model gc_steps local_files_only"},
          {"how a block is computed again", "gradient_checkpointing_kwargs"}});
}

}  // namespace lambcast::launchers
