#include "models/parallel/layout_rules.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/shape/load.h"

namespace lambcast::parallel {
namespace {

using Messages = std::vector<std::string>;

// Returns "code: message" of every finding.
Messages findings(const ParallelLayout& layout, const char* model, const LayoutUse& use) {
  Messages messages;
  for (const Finding& finding : check(layout, load_model(model), use))
    messages.push_back(finding.code + ": " + finding.message);
  return messages;
}

// A layout of GPT-3 175B as it is trained, without findings.
const ParallelLayout good{.tp = 8, .dp = 8, .pp = 16, .virtual_stages = 6, .gpus_per_node = 8};
const LayoutUse used{.gpus = 1024,
                     .micro_batches = 192,
                     .seq_len = 2048,
                     .sequence_parallel = true,
                     .schedule = PipelineSchedule::interleaved};

}  // namespace

TEST_CASE("layout rules: exchanged heads are also divided over context parallelism") {
  LayoutUse use = used;
  use.exchanges_heads = true;
  use.gpus = 4;
  ParallelLayout layout;
  layout.cp = 4;
  const auto all = findings(layout, "gpt2-xl", use);
  CHECK(std::any_of(all.begin(), all.end(), [](const auto& said) {
    return said.find("25 heads are not divisible by tp 1 x cp 4") != std::string::npos;
  }));
}

// Megatron-LM uses separate grids for experts and for all other layers. It refuses tp-cp-ep-pp-dp,
// in which stages of experts are 8 ranks apart and those of other layers 1 rank apart. Colossal-AI
// has one mesh for both.
TEST_CASE("layout rules: stages of experts have the ranks of all other layers") {
  const AxisOrder around = parse_order("tp-cp-ep-pp-dp", {});
  const ParallelLayout layout{.ep = 8, .dp = 16, .pp = 4, .gpus_per_node = 8, .order = around};
  LayoutUse use{.gpus = 64, .micro_batches = 8, .seq_len = 4096};
  CHECK(findings(layout, "mixtral-8x7b", use) ==
        Messages{"layout-experts: order: in tp-cp-ep-pp-dp the pipeline stages of experts and of "
                 "all other layers lie on different ranks; try: tp-cp-ep-dp-pp"});
  use.one_mesh = true;
  CHECK(findings(layout, "mixtral-8x7b", use).empty());
  // Experts are divided by etp 1 x ep 8, other layers by tp 2 x ep 8, so no single mesh fits both.
  ParallelLayout thin = layout;
  thin.tp = 2;
  thin.etp = 1;
  thin.dp = 8;
  CHECK_FALSE(findings(thin, "mixtral-8x7b", use).empty());
  ParallelLayout outermost = layout;
  outermost.order = default_order;
  use.one_mesh = false;
  CHECK(findings(outermost, "mixtral-8x7b", use).empty());
}

TEST_CASE("layout rules: valid layouts get no finding") {
  CHECK(findings(good, "gpt3-175b", used).empty());
  CHECK(findings({.dp = 64, .gpus_per_node = 8}, "resnet50", {.gpus = 64}).empty());
  CHECK(findings({.tp = 2, .ep = 8, .dp = 8, .gpus_per_node = 8}, "mixtral-8x7b",
                 {.gpus = 16, .seq_len = 4096})
            .empty());
}

TEST_CASE("layout rules: each refusal is one line that names the rule") {
  const auto refused = [](auto change, const char* model = "gpt3-175b") {
    ParallelLayout layout = good;
    LayoutUse use = used;
    change(layout, use);
    use.gpus = use.gpus == used.gpus ? static_cast<int>(layout.world()) : use.gpus;
    const auto list = check(layout, load_model(model), use);
    CHECK_THROWS_AS(refuse_errors(list), Error);
    for (const Finding& finding : list) CHECK(finding.message.find('\n') == std::string::npos);
    return findings(layout, model, use);
  };
  using L = ParallelLayout;
  using U = LayoutUse;
  CHECK(refused([](L&, U& use) { use.gpus = 1000; }) ==
        Messages{"layout-world: gpus: 1000 GPUs are not divisible by tp 8 x cp 1 x pp 16"});
  CHECK(refused([](L&, U& use) { use.gpus = 512; }) ==
        Messages{"layout-world: dp: tp 8 x cp 1 x dp 8 x pp 16 are 1024 ranks, not 512"});
  CHECK(refused([](L& layout, U&) { layout.virtual_stages = 5; }) ==
        Messages{"layout-layers: pp: 96 layers are not divisible by 80 stages and chunks"});
  CHECK(refused([](L&, U& use) { use.micro_batches = 100; }) ==
        Messages{"layout-schedule: pipeline_schedule: interleaved needs micro batches (100) "
                 "divisible by pp 16"});
  CHECK(refused([](L&, U& use) { use.schedule = PipelineSchedule::one_f_one_b; }) ==
        Messages{"layout-schedule: pipeline_schedule: 1f1b has one chunk per stage, not 6"});
  CHECK(refused([](L& layout, U&) { layout.pp = 1; }) ==
        Messages{"layout-schedule: interleave: needs a pipeline: pp is 1"});
  CHECK(refused([](L&, U& use) { use.seq_len = 1001; }) ==
        Messages{"layout-sequence: sequence_parallel: 1001 tokens of a sequence are not divisible "
                 "by tp 8"});
  CHECK(refused([](L& layout, U& use) {
          layout.cp = 2;
          use.seq_len = 1026;
        }) == Messages{"layout-sequence: cp: a sequence of 1026 is not divisible by 2 x cp 2"});
  CHECK(refused([](L& layout, U&) { layout.ep = 4; }) ==
        Messages{"layout-experts: ep: gpt3-175b has no experts"});

  const auto plain = [&](L layout, const char* model) {
    layout.gpus_per_node = 16;
    return findings(layout, model, {.gpus = static_cast<int>(layout.world()), .seq_len = 2048});
  };
  CHECK(plain({.tp = 16}, "bert-large").empty());
  CHECK(plain({.tp = 16}, "gpt2") ==
        Messages{"layout-heads: tp: 12 heads are not divisible by tp 16",
                 "layout-kv-heads: tp: neither divides the other: 12 kv_heads and tp 16"});
  CHECK(plain({.tp = 2}, "resnet50") ==
        Messages{"layout-family: tp: the family 'resnet' has no matrices that tensor parallelism "
                 "divides"});
  CHECK(plain({.ep = 3, .dp = 4}, "mixtral-8x7b") ==
        Messages{"layout-experts: ep: 8 experts are not divisible by ep 3",
                 "layout-experts: ep: cp 1 x dp 4 is not divisible by ep 3"});
  CHECK(plain({.tp = 2, .ep = 8, .dp = 6, .etp = 1}, "mixtral-8x7b") ==
        Messages{"layout-experts: ep: tp 2 x cp 1 x dp 6 is not divisible by etp 1 x ep 8"});
  CHECK(plain({.ep = 4, .dp = 20, .etp = 5}, "mixtral-8x7b") ==
        Messages{"layout-ffn: etp: 14336 columns of an expert are not divisible by etp 5"});
  CHECK(plain({.dp = 2, .etp = 2}, "gpt2") == Messages{"layout-experts: etp: gpt2 has no experts"});
  CHECK(findings({.cp = 2, .gpus_per_node = 2}, "resnet50", {.gpus = 2}) ==
        Messages{"layout-sequence: cp: samples have no sequence to divide"});
}

TEST_CASE("layout rules: Megatron-LM's experts need sequence parallelism next to tp") {
  LayoutUse use = used;
  use.gpus = 8;
  use.experts_need_parts = true;
  CHECK(findings({.tp = 2, .dp = 4, .gpus_per_node = 8}, "mixtral-8x7b", use).empty());
  use.sequence_parallel = false;
  CHECK(findings({.tp = 2, .dp = 4, .gpus_per_node = 8}, "mixtral-8x7b", use) ==
        Messages{"layout-experts: sequence_parallel: Megatron-LM trains experts with tp 2 only "
                 "with sequence parallelism; try: --sequence-parallel true, or another "
                 "--framework"});
  CHECK(findings({.tp = 2, .dp = 4, .gpus_per_node = 8}, "llama2-7b", use).empty());
}

TEST_CASE("layout rules: valid layouts with unexpected costs get a warning or a note") {
  const auto said = [](const ParallelLayout& layout, const char* model, LayoutUse use) {
    use.gpus = static_cast<int>(layout.world());
    use.seq_len = 2048;
    const auto list = check(layout, load_model(model), use);
    CHECK_NOTHROW(refuse_errors(list));
    return findings(layout, model, use);
  };
  CHECK(said({.tp = 16, .gpus_per_node = 8}, "bert-large", {}) ==
        Messages{"layout-beyond-node: tp: 16 ranks on nodes of 8 GPUs: the sums of every layer "
                 "leave the node"});
  CHECK(said({.tp = 16, .gpus_per_node = 16}, "llama2-70b", {}) ==
        Messages{"layout-repeated-keys: tp: 8 kv_heads on tp 16: each is held 2 times"});
  CHECK(said({.tp = 3, .dp = 8, .gpus_per_node = 8}, "gpt2", {}) ==
        Messages{"layout-uneven: tp: its groups are not placed alike on nodes of 8 GPUs; all are "
                 "forecast as that of rank 0",
                 "layout-uneven: dp: its groups are not placed alike on nodes of 8 GPUs; all are "
                 "forecast as that of rank 0"});
  CHECK(said({.pp = 4, .gpus_per_node = 8}, "gpt2", {.micro_batches = 2}) ==
        Messages{"layout-few-micro-batches: pp: 2 micro batches never fill 4 stages, 4 would"});
  CHECK(said({.pp = 4, .gpus_per_node = 8}, "gpt2", {.micro_batches = 1}) ==
        Messages{"layout-few-micro-batches: pp: 1 micro batch never fills 4 stages, 4 would"});
  CHECK(said({.gpus_per_node = 8}, "gpt2", {.sequence_parallel = true}) ==
        Messages{"layout-no-effect: sequence_parallel: has no effect: it divides the sequence over "
                 "tp, which is 1"});
}

}  // namespace lambcast::parallel
