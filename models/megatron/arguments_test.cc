#include "models/megatron/arguments.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "models/shape/load.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

using Catch::Matchers::Contains;

// Arguments of a GPT-3 175B run as listed in an example script.
const std::string gpt3 = R"(#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
NUM_NODES=16
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr localhost
    --master_port 6000
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # Can use (flash/fused/unfused/local)
    --vocab-size 50257
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --rampup-batch-size 16 16 5859375
    --train-iters 500000
    --weight-decay 0.1
    --adam-beta1 0.9
    --adam-beta2 0.95
    --init-method-std 0.006
    --clip-grad 1.0
    --fp16
    --lr 6.0e-5
    --lr-decay-style cosine
    --min-lr 6.0e-6
    --lr-warmup-fraction .001
)
MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 16
)
)";

const std::string llama = R"(--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
--num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128
--seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope
--swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
--vocab-size 128256 --micro-batch-size 1 --global-batch-size 128 --bf16 --fp8-format hybrid
--tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size=2
--num-layers-per-virtual-pipeline-stage 4 --context-parallel-size 2
--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --grad-reduce-in-bf16
--recompute-granularity selective --tp-comm-overlap
)";

std::map<std::string, std::string> what_if(const Arguments& arguments) {
  return {arguments.what_if.begin(), arguments.what_if.end()};
}

ModelShape shape_of(const std::string& text) {
  const Arguments arguments = decode(text, "args.txt");
  INFO(arguments.model);
  return load_model(Table::parse(arguments.model, "x.toml"), "./x.toml", {});
}

