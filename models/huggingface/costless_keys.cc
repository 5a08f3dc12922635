#include "models/huggingface/costless_keys.h"

namespace lambcast::huggingface {
namespace {

// Source: transformers 4.57, configuration_utils.py and models/*/configuration_*.py.
constexpr CostlessKeys costless_keys[] = {
    {"names the model or its files",
     " _name_or_path _attn_implementation_autoset auto_map finetuning_task language model_name "
     "name name_or_path problem_type tokenizer_class transformers_version unsloth_version "
     "unsloth_fixed "
     "label2id vocab_file _commit_hash _from_model_config model_version "},
    {"a special token",
     " bos_token_id boi_token_index cls_token_id decoder_start_token_id eoi_token_index "
     "eos_token_id padding_idx forced_bos_token_id forced_eos_token_id image_end_token_id "
     "image_start_token_id "
     "image_token_id image_token_index mask_token_id pad_token_id sep_token_id unk_token_id "
     "video_token_id vision_end_token_id vision_start_token_id vision_token_id "
     "bad_words_ids suppress_tokens begin_suppress_tokens "},
    {"generates text, which training does not",
     " cache_implementation diversity_penalty do_sample early_stopping "
     "encoder_no_repeat_ngram_size "
     "exponential_decay_length_penalty generation_config length_penalty max_length max_new_tokens "
     "min_length no_repeat_ngram_size num_beam_groups num_beams num_return_sequences "
     "output_past output_scores prefix pretraining_tp remove_invalid_values repetition_penalty "
     "return_dict_in_generate task_specific_params temperature tf_legacy_loss top_k top_p "
     "typical_p "
     "use_bfloat16 use_cache use_mems_eval ep_size for_llm_compressor "},
    {"outputs next to the loss",
     " output_attentions output_hidden_states output_router_logits "
     "return_dict return_unused_kwargs "},
    {"starting values of weights",
     " factor init_method init_std initializer_cutoff_factor initializer_factor initializer_range "
     "rescale_prenorm_residual scale_attn_by_inverse_layer_idx dim_model_base scale_depth "
     "scale_emb "},
    {"a value in formulas, not their number",
     " attention_multiplier attn_temperature_tuning attn_scale beta_fast beta_slow clip_qkv "
     "embedding_multiplier embd_scale floor_scale gate_act_fn hidden_act hidden_activation "
     "activation_function activation afn layer_norm_eps layer_norm_epsilon layernorm_epsilon "
     "logit_scale logits_scaling ln_type norm_eps norm_epsilon norm_type "
     "original_max_position_embeddings query_pre_attn_scalar reorder_and_upcast_attn "
     "residual_multiplier rms_norm_eps rope_interleave rope_interleaved rope_local_base_freq "
     "rope_parameters rope_scaling rope_theta rotary_emb_base scale_attention_softmax_in_fp32 "
     "scale_attn_weights scale_embedding scale_qk softmax_scale swiglu_limit router_temperature "
     "use_weighted_embed global_rope_theta local_rope_theta norm_bias_init "
     "relative_attention_max_distance rotary_base no_rope_layer_interval "},
    {"how tokens choose experts, of which each visits as many",
     " aux_loss_alpha group_limited_greedy input_jitter_noise moe_use_aux_free moe_router_topk "
     "n_group norm_topk_prob normalize_expert_weights routed_scaling_factor router_aux_loss_coef "
     "router_bias_update_rate router_jitter_noise router_z_loss_coef scoring_func scoring_function "
     "seq_aux topk_group topk_method use_routing_bias expert_capacity "},
    {"the run decides it: --precision", " dtype torch_dtype fp16 bf16 fp32 "},
    {"the run decides it: --recompute, --attention",
     " _attn_implementation attn_implementation attn_implementation_internal "
     "gradient_checkpointing use_flash_attn use_flash_attention use_flash_attention_2 "
     "deterministic_flash_attn "},
    {"a window that this class or file does not use",
     " max_window_layers sliding_window sliding_window_size use_sliding_window "},
    {"layer_types lists which layers have a window", " _sliding_window_pattern "},
    {"position_buckets counts the distances", " max_relative_positions "},
    {"a part that this class or file has none of",
     " net_structure_type gap_size num_memory_blocks down_scale_factor conv_act conv_kernel_size "
     "pooler_hidden_size pooler_hidden_act pooler_dropout legacy pooler_act pooler_output_size "
     "encoder_stride attention_softmax_in_fp32 bias_dropout_fusion masked_softmax_fusion "},
    {"a width of layers that the file has none of", " intermediate_size intermediate_size_mlp "},
    {"which tokens are padding or classified",
     " classifier_pooling is_decoder is_encoder_decoder cross_attention_hidden_size "
     "chunk_size_feed_forward pruned_heads summary_activation summary_first_dropout "
     "summary_proj_to_labels summary_type summary_use_proj classifier_dropout "
     "classifier_dropout_prob "
     "classifier_activation classifier_bias seq_classif_dropout qa_dropout sparse_prediction "
     "sparse_pred_ignore_index torchscript tie_encoder_decoder directionality pooler_fc_size "
     "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type "
     "sinusoidal_pos_embds n_ctx normalize_embedding "}};

}  // namespace

std::span<const CostlessKeys> costless_groups() { return costless_keys; }

std::string_view costless_reason(std::string_view key) {
  return lambcast::costless_reason(costless_keys, key);
}

}  // namespace lambcast::huggingface
