#include "models/megatron/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "models/megatron/argument_reader.h"
#include "models/megatron/batch_schedule.h"
#include "models/megatron/known_arguments.h"
#include "models/megatron/model_arguments.h"
#include "models/megatron/shell_values.h"
#include "models/parallel/activation_offload.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

constexpr std::int64_t most_tokens = 1'000'000'000'000'000;

class Decoder {
 public:
  Decoder(std::string_view text, const std::string& file, const Variables& given)
      : read_(text, file, given, result_.findings) {}

  Arguments decode() {
    read_.refuse_encoder();
    deepspeed_ = read_.flag("deepspeed");
    set("framework", deepspeed_ ? "deepspeed" : "megatron");
    if (deepspeed_) deepspeed_config();
    layout();
    states();
    recomputation();
    offloading();
    experts();
    run();
    overlap();
    graphs();
    refuse_unmodelled();
    name_unmodelled();
    if (read_.has("num-layers")) {
      ModelDescription model = describe_model(read_);
      result_.model = std::move(model.toml);
      result_.lacks_vocabulary = model.lacks_vocabulary;
    }
    read_.name_unread();
    result_.ledger = read_.ledger();
    return std::move(result_);
  }

 private:
  void set(const char* key, std::string value) {
    result_.what_if.emplace_back(key, std::move(value));
  }
  void set_whole(const char* key, const std::string& argument) {
    if (const auto value = read_.whole(argument)) set(key, fmt::format("{}", *value));
  }

  void without_effect(const char* argument, const char* why) {
    read_.note(argument, "flag-no-effect", why);
  }

  // The JSON determines the ZeRO stage and the optimizer; --zero-stage repeats the stage.
  void deepspeed_config() {
    for (const char* key : {"deepspeed-config", "ds-config"})
      if (const auto path = read_.word(key)) {
        result_.config_name = with_names(*path);
        if (const std::string* text = read_.written_file(*path)) result_.config = *text;
      }
  }

  void layout() {
    set_whole("tp", "tensor-model-parallel-size");
    set_whole("pp", "pipeline-model-parallel-size");
    // Megatron-DeepSpeed divides sequences by heads (Ulysses), and has a separate argument for
    // experts.
    const bool ulysses = deepspeed_ && read_.whole("ds-sequence-parallel-size").value_or(1) > 1;
    set_whole("cp", ulysses ? "ds-sequence-parallel-size" : "context-parallel-size");
    const bool of_deepspeed = deepspeed_ && read_.has("moe-expert-parallel-size");
    set_whole("ep", of_deepspeed ? "moe-expert-parallel-size" : "expert-model-parallel-size");
    if (deepspeed_ && has_experts(read_) && !read_.flag("enable-expert-tensor-parallelism"))
      set("etp", "1");
    set_whole("etp", "expert-tensor-parallel-size");
    if (read_.flag("sequence-parallel")) {
      if (read_.whole("tensor-model-parallel-size").value_or(1) > 1)
        set("sequence_parallel", "true");
      else
        without_effect("sequence-parallel", "one rank of tensor parallelism divides nothing");
    }
    if (read_.flag("use-tp-pp-dp-mapping")) set("order", "tp-cp-ep-pp-dp");
    set_whole("interleave", "num-virtual-stages-per-pipeline-rank");
    if (const auto chunk = read_.whole("num-layers-per-virtual-pipeline-stage")) {
      const std::int64_t stages = read_.whole("pipeline-model-parallel-size").value_or(1);
      const std::int64_t layers = read_.needed("num-layers");
      if (layers % (stages * *chunk) != 0)
        fail_input(
            read_.where("num-layers-per-virtual-pipeline-stage"),
            fmt::format("{} layers are not divisible by {} stages x {}", layers, stages, *chunk));
      set("interleave", fmt::format("{}", layers / stages / *chunk));
    }
    const std::string ends[] = {"account-for-embedding-in-pipeline-split",
                                "account-for-loss-in-pipeline-split"};
    const bool embedding = read_.flag(ends[0]), loss = read_.flag(ends[1]);
    if (embedding && loss) set("split", "count_ends");
    if (embedding != loss)
      read_.refuse(ends[loss], "counting only one end of the model as a layer");
    exchange_context();
    const auto nodes = read_.whole("nnodes", 65536), ranks = read_.whole("nproc-per-node", 65536);
    if (nodes && ranks) set("gpus", fmt::format("{}", *nodes * *ranks));
    if (!ranks) set_whole("gpus", "world-size");
    if (ranks) set("gpus_per_node", fmt::format("{}", *ranks));
  }