std::string refusal(const std::string& text) {
  try {
    decode(text, "args.txt");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "";
}

TEST_CASE("Megatron arguments: gradients of fp32 weights are in fp32, for any argument") {
  std::string single = llama;
  single.erase(single.find("--bf16 --fp8-format hybrid"), 26);
  const Arguments arguments = decode(single, "args.txt");
  CHECK_FALSE(what_if(arguments).contains("fp32_gradients"));
  CHECK(std::ranges::any_of(arguments.findings, [](const Finding& finding) {
    return finding.message.find("grad-reduce-in-bf16") != std::string::npos &&
           finding.message.ends_with("gradients of fp32 weights are in fp32");
  }));
  CHECK(what_if(decode(llama, "args.txt")).at("fp32_gradients") == "false");
}

TEST_CASE("Megatron arguments: an example script's run") {
  std::string script = gpt3;
  script.erase(script.find("export"), 7);  // a command is no argument
  const Arguments arguments = decode(script, "train.sh");
  const auto keys = what_if(arguments);
  CHECK(keys.at("framework") == "megatron");
  CHECK(keys.at("tp") == "8");
  CHECK(keys.at("pp") == "16");
  CHECK(keys.at("gpus") == "128");
  CHECK(keys.at("gpus_per_node") == "8");
  CHECK(keys.at("micro_batch") == "1");
  CHECK(keys.at("global_batch") == "1536");
  CHECK(keys.at("steps") == "500000");
  CHECK(keys.at("precision") == "fp16");
  CHECK(keys.at("zero_stage") == "0");
  CHECK(keys.at("overlap") == "none");
  CHECK(keys.at("rampup_batch_size") == "16:16:5859375");
  REQUIRE(arguments.findings.size() == 1);
  CHECK(arguments.findings.front().code == "no-launch");
  const ModelShape shape = shape_of(script);
  CHECK(shape.layers == 96);
  CHECK(shape.ffn == 4 * 12288);
  CHECK(shape.vocab == 51200);  // rounded up to a multiple of 128 x 8
  // Positions beyond the run's sequences are weights too, so positions and sequence length are
  // separate.
  for (const char* positions : {"4096", "1024"}) {
    std::string other = script;
    other.replace(other.find("embeddings 2048"), 15, std::string("embeddings ") + positions);
    CHECK(shape_of(other).max_seq_len == (positions[0] == '4' ? 4096 : 2048));
    CHECK(shape_of(other).default_seq_len == 2048);
  }
}

TEST_CASE("Megatron arguments: a ramp of the batch has three numbers") {
  std::string script = gpt3;
  script.erase(script.find("export"), 7);
  script.replace(script.find("16 16 5859375"), 13, "16 5859375");
  CHECK_THAT(refusal(script), Contains("--rampup-batch-size: has 2 values"));
}

TEST_CASE("Megatron arguments: equal steps of the batch are a ramp, others are refused") {
  std::string script = gpt3;
  script.erase(script.find("export"), 7);
  script.erase(script.find("    --global-batch-size 1536\n"), 29);
  const auto scheduled = [&](const std::string& schedule) {
    std::string text = script;
    return text.replace(text.find("--rampup-batch-size 16 16 5859375"), 33,
                        "--step-batch-size-schedule " + schedule);
  };
  // Megatron-LM's example, whose sequences have 2,048 tokens.
  auto keys = what_if(
      decode(scheduled("\"0:16 2.4B:320 4.8B:624 7.2B:928 9.6B:1232 12B:1536\""), "train.sh"));
  CHECK(keys.at("rampup_batch_size") == "16:304:5859375");
  CHECK(keys.at("global_batch") == "1536");
  keys = what_if(decode(scheduled("0:768,250B:1536"), "train.sh"));
  CHECK(keys.at("rampup_batch_size") == "768:768:122070312");
  keys = what_if(decode(scheduled("0:768"), "train.sh"));
  CHECK(keys.at("global_batch") == "768");
  CHECK_FALSE(keys.contains("rampup_batch_size"));
  const std::pair<const char*, const char*> refused[] = {
      {"\"0:768 250B:1536 500B:3072\"", "grows by unequal steps"},
      {"\"0:768 250B:1536 600B:2304\"", "try: each batch as a phase (--then"},
      {"\"0:768 250B:384\"", "grows by unequal steps"},
      {"\"1B:768 250B:1536\"", "'1B:768' is not expected here"},
      {"\"0:64 100:256\"", "entry '100:256' starts less than one sequence (2048 tokens)"},
      {"\"0:768 250B\"", "'250B' is not a step of it"},
      {"\"0:768 25X:1536\"", "'25X' is not a number of tokens or samples"},
      {"\"\"", "has no steps"},
      {"\"0:16 2B:32\" --global-batch-size 64", "--global-batch-size: is not the last batch"},
      {"\"0:16 2B:32\" --rampup-batch-size 16 16 100", "--rampup-batch-size: contradicts"}};
  for (const auto& [schedule, words] : refused)
    CHECK_THAT(refusal(scheduled(schedule)), Contains(words));
}

TEST_CASE("Megatron arguments: an encoder next to a decoder is refused by its name") {
  for (const char* text : {"--encoder-num-layers 12 --decoder-num-layers 12 --hidden-size 768",
                           "--num-layers 12 --encoder-seq-length 512 --decoder-seq-length 128"})
    CHECK_THAT(refusal(text), Contains("describes an encoder with a decoder (T5)") &&
                                  Contains("--model t5-large") && !Contains("did you mean"));
}

TEST_CASE("Megatron arguments: layout, shares, precision and overlap of a llama") {
  const auto keys = what_if(decode(llama, "args.txt"));
  const std::pair<const char*, const char*> expected[] = {
      {"tp", "4"},          {"pp", "2"},
      {"cp", "2"},          {"interleave", "4"},
      {"zero_stage", "1"},  {"sequence_parallel", "true"},
      {"overlap", "ddp"},   {"tensor_overlap", "all"},
      {"precision", "fp8"}, {"fp32_gradients", "false"},
      {"seq_len", "8192"},  {"recompute", "selective"}};
  for (const auto& [key, value] : expected) {
    INFO(key);
    REQUIRE(keys.contains(key));
    CHECK(keys.at(key) == value);
  }
  CHECK_FALSE(keys.contains("send_overlap"));
  const auto blocking = what_if(decode(llama + "--no-overlap-p2p-communication", "args.txt"));
  CHECK(blocking.at("send_overlap") == "false");
  // The model has 8B parameters, with 256 more rows in both vocabulary matrices: a multiple of 128
  // x 4.
  CHECK(parameters(shape_of(llama)) == 8'030'261'248 + 2 * 256 * 4096);
}

TEST_CASE("Megatron arguments: attention with a window, in all layers or every second") {
  const auto windowed = [](const std::string& more) { return shape_of(llama + more); };
  CHECK(windowed("").window == 0);
  CHECK(windowed("--window-size 1024,0").window == 1024);
  CHECK(windowed("--window-size 1024,0").window_every == 1);
  CHECK(windowed("--window-size 1024 0 --window-attn-skip-freq 2").window_every == 2);
  CHECK(windowed("--window-size 1024,0 --window-attn-skip-freq 1").window == 0);
  for (const char* text :
       {"--window-size 1024", "--window-size 0,0", "--window-size 1024,8", "--window-size x,0"})
    CHECK_THROWS_AS(windowed(text), Error);
  // Every sixth layer has no window.
  const ModelShape sixth = windowed("--window-size 1024,0 --window-attn-skip-freq 6");
  CHECK(sixth.window_every == 6);
  CHECK(sixth.window_layers == 5);
}

// The model is a decoder with 2 layers, hidden 64, 4 heads, ffn 256, 1,024 words after padding, and
// 128 positions.
TEST_CASE("Megatron arguments: a model that is neither GPT nor Llama is a decoder with its parts") {
  const std::string plain =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --ffn-hidden-size 256 "
      "--vocab-size 1024 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 "
      "--global-batch-size 8 ";
  const std::int64_t gpt = parameters(shape_of(plain));
  CHECK(shape_of(plain).family == "gpt");
  const auto more = [&](const char* arguments) {
    const ModelShape shape = shape_of(plain + arguments);
    CHECK(shape.family == "decoder");
    return parameters(shape) - gpt;
  };
  CHECK(more("--position-embedding-type rope") == -128 * 64);
  CHECK(more("--use-rotary-position-embeddings") == -128 * 64);
  CHECK(more("--untie-embeddings-and-output-weights") == 1024 * 64);
  CHECK(more("--qk-layernorm") == 2 * 2 * 16);
  CHECK(more("--kv-channels 32") == 2 * (4 * 64 * 64 + 3 * 64));
  // There is one key-value head instead of four, so biases are fewer too.
  CHECK(more("--group-query-attention --num-query-groups 1") == -2 * 2 * (48 * 64 + 48));
  // Each of 2 layers loses biases of 3 x 64 + 64 + 256 + 64; the 2 x 2 + 1 norms lose theirs with
  // RMSNorm.
  CHECK(more("--position-embedding-type rope --disable-bias-linear") == -128 * 64 - 2 * 576);
  CHECK(more("--position-embedding-type rope --normalization RMSNorm") == -128 * 64 - 5 * 64);
  const std::int64_t of_llama = parameters(shape_of(llama));
  CHECK(parameters(shape_of(llama + "--add-qkv-bias")) - of_llama == 32 * (4096 + 2 * 1024));
  CHECK(parameters(shape_of(llama + "--qk-layernorm")) - of_llama == 32 * 2 * 128);
  std::string wide = llama;
  wide.replace(wide.find("--kv-channels 128"), 17, "--kv-channels 256");
  CHECK(shape_of(wide).head_size == 256);
}

TEST_CASE("Megatron arguments: dropout is off if neither of its two rates is above zero") {
  const auto model = [](const std::string& rates) {
    std::string script = gpt3;
    return decode(script.replace(script.find("--fp16"), 6, "--fp16 " + rates), "a").model;
  };
  CHECK_THAT(model("--hidden-dropout 0 --attention-dropout 0"), Contains("dropout = false"));
  CHECK_THAT(model("--hidden-dropout 0 --attention-dropout 0.1"), Contains("dropout = true"));
}

TEST_CASE("Megatron arguments: a gated feed-forward without a given width has 8 h / 3") {
  std::string text = llama;
  text.erase(text.find("--ffn-hidden-size"), 23);
  CHECK(shape_of(text).ffn == 10880);  // 4096 x 8 / 3 = 10922, rounded down to a multiple of 64
}

TEST_CASE("Megatron arguments: experts") {
  const std::string text = llama +
                           " --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm "
                           "--expert-model-parallel-size 2";
  CHECK(what_if(decode(text, "a")).at("ep") == "2");
  const ModelShape shape = shape_of(text);
  CHECK(shape.experts == 8);
  CHECK(shape.experts_per_token == 2);
}

TEST_CASE("Megatron arguments: a layout without layers describes no model") {
  const Arguments arguments = decode("--tensor-model-parallel-size 2", "a");
  CHECK(arguments.model.empty());
  CHECK(what_if(arguments).at("tp") == "2");
}

TEST_CASE("Megatron arguments: a script is read for the arguments of its run") {
  const Arguments arguments = decode(
      "#!/bin/bash\nCHECKPOINT=$1\nTP=2\nARGS=(\n  --tensor-model-parallel-size $TP\n"
      "  --num-layers 4 --hidden-size 64 --num-attention-heads 4\n  --seq-length 128\n"
      "  --max-position-embeddings 128 --merge-file $2\n  --save $CHECKPOINT\n)\n"
      "if [ -n \"$W\" ]; then\n  ARGS+=(--wandb-project $W)\nfi\n"
      "torchrun ${ARGS[@]} pretrain_gpt.py --micro-batch-size 3\n",
      "a.sh");
  CHECK(what_if(arguments).at("tp") == "2");
  CHECK(what_if(arguments).at("micro_batch") == "3");
  CHECK_THAT(arguments.model, Contains("vocab = 50257"));
  CHECK(std::any_of(arguments.findings.begin(), arguments.findings.end(),
                    [](const Finding& of) { return of.code == "vocab-size-assumed"; }));
}

TEST_CASE("Megatron arguments: a misspelt or unmodelled argument is one line with its place") {
  const std::pair<std::string, const char*> cases[] = {
      {"--num-layer 3", "args.txt:1: --num-layer: unknown argument, did you mean '--num-layers'?"},
      {"--bf16\n--tensor-model-paralel-size 3", "args.txt:2: --tensor-model-paralel-size"},
      {"--num-layers three --hidden-size 8 --num-attention-heads 1", "'three' is not a whole"},
      {"--micro-batch-size 0", "--micro-batch-size: '0' is not a whole number in range"},
      {"--micro-batch-size -3", "'-3' is not a whole number"},
      {"--micro-batch-size 99999999999999999999", "is not a whole number in range"},
      {"--micro-batch-size 1 2", "has 2 values, not one"},
      {"--micro-batch-size", "has 0 values, not one"},
      {"--bf16 yes", "takes no value, not 'yes'"},
      {"--bf16 --fp16", "contradicts --bf16"},
      {"--optimizer rmsprop", "rmsprop"},
      {"--recompute-granularity ful", "did you mean 'full'"},
      {"--fp8-format e5m2", "unknown value 'e5m2'"},
      {"--num-layers 10 --hidden-size 8 --num-attention-heads 1", "--seq-length: is missing"},
      {"--num-layers 10", "--hidden-size: is missing"},
      {"--num-layers 10 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3",
       "10 layers are not divisible by 2 stages x 3"},
      {"--multi-latent-attention", "--multi-latent-attention: this is not modelled"},
      {"--num-layers 2 --hidden-size 64 --num-attention-heads 5", "attention of 5 heads x 12"},
      {"--bert-no-binary-head --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
       "--kv-channels 32",
       "--kv-channels: attention of 4 heads x 32"},
      {"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --kv-channels 10001",
       "--kv-channels: '10001' is not a whole number in range"},
      {"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --vocab-size 99 --seq-length "
       "16777217",
       "--seq-length: '16777217' is not a whole number in range"},
      {"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --vocab-size 99 --seq-length 16 "
       "--max-position-embeddings 16777217",
       "--max-position-embeddings: '16777217' is not a whole number in range"},
      {"torchrun pretrain_gpt.py", "holds no arguments of Megatron-LM"},
      {"--tensor-model-parallel-size $TP",
       "args.txt:1: --tensor-model-parallel-size: $TP has no value here: write it out"},
      {"--save $1 $MORE", "$MORE has no value here"},
      {"#!/bin/bash\nif [ $X ]; then\nA+=(--num-layers 3)\nfi",
       "args.txt:3: --num-layers: is in a branch of the script"},
      {"", "holds no arguments"}};
  for (const auto& [text, words] : cases) {
    const std::string sentence = refusal(text);
    INFO(text);
    CHECK_THAT(sentence, Contains(words));
    CHECK(sentence.find('\n') == std::string::npos);
  }
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "--frobnicate-" + std::to_string(i) + "\n";
  CHECK_THROWS_WITH(decode(many, "a"),
                    "a: holds 500 keys that Megatron-LM does not have: give a file of Megatron-LM");
  const Arguments unknown = decode("--frobnicate 3 4", "a");
  REQUIRE(unknown.findings.size() == 1);
  CHECK(unknown.findings[0].code == "unknown-key");
}

TEST_CASE("Megatron arguments: any text gives arguments or an error") {
  for (const std::string& whole : {gpt3, llama})
    for (std::size_t end = 0; end < whole.size(); end += 5) {
      try {
        decode(whole.substr(0, end), "a");
      } catch (const Error& error) {
        CHECK(error.code() == Exit::usage);
      }
    }
}

// Only the program distinguishes examples/bert/train_bert_340m_distributed.sh from a GPT.
TEST_CASE("Megatron arguments: BERT is recognised by its program or its specific arguments") {
  const std::string arguments =
      "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
      "--max-position-embeddings 512 --vocab-size 30522 --micro-batch-size 4 "
      "--global-batch-size 32 --fp16";
  CHECK(shape_of(arguments).family == "gpt");
  CHECK(shape_of("# like pretrain_bert.py\n" + arguments).family == "gpt");
  for (const std::string& text :
       {arguments + " --bert-no-binary-head", arguments + " --mask-prob 0.15",
        "#!/bin/bash\ntorchrun pretrain_bert.py " + arguments + "\n"}) {
    const ModelShape shape = shape_of(text);
    CHECK(shape.family == "bert");
    CHECK(shape.head_share == 1);
    CHECK(std::abs(parameters(shape) - 336'000'000) < 2'000'000);
  }
  CHECK_THAT(refusal(arguments + " --swiglu --mask-prob 0.15"), Contains("a BERT with gates"));
}

TEST_CASE("Megatron arguments: exchange, capacity and recomputation of experts") {
  const std::string mixtral =
      "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
      "--num-experts 8 --moe-router-topk 2 --swiglu --seq-length 4096 --vocab-size 32000 "
      "--micro-batch-size 1 --global-batch-size 64 --bf16 --recompute-granularity selective "
      "--moe-expert-capacity-factor 1.25 ";
  auto keys = what_if(decode(mixtral + "--moe-pad-expert-input-to-capacity --moe-enable-deepep "
                                       "--overlap-moe-expert-parallel-comm --recompute-modules moe",
                             "args.txt"));
  CHECK(keys["capacity_factor"] == "1.25");
  CHECK(keys["expert_dispatch"] == "deduplicated");
  CHECK(keys["expert_overlap"] == "true");
  CHECK(keys["recompute"] == "experts");
  const Arguments dropping = decode(
      mixtral + "--moe-token-dispatcher-type allgather --recompute-modules core_attn layernorm",
      "args.txt");
  keys = what_if(dropping);
  CHECK_FALSE(keys.contains("capacity_factor"));
  CHECK_FALSE(keys.contains("expert_dispatch"));
  CHECK(keys["recompute"] == "selective");
  std::vector<std::string> noted;
  for (const Finding& finding : dropping.findings) noted.push_back(finding.message);
  for (const char* words : {"tokens are assumed not to be dropped", "exchanged all to all",
                            "'layernorm' is assumed to be kept"})
    CHECK(std::ranges::any_of(noted, [&](const std::string& message) {
      return message.find(words) != std::string::npos;
    }));
}

// 24 layers of 1024, every second with 64 experts of 4 x 1024, as in Megatron-DeepSpeed's
// examples_deepspeed/MoE. Elements: word and position embeddings, 12 h^2 + 13 h per dense layer,
// and 63 x (8 h^2 + 5 h) + 64 h more in each of the 12 layers with experts.
TEST_CASE("arguments: Megatron-DeepSpeed's experts and sequence parallelism") {
  const std::string base =
      "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
      "--vocab-size 50176 --micro-batch-size 4 --global-batch-size 256 --train-iters 100 --fp16 "
      "--tensor-model-parallel-size 2 --deepspeed ";
  const auto what_if = [&](const std::string& more) {
    const Arguments arguments = decode(base + more, "a");
    return std::map<std::string, std::string>(arguments.what_if.begin(), arguments.what_if.end());
  };
  const std::string experts = "--num-experts 64 --moe-expert-parallel-size 16 ";
  const auto moe = what_if(experts + "--moe-train-capacity-factor 1.5 --use-tutel");
  CHECK(moe.at("ep") == "16");
  CHECK(moe.at("etp") == "1");
  CHECK(moe.at("capacity_factor") == "1.5");
  CHECK(moe.at("expert_routing") == "sparse");
  CHECK(what_if(experts + "--disable-moe-token-dropping").at("capacity_factor") == "0");
  CHECK_FALSE(what_if(experts + "--enable-expert-tensor-parallelism").contains("etp"));
  CHECK(what_if("--ds-sequence-parallel-size 4").at("cp") == "4");
  const std::string model = decode(base + experts, "a").model;
  const ModelShape shape = load_model(Table::parse(model, "x.toml"), "./x.toml", {});
  constexpr std::int64_t h = 1024;
  CHECK(parameters(shape) == (50'176 + 2048) * h + 24 * (12 * h * h + 13 * h) + 2 * h +
                                 12 * (63 * (8 * h * h + 5 * h) + 64 * h));
  CHECK_THROWS_WITH(decode(base + experts + "--mlp-type residual", "a"),
                    Contains("--mlp-type: a dense feed-forward next to the experts"));
  CHECK_THROWS_WITH(decode(base + experts + "--swiglu", "a"),
                    Contains("--num-experts: experts in"));
}

}  // namespace
}  // namespace lambcast::megatron
