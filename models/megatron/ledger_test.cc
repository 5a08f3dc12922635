#include <algorithm>
#include <catch2/catch.hpp>

#include "models/megatron/arguments.h"
#include "models/megatron/costless_arguments.h"
#include "models/megatron/known_arguments.h"
#include "models/megatron/vocabulary.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

const std::string base =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --vocab-size 50257 --micro-batch-size 2 --global-batch-size 64 "
    "--train-iters 300 --bf16 ";

// Returns the effect of `key` among the arguments `more` and those of `base`.
Treatment treatment_of(const std::string& key, const std::string& more) {
  for (const LedgerEntry& entry : decode(base + more, "a").ledger)
    if (entry.key == key) return entry.treatment;
  throw std::logic_error("no such entry");
}

TEST_CASE("ledger: arguments are applied, costless with a reason, or named") {
  CHECK(treatment_of("--num-layers", "") == Treatment::applied);
  CHECK(treatment_of("--bf16", "") == Treatment::applied);
  CHECK(treatment_of("--seed", "--seed 4") == Treatment::costless);
  const std::string divided = "--context-parallel-size 2 --use-distributed-optimizer ";
  const auto of_group = [&](const char* key, const char* value) {
    return treatment_of(key, divided + "--overlap-grad-reduce " + key + " " + value);
  };
  CHECK(of_group("--cp-comm-type", "a2a") == Treatment::applied);
  CHECK(of_group("--cp-comm-type", "allgather") == Treatment::named);
  CHECK(of_group("--cp-comm-type", "p2p a2a") == Treatment::named);
  CHECK(of_group("--ddp-bucket-size", "100000000") == Treatment::applied);
  CHECK(of_group("--num-distributed-optimizer-instances", "2") == Treatment::applied);
  CHECK(treatment_of("--fp8-param-gather", divided + "--fp8-format hybrid --fp8-param-gather") ==
        Treatment::applied);
  CHECK(treatment_of("--fp8-param-gather", divided + "--fp8-format e4m3 --fp8-recipe mxfp8 "
                                                     "--fp8-param-gather") == Treatment::named);
  CHECK(treatment_of("--exp-avg-dtype", "--use-precision-aware-optimizer --exp-avg-dtype bf16") ==
        Treatment::applied);
  CHECK(treatment_of("--cuda-graph-impl", "--cuda-graph-impl local") == Treatment::applied);
  CHECK(treatment_of("--cuda-graph-scope", "--cuda-graph-impl local --cuda-graph-scope attn") ==
        Treatment::named);
  // In this run, these arguments have no effect.
  CHECK(treatment_of("--fp8-param-gather", "--fp8-param-gather") == Treatment::named);
  CHECK(treatment_of("--exp-avg-dtype", "--exp-avg-dtype bf16") == Treatment::named);
  CHECK(treatment_of("--cp-comm-type", "--cp-comm-type a2a") == Treatment::named);
  CHECK(treatment_of("--ddp-bucket-size", "--ddp-bucket-size 1000000") == Treatment::named);
  CHECK(treatment_of("--softmax-type", "--softmax-type off-by-one") == Treatment::named);
  CHECK(treatment_of("--zzzzzzzz", "--zzzzzzzz 1") == Treatment::named);
  CHECK(treatment_of("--sequence-parallel", "--sequence-parallel") == Treatment::named);
  CHECK(treatment_of("--sequence-parallel", "--sequence-parallel --tensor-model-parallel-size 2") ==
        Treatment::applied);
  CHECK(treatment_of("--use-distributed-optimizer",
                     "--use-distributed-optimizer --use-megatron-fsdp") == Treatment::named);
  // This run has no experts, so their arguments have no effect.
  CHECK(treatment_of("--moe-grouped-gemm", "--moe-grouped-gemm") == Treatment::named);
}

bool same_answer(const Arguments& a, const Arguments& b) {
  return a.what_if == b.what_if && a.model == b.model;
}

