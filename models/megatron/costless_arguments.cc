#include "models/megatron/costless_arguments.h"

#include <algorithm>
#include <iterator>

#include "models/key_ledger.h"

namespace lambcast::megatron {
namespace {

// Source: Megatron-LM core_r0.14 and later, Megatron-DeepSpeed and BigScience's fork of it,
// megatron/training/arguments.py; PyTorch, torch/distributed/run.py.
constexpr CostlessGroup groups[] = {
    {"starts and finds the ranks, before the first step",
     "create-all-gather-group distributed-backend distributed-timeout-minutes "
     "distributed-timeout-seconds-after-init fake-process-group gpu-sniff-test-interval "
     "hostfile lazy-mpu-init local-addr local-rank log-dir master-addr master-port "
     "max-restarts node-rank rdzv-backend rdzv-endpoint rdzv-id role standalone tee "
     "use-gloo-process-groups"},
    {"selects samples, not their number in a step",
     "aml-data-download-path block-data-path classes-fraction data-args-path data-cache-path "
     "data-impl data-parallel-random-init data-path data-per-class-fraction "
     "dataloader-defer-npy-index-mmap dataloader-fast-cache-load "
     "dataloader-type dataset-impl disable-msc "
     "embedding-path enable-msc eod-mask-loss evidence-data-path fim-data fim-eod-token "
     "fim-fragment-rate fim-middle-token fim-no-prefix fim-pad-token fim-prefix-token "
     "fim-rate fim-split-sample fim-spm-rate fim-suffix-token finetune-data-files "
     "finetune-data-split finetune-hf-dataset hybrid-context is-instruct-dataset "
     "iter-per-epoch mid-level-dataset-surplus mmap-warmup mock-data multiple-validation-sets "
     "no-create-attention-mask-in-dataloader no-data-sharding no-mmap-bin-files "
     "num-dataset-builder-threads num-workers object-storage-cache-path "
     "per-dataset-sequences-path per-split-data-args-path repeated-dataloader "
     "reset-position-ids return-data-index sample-rate split "
     "test-data-path test-weighted-split-paths titles-data-path train-data-exact-num-epochs "
     "train-data-path train-desc-path train-doc-idx-path train-idx-path train-sample-idx-path "
     "train-shuffle-idx-path train-weighted-split-paths train-weighted-split-paths-path "
     "use-dataset-only use-one-sent-docs valid-data-path valid-num-workers "
     "valid-weighted-split-paths valid-weighted-split-paths-path validation-set-names"},
    {"writes logs",
     "app-tag-run-name app-tag-run-version barrier-with-L1-time codecarbon-dir "
     "config-logger-dir dump-param-to-param-group-map filter-warnings indexer-log-interval "
     "kill-switch-file kill-switch-path log-batch-size-to-tensorboard log-device-memory-used "
     "log-energy log-interval log-l2-norm-grad-to-tensorboard "
     "log-learning-rate-to-tensorboard log-loss-scale-to-tensorboard log-max-attention-logit "
     "log-memory-interval log-memory-to-tensorboard "
     "log-optimizer-states-to-tensorboard log-progress "
     "log-runtime-to-tensorboard log-straggler log-throughput log-throughput-to-tensorboard "
     "log-timers-to-tensorboard log-validation-ppl-to-tensorboard "
     "log-world-size-to-tensorboard logging-level memory-keys memory-snapshot-path "
     "modules-to-filter moe-per-layer-logging no-barrier-with-level-1-timing "
     "no-log-learnig-rate-to-tensorboard no-log-loss-scale-to-tensorboard no-one-logger "
     "one-logger-async one-logger-project one-logger-run-name otel-enabled otel-service-name "
     "otel-span-groups record-memory-history runtime-time-unit save-config-filepath "
     "set-level-for-all-loggers tensorboard-dir tensorboard-log-interval "
     "tensorboard-queue-size throughput-window-size timing-log-option wandb-entity "
     "wandb-exp-name wandb-project wandb-save-dir"},
    {"watches the ranks and starts them again, outside a step",
     "adlr-autoresume adlr-autoresume-interval calc-ft-timeouts check-for-large-grads "
     "check-for-nan-in-loss check-for-spiky-loss "
     "check-weight-hash-across-dp-replicas-interval disable-straggler-on-startup "
     "enable-ft-package error-injection-rate error-injection-type exit-duration-in-mins "
     "exit-interval exit-on-missing-checkpoint exit-signal exit-signal-handler "
     "exit-signal-handler-for-dataloader exit-signal-handler-for-training "
     "fault-injector-delay-start-iteration fault-injector-fault-delay "
     "fault-injector-fault-probabilities fault-injector-fault-types "
     "fault-injector-mtti-seconds fault-injector-num-ranks fault-injector-offset-seconds "
     "fault-injector-ranks fault-injector-seed flight-recorder-dump-on-timeout "
     "flight-recorder-dump-path flight-recorder-extra-dump-on-exec "
     "flight-recorder-include-only-active flight-recorder-include-stack-trace "
     "flight-recorder-trace-buffer-size ft-num-warmup-iters inprocess-active-world-size "
     "inprocess-barrier-timeout inprocess-completion-timeout inprocess-empty-cuda-cache "
     "inprocess-granularity inprocess-hard-timeout inprocess-heartbeat-interval "
     "inprocess-heartbeat-timeout inprocess-last-call-wait inprocess-max-iterations "
     "inprocess-monitor-process-interval inprocess-monitor-thread-interval "
     "inprocess-progress-watchdog-interval inprocess-restart inprocess-soft-timeout "
     "inprocess-termination-grace-time no-check-for-nan-in-loss-and-grad rerun-mode "
     "result-rejected-tracker-filename run-workload-inspector-server straggler-ctrlr-port "
     "straggler-minmax-count"},
    {"times or traces single steps",
     "nvtx-ranges profile profile-backward profile-ranks profile-step-end profile-step-start "
     "profile-steps pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra "
     "pytorch-profiler-collect-shapes record-shapes use-nsys-profiler use-pytorch-profiler"},
    {"reads and writes checkpoints, between steps",
     "async-ckpt-cpu-priority async-ckpt-io-priority async-ckpt-use-cpu-shm async-save "
     "async-strategy auto-detect-ckpt-format ckpt-assume-constant-structure "
     "ckpt-convert-format ckpt-convert-save ckpt-convert-update-legacy-dist-opt-format "
     "ckpt-drop-redundant-extra-state ckpt-format ckpt-fully-parallel-load "
     "ckpt-fully-parallel-load-exchange-algo ckpt-fully-parallel-load-per-rank-objects "
     "ckpt-fully-parallel-load-process-group ckpt-fully-parallel-save "
     "ckpt-fully-parallel-save-process-group ckpt-load-validate-sharding-integrity "
     "ckpt-pg-tensors-cache-create ckpt-pg-tensors-cache-path ckpt-step dist-ckpt-format "
     "dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014 dist-ckpt-strictness "
     "dist-ckpt-workers distrib-optim-fully-reshardable-mem-efficient finetune "
     "fully-parallel-load fully-parallel-save hetereogenous-dist-checkpoint ict-load load "
     "load-main-params-from-ckpt load-optim load-rng load-tag load-teacher metadata-path "
     "most-recent-k no-load-lr-state no-load-optim no-load-rng no-save-optim no-save-rng "
     "non-persistent-ckpt-type non-persistent-global-ckpt-dir non-persistent-local-ckpt-algo "
     "non-persistent-local-ckpt-dir non-persistent-save-interval override-ckpt-iteration "
     "override-lr-scheduler override-opt-param-scheduler pretrained-checkpoint replication "
     "replication-factor replication-jump reset-iteration save save-activations-interval "
     "save-dgrads-interval save-interval save-optim save-params-interval save-retain-interval "
     "save-rng save-tokenizer-assets save-tokens-per-expert-interval save-wgrads-interval "
     "strict-fsdp-dtensor-load universal-checkpoint use-checkpoint-args "
     "use-checkpoint-opt-param-scheduler use-dist-ckpt use-mp-args-from-checkpoint-args "
     "use-persistent-ckpt-worker use-tokenizer-model-from-checkpoint-args verify-integrity"},
    {"evaluates between steps",
     "eval-global-batch-size eval-interval eval-iters eval-micro-batch-size full-validation "
     "moe-eval-capacity-factor "
     "query-in-block-prob retriever-report-topk-accuracies retriever-score-scaling "
     "retriever-seq-length skip-train start-eval-at-iter test-mode"},
    {"a factor of the learning rate, the loss or the update",
     "adam-beta1 adam-beta2 adam-eps apply-wd-to-qk-layernorm calculate-per-token-loss "
     "clip-grad ddp-average-in-collective decoupled-lr decoupled-min-lr ds-fused-adam "
     "end-weight-decay fp8-amax-compute-algo fp8-amax-history-len fp8-margin "
     "grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-entropy-term-weight "
     "grpo-filter-groups-with-same-reward grpo-group-size grpo-iterations grpo-kl-beta "
     "grpo-prompts-per-step head-lr-mult hysteresis initial-loss-scale iterations-to-skip "
     "lion-beta1 lion-beta2 loss-scale loss-scale-window lr lr-decay-iters lr-decay-samples "
     "lr-decay-steps lr-decay-style lr-decay-tokens lr-warmup-fraction lr-warmup-init "
     "lr-warmup-iters lr-warmup-samples lr-warmup-steps lr-warmup-tokens lr-wsd-decay-iters "
     "lr-wsd-decay-samples lr-wsd-decay-style min-loss-scale min-lr moe-aux-loss-coeff "
     "moe-loss-coeff moe-router-bias-update-rate moe-router-topk-scaling-factor "
     "moe-z-loss-coeff mtp-loss-scaling-factor mup-base-hidden-size "
     "no-weight-decay-cond-type phase-transition-iterations "
     "sgd-momentum skip-train-iteration-range softmax-scale start-weight-decay wd-incr-steps "
     "weight-decay weight-decay-incr-style wsd-decay-steps"},
    {"initial values, before the first step",
     "embedding-init-method embedding-init-method-std inference-sampling-seed init-method "
     "init-method-std init-method-xavier-uniform init-model-with-meta-device "
     "mup-attn-scale-power mup-base-head-dim mup-embedding-mult mup-output-mult "
     "mup-width-mult no-initialization output-layer-init-method perform-initialization seed "
     "te-rng-tracker use-cpu-initialization use-mup use-same-sampling-seed-across-dp-ranks "
     "use-te-rng-tracker"},
    {"a file of the tokenizer, which the vocabulary counts",
     "allow-ambiguous-pad-tokens chat-template legacy-tokenizer merge-file "
     "null-tokenizer-eod-id null-tokenizer-pad-id sft-tokenizer-prompt-format special-tokens "
     "tiktoken-num-special-tokens tiktoken-pattern tokenizer-hf-no-include-special-tokens "
     "tokenizer-hf-no-use-fast tokenizer-model tokenizer-name-or-path "
     "tokenizer-sentencepiece-ignore-extra-whitespaces tokenizer-sentencepiece-legacy "
     "tokenizer-type trust-remote-code use-gigatoken vocab-extra-ids vocab-file"},
    {"a factor inside the same kernels",
     "activation-func-clamp-value add-position-embedding apply-layernorm-1p "
     "apply-query-key-layer-scaling apply-residual-connection-post-layernorm "
     "data-parallel-random glu-linear-offset layernorm-epsilon layernorm-zero-centered-gamma "
     "moe-input-jitter-eps mrope-section mscale mscale-all-dim no-add-qkv-bias "
     "no-position-embedding no-query-key-layer-scaling no-rope-freq "
     "no-yarn-correction-range-round-to-int norm-epsilon openai-gelu out-seq-length "
     "qk-clip-alpha qk-clip-threshold rope-scaling-factor rope-type rotary-base "
     "rotary-interleaved rotary-percent rotary-position-embeddings-theta "
     "rotary-scaling-factor rotary-seq-len-interpolation-factor squared-relu use-rope-scaling "
     "yarn-beta-fast yarn-beta-slow yarn-correction-range-round-to-int "
     "yarn-original-max-position-embeddings"},
    {"the router's scores, which are small next to the experts",
     "moe-router-dtype moe-router-enable-expert-bias moe-router-force-biased "
     "moe-router-fusion moe-router-group-topk "
     "moe-router-load-balancing-type moe-router-num-groups moe-router-padding-for-fp8 "
     "moe-router-padding-for-quantization moe-router-pre-softmax "
     "moe-router-quantile-balancing-ema moe-router-score-function "
     "moe-router-topk-limited-devices moe-token-drop-policy"},
    {"the code that runs, not the work that it does",
     "DDP-impl abort-on-unmet-fused-kernel-constraints align-grad-reduce apply-rope-fusion "
     "bias-activation-fusion bias-dropout-fusion deepspeed-activation-checkpointing "
     "enable-experimental gradient-accumulation-fusion manual-gc "
     "manual-gc-eval manual-gc-interval masked-softmax-fusion "
     "no-contiguous-buffers-in-local-ddp "
     "onnx-safe persist-layer-norm use-mcore-models use-pin-memory"},
    {"read by nothing in the program",
     "zero-allgather-bucket-size zero-contigious-gradients zero-reduce-bucket-size "
     "zero-reduce-scatter"},
    {"names the JSON, which is read on its own", "deepspeed-config ds-config"},
    {"of inference",
     "cache-mla-latents decode-only-cuda-graphs ds-inference enable-chunked-prefill "
     "flash-decode inference-batch-times-seqlen-threshold "
     "inference-coordinator-port inference-cuda-graph-all-prefills "
     "inference-cuda-graph-max-tokens inference-cuda-graph-scope "
     "inference-disable-ep-consensus inference-disable-triton-nvls-kernels "
     "inference-dynamic-batching inference-dynamic-batching-async-sched-mode "
     "inference-dynamic-batching-block-size inference-dynamic-batching-buffer-size-gb "
     "inference-dynamic-batching-cuda-graph-mixed-prefill-count "
     "inference-dynamic-batching-cuda-graph-sizing-distribution "
     "inference-dynamic-batching-logprobs-mode inference-dynamic-batching-mamba-memory-ratio "
     "inference-dynamic-batching-max-requests inference-dynamic-batching-max-tokens "
     "inference-dynamic-batching-num-cuda-graphs "
     "inference-dynamic-batching-paused-buffer-size-gb "
     "inference-dynamic-batching-prefix-caching "
     "inference-dynamic-batching-prefix-caching-coordinator-policy "
     "inference-dynamic-batching-prefix-caching-eviction-policy "
     "inference-dynamic-batching-prefix-caching-mamba-gb "
     "inference-dynamic-batching-prefix-caching-routing-alpha "
     "inference-dynamic-batching-sampling-backend "
     "inference-dynamic-batching-track-generated-token-events "
     "inference-dynamic-batching-track-paused-request-events "
     "inference-dynamic-batching-unified-memory-level inference-fuse-tp-communication "
     "inference-grouped-gemm-backend inference-logging-step-interval inference-max-requests "
     "inference-max-seq-length inference-moe-disable-fused-quant-kernels "
     "inference-moe-token-dispatcher-type inference-rng-tracker inference-shards "
     "inference-text-gen-server-logging inference-use-synchronous-zmq-collectives "
     "inference-wandb-logging max-tokens-to-oom mlp-chunks-for-prefill "
     "nccl-all-reduce-for-prefill num-speculative-tokens "
     "rl-inference-expert-model-parallel-size rl-inference-expert-tensor-model-parallel-size "
     "rl-inference-logprobs-is-correction rl-inference-model-unified-memory-level "
     "rl-inference-parsers rl-inference-pipeline-model-parallel-size "
     "rl-inference-tensor-model-parallel-size use-inference-optimized-layers "
     "use-legacy-static-engine"},
    {"of programs that are refused by their name",
     "biencoder-projection-dim biencoder-shared-query-context-model dino-bottleneck-size "
     "dino-freeze-last-layer dino-head-hidden-size dino-local-crops-number "
     "dino-local-img-size dino-norm-last-layer dino-teacher-temp dino-warmup-teacher-temp "
     "dino-warmup-teacher-temp-epochs ict-head-size img-h img-w indexer-batch-size "
     "langrl-env-config num-channels num-classes output-bert-embeddings patch-dim "
     "relative-attention-max-distance relative-attention-num-buckets retro-cyclic-train-iters "
     "retro-encoder-attention-dropout retro-encoder-hidden-dropout retro-encoder-layers "
     "retro-num-neighbors retro-num-retrieved-chunks retro-return-doc-ids retro-workdir "
     "rl-consumption-granularity rl-default-temperature rl-default-top-k rl-default-top-p "
     "rl-durable-rollout-bank rl-generation-lag rl-importance-sampling-truncation-coef "
     "rl-kv-cache-management-mode rl-max-inflight-requests "
     "rl-offload-inference-model-weights-when-idle rl-offload-optimizer-during-inference "
     "rl-partial-rollouts rl-persist-cuda-graphs rl-profile rl-profile-dir "
     "rl-prompts-per-eval rl-rollout-bank-dir rl-rollout-bank-max-bytes "
     "rl-sequence-packing-algo rl-sequence-packing-max-sequences-per-bin rl-skip-bos-token "
     "rl-submission-granularity rl-training-cuda-graphs rl-use-sequence-packing "
     "rl-verify-model-weights-swap swin-backbone-type vision-backbone-type vision-pretraining "
     "vision-pretraining-type"},
    {"of a teacher, which --kd or --mos asks for",
     "hidden-size-teacher kd-alpha-ce kd-beta-ce kd-temp num-attention-heads-teacher "
     "num-experts-teacher num-layers-teacher"},
    {"says how --export-* writes a model",
     "export-default-te-spec export-force-local-attention export-kd-teacher-ckpt-format "
     "export-kd-teacher-load export-kd-teacher-model-config export-kv-cache-quant "
     "export-legacy-megatron export-model-type export-moe-apply-probs-on-input "
     "export-offline-model export-qk-l2-norm export-real-quant-cfg export-te-mcore-model "
     "modelopt-enabled"}};

// Arguments of the same sources that affect the cost of some run.
constexpr std::string_view unmodelled =
    "inference activation-func activation-func-fp8-input-store activation-offload-fraction "
    "add-bias-linear attention-output-gate attention-softmax-in-fp32 autocast-dtype "
    "batch-invariant-backend batch-invariant-mode batch-p2p-comm batch-p2p-sync "
    "clone-scatter-output-in-embedding cpu-offloading-activations "
    "cpu-offloading-double-buffering cpu-offloading-num-layers "
    "cpu-offloading-retain-pinned-cpu-buffers cpu-offloading-weights "
    "cross-entropy-fusion-impl cross-entropy-loss-fusion "
    "cuda-graph-retain-backward-graph cuda-graph-use-single-mempool cuda-graph-warmup-steps "
    "data-efficiency-curriculum-learning ddp-num-buckets ddp-pad-buckets-for-high-nccl-busbw "
    "ddp-param-name-patterns-for-fp32-local-accumulation "
    "ddp-reduce-scatter-with-fp32-accumulation deallocate-pipeline-outputs "
    "decrease-batch-size-if-needed defer-embedding-wgrad-compute "
    "delay-offload-until-cuda-graph delay-wgrad-compute delta-offload-bytes-across-pp-ranks "
    "disable-bf16-reduced-precision-matmul disable-mem-efficient-ln "
    "disable-moe-top2-2nd-expert-sampling disable-parameter-transpose-cache "
    "disable-symmetric-registration ds-sequence-parallel-fpdt-chunk-size "
    "ds-sequence-parallel-fpdt-offloading dsa-indexer-head-dim dsa-indexer-k-norm-epsilon "
    "dsa-indexer-k-norm-fp32 dsa-indexer-loss-coeff dsa-indexer-n-heads "
    "dsa-indexer-rope-interleaved dsa-indexer-rotate-activation dsa-indexer-scoring-relu "
    "dsa-indexer-skip-topk-offset dsa-indexer-topk dsa-indexer-topk-freq "
    "dsa-indexer-use-sparse-loss dsa-kernel-backend embedding-weights-in-fp32 "
    "empty-unused-memory-level enable-autocast enable-full-sharding-in-hsdp enable-gpt-oss "
    "enable-mhc-connections enable-zbh1-exact-semantics ep-overlap-early-attn-memory-release "
    "experimental-attention-variant-loss-scale-func expert-gtp-weight-remat-size "
    "expert-tensor-parallel-num-weight-shards export-kd-cfg export-quant-cfg "
    "fine-grained-offloading-max-inflight-offloads first-last-layers-bf16 "
    "flash-attention-version force-ds-sequence-parallel fp16-lm-cross-entropy "
    "fp32-residual-connection fp4-param fp4-param-gather fp4-quantizer-factory fp4-recipe fp8 "
    "fp8-dot-product-attention fp8-e4m3 fp8-interval fp8-multi-head-attention fp8-output-proj "
    "fp8-param fp8-quantizer-factory fp8-wgrad freeze-base-for-mtp "
    "fsdp-db-use-persist-buf-on-alloc-fail fsdp-double-buffer fsdp-manual-registration "
    "fused-residual-rmsnorm fused-single-qkv-rope gated-linear-unit gdp-cutedsl-kernel "
    "gdp-num-chunk-states-to-recompute gdp-num-householder gtp-expert-remat-nccl-ub "
    "gtp-remat-nccl-ub gtp-remat-opt-in-modules "
    "gtp-remat-reduce-scatter-with-fp32-accumulation gtp-weight-remat-size "
    "heterogeneous-block-specs high-priority-a2a-comm-stream high-priority-stream-groups "
    "hybrid-context-parallel keep-fp8-transpose-cache kitchen-attention-backend "
    "kitchen-config-file kitchen-recipe-number kv-lora-rank linear-conv-kernel-dim "
    "linear-key-head-dim linear-num-key-heads linear-num-value-heads linear-value-head-dim "
    "logits-load-decode-threads logits-load-dir logits-load-ignore-errors "
    "logits-load-kd-loss-alpha logits-load-msc-prefetch-depth logits-load-prefetch-factor "
    "logits-save-dir logits-save-dtype logits-save-top-k logits-save-top-p "
    "logits-save-top-p-min-k mamba-head-dim mamba-inference-conv-states-dtype "
    "mamba-inference-ssm-states-dtype mamba-num-groups mamba-num-heads mamba-state-dim "
    "mamba-training-ssm-states-dtype masked-lm-prob max-seqlen-per-dp-cp-rank "
    "megatron-fsdp-enable-fine-grained-param-gather megatron-fsdp-grad-comm-dtype "
    "megatron-fsdp-main-grads-dtype megatron-fsdp-main-params-dtype "
    "megatron-fsdp-max-pool-double-buffer megatron-fsdp-version memory-centric-tiled-linear "
    "memory-efficient-layer-norm mhc-init-gating-factor mhc-num-residual-streams "
    "mhc-recompute-layer-num mhc-sinkhorn-iterations microbatch-group-size-per-vp-stage "
    "min-offloaded-tensor-size mla-down-proj-fusion mlp-chunks-for-training "
    "moe-apply-probs-on-input moe-combine-bwd-dtype moe-deepep-num-sms moe-dispatch-fwd-dtype "
    "moe-enable-routing-replay moe-expert-rank-capacity-factor moe-flex-dispatcher-backend "
    "moe-flex-dispatcher-num-sms moe-grad-scale-func moe-hybridep-num-blocks-permute "
    "moe-hybridep-num-blocks-unpermute moe-hybridep-num-sms "
    "moe-hybridep-num-sms-preprocessing moe-hybridep-pad-uneven-dispatch-inputs "
    "moe-latent-size moe-mlp-glu-interleave-size moe-ncclep-zero-copy "
    "moe-pad-experts-for-cuda-graph-inference moe-paged-stash "
    "moe-paged-stash-buffer-size-factor-cpu moe-paged-stash-buffer-size-factor-cuda "
    "moe-paged-stash-page-size moe-permute-fusion moe-permute-fusion-into-hybridep "
    "moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits "
    "moe-routing-trace-dump-weights moe-routing-trace-max-training-iters "
    "moe-routing-trace-path moe-shared-expert-gate moe-shared-expert-glu-interleave-size "
    "moe-shared-expert-overlap moe-single-grouped-bias moe-single-grouped-weight "
    "moe-token-dropping moe-upcycling-granularity moe-use-grouped-tensor moe-use-upcycling "
    "mtp-detach-heads mtp-grad-scale-func mtp-hsm mtp-hybrid-override-pattern mtp-standalone "
    "mtp-use-repeated-layer muon-coefficient-type muon-extra-scale-factor "
    "muon-fp32-matmul-prec muon-momentum muon-nesterov muon-no-split-qkv muon-num-ns-steps "
    "muon-scalar-optimizer muon-scale-mode muon-tp-mode muon-use-syrk "
    "nccl-communicator-config-path nccl-ub no-align-param-gather no-fp8-wgrad "
    "no-pin-cpu-grads no-pin-cpu-params no-scatter-gather-tensors-in-pipeline "
    "no-use-layer-wise-param-layout num-experts-switch num-layers-at-end-in-bf16 "
    "num-layers-at-start-in-bf16 num-microbatches-with-partial-activation-checkpoints "
    "num-moe-experts offload-modules optimizer-cuda-graph optimizer-offload-fraction "
    "outer-dp-sharding-strategy output-logit-dtype overlap-cpu-optimizer-d2h-h2d "
    "overlap-dispatch-backward-with-experts-wgrad overlap-p2p-comm "
    "overlap-p2p-comm-warmup-flush overlap-p2p-communication "
    "overlap-param-gather-with-optimizer-step pad-vocab-size padded-vocab-size params-dtype "
    "pipeline-dtype pipeline-model-parallel-comm-backend q-lora-rank qad-train-target qk-clip "
    "qk-head-dim qk-l2-norm qk-pos-emb-head-dim quant-recipe refit-method "
    "reuse-grad-buf-for-mxfp8-param-ag scattered-embeddings sharp-enabled-group softmax-type "
    "split-transformers standalone-embedding-stage suggested-communication-unit-size "
    "symmetric-ar-type te-precision-config-file tensor-parallel-num-weight-shards tile-factor "
    "timing-log-level torch-fsdp2-no-reshard-after-forward tp-comm-atomic-ag "
    "tp-comm-atomic-rs tp-comm-bootstrap-backend tp-comm-bulk-dgrad tp-comm-bulk-wgrad "
    "tp-comm-overlap-ag tp-comm-overlap-cfg tp-comm-overlap-disable-fc1 "
    "tp-comm-overlap-disable-qkv tp-comm-overlap-rs tp-comm-overlap-rs-dgrad tp-comm-split-ag "
    "tp-comm-split-rs tp-only-amax-red train-sync-interval use-fused-weighted-squared-relu "
    "use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert use-kitchen "
    "use-kitchen-attention use-mamba-mem-eff-path use-nccl-ub use-ring-exchange-p2p use-sharp "
    "use-te-activation-func use-torch-optimizer-for-cpu-offload "
    "use-transformer-engine-op-fuser v-head-dim variable-seq-lengths "
    "virtual-pipeline-model-parallel-size wgrad-deferral-limit";

}  // namespace

std::span<const CostlessGroup> costless_groups() { return groups; }

std::string_view costless_reason(std::string_view name) {
  const auto found = std::ranges::find_if(
      groups, [&](const CostlessGroup& group) { return holds_name(group.names, name); });
  return found == std::end(groups) ? std::string_view() : found->reason;
}

std::string_view unmodelled_names() { return unmodelled; }

bool is_unmodelled(std::string_view name) { return holds_name(unmodelled, name); }

}  // namespace lambcast::megatron
