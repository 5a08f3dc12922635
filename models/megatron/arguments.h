// The argument list of a Megatron-LM run as what-if keys and the description of its model.
//
// The text is words as a shell takes them: quotes, '\' at the end of a line, '#' comments. What an
// example script puts around them may stay: NAME=( ... ) around a list, NAME=value before it, and
// $NAME in it. A whole script, from "#!" on, is read for its lists and for what it gives torchrun
// (shell_words.h): a variable without a value may stand for a path, and an argument that bears on
// the cost may not stand in a branch.
//
//   model        --num-layers --hidden-size --ffn-hidden-size --num-attention-heads
//                --num-query-groups --swiglu --vocab-size --max-position-embeddings ...
//                (without --vocab-size that of the tokenizer: vocabulary.h)
//                with --swiglu a llama, else a gpt (models/shape/families.h), or a bert where the
//                program is pretrain_bert.py or arguments are its own (--bert-*, --mask-*); with
//                --num-experts and gated experts a moe-llama, or a moe where --kv-channels or
//                --qk-layernorm say so; what is none of these a decoder: --kv-channels,
//                --num-query-groups, --position-embedding-type rope or
//                --untie-embeddings-and-output-weights without --swiglu, --qk-layernorm,
//                --add-qkv-bias, --disable-bias-linear, --normalization;
//                --window-size --window-attn-skip-freq
//   layout       --tensor-model-parallel-size --pipeline-model-parallel-size
//                --context-parallel-size --cp-comm-type --expert-model-parallel-size
//                --expert-tensor-parallel-size
//                --num-layers-per-virtual-pipeline-stage --sequence-parallel
//                --use-distributed-optimizer (ZeRO stage 1) --use-megatron-fsdp (3)
//                --num-distributed-optimizer-instances --fp8-param-gather
//                --use-precision-aware-optimizer and its dtypes
//                --recompute-granularity --recompute-activations
//                --distribute-saved-activations --recompute-modules (moe) --moe-layer-recompute
//   experts      --moe-token-dispatcher-type --moe-enable-deepep --moe-expert-capacity-factor
//                (with --moe-pad-expert-input-to-capacity) --overlap-moe-expert-parallel-comm
//   run          --micro-batch-size --global-batch-size --seq-length --train-iters
//                --train-samples --bf16 --fp16 --fp8-format --fp8-recipe --rampup-batch-size
//                --step-batch-size-schedule (batch_schedule.h)
//   overlap      --overlap-grad-reduce --ddp-bucket-size --tp-comm-overlap
//                --no-overlap-p2p-communication
//   graphs       --cuda-graph-impl --enable-cuda-graph --external-cuda-graph, of whole layers
//
// Of torchrun's own arguments --nproc-per-node and --nnodes give the GPUs. Arguments that bear on
// no cost are ignored; those that do and are not modelled are findings or refused; an unknown one
// that is close to a known one is refused with that, any other is a finding.
// Source: Megatron-LM core_r0.14, megatron/training/arguments.py (names and defaults).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/finding.h"
#include "models/key_ledger.h"
#include "models/megatron/shell_script.h"

namespace lambcast::megatron {

struct Arguments {
  // As flags of the same names say it: {"tp", "8"}, {"framework", "megatron"}.
  std::vector<std::pair<std::string, std::string>> what_if;
  std::string model;              // the description, in TOML; empty where no layers are named
  bool lacks_vocabulary = false;  // the description has no `vocab`, which --set model.vocab gives
  std::vector<Finding> findings;
  std::vector<LedgerEntry> ledger;
  std::string config_name;  // the file of --deepspeed_config; empty without one
  std::string config;       // its content, if the script writes it
};

// `given` holds values of a script's variables (launch.h). Throws Error (usage) with file, line and
// argument.
Arguments decode(std::string_view text, const std::string& file, const Variables& given = {});

}  // namespace lambcast::megatron