// Each existing argument changes the result, is named in a finding, is refused, or is costless.
TEST_CASE("ledger: no known argument is ignored silently") {
  std::vector<std::string> names = known_arguments();
  for (const CostlessKeys& group : costless_groups())
    for_each_name(group.keys, [&](std::string_view name) { names.emplace_back(name); });
  int accepted = 0;
  for (const std::string& name : names) {
    if (base.find("--" + name + " ") != std::string::npos) continue;
    bool taken = false, told = !costless_reason(name).empty();
    // Runs of two frameworks and of several layouts, with values of all kinds, so that every
    // argument applies in one of them.
    for (const std::string& run : {base, base + "--deepspeed --tensor-model-parallel-size 2 ",
                                   base + "--nproc-per-node 8 --attention-dropout 0 "})
      for (const char* value : {"", " 2", " none", " local", " 64,0", " 0"}) {
        try {
          const Arguments with = decode(run + "--" + name + value, "a");
          taken = true;
          told = told || !same_answer(decode(run, "a"), with) ||
                 std::ranges::any_of(with.findings, [&](const Finding& finding) {
                   return finding.message.find("--" + name + ":") != std::string::npos;
                 });
        } catch (const Error&) {
          continue;  // the argument needs another value, or is refused
        }
      }
    INFO(name);
    CHECK((told || !taken));
    accepted += taken ? 1 : 0;
  }
  CHECK(accepted > 500);
}

// Arguments that change kernels, messages or parameters in some run must not count as costless.
TEST_CASE("ledger: arguments that affect the cost are not called costless") {
  for (const char* name : {"cp-comm-type",
                           "moe-grouped-gemm",
                           "fp8-param-gather",
                           "ddp-bucket-size",
                           "external-cuda-graph",
                           "cuda-graph-scope",
                           "no-gradient-accumulation-fusion",
                           "no-bias-swiglu-fusion",
                           "no-masked-softmax-fusion",
                           "no-rope-fusion",
                           "no-persist-layer-norm",
                           "cross-entropy-loss-fusion",
                           "moe-permute-fusion",
                           "use-tp-pp-dp-mapping",
                           "use-legacy-models",
                           "accumulate-allreduce-grads-in-fp32",
                           "add-qkv-bias",
                           "disable-bias-linear",
                           "qk-layernorm",
                           "quick-geglu",
                           "disable-jit-fuser",
                           "reset-attention-mask",
                           "dataloader-inter-document-masking",
                           "log-params-norm",
                           "no-gradient-reduce-div-fusion",
                           "no-scatter-gather-tensors",
                           "empty-unused-memory-level",
                           "num-distributed-optimizer-instances",
                           "use-precision-aware-optimizer",
                           "fine-grained-activation-offloading",
                           "timing-log-level"}) {
    INFO(name);
    CHECK(costless_reason(name).empty());
  }
  // All gates describe the same model; only --swiglu changes the default width.
  CHECK(decode(base + "--quick-geglu", "a").model ==
        decode(base + "--swiglu --ffn-hidden-size 4096", "a").model);
}

TEST_CASE("ledger: activations on the host are those that the launch names") {
  const auto offload = [](const std::string& more) {
    for (const auto& [key, value] : decode(base + more, "a").what_if)
      if (key == "offload_activations") return value;
    return std::string();
  };
  const std::string fine = "--fine-grained-activation-offloading --offload-modules ";
  CHECK(offload("--cpu-offloading-num-layers 12") == "blocks:12");
  CHECK(offload("--cpu-offloading --cpu-offloading-num-layers 0").empty());
  CHECK(offload("--checkpoint-activations --checkpoint-in-cpu") == "checkpoints");
  CHECK(offload(fine + "core_attn attn_proj") == "core_attn+attn_proj:1");
  CHECK(offload(fine + "mlp_norm --activation-offload-fraction 0.5") == "mlp_norm:0.5");
  CHECK(offload(fine + "mlp_norm --activation-offload-fraction 0").empty());
  CHECK(treatment_of("--offload-modules", fine + "core_attn fused_group_mlp") == Treatment::named);
  CHECK(treatment_of("--offload-modules", "--offload-modules core_attn") == Treatment::named);
  CHECK_THROWS_WITH(offload(fine + "core_atn"),
                    Catch::Contains("--offload-modules") && Catch::Contains("core_attn"));
}