  // Reads --cp-comm-type, which may be a list with the exchange of each layer.
  void exchange_context() {
    if (read_.whole("context-parallel-size").value_or(1) == 1) return;
    const std::vector<std::string> ways = read_.values("cp-comm-type");
    if (ways == std::vector<std::string>{"a2a"}) set("context_exchange", "heads");
    if (ways.size() > 1 || (ways.size() == 1 && ways[0] != "a2a" && ways[0] != "p2p"))
      read_.note("cp-comm-type", "not-modelled", "keys and values are taken to pass around a ring");
  }

  void states() {
    const bool fsdp = read_.flag("use-megatron-fsdp") || read_.flag("use-custom-fsdp") ||
                      read_.flag("use-torch-fsdp2");
    const auto strategy = read_.choice("data-parallel-sharding-strategy",
                                       {"no_shard", "optim", "optim_grads", "optim_grads_params"});
    const std::size_t stage = fsdp ? strategy.value_or(3) : 0;
    const bool shared = read_.flag("use-distributed-optimizer");
    const std::string zero = deepspeed_ ? read_.word("zero-stage").value_or("0") : "";
    if (shared && fsdp && stage > 0)
      without_effect("use-distributed-optimizer", "FSDP's strategy decides what ranks share");
    if (shared) set_whole("shard_groups", "num-distributed-optimizer-instances");
    set("zero_stage", deepspeed_ ? zero : fmt::format("{}", fsdp ? stage : shared ? 1 : 0));
    // Under bf16 and fp32 the main gradients are in fp32, unless an argument changes it.
    const bool half = read_.flag("fp16") && !read_.flag("accumulate-allreduce-grads-in-fp32");
    const bool narrow = read_.flag("grad-reduce-in-bf16");
    const bool single = !read_.flag("fp16") && !read_.flag("bf16");
    if (narrow && single)  // distributed_data_parallel.py: else the weight's type
      without_effect("grad-reduce-in-bf16", "gradients of fp32 weights are in fp32");
    else if (narrow || (half && !deepspeed_))
      set("fp32_gradients", "false");
    const auto optimizer = read_.choice("optimizer", {"adam", "onebit-adam", "onebit-lamb",
                                                      "zero-one-adam", "sgd", "muon", "dist_muon"});
    constexpr const char* optimizers[] = {
        "adam", "onebit_adam", "onebit_lamb", "zero_one_adam", "sgd_momentum", "muon", "muon"};
    set("optimizer", optimizers[optimizer.value_or(0)]);
    if (read_.flag("use-precision-aware-optimizer")) {
      if (optimizer.value_or(0) != 0)
        read_.refuse("use-precision-aware-optimizer", "this with another optimizer than Adam");
      state_types();
    }
    if (shared || fsdp) gather_in_fp8();
  }

  // MXFP8 weights are not gathered in fp8: ranks gather 16 bits and quantise them, with or without
  // this argument.
  void gather_in_fp8() {
    if (!is_fp8() || !read_.flag("fp8-param-gather")) return;
    if (read_.word("fp8-recipe").value_or("delayed") != "mxfp8")
      set("fp8_weight_gather", "true");
    else
      read_.note("fp8-param-gather", "not-modelled", "MXFP8 weights are gathered in bf16");
  }

