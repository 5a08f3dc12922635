#include "validate/program/log_against_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <tuple>

#include "experiments/scenario/scenario.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// Numbers that must be equal in flags and log.
constexpr std::string_view compared_counts[] = {
    "tp",          "pp",         "cp",           "ep",      "gpus",      "dp",
    "micro_batch", "grad_accum", "global_batch", "seq_len", "zero_stage"};

// Frameworks that a user may name for the program of a log.
constexpr std::pair<std::string_view, std::string_view> names_of_program[] = {
    {"megatron", "megatron nvidia nemo other"},
    {"deepspeed", "deepspeed nvidia bagua other"},
    {"torchtitan", "torchtitan pytorch nvidia other"},
    {"nemo", "nemo megatron nvidia other"},
    {"jax", "jax nvidia other"},
    {"pytorch", "pytorch torchtitan nvidia other"}};

constexpr std::string_view lengths[] = {"steps", "samples", "tokens", "rampup_batch_size"};
// Largest padding of a vocabulary, to a multiple of 128 for each of 8 ranks.
constexpr std::int64_t most_padding = 1024;
constexpr std::string_view batches[] = {"micro_batch", "grad_accum", "global_batch"};
// Keys that a DeepSpeed file sets.
constexpr std::string_view of_config[] = {"micro_batch", "grad_accum", "global_batch", "zero_stage",
                                          "precision",   "optimizer",  "framework"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_whole(const std::string& value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the number; 0 if the text is not a number of at most 64 bits.
std::int64_t whole_of(const std::string& digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::string flag_of(std::string_view key) {
  if (key.starts_with("model.")) return fmt::format("--model ({})", key);
  std::string name = fmt::format("--{}", key);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string place_of(const LogSetting& setting, const std::string& file) {
  return setting.line > 0 ? fmt::format("{}:{}", file, setting.line) : file;
}

[[noreturn]] void refuse(const LogSetting& setting, const std::string& file,
                         const std::string& ours) {
  fail_input({"", 0, flag_of(setting.key)},
             fmt::format("{} contradicts the log, {}: {} is {}", ours, place_of(setting, file),
                         setting.key == "framework" ? "its program" : setting.name, setting.value),
             setting.value);
}

// Adam and AdamW cost the same, and programs use either name for the other.
std::string_view canonical_optimizer(std::string_view name) {
  return name == "adamw" ? "adam" : name;
}

// Returns whether a flag and a setting of the log contradict each other.
bool contradict(const std::string& key, const std::string& flag, const std::string& log) {
  if (flag == log) return false;
  if (is_among(compared_counts, key)) return is_whole(flag);
  if (key == "recompute") {
    const auto is = [](std::string_view word) { return word == "none" || word == "full"; };
    return is(flag) || is(log);
  }
  constexpr std::string_view formats[] = {"fp16", "bf16", "fp32"};
  if (key == "precision") return is_among(formats, flag) && is_among(formats, log);
  if (key == "optimizer") return canonical_optimizer(flag) != canonical_optimizer(log);
  if (key == "fusion") return true;
  // A log does not state which fused kernel of attention runs, so only fused and unfused are
  // compared.
  if (key == "attention") return (flag == "unfused") != (log == "unfused");
  const auto* names = std::ranges::find(names_of_program, log,
                                        &std::pair<std::string_view, std::string_view>::first);
  return key == "framework" && names != std::end(names_of_program) &&
         names->second.find(flag) == std::string_view::npos;
}

int batches_in(const WhatIf& said) {
  return static_cast<int>(
      std::ranges::count_if(batches, [&](std::string_view key) { return said.contains(key); }));
}

// Returns whether a key is open: neither the flags nor the settings filled so far determine it.
bool is_open(const LogSetting& setting, const WhatIf& asked, const WhatIf& filled) {
  const std::string& key = setting.key;
  // A DeepSpeed file (`config`) has no key for the framework.
  if (key == "framework" && setting.value == "deepspeed") return !filled.contains(key);
  if (!setting.fills || filled.contains(key) || is_among(lengths, key)) return false;
  if (asked.contains("config") && is_among(of_config, key)) return false;
  if (key == "gpus" || key == "dp")
    return !filled.contains("gpus") && !filled.contains("dp") && !filled.contains("nodes");
  // Two of the three batch numbers determine the third.
  if (is_among(batches, key) && key != "global_batch") return batches_in(filled) < 2;
  if (key == "model.max_seq_len") return !asked.contains("seq_len") && !asked.contains("model");
  if (key == "model.predicted_layers") return !asked.contains("model");
  if (key.starts_with("model.")) return false;
  // A file of the same program (`megatron_args`, `torchtitan`) states these settings itself.
  return !asked.contains("megatron_args") && !asked.contains("torchtitan");
}

// Compares the model of the run with the preset named by the log.
void check_named_model(const LogSettings& settings, const std::string& file, const ModelShape& ours,
                       Catalog& catalog) {
  const LogSetting* named = settings.find("model");
  if (named == nullptr) return;
  const std::shared_ptr<const ModelShape> logged = catalog.model(named->value, {});
  const std::tuple<std::string_view, std::int64_t, std::int64_t> sizes[] = {
      {"layers", ours.layers, logged->layers},
      {"hidden", ours.hidden, logged->hidden},
      {"heads", ours.heads, logged->heads},
      {"vocab", ours.vocab, logged->vocab}};
  for (const auto& [name, our_size, logged_size] : sizes)
    if (std::abs(our_size - logged_size) > (name == "vocab" ? most_padding : 0))
      refuse({fmt::format("model.{}", name), fmt::format("{}", logged_size),
              fmt::format("{} of {}", name, named->value), named->line},
             file, fmt::format("{}", our_size));
}

}  // namespace

std::string fill_from_log(const LogSettings& settings, const std::string& file,
                          SourceFigure& figure) {
  std::vector<std::string> filled;
  const WhatIf asked = figure.what_if;
  for (const LogSetting& setting : settings.all) {
    const auto said = asked.find(setting.key);
    if (said != asked.end() && said->second != setting.also &&
        contradict(setting.key, said->second, setting.value))
      refuse(setting, file, said->second);
  }
  for (const LogSetting& setting : settings.all) {
    if (!is_open(setting, asked, figure.what_if)) continue;
    figure.what_if.emplace(setting.key, setting.value);
    filled.push_back(
        setting.key.starts_with("model.")
            ? fmt::format("--set {}={} (line {})", setting.key, setting.value, setting.line)
            : fmt::format("{} {} (line {})", flag_of(setting.key), setting.value, setting.line));
  }
  if (settings.model && !asked.contains("model") && !asked.contains("megatron_args")) {
    const std::string name = (is_path(file) ? file : "./" + file) + " as a model";
    figure.texts["model " + name] = *settings.model;
    figure.what_if["model"] = name;
    filled.push_back("--model, by its arguments");
  }
  return filled.empty() ? "" : fmt::format("Taken from {}: {}\n\n", file, fmt::join(filled, ", "));
}

void check_against_log(const LogSettings& settings, const std::string& file,
                       const SourceFigure& figure) {
  Catalog catalog(std::make_shared<DescriptionTexts>(figure.texts));
  WhatIf said = figure.what_if;
  // A micro batch and an accumulation determine the batch, which is then compared.
  if (batches_in(said) == 3) said.erase("global_batch");
  const TrainingPlan run = resolve(said, catalog).training;
  const parallel::ParallelLayout layout =
      run.parallelism ? run.parallelism->layout : parallel::ParallelLayout();
  const std::pair<std::string_view, std::int64_t> values[] = {{"gpus", run.gpus},
                                                              {"tp", layout.tp},
                                                              {"pp", layout.pp},
                                                              {"cp", layout.cp},
                                                              {"dp", run.data_parallel()},
                                                              {"micro_batch", run.batch.micro},
                                                              {"grad_accum", run.batch.gas},
                                                              {"global_batch", run.batch.train},
                                                              {"seq_len", run.seq_len},
                                                              {"model.layers", run.model->layers},
                                                              {"model.hidden", run.model->hidden},
                                                              {"model.heads", run.model->heads},
                                                              {"model.vocab", run.model->vocab}};
  for (const auto& [key, value] : values) {
    const LogSetting* setting = settings.find(key);
    // Programs count the blocks of an encoder and of its decoder separately.
    if (setting == nullptr || (run.model->decoder && key.starts_with("model."))) continue;
    if (key == "model.vocab" && std::abs(value - whole_of(setting->value)) <= most_padding)
      continue;
    if (const std::string ours = fmt::format("{}", value); ours != setting->value)
      refuse(*setting, file, ours);
  }
  check_named_model(settings, file, *run.model, catalog);
  const double samples = settings.samples_per_step;
  if (samples > 0 &&
      std::abs(static_cast<double>(run.batch.train) / samples - 1) > settings.samples_tolerance)
    refuse({"global_batch", fmt::format("{:.0f}", samples), "samples over steps a second", 0}, file,
           fmt::format("{}", run.batch.train));
}

}  // namespace lambcast
