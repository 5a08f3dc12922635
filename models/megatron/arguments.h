// The argument list of a Megatron-LM run as what-if keys and the description of its model.
//
// The text consists of shell words: quotes, '\' at the end of a line, '#' comments. It may include
// the surroundings in an example script: NAME=( ... ) around a list, NAME=value before it, and
// $NAME in it. In a whole script, which begins with "#!", the lists and the arguments of torchrun
// are read (shell_words.h): a variable without a value may stand for a path, and an argument that
// affects the cost may not depend on a branch.
//
//   model        --num-layers --hidden-size --ffn-hidden-size --num-attention-heads
//                --num-query-groups --swiglu --vocab-size --max-position-embeddings ...
//                (without --vocab-size that of the tokenizer: vocabulary.h)
//                with --swiglu a llama, else a gpt (models/shape/families.h), or a bert if the
//                program is pretrain_bert.py or has arguments of BERT (--bert-*, --mask-*); with
//                --num-experts and gated experts a moe-llama, or a moe with --kv-channels or
//                --qk-layernorm; other models are a decoder: --kv-channels,
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
//   offloading   --fine-grained-activation-offloading --offload-modules
//                --activation-offload-fraction --cpu-offloading-num-layers --checkpoint-in-cpu
//   experts      --moe-token-dispatcher-type --moe-enable-deepep --moe-expert-capacity-factor
//                (with --moe-pad-expert-input-to-capacity) --overlap-moe-expert-parallel-comm
//   run          --micro-batch-size --global-batch-size --seq-length --train-iters
//                --train-samples --bf16 --fp16 --fp8-format --fp8-recipe --rampup-batch-size
//                --step-batch-size-schedule (batch_schedule.h)
//   overlap      --overlap-grad-reduce --ddp-bucket-size --tp-comm-overlap
//                --no-overlap-p2p-communication
//   graphs       --cuda-graph-impl --enable-cuda-graph --external-cuda-graph, of whole layers
//
// torchrun's --nproc-per-node and --nnodes determine the GPUs. Arguments that do not affect the
// cost are ignored; those that do and are not modelled become findings or are refused; an unknown
// one that is close to a known one is refused with a suggestion, any other becomes a finding.
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
  // Keys and values of a what-if, named like the flags: {"tp", "8"}, {"framework", "megatron"}.
  std::vector<std::pair<std::string, std::string>> what_if;
  std::string model;              // description in TOML; empty if no layers are given
  bool lacks_vocabulary = false;  // `vocab` is missing; --set model.vocab gives it
  std::vector<Finding> findings;
  std::vector<LedgerEntry> ledger;
  std::string config_name;  // the file of --deepspeed_config; empty if absent
  std::string config;       // content of that file, if the script writes it
};

// `given` has values of a script's variables (launch.h). Throws Error (usage) with file, line and
// argument.
Arguments decode(std::string_view text, const std::string& file, const Variables& given = {});

}  // namespace lambcast::megatron