  // Transformer Engine's Adam keeps only the bits of fp32 master weights that bf16 lacks.
  // Megatron-LM keeps fp32 master weights if a recipe other than delayed scaling casts them
  // (core/optimizer/optimizer_config.py, use_precision_aware_optimizer_no_fp8_or_ds_fp8).
  void state_types() {
    const auto type_of = [&](const char* key, const std::vector<std::string>& types) {
      return types[read_.choice(key, types).value_or(0)];
    };
    const std::string momentum = type_of("exp-avg-dtype", {"fp32", "bf16", "fp16", "fp8"});
    const std::string variance = type_of("exp-avg-sq-dtype", {"fp32", "bf16", "fp16", "fp8"});
    std::string master = type_of("main-params-dtype", {"fp32", "fp16"});
    const bool delayed = read_.word("fp8-recipe").value_or("delayed") == "delayed";
    const bool whole = read_.flag("no-store-param-remainders") || read_.has("fp8-param-gather");
    if (master == "fp32" && read_.flag("bf16") && !whole && (!is_fp8() || delayed)) master = "rest";
    if (read_.flag("bf16") || read_.flag("fp16"))
      set("state_types", fmt::format("{}:{}:{}", momentum, variance, master));
    if (type_of("main-grads-dtype", {"fp32", "bf16"}) == "bf16") set("fp32_gradients", "false");
  }

  bool is_fp8() const { return read_.has("fp8-format") || read_.flag("fp8-hybrid"); }

  // Reads CUDA graphs. Graphs of single modules do not count, since launches remain between them.
  void graphs() {
    const auto made =
        read_.choice("cuda-graph-impl", {"none", "local", "transformer_engine", "full_iteration"});
    const bool older = read_.flag("enable-cuda-graph") || read_.flag("external-cuda-graph");
    if (made.value_or(0) == 0 && !older) return;
    bool whole = true;
    for (const char* key : {"cuda-graph-scope", "cuda-graph-modules"})
      for (const std::string& scope : read_.values(key))
        if (scope != "full" && scope != "full_iteration") {
          read_.note(key, "not-modelled",
                     "this scope is not modelled: the host launches each kernel");
          whole = false;
        }
    if (whole) set("cuda_graphs", "true");
  }

  void recomputation() {
    const auto granularity = read_.choice("recompute-granularity", {"full", "selective"});
    const bool selective = granularity == 1 || read_.flag("recompute-activations");
    const bool checkpointed = read_.flag("checkpoint-activations");
    if (granularity == 0 || checkpointed) set("recompute", "full");
    if (checkpointed && selective) read_.refuse("checkpoint-activations", "with --recompute-*,");
    if (selective || read_.flag("moe-layer-recompute"))
      set("recompute", recomputes_experts() ? "experts" : "selective");
    if (granularity != 0 && !checkpointed) return;
    if (read_.flag("distribute-saved-activations") || read_.flag("partition-activations") ||
        read_.flag("distribute-checkpointed-activations"))
      set("partition_activations", "true");
    const auto method = read_.choice("recompute-method", {"uniform", "block"});
    const auto layers = read_.whole("recompute-num-layers");
    if (method == 1)
      read_.note("recompute-method", "not-modelled",
                 "assumed: all layers are recomputed, not only some of them");
    else if (layers.value_or(1) > 1)
      read_.note("recompute-num-layers", "not-modelled",
                 "assumed: the inputs of all layers are kept, not only those of every few layers");
  }

  // Reads the modules of "selective"; the default is the attention core.
  bool recomputes_experts() const {
    const auto modules = read_.values("recompute-modules");
    const bool experts = std::ranges::find(modules, "moe") != modules.end();
    for (const std::string& module : modules)
      if (module != "moe" && (module != "core_attn" || experts))
        read_.note("recompute-modules", "not-modelled",
                   fmt::format("'{}' is assumed to be kept", module));
    return experts || read_.flag("moe-layer-recompute");
  }

  // Reads which activations wait on the host. A number of layers enables --cpu-offloading.
  void offloading() {
    if (read_.flag("checkpoint-in-cpu")) set("offload_activations", "checkpoints");
    if (const auto layers = read_.word("cpu-offloading-num-layers"); layers && *layers != "0") {
      (void)read_.flag("cpu-offloading");
      set("offload_activations",
          fmt::format("blocks:{}", read_.needed("cpu-offloading-num-layers")));
    }
    if (!read_.flag("fine-grained-activation-offloading")) return;
    if (!read_.has("offload-modules"))
      fail_input(read_.where("fine-grained-activation-offloading"),
                 "needs --offload-modules, as in Megatron-LM");
    const std::vector<std::string>& known = parallel::offload_module_names();
    std::vector<std::string> copied;
    for (std::string& module : read_.values("offload-modules"))
      if (module == "fused_group_mlp" || module == "gdp_qkv")
        read_.note("offload-modules", "not-modelled",
                   fmt::format("the input of '{}' is assumed to stay on the GPU", module));
      else if (std::ranges::find(known, module) == known.end())
        fail_unknown(read_.where("offload-modules"), "value", module, known);
      else
        copied.push_back(std::move(module));
    const double share = read_.real("activation-offload-fraction", 1);
    if (!copied.empty() && share > 0)
      set("offload_activations", fmt::format("{}:{}", fmt::join(copied, "+"), share));
  }

