#include "models/megatron/known_arguments.h"

#include <algorithm>
#include <iterator>

namespace lambcast::megatron {

namespace {

// Source: Megatron-LM core_r0.14, megatron/training/arguments.py and examples/; PyTorch
// torch/distributed/run.py.
constexpr std::string_view bearing[] = {
    // Arguments that are read.
    "num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "group-query-attention",
    "num-query-groups", "kv-channels", "swiglu", "glu-activation", "quick-geglu",
    "transformer-impl", "use-flash-attn", "use-flash-attn-v1", "use-flash-attn-v2",
    "use-flash-attn-triton", "use-flash-attn-builder", "vocab-size", "make-vocab-size-divisible-by",
    "max-position-embeddings", "seq-length", "untie-embeddings-and-output-weights",
    "hidden-dropout", "attention-dropout", "num-experts", "moe-router-topk", "moe-ffn-hidden-size",
    "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size",
    "expert-model-parallel-size", "expert-tensor-parallel-size",
    "num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
    "sequence-parallel", "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split", "use-distributed-optimizer",
    "num-distributed-optimizer-instances", "ddp-bucket-size", "cp-comm-type",
    "use-tp-pp-dp-mapping", "use-megatron-fsdp", "use-custom-fsdp", "use-torch-fsdp2",
    "data-parallel-sharding-strategy", "grad-reduce-in-bf16", "accumulate-allreduce-grads-in-fp32",
    "moe-grouped-gemm", "pad-vocab-size-to", "optimizer", "recompute-granularity",
    "recompute-activations", "recompute-method", "recompute-num-layers", "recompute-modules",
    "moe-layer-recompute", "moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity",
    "moe-token-dispatcher-type", "moe-enable-deepep", "overlap-moe-expert-parallel-comm",
    "distribute-saved-activations", "micro-batch-size", "global-batch-size", "train-iters",
    "train-samples", "train-tokens", "bf16", "fp16", "fp8-format", "fp8-hybrid", "fp8-recipe",
    "attention-backend", "rampup-batch-size", "step-batch-size-schedule", "overlap-grad-reduce",
    "overlap-param-gather", "tp-comm-overlap", "no-overlap-p2p-communication", "nnodes",
    "nproc-per-node", "world-size", "add-qkv-bias", "disable-bias-linear", "normalization",
    "position-embedding-type", "qk-layernorm", "use-rotary-position-embeddings", "window-size",
    "window-attn-skip-freq", "fp8-param-gather", "external-cuda-graph", "enable-cuda-graph",
    "cuda-graph-scope", "cuda-graph-impl", "cuda-graph-modules", "use-precision-aware-optimizer",
    "main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype",
    "no-store-param-remainders", "fine-grained-activation-offloading", "offload-modules",
    "activation-offload-fraction", "cpu-offloading", "cpu-offloading-num-layers",
    // Arguments of Megatron-DeepSpeed.
    "deepspeed", "zero-stage", "checkpoint-activations", "partition-activations",
    "distribute-checkpointed-activations", "num-key-value-heads", "ds-sequence-parallel-size",
    "moe-expert-parallel-size", "expert-interval", "topk", "mlp-type", "moe-train-capacity-factor",
    "disable-moe-token-dropping", "enable-expert-tensor-parallelism", "use-tutel",
    "checkpoint-in-cpu",
    // Arguments of BERT.
    "bert-no-binary-head", "bert-load", "bert-embedder-type", "mask-prob", "mask-type",
    "mask-factor", "short-seq-prob",
    // Arguments of encoder-decoders, whose lists are refused.
    "encoder-num-layers", "decoder-num-layers", "encoder-seq-length", "decoder-seq-length"};

// Arguments of models and runs that cannot be modelled from an argument list.
constexpr std::string_view refused[] = {"pipeline-model-parallel-split-rank",
                                        "decoder-first-pipeline-num-layers",
                                        "decoder-last-pipeline-num-layers",
                                        "pipeline-model-parallel-layout",
                                        "hierarchical-context-parallel-sizes",
                                        "multi-latent-attention",
                                        "mtp-num-layers",
                                        "moe-shared-expert-intermediate-size",
                                        "moe-layer-freq",
                                        "optimizer-cpu-offload",
                                        "hybrid-attention-ratio",
                                        "fp4-format",
                                        "fp4",
                                        "hybrid-layer-pattern",
                                        "hybrid-override-pattern",
                                        "is-hybrid-model",
                                        "heterogeneous-layers-config-path",
                                        "heterogeneous-layers-config-encoded-json",
                                        "experimental-attention-variant",
                                        "linear-attention-freq",
                                        "retro-add-retriever",
                                        "perform-rl-step",
                                        "num-layers-in-first-pipeline-stage",
                                        "num-layers-in-last-pipeline-stage"};

// Arguments with a sentence on the assumption used instead. Sources: those above, and
// Megatron-DeepSpeed, megatron/arguments.py.
constexpr NamedArgument named[] = {
    {"no-bias-dropout-fusion", "kernels are assumed to be fused as by default"},
    {"no-bias-gelu-fusion", "kernels are assumed to be fused as by default"},
    {"no-persist-layer-norm", "kernels are assumed to be fused as by default"},
    {"disable-jit-fuser", "kernels are assumed to be fused as by default"},
    {"no-gradient-reduce-div-fusion", "kernels are assumed to be fused as by default"},
    {"use-legacy-models", "layers are assumed to be those of Megatron core"},
    {"no-scatter-gather-tensors", "stages are taken to send parts and to gather them"},
    {"log-params-norm", "the pass over the parameters at each log is left out"},
    {"log-num-zeros-in-grad", "the pass over the gradients at each log is left out"},
    {"reset-attention-mask", "a token is taken to see all before it in its sequence"},
    {"dataloader-inter-document-masking", "a token is taken to see all before it in its sequence"},
    {"moe-router-force-load-balancing",
     "experts are assumed to be as uneven as without it; try: --imbalance 1"},
    {"no-bias-swiglu-fusion", "kernels are assumed to be fused as by default"},
    {"no-gradient-accumulation-fusion", "kernels are assumed to be fused as by default"},
    {"no-masked-softmax-fusion", "kernels are assumed to be fused as by default"},
    {"no-rope-fusion", "kernels are assumed to be fused as by default"},
    {"no-async-tensor-model-parallel-allreduce",
     "sums over tensor-parallel ranks are assumed to be as without it"},
    {"kd", "the teacher's passes are left out"},
    {"mos", "the teacher's passes are left out"},
    {"spec", "layers are assumed to be those of the other arguments"},
    {"yaml-cfg", "the file is not read"},
    {"sft", "every sequence is assumed to be whole"},
    {"freeze-all-layers", "every weight is assumed to be trained"},
    {"deterministic-mode", "kernels are assumed to be the usual ones"},
    {"checkpoint-num-layers",
     "assumed: the inputs of all layers are kept, not only those of every few layers"},
    {"contigious-checkpointing", "one buffer for kept inputs is not modelled"},
    {"synchronize-each-layer", "no synchronisation per layer is modelled"},
    {"no-pipeline-parallel", "the engine is assumed to be that of the stage count"},
    {"pp-partition-method", "layers are assumed to be split evenly"},
    {"embed-layernorm", "the norm behind the embedding is left out"},
    {"curriculum-learning", "every sequence is assumed to be whole"},
    {"ds-sequence-parallel-fpdt", "sequences are assumed to be computed whole, not in chunks"},
    {"random-ltd", "tokens are assumed not to be dropped"},
    {"cpu-optimizer", "states of the optimizer are taken to stay on the GPU"},
    {"cpu-torch-adam", "states of the optimizer are taken to stay on the GPU"},
    {"moe-min-capacity", "experts are taken to have more places"},
    {"create-moe-param-group", "experts are assumed to be in the usual groups"},
    {"remote-device", "weights are taken to stay on the GPU"},
    {"no-train", "the run is taken to train"},
    {"use-bnb-optimizer", "states of the optimizer are taken to have 32 bits"},
    {"enable-zbh1-pipeline",
     "the schedule is assumed to be 1f1b; --pipeline-schedule zb1p is next to it"}};

}  // namespace

const std::vector<std::string>& known_arguments() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names(std::begin(bearing), std::end(bearing));
    names.insert(names.end(), std::begin(refused), std::end(refused));
    for (const NamedArgument& argument : named) names.emplace_back(argument.name);
    return names;
  }();
  return all;
}

std::span<const NamedArgument> named_arguments() { return named; }

std::span<const std::string_view> refused_arguments() { return refused; }

bool bears_on_cost(std::string_view name) {
  return std::ranges::find(bearing, name) != std::end(bearing) ||
         std::ranges::find(refused, name) != std::end(refused);
}

}  // namespace lambcast::megatron