// A list with an argument of another model or run is refused, since its forecast would be of
// another run.
TEST_CASE("ledger: arguments of other models and runs are refused") {
  for (const std::string_view name : refused_arguments())
    CHECK_THROWS_WITH(decode(base + "--" + std::string(name) + " 2", "a"),
                      Catch::Contains("a:1: --" + std::string(name) + ": this is not modelled"));
}

TEST_CASE("ledger: the run ends at the first of tokens, samples and iterations") {
  const auto value = [](const std::string& text, const char* key) {
    const Arguments arguments = decode(
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 " + text, "a");
    const auto found =
        std::ranges::find(arguments.what_if, key, &std::pair<std::string, std::string>::first);
    return found == arguments.what_if.end() ? "" : found->second;
  };
  CHECK(value("--train-samples 100 --train-tokens 12801", "samples") == "100");
  CHECK(value("--train-samples 100 --train-tokens 1281", "samples") == "11");
  CHECK(value("--train-tokens 1281", "samples") == "11");
  CHECK(value("--train-iters 100 --global-batch-size 4 --train-tokens 1281", "steps") == "3");
  CHECK(value("--train-iters 2 --global-batch-size 4 --train-tokens 1281", "steps") == "2");
  CHECK(value("--train-iters 100 --train-tokens 1281", "steps") == "100");
  CHECK(value("--curriculum-learning --train-samples 100 --train-tokens 1281", "samples") == "100");
}

TEST_CASE("ledger: a static loss scale is named for Megatron-LM") {
  const auto named = [](const std::string& text) {
    const std::string model =
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 ";
    return std::ranges::any_of(decode(model + text, "a").findings, [](const Finding& finding) {
      return finding.message.find("--loss-scale") != std::string::npos;
    });
  };
  CHECK(named("--fp16 --loss-scale 1024"));
  CHECK_FALSE(named("--bf16 --loss-scale 1024"));
  CHECK_FALSE(named("--fp16 --loss-scale 12 --deepspeed"));  // the JSON has its own
}

TEST_CASE("ledger: names of older releases, and existing names similar to others") {
  const auto tp = [](const std::string& text) {
    const Arguments arguments = decode(base + text, "a");
    return std::ranges::find(arguments.what_if, "tp", &std::pair<std::string, std::string>::first)
        ->second;
  };
  CHECK(tp("--model-parallel-size 4") == "4");
  for (const char* real : {"--rope-type rope", "--num-attention-heads-teacher 4", "--spec a b",
                           "--moe-router-fusion", "--rotary-position-embeddings-theta 5"})
    CHECK_NOTHROW(decode(base + real, "a"));
}

TEST_CASE("vocabulary: tokenizers with known names") {
  CHECK(vocabulary_of_type("GPT2BPETokenizer")->words == 50257);
  CHECK_FALSE(vocabulary_of_type("HFTokenizer"));
  CHECK(vocabulary_of_name("google/mt5-base")->words == 250100);
  CHECK(vocabulary_of_name("t5-small")->words == 32100);
  CHECK(vocabulary_of_name("/data/Llama-3-8B/tokenizer.model")->words == 128256);
  CHECK(vocabulary_of_name("bert-large-uncased-vocab.txt")->words == 30522);
  CHECK_FALSE(vocabulary_of_name("chat5-small"));
  CHECK_FALSE(vocabulary_of_name("./tokenizer.model"));
  const std::string text =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 ";
  CHECK(decode(text + "--tokenizer-type GPTSentencePieceTokenizer", "a").lacks_vocabulary);
  const Arguments named = decode(text + "--tokenizer-name-or-path t5-small", "a");
  CHECK_FALSE(named.lacks_vocabulary);
  CHECK_THAT(named.model, Catch::Matchers::Contains("vocab = 32100"));
  CHECK(named.findings.front().code == "vocab-size-assumed");
}

}  // namespace
}  // namespace lambcast::megatron