  void experts() {
    if (!has_experts(read_)) return;
    if (deepspeed_) deepspeed_experts();
    const auto dispatcher =
        read_.choice("moe-token-dispatcher-type", {"allgather", "alltoall", "flex"});
    if (dispatcher.value_or(1) == 0)
      read_.note("moe-token-dispatcher-type", "not-modelled",
                 "tokens are assumed to be exchanged all to all");
    if (read_.flag("moe-enable-deepep") || dispatcher == 2) set("expert_dispatch", "deduplicated");
    if (read_.flag("moe-grouped-gemm")) set("expert_kernels", "grouped");
    if (read_.flag("overlap-moe-expert-parallel-comm")) set("expert_overlap", "true");
    const auto capacity = read_.word("moe-expert-capacity-factor");
    if (!capacity) return;
    if (read_.flag("moe-pad-expert-input-to-capacity"))
      set("capacity_factor", *capacity);
    else
      read_.note("moe-expert-capacity-factor", "not-modelled",
                 "tokens are assumed not to be dropped");
  }

  void deepspeed_experts() {
    if (read_.word("mlp-type").value_or("standard") != "standard")
      read_.refuse("mlp-type", "a dense feed-forward next to the experts");
    if (const auto factor = read_.word("moe-train-capacity-factor"))
      set("capacity_factor", *factor);
    if (read_.flag("disable-moe-token-dropping")) set("capacity_factor", "0");
    if (read_.flag("use-tutel")) set("expert_routing", "sparse");
  }

  void run() {
    set_whole("micro_batch", "micro-batch-size");
    if (read_.has("step-batch-size-schedule"))
      schedule();
    else
      set_whole("global_batch", "global-batch-size");
    set_whole("seq_len", "seq-length");
    length();
    const bool bf16 = read_.flag("bf16"), fp16 = read_.flag("fp16");
    if (bf16 && fp16) fail_input(read_.where("fp16"), "contradicts --bf16");
    std::string precision = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    if (read_.choice("fp8-format", {"e4m3", "hybrid"}) || read_.flag("fp8-hybrid"))
      precision = read_.word("fp8-recipe").value_or("delayed") == "mxfp8" ? "mxfp8" : "fp8";
    if (precision.ends_with("fp8") && !bf16)
      read_.note(fp16 ? "fp16" : "fp8-format", "not-modelled",
                 "what is not in fp8 is assumed to be in bf16");
    set("precision", precision);
    if (fp16 && !deepspeed_ && read_.has("loss-scale"))
      read_.note("loss-scale", "not-modelled",
                 "the scale is assumed to be dynamic, which skips steps");
    const auto backend =
        read_.choice("attention-backend", {"auto", "flash", "fused", "unfused", "local"});
    if (!is_fused() || (backend && *backend >= 3)) set("attention", "unfused");
    ramp();
  }

  // Megatron-DeepSpeed stops at --train-tokens if it is reached before the iterations or samples.
  // With a curriculum a sequence has fewer tokens than its length.
  void length() {
    const auto iterations = read_.whole("train-iters");
    const auto samples = iterations ? std::nullopt : read_.whole("train-samples");
    const auto tokens = read_.whole("train-tokens", most_tokens);
    const auto sequence = read_.whole("seq-length"), batch = read_.whole("global-batch-size");
    const bool curriculum =
        read_.flag("curriculum-learning") || result_.config.find("curriculum") != std::string::npos;
    std::optional<std::int64_t> whole;  // sequences for the tokens
    if (tokens && sequence && !curriculum) whole = (*tokens + *sequence - 1) / *sequence;
    if (tokens && (!whole || (iterations && !batch)))
      read_.note("train-tokens", "not-modelled", "the length is taken from iterations or samples");
    const auto least = [](std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
      return a && b ? std::min(*a, *b) : a ? *a : b.value_or(0);
    };
    if (iterations) {
      if (whole && batch) whole = (*whole + *batch - 1) / *batch;
      set("steps", fmt::format("{}", least(iterations, batch ? whole : std::nullopt)));
    } else if (samples || whole) {
      set("samples", fmt::format("{}", least(samples, whole)));
    }
  }

