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
    "num-query-groups", "kv-channels", "swiglu", "vocab-size", "make-vocab-size-divisible-by",
    "max-position-embeddings", "seq-length", "untie-embeddings-and-output-weights",
    "hidden-dropout", "attention-dropout", "num-experts", "moe-router-topk", "moe-ffn-hidden-size",
    "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size",
    "expert-model-parallel-size", "expert-tensor-parallel-size",
    "num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
    "sequence-parallel", "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split", "use-distributed-optimizer", "use-megatron-fsdp",
    "use-custom-fsdp", "use-torch-fsdp2", "data-parallel-sharding-strategy", "grad-reduce-in-bf16",
    "optimizer", "recompute-granularity", "recompute-activations", "recompute-method",
    "recompute-num-layers", "recompute-modules", "moe-layer-recompute",
    "moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity", "moe-token-dispatcher-type",
    "moe-enable-deepep", "overlap-moe-expert-parallel-comm", "distribute-saved-activations",
    "micro-batch-size", "global-batch-size", "train-iters", "train-samples", "bf16", "fp16",
    "fp8-format", "fp8-hybrid", "fp8-recipe", "attention-backend", "rampup-batch-size",
    "step-batch-size-schedule", "overlap-grad-reduce", "overlap-param-gather", "tp-comm-overlap",
    "no-overlap-p2p-communication", "nnodes", "nproc-per-node",
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
    "max-restarts", "standalone",
    // no cost
    "accumulate-allreduce-grads-in-fp32", "adam-beta1", "adam-beta2", "adam-eps",
    "add-position-embedding", "add-qkv-bias", "apply-layernorm-1p", "apply-query-key-layer-scaling",
    "attention-softmax-in-fp32", "async-save", "ckpt-assume-constant-structure", "ckpt-format",
    "ckpt-fully-parallel-load", "ckpt-fully-parallel-save", "clip-grad", "cp-comm-type",
    "cross-entropy-fusion-impl", "cross-entropy-loss-fusion", "data-cache-path", "data-path",
    "dataloader-type", "ddp-average-in-collective", "ddp-bucket-size", "disable-bias-linear",
    "dist-ckpt-format", "distributed-backend", "distributed-timeout-minutes",
    "empty-unused-memory-level", "enable-experimental", "end-weight-decay", "eod-mask-loss",
    "eval-interval", "eval-iters", "exit-duration-in-mins", "exit-interval", "exit-signal-handler",
    "exit-on-missing-checkpoint", "external-cuda-graph", "cuda-graph-scope",
    "fp8-amax-compute-algo", "fp8-amax-history-len", "fp8-margin", "fp8-param-gather", "finetune",
    "hysteresis", "init-method-std", "initial-loss-scale", "is-instruct-dataset",
    "legacy-tokenizer", "load", "log-interval", "log-memory-to-tensorboard",
    "log-num-zeros-in-grad", "log-params-norm", "log-progress", "log-throughput",
    "log-timers-to-tensorboard", "log-validation-ppl-to-tensorboard", "loss-scale",
    "loss-scale-window", "lr", "lr-decay-iters", "lr-decay-samples", "lr-decay-style",
    "lr-warmup-fraction", "lr-warmup-init", "lr-warmup-iters", "lr-warmup-samples",
    "lr-wsd-decay-iters", "lr-wsd-decay-style", "manual-gc", "manual-gc-interval",
    "masked-softmax-fusion", "merge-file", "min-loss-scale", "min-lr", "mock-data",
    "moe-aux-loss-coeff", "moe-grouped-gemm", "moe-per-layer-logging", "moe-permute-fusion",
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
    "timing-log-option", "tokenizer-model", "tokenizer-type", "train-data-path", "transformer-impl",
    "use-checkpoint-args", "use-cpu-initialization", "use-dist-ckpt", "use-flash-attn",
    "use-mcore-models", "use-legacy-models", "use-rope-scaling", "use-rotary-position-embeddings",
    "use-tp-pp-dp-mapping", "valid-data-path", "vocab-file", "wandb-exp-name", "wandb-project",
    "wandb-save-dir", "weight-decay", "weight-decay-incr-style"};

}  // namespace

const std::vector<std::string>& known_arguments() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names(std::begin(bearing), std::end(bearing));
    names.insert(names.end(), std::begin(costless), std::end(costless));
    return names;
  }();
  return all;
}

bool bears_on_cost(std::string_view name) {
  return std::find(std::begin(bearing), std::end(bearing), name) != std::end(bearing);
}

}  // namespace lambcast::megatron
