#include "models/megatron/known_arguments.h"

#include <algorithm>
#include <iterator>

namespace lambcast::megatron {

namespace {

// Source: Megatron-LM core_r0.14, megatron/training/arguments.py and examples/; PyTorch
// torch/distributed/run.py.
constexpr std::string_view bearing[] = {
    // read
    "num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "group-query-attention",
    "num-query-groups", "kv-channels", "swiglu", "glu-activation", "transformer-impl",
    "use-flash-attn", "use-flash-attn-v1", "use-flash-attn-v2", "use-flash-attn-triton",
    "use-flash-attn-builder", "vocab-size", "make-vocab-size-divisible-by",
    "max-position-embeddings", "seq-length", "untie-embeddings-and-output-weights",
    "hidden-dropout", "attention-dropout", "num-experts", "moe-router-topk", "moe-ffn-hidden-size",
    "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size",
    "expert-model-parallel-size", "expert-tensor-parallel-size",
    "num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
    "sequence-parallel", "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split", "use-distributed-optimizer", "use-megatron-fsdp",
    "use-custom-fsdp", "use-torch-fsdp2", "data-parallel-sharding-strategy", "grad-reduce-in-bf16",
    "accumulate-allreduce-grads-in-fp32", "moe-grouped-gemm", "pad-vocab-size-to", "optimizer",
    "recompute-granularity", "recompute-activations", "recompute-method", "recompute-num-layers",
    "recompute-modules", "moe-layer-recompute", "moe-expert-capacity-factor",
    "moe-pad-expert-input-to-capacity", "moe-token-dispatcher-type", "moe-enable-deepep",
    "overlap-moe-expert-parallel-comm", "distribute-saved-activations", "micro-batch-size",
    "global-batch-size", "train-iters", "train-samples", "bf16", "fp16", "fp8-format", "fp8-hybrid",
    "fp8-recipe", "attention-backend", "rampup-batch-size", "step-batch-size-schedule",
    "overlap-grad-reduce", "overlap-param-gather", "tp-comm-overlap",
    "no-overlap-p2p-communication", "nnodes", "nproc-per-node", "world-size",
    // of Megatron-DeepSpeed
    "deepspeed", "zero-stage", "checkpoint-activations", "partition-activations",
    "distribute-checkpointed-activations", "num-key-value-heads", "ds-sequence-parallel-size",
    "moe-expert-parallel-size",
    // of BERT
    "bert-no-binary-head", "bert-load", "bert-embedder-type", "mask-prob", "mask-type",
    "mask-factor", "short-seq-prob",
    // refused
    "pipeline-model-parallel-split-rank", "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers", "pipeline-model-parallel-layout",
    "hierarchical-context-parallel-sizes", "multi-latent-attention", "mtp-num-layers",
    "moe-shared-expert-intermediate-size", "moe-layer-freq", "cpu-offloading",
    "optimizer-cpu-offload", "hybrid-attention-ratio", "encoder-num-layers", "decoder-num-layers",
    "encoder-seq-length", "decoder-seq-length"};

constexpr std::string_view costless[] = {
    // torchrun
    "master-addr", "master-port", "node-rank", "rdzv-backend", "rdzv-endpoint", "rdzv-id",
    "max-restarts", "standalone", "local-rank", "hostfile", "tee", "role", "log-dir",
    // Megatron-DeepSpeed and bigscience: data and logs
    "data-impl", "tokenizer-name-or-path", "log-batch-size-to-tensorboard",
    "log-optimizer-states-to-tensorboard", "log-learning-rate-to-tensorboard",
    "log-loss-scale-to-tensorboard", "log-world-size-to-tensorboard", "codecarbon-dir",
    "kill-switch-path", "skip-train-iteration-range", "train-weighted-split-paths",
    "train-weighted-split-paths-path", "valid-weighted-split-paths",
    "valid-weighted-split-paths-path", "test-weighted-split-paths", "valid-num-workers",
    "train-data-exact-num-epochs", "return-data-index", "train-idx-path", "train-desc-path",
    "train-doc-idx-path", "train-sample-idx-path", "train-shuffle-idx-path", "repeated-dataloader",
    "universal-checkpoint", "layernorm-epsilon", "reset-iteration",
    "abort-on-unmet-fused-kernel-constraints",
    // ... the learning rate and the loss
    "lr-decay-tokens", "lr-warmup-tokens", "moe-loss-coeff", "override-lr-scheduler",
    // ... DeepSpeed's function of recomputation, which recomputes nothing by itself
    "deepspeed-activation-checkpointing", "no-query-key-layer-scaling",
    // ... the JSON, which is read on its own: its name may hold a job's number
    "deepspeed-config", "ds-config",
    // ... read by nothing
    "zero-reduce-scatter", "zero-contigious-gradients", "zero-reduce-bucket-size",
    "zero-allgather-bucket-size",
    // no cost
    "adam-beta1", "adam-beta2", "adam-eps", "add-position-embedding", "add-qkv-bias",
    "apply-layernorm-1p", "apply-query-key-layer-scaling", "attention-softmax-in-fp32",
    "async-save", "ckpt-assume-constant-structure", "ckpt-format", "ckpt-fully-parallel-load",
    "ckpt-fully-parallel-save", "clip-grad", "cross-entropy-fusion-impl",
    "cross-entropy-loss-fusion", "data-cache-path", "data-path", "dataloader-type",
    "ddp-average-in-collective", "disable-bias-linear", "dist-ckpt-format", "distributed-backend",
    "distributed-timeout-minutes", "empty-unused-memory-level", "enable-experimental",
    "end-weight-decay", "eod-mask-loss", "eval-interval", "eval-iters", "exit-duration-in-mins",
    "exit-interval", "exit-signal-handler", "exit-on-missing-checkpoint", "fp8-amax-compute-algo",
    "fp8-amax-history-len", "fp8-margin", "finetune", "hysteresis", "init-method-std",
    "initial-loss-scale", "is-instruct-dataset", "legacy-tokenizer", "load", "log-interval",
    "log-memory-to-tensorboard", "log-num-zeros-in-grad", "log-params-norm", "log-progress",
    "log-throughput", "log-timers-to-tensorboard", "log-validation-ppl-to-tensorboard",
    "loss-scale", "loss-scale-window", "lr", "lr-decay-iters", "lr-decay-samples", "lr-decay-style",
    "lr-warmup-fraction", "lr-warmup-init", "lr-warmup-iters", "lr-warmup-samples",
    "lr-wsd-decay-iters", "lr-wsd-decay-style", "manual-gc", "manual-gc-interval",
    "masked-softmax-fusion", "merge-file", "min-loss-scale", "min-lr", "mock-data",
    "moe-aux-loss-coeff", "moe-per-layer-logging", "moe-permute-fusion",
    "moe-router-bias-update-rate", "moe-router-dtype", "moe-router-enable-expert-bias",
    "moe-router-group-topk", "moe-router-load-balancing-type", "moe-router-num-groups",
    "moe-router-pre-softmax", "moe-router-score-function", "moe-router-topk-scaling-factor",
    "moe-token-drop-policy", "moe-z-loss-coeff", "mtp-loss-scaling-factor",
    "nccl-communicator-config-path", "nccl-ub", "no-add-qkv-bias",
    "no-async-tensor-model-parallel-allreduce", "no-bias-dropout-fusion", "no-bias-gelu-fusion",
    "no-bias-swiglu-fusion", "no-check-for-nan-in-loss-and-grad",
    "no-create-attention-mask-in-dataloader", "no-gradient-accumulation-fusion",
    "no-initialization", "no-load-optim", "no-load-rng", "no-masked-softmax-fusion",
    "no-mmap-bin-files", "no-persist-layer-norm", "no-position-embedding", "no-rope-fusion",
    "no-save-optim", "no-save-rng", "norm-epsilon", "normalization", "num-dataset-builder-threads",
    "num-workers", "openai-gelu", "out-seq-length", "rope-scaling-factor",
    "override-opt-param-scheduler", "position-embedding-type", "profile", "profile-ranks",
    "profile-step-end", "profile-step-start", "qk-layernorm", "per-split-data-args-path",
    "pretrained-checkpoint", "reset-attention-mask", "reset-position-ids", "rotary-base",
    "rotary-interleaved", "rotary-percent", "rotary-scaling-factor",
    "rotary-seq-len-interpolation-factor", "save", "save-interval", "seed", "split", "squared-relu",
    "start-weight-decay", "te-rng-tracker", "tensorboard-dir", "tensorboard-log-interval",
    "tensorboard-queue-size", "test-data-path", "tiktoken-pattern", "timing-log-level",
    "timing-log-option", "tokenizer-model", "tokenizer-type", "train-data-path",
    "use-checkpoint-args", "use-cpu-initialization", "use-dist-ckpt", "use-mcore-models",
    "use-legacy-models", "use-rope-scaling", "use-rotary-position-embeddings",
    "use-tp-pp-dp-mapping", "valid-data-path", "vocab-file", "wandb-exp-name", "wandb-project",
    "wandb-save-dir", "weight-decay", "weight-decay-incr-style"};

// Source: as above; Megatron-DeepSpeed, megatron/arguments.py.
constexpr NamedArgument named[] = {
    {"cp-comm-type", "keys and values are taken to pass around a ring"},
    {"ddp-bucket-size", "the default bucket is taken"},
    {"fp8-param-gather", "weights are taken to be gathered in bf16"},
    {"external-cuda-graph", "kernels are taken to be launched one by one"},
    {"enable-cuda-graph", "kernels are taken to be launched one by one"},
    {"cuda-graph-scope", "kernels are taken to be launched one by one"},
    {"cuda-graph-impl", "kernels are taken to be launched one by one"},
    {"use-precision-aware-optimizer", "states of the optimizer are taken to be fp32"},
    {"main-grads-dtype", "main gradients are taken as without it"},
    {"main-params-dtype", "main weights are taken to be fp32"},
    {"exp-avg-dtype", "states of the optimizer are taken to be fp32"},
    {"exp-avg-sq-dtype", "states of the optimizer are taken to be fp32"},
    {"fine-grained-activation-offloading", "activations are taken to stay on the GPU"},
    {"num-distributed-optimizer-instances", "one instance is taken to span all replicas"},
    {"checkpoint-num-layers", "the input of every layer is taken to be kept, not of every few"},
    {"checkpoint-in-cpu", "kept inputs are taken to stay on the GPU"},
    {"contigious-checkpointing", "one buffer for kept inputs is not modelled"},
    {"synchronize-each-layer", "no synchronisation per layer is modelled"},
    {"no-pipeline-parallel", "the engine is taken to be that of the stage count"},
    {"pp-partition-method", "layers are taken to be split evenly"},
    {"embed-layernorm", "the norm behind the embedding is left out"},
    {"train-tokens", "the length is taken from iterations or samples"},
    {"curriculum-learning", "every sequence is taken to be whole"},
    {"random-ltd", "no token is taken to be dropped"},
    {"cpu-optimizer", "states of the optimizer are taken to stay on the GPU"},
    {"cpu-torch-adam", "states of the optimizer are taken to stay on the GPU"},
    {"expert-interval", "experts of Megatron-DeepSpeed are not modelled"},
    {"topk", "experts of Megatron-DeepSpeed are not modelled"},
    {"mlp-type", "experts of Megatron-DeepSpeed are not modelled"},
    {"moe-train-capacity-factor", "experts of Megatron-DeepSpeed are not modelled"},
    {"moe-eval-capacity-factor", "experts of Megatron-DeepSpeed are not modelled"},
    {"moe-min-capacity", "experts of Megatron-DeepSpeed are not modelled"},
    {"disable-moe-token-dropping", "experts of Megatron-DeepSpeed are not modelled"},
    {"enable-expert-tensor-parallelism", "experts of Megatron-DeepSpeed are not modelled"},
    {"use-tutel", "experts of Megatron-DeepSpeed are not modelled"},
    {"create-moe-param-group", "experts of Megatron-DeepSpeed are not modelled"},
    {"remote-device", "weights are taken to stay on the GPU"},
    {"no-train", "the run is taken to train"},
    {"use-bnb-optimizer", "states of the optimizer are taken to have 32 bits"},
    {"enable-zbh1-pipeline",
     "the schedule is taken to be 1f1b; --pipeline-schedule zb1p is next to it"}};

}  // namespace

const std::vector<std::string>& known_arguments() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names(std::begin(bearing), std::end(bearing));
    names.insert(names.end(), std::begin(costless), std::end(costless));
    for (const NamedArgument& argument : named) names.emplace_back(argument.name);
    return names;
  }();
  return all;
}

std::span<const NamedArgument> named_arguments() { return named; }

bool bears_on_cost(std::string_view name) {
  return std::find(std::begin(bearing), std::end(bearing), name) != std::end(bearing);
}

}  // namespace lambcast::megatron
