#include "models/torchtitan/config.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/base/error.h"

namespace lambcast::torchtitan {
namespace {

using Catch::Matchers::Contains;

const std::string job = R"([job]
dump_folder = "./outputs"
description = "Llama 3 70B training"

[metrics]
log_freq = 10

[model]
name = "llama3"
flavor = "70B"
hf_assets_path = "./assets/hf/Llama-3.1-70B"
converters = ["quantize.linear.float8"]

[optimizer]
name = "AdamW"
lr = 1.5e-4

[lr_scheduler]
warmup_steps = 200

[training]
local_batch_size = 8
seq_len = 8192
max_norm = 1.0
steps = 1000
dataset = "c4"

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
pipeline_parallel_degree = 1
context_parallel_degree = 1

[activation_checkpoint]
mode = "full"

[compile]
enable = true

[quantize.linear.float8]
enable_fsdp_float8_all_gather = true
)";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::map<std::string, std::string> what_if(const std::string& text) {
  const Job decoded = decode(text, "job.toml");
  return {decoded.what_if.begin(), decoded.what_if.end()};
}

std::string refusal(const std::string& text) {
  try {
    decode(text, "job.toml");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "";
}

void check_keys(const std::string& text,
                const std::vector<std::pair<const char*, const char*>>& expected) {
  const auto keys = what_if(text);
  for (const auto& [key, value] : expected) {
    INFO(key);
    REQUIRE(keys.contains(key));
    CHECK(keys.at(key) == value);
  }
}

TEST_CASE("torchtitan job: FSDP with tensor parallelism in fp8") {
  check_keys(job, {{"framework", "torchtitan"},
                   {"model", "llama3-70b"},
                   {"tp", "8"},
                   {"pp", "1"},
                   {"sequence_parallel", "true"},
                   {"tensor_overlap", "all"},
                   {"zero_stage", "3"},
                   {"micro_batch", "8"},
                   {"grad_accum", "1"},
                   {"seq_len", "8192"},
                   {"steps", "1000"},
                   {"precision", "fp8"},
                   {"fusion", "compiled"},
                   {"recompute", "full"},
                   {"optimizer", "adamw"}});
  CHECK(decode(job, "job.toml").findings.empty());
  check_keys(changed(job, "name = \"AdamW\"\n", ""), {{"optimizer", "adamw"}});
  check_keys(changed(job, "name = \"AdamW\"", "name = \"Adam\""), {{"optimizer", "adam"}});
}

TEST_CASE("torchtitan job: converters are a list, or one text") {
  const std::string list = "converters = [\"quantize.linear.float8\"]";
  const auto precision = [&](const std::string& text) {
    return what_if(changed(job, list, text)).at("precision");
  };
  CHECK(precision("converters = \"float8\"") == "fp8");
  CHECK(precision("converters = \"mx\"") == "mxfp8");
  CHECK(precision("converters = \"\"") == "bf16");
}

TEST_CASE("torchtitan job: a pipeline keeps weights gathered and divides the batch") {
  const std::string text =
      changed(changed(job, "pipeline_parallel_degree = 1",
                      "pipeline_parallel_degree = 4\npipeline_parallel_schedule = "
                      "\"Interleaved1F1B\""),
              "mode = \"full\"", "mode = \"selective\"\nselective_ac_option = \"2\"");
  check_keys(text, {{"pp", "4"},
                    {"pipeline_schedule", "interleaved"},
                    {"interleave", "2"},
                    {"zero_stage", "2"},
                    {"micro_batch", "1"},
                    {"grad_accum", "8"},
                    {"recompute", "alternate"}});
  CHECK(decode(text, "job.toml").findings.size() == 1);
}

TEST_CASE("torchtitan job: replicated shards, and names of older releases") {
  check_keys(changed(changed(job, "replicate_degree = 1", "replicate_degree = 2"),
                     "shard_degree = -1", "shard_degree = 16"),
             {{"shard_ranks", "16"}, {"zero_stage", "3"}});
  check_keys(changed(job, "replicate_degree = 1", "replicate_degree = 2"),
             {{"shard_groups", "2"}, {"zero_stage", "3"}});
  check_keys(changed(changed(job, "replicate_degree = 1", "replicate_degree = 2"),
                     "shard_degree = -1", "shard_degree = 1"),
             {{"zero_stage", "0"}});
  check_keys(changed(job, "local_batch_size", "batch_size"), {{"micro_batch", "8"}});
  check_keys(changed(job, "seq_len = 8192", "global_batch_size = 64\nseq_len = 8192"),
             {{"global_batch", "64"}, {"micro_batch", "8"}});
}

TEST_CASE("torchtitan job: flavours that are presets, and experts divided over ranks") {
  const auto of = [](const std::string& name, const std::string& flavor) {
    const std::string text = changed(job, "name = \"llama3\"", "name = \"" + name + "\"");
    return changed(text, "flavor = \"70B\"", "flavor = \"" + flavor + "\"");
  };
  const std::string deepseek = changed(of("deepseek_v3", "671B"), "context_parallel_degree = 1",
                                       "context_parallel_degree = 1\nexpert_parallel_degree = 32");
  check_keys(
      deepseek,
      {{"model", "deepseek-v3"}, {"model.predicted_layers", "0"}, {"ep", "32"}, {"etp", "1"}});
  check_keys(changed(deepseek, "expert_parallel_degree = 32",
                     "expert_parallel_degree = 32\nexpert_tensor_parallel_degree = 8"),
             {{"etp", "8"}});
  check_keys(of("qwen3", "30B-A3B"), {{"model", "qwen3-30b-a3b"}});
  check_keys(of("qwen3", "235B-A22B"), {{"model", "qwen3-235b-a22b"}});
  check_keys(of("gpt_oss", "20b"), {{"model", "gpt-oss-20b"}});
  CHECK_FALSE(what_if(of("qwen3", "30B-A3B")).contains("model.predicted_layers"));
  CHECK_FALSE(what_if(of("deepseek_v3", "16B")).contains("model"));
}

TEST_CASE("torchtitan job: a misspelt or unmodelled key is one line with its place") {
  std::string many = "[model]\n";
  for (int i = 0; i < 100'000; ++i) many += "frobnicate_" + std::to_string(i) + " = 1\n";
  const std::pair<std::string, const char*> cases[] = {
      {changed(job, "tensor_parallel_degree", "tensor_paralel_degree"),
       "job.toml:31: parallelism.tensor_paralel_degree: unknown key, did you mean "
       "'tensor_parallel_degree'?"},
      {changed(job, "[parallelism]", "[paralelism]"), "did you mean 'parallelism'?"},
      {changed(job, "tensor_parallel_degree = 8", "tensor_parallel_degree = \"8\""),
       "tensor_parallel_degree"},
      {changed(job, "tensor_parallel_degree = 8", "tensor_parallel_degree = 0"), "1 to 65536"},
      {changed(job, "mode = \"full\"", "mode = \"ful\""), "did you mean 'full'"},
      {changed(job, "name = \"AdamW\"", "name = \"Muon\""), "optimizer.name"},
      {changed(job, "seq_len = 8192", "global_batch_size = 1000000001\nseq_len = 8192"),
       "1 to 1000000000"},
      {changed(job, "\"quantize.linear.float8\"", "\"lora\""), "'lora' is not modelled"},
      {changed(job, "steps = 1000", "steps = 1000\nenable_cpu_offload = true"),
       "states on the host are not modelled"},
      {"x = ", "job.toml:1"},
      {many, "job.toml: holds 500 keys that torchtitan does not have"},
      {"[job]\na = 1", "has no section of a torchtitan job"}};
  for (const auto& [text, words] : cases) {
    const std::string sentence = refusal(text);
    CHECK_THAT(sentence, Contains(words));
    CHECK(sentence.find('\n') == std::string::npos);
  }
  const Job other = decode(changed(job, "flavor = \"70B\"", "flavor = \"debugmodel\""), "j");
  REQUIRE(other.findings.size() == 1);
  CHECK(other.findings[0].code == "no-preset");
}

TEST_CASE("torchtitan job: any text gives a job or an error") {
  for (std::size_t end = 0; end < job.size(); end += 3) {
    try {
      decode(job.substr(0, end), "j");
    } catch (const Error& error) {
      CHECK(error.code() == Exit::usage);
    }
  }
}

TEST_CASE("torchtitan job: bits of summed gradients, and compiled components") {
  check_keys(changed(job, "steps = 1000", "steps = 1000\nmixed_precision_reduce = \"bfloat16\""),
             {{"fp32_gradients", "false"}});
  CHECK_THROWS_WITH(
      decode(changed(job, "steps = 1000",
                     "steps = 1000\nmixed_precision_reduce = \"bfloat16\"\n"
                     "mixed_precision_param = \"float32\""),
             "job.toml"),
      Contains("mixed_precision_reduce: sums of fp32 gradients in bfloat16 are not modelled"));
  check_keys(changed(job, "enable = true", "enable = true\ncomponents = [\"model\"]"),
             {{"fusion", "compiled"}, {"eager_loss", "true"}});
  const std::string loss = changed(job, "enable = true", "enable = true\ncomponents = [\"loss\"]");
  check_keys(loss, {{"fusion", "eager"}});
  CHECK_THAT(decode(loss, "job.toml").findings.back().message, Contains("compile.components"));
  const std::string other = changed(job, "enable = true", "enable = true\nbackend = \"aot_eager\"");
  CHECK_THAT(decode(other, "job.toml").findings.back().message, Contains("'aot_eager'"));
}

TEST_CASE("torchtitan job: keys that affect the cost and are not applied are named") {
  const auto told = [](const std::string& text, const char* words) {
    return std::ranges::any_of(decode(text, "job.toml").findings, [&](const Finding& finding) {
      return finding.message.find(words) != std::string::npos;
    });
  };
  CHECK(told(changed(job, "steps = 1000", "steps = 1000\ndeterministic = true"),
             "training.deterministic: kernels are assumed to be the fastest"));
  CHECK(told(changed(job, "steps = 1000", "steps = 1000\ndtype = \"bfloat16\""),
             "training.dtype: weights are assumed to be kept in fp32"));
  CHECK_FALSE(told(changed(job, "steps = 1000", "steps = 1000\ndeterministic = false"),
                   "training.deterministic"));
  CHECK(told(changed(job, "steps = 1000", "steps = 1000\nzzzzzzzzzz = 3"),
             "training.zzzzzzzzzz: unknown key: not applied"));
}

// Each ledger entry has a line, and a reason unless the key is applied.
TEST_CASE("torchtitan job: the ledger states the effect of each key") {
  const auto treatment = [](const std::string& text, const std::string& key) {
    for (const LedgerEntry& entry : decode(text, "j").ledger)
      if (entry.key == key) return entry.treatment;
    throw std::logic_error(key);
  };
  const std::string more =
      changed(job, "steps = 1000", "steps = 1000\nseed = 3\ndtype = \"bfloat16\"");
  CHECK(treatment(more, "training.steps") == Treatment::applied);
  CHECK(treatment(more, "training.seed") == Treatment::costless);
  CHECK(treatment(more, "training.dtype") == Treatment::named);
  for (const LedgerEntry& entry : decode(more, "j").ledger) {
    INFO(entry.key);
    CHECK(entry.line > 0);
    CHECK(entry.reason.empty() == (entry.treatment == Treatment::applied));
  }
}

// Returns the what-if keys and findings of a job, or its error, if `line` replaces the section's
// line of the same key.
std::string told(std::string text, const std::string& section, const std::string& line) {
  const auto begin = text.find("[" + section + "]\n") + section.size() + 2;
  const auto own = text.find("\n" + line.substr(0, line.find(' ')) + " =", begin);
  if (own < text.find("\n[", begin)) text.erase(own, text.find('\n', own + 1) - own);
  text.insert(begin, "\n" + line);
  try {
    const Job decoded = decode(text, "job.toml");
    std::string all;
    for (const auto& [name, value] : decoded.what_if) all += name + "=" + value + "\n";
    for (const Finding& finding : decoded.findings) all += finding.message + "\n";
    return all;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("torchtitan job: each key that the ledger calls applied changes the run if it changes") {
  const std::vector<std::array<std::string, 3>> keys{
      {"model", "name = \"llama3\"", "name = \"qwen3\""},
      {"model", "flavor = \"70B\"", "flavor = \"8B\""},
      {"model", "converters = [\"float8\"]", "converters = []"},
      {"training", "local_batch_size = 8", "local_batch_size = 4"},
      {"training", "global_batch_size = 64", "global_batch_size = 128"},
      {"training", "seq_len = 8192", "seq_len = 4096"},
      {"training", "steps = 1000", "steps = 500"},
      {"training", "compile = false", "compile = true"},
      {"training", "mixed_precision_param = \"bfloat16\"", "mixed_precision_param = \"float32\""},
      {"training", "mixed_precision_reduce = \"float32\"", "mixed_precision_reduce = \"bfloat16\""},
      {"training", "enable_cpu_offload = false", "enable_cpu_offload = true"},
      {"parallelism", "tensor_parallel_degree = 8", "tensor_parallel_degree = 4"},
      {"parallelism", "enable_async_tensor_parallel = true",
       "enable_async_tensor_parallel = false"},
      {"parallelism", "pipeline_parallel_degree = 1", "pipeline_parallel_degree = 2"},
      {"parallelism", "pipeline_parallel_schedule = \"1F1B\"",
       "pipeline_parallel_schedule = \"GPipe\""},
      {"parallelism", "pipeline_parallel_microbatch_size = 1",
       "pipeline_parallel_microbatch_size = 2"},
      {"parallelism", "#", "pipeline_parallel_split_points = [\"layers.9\"]"},
      {"parallelism", "#", "module_fqns_per_model_part = [\"layers.9\"]"},
      {"parallelism", "context_parallel_degree = 1", "context_parallel_degree = 2"},
      {"parallelism", "expert_parallel_degree = 1", "expert_parallel_degree = 2"},
      {"parallelism", "expert_tensor_parallel_degree = 1", "expert_tensor_parallel_degree = 8"},
      {"parallelism", "data_parallel_shard_degree = -1", "data_parallel_shard_degree = 2"},
      {"parallelism", "data_parallel_replicate_degree = 1", "data_parallel_replicate_degree = 2"},
      {"parallelism", "fsdp_reshard_after_forward = \"always\"",
       "fsdp_reshard_after_forward = \"never\""},
      {"activation_checkpoint", "mode = \"full\"", "mode = \"none\""},
      {"activation_checkpoint", "mode = \"full\"", "mode = \"memory_budget\""},
      {"activation_checkpoint", "selective_ac_option = \"2\"", "selective_ac_option = \"op\""},
      {"compile", "enable = true", "enable = false"},
      {"compile", "components = [\"model\", \"loss\"]", "components = [\"loss\"]"},
      {"compile", "backend = \"inductor\"", "backend = \"eager\""},
      {"optimizer", "name = \"AdamW\"", "name = \"Adam\""}};
  // A job with a pipeline, experts and selective recomputation, compiled by the older key.
  std::string all = changed(job, "pipeline_parallel_degree = 1",
                            "pipeline_parallel_degree = 2\nexpert_parallel_degree = 2");
  all = changed(all, "mode = \"full\"", "mode = \"selective\"");
  all = changed(all, "enable = true", "");
  all = changed(all, "steps = 1000", "steps = 1000\ncompile = true");
  std::set<std::string> tried;
  for (const auto& [section, usual, other] : keys) {
    INFO("[" << section << "] " << other);
    const std::string& in = other.starts_with("enable = ") ? job : all;
    CHECK(told(in, section, usual) != told(in, section, other));
    tried.insert(section + "." + other.substr(0, other.find(' ')));
  }
  // Leaving out the whole section changes the run: weights are then gathered in 16 bits.
  const std::string gather = "enable_fsdp_float8_all_gather = true";
  CHECK(decode(changed(job, gather.c_str(), ""), "j").what_if != decode(job, "j").what_if);
  tried.insert("quantize.linear.float8.enable_fsdp_float8_all_gather");
  for (const std::string& text : {job, all})
    for (const LedgerEntry& entry : decode(text, "j").ledger) {
      INFO(entry.key);
      CHECK((entry.treatment != Treatment::applied || tried.contains(entry.key)));
    }
}

}  // namespace
}  // namespace lambcast::torchtitan