  // Returns whether attention is one kernel. Megatron-DeepSpeed computes scores in separate kernels
  // by default, and Megatron-LM does with --transformer-impl local.
  bool is_fused() const {
    bool asked = false;
    for (const char* kernel : {"use-flash-attn", "use-flash-attn-v1", "use-flash-attn-v2",
                               "use-flash-attn-triton", "use-flash-attn-builder"})
      asked = read_.flag(kernel) || asked;
    const auto layers =
        read_.choice("transformer-impl", {"transformer_engine", "local", "inference_optimized"});
    return asked || !(deepspeed_ || layers == 1);
  }

  void ramp() {
    if (!read_.has("rampup-batch-size")) return;
    std::vector<std::string> values = read_.values("rampup-batch-size");
    for (std::string& value : values) std::erase(value, '_');
    if (values.size() != 3)
      fail_input(read_.where("rampup-batch-size"), fmt::format("has {} values", values.size()),
                 "three: START INCREMENT SAMPLES");
    set("rampup_batch_size", fmt::format("{}", fmt::join(values, ":")));
  }

  // Reads a schedule of batch sizes; the last one is the full batch.
  void schedule() {
    const std::string key = "step-batch-size-schedule";
    if (read_.has("rampup-batch-size"))
      fail_input(read_.where("rampup-batch-size"), fmt::format("contradicts --{}", key));
    const ScheduledBatch batch =
        scheduled_batch(fmt::format("{}", fmt::join(read_.values(key), " ")),
                        read_.whole("seq-length", 1 << 24), read_.where(key));
    if (read_.whole("global-batch-size").value_or(batch.full) != batch.full)
      fail_input(read_.where("global-batch-size"),
                 fmt::format("is not the last batch of --{}, {}", key, batch.full));
    set("global_batch", fmt::format("{}", batch.full));
    if (!batch.ramp.empty()) set("rampup_batch_size", batch.ramp);
  }

  void overlap() {
    const bool gradients = read_.flag("overlap-grad-reduce");
    set("overlap", gradients ? "ddp" : "none");
    if (gradients && !read_.flag("overlap-param-gather") && read_.has("use-distributed-optimizer"))
      read_.note("overlap-grad-reduce", "not-modelled",
                 "weights are assumed to be gathered during the next forward pass, as with "
                 "--overlap-param-gather");
    if (gradients) set_whole("gradient_bucket", "ddp-bucket-size");
    if (read_.flag("tp-comm-overlap")) set("tensor_overlap", "all");
    if (read_.flag("no-overlap-p2p-communication")) set("send_overlap", "false");
  }

  void name_unmodelled() {
    for (const auto& [name, sentence] : named_arguments())
      if (const std::string key(name); read_.has(key)) read_.note(key, "not-modelled", sentence);
  }

  void refuse_unmodelled() {
    for (const char* key : {"ds-sequence-parallel-size", "moe-expert-parallel-size"})
      if (!deepspeed_ && read_.whole(key).value_or(1) > 1)
        read_.refuse(key, "this without --deepspeed");
    if (read_.has("yaml-cfg") && !read_.has("num-layers"))
      fail_input(read_.where("yaml-cfg"), "the arguments are in this file, which is not read",
                 "the arguments written out");
    for (const std::string_view name : refused_arguments())
      if (const std::string key(name); read_.has(key)) read_.refuse(key, "this");
  }

  Arguments result_;
  ArgumentReader read_;
  bool deepspeed_ = false;
};

}  // namespace

Arguments decode(std::string_view text, const std::string& file, const Variables& given) {
  return Decoder(text, file, given).decode();
}

}  // namespace lambcast::megatron
