#include "experiments/scenario/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "experiments/scenario/description_ledger.h"
#include "experiments/scenario/invalid_value.h"
#include "experiments/scenario/run_length.h"
#include "experiments/scenario/words.h"
#include "models/deepspeed/key_ledger.h"
#include "models/huggingface/config.h"
#include "models/launchers/launcher_file.h"
#include "models/megatron/arguments.h"
#include "models/torchtitan/config.h"
#include "sim/base/file.h"
#include "topologies/foreign_description.h"
#include "topologies/host_list.h"

namespace lambcast {
namespace {

// Two of the three batch numbers determine the third, so two given by the user override the file
// completely.
constexpr const char* batch_keys[] = {"micro_batch", "grad_accum", "global_batch"};

bool settles_batch(const WhatIf& asked) {
  int given = 0;
  for (const char* key : batch_keys) given += asked.contains(key) ? 1 : 0;
  return given >= 2;
}

bool is_batch(const std::string& key) {
  for (const char* known : batch_keys)
    if (key == known) return true;
  return false;
}

// Returns whether a key of the file is overridden by another key of the user.
bool is_overruled(const std::string& key, const WhatIf& asked) {
  if (is_batch(key)) return settles_batch(asked);
  if (key == "rampup_batch_size") return settles_batch(asked) || asked.contains("global_batch");
  if (key == "gpus") return asked.contains("gpus") || asked.contains("nodes");
  if (is_length(key))
    return std::any_of(length_keys.begin(), length_keys.end(),
                       [&](const char* length) { return asked.contains(length); });
  if (key == "shard_ranks" || key == "shard_groups")
    return asked.contains("shard_ranks") || asked.contains("shard_groups");
  if (key == "model.max_seq_len" || key == "seq_len") return asked.contains("seq_len");
  return false;
}

void write(const std::vector<std::pair<std::string, std::string>>& keys, const WhatIf& asked,
           WhatIf& what_if) {
  for (const auto& [key, value] : keys)
    if (!is_overruled(key, asked)) what_if.emplace(key, value);
}

// Parses "A=1;B=2" into variables.
megatron::Variables variables_of(const std::string* text) {
  megatron::Variables variables;
  std::istringstream entries(text == nullptr ? "" : *text);
  for (std::string entry; std::getline(entries, entry, ';');) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      fail_input(flag("set_var"), fmt::format("'{}' is not NAME=VALUE", entry));
    variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return variables;
}

// Adds the DeepSpeed JSON of a launch, which decides the ZeRO stage and the optimizer.
void add_deepspeed(const megatron::Arguments& arguments, const std::string& path,
                   const WhatIf& asked, Catalog& catalog, WhatIf& what_if,
                   std::vector<Finding>& findings) {
  if (arguments.config_name.empty() || asked.contains("config")) return;
  if (!arguments.config.empty()) {
    const std::string name = fmt::format("{}:{}", path, arguments.config_name);
    catalog.texts()->add("config " + name, arguments.config);
    what_if.emplace("config", name);
    return;
  }
  findings.push_back(
      {Severity::warning, "deepspeed-config-not-read",
       fmt::format("{}: --deepspeed_config: '{}' decides the optimizer and the ZeRO stage, and is "
                   "not read; try: --config FILE",
                   path, arguments.config_name)});
}

// Drops the note on --cpu-optimizer if the DeepSpeed JSON offloads, since offloading then follows
// the JSON.
void drop_offload_note(const deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings) {
  const bool offloads =
      std::ranges::any_of(config.layout, [](const std::pair<std::string, std::string>& key) {
        return key.first == "offload_optimizer" && key.second != "none";
      });
  if (!offloads) return;
  std::erase_if(findings, [](const Finding& finding) {
    return finding.code == "not-modelled" &&
           finding.message.find("--cpu-optimizer:") != std::string::npos;
  });
}

bool is_fp8(std::string_view precision) { return precision.ends_with("fp8"); }

// Returns the type to which a JSON casts the model; empty if it states none.
std::string precision_of(const deepspeed::DeepSpeedConfig& config) {
  return config.fp16.enabled.value ? "fp16" : config.bf16_enabled.value ? "bf16" : "";
}

// Adds a warning if a launch names another ZeRO stage than its JSON, whose stage is in effect.
void find_other_stage(const megatron::Arguments& arguments, const std::string& path,
                      std::int64_t stage, std::vector<Finding>& findings) {
  const auto entry = std::ranges::find(arguments.ledger, "--zero-stage", &LedgerEntry::key);
  const auto key = std::ranges::find(arguments.what_if, "zero_stage",
                                     &std::pair<std::string, std::string>::first);
  if (entry == arguments.ledger.end() || key->second == fmt::format("{}", stage)) return;
  findings.push_back(
      {Severity::warning, "zero-stage-differs",
       fmt::format("{}:{}: --zero-stage: {} is not in effect: the DeepSpeed JSON decides, stage {}",
                   path, entry->line, key->second, stage)});
}

// Adds a warning if the batch or precision of the launch differs from its JSON. Data are read in
// micro batches of the launch; DeepSpeed casts the model to the type of the JSON. Source:
// Megatron-DeepSpeed, megatron/training.py; DeepSpeed, runtime/engine.py.
void find_differences(const megatron::Arguments& arguments, const std::string& path,
                      const deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings) {
  const auto compare = [&](const char* key, const std::string& argument, const std::string& ours,
                           std::string_view which) {
    const auto said =
        std::ranges::find(arguments.what_if, key, &std::pair<std::string, std::string>::first);
    if (said == arguments.what_if.end() || ours.empty() || said->second == ours ||
        is_fp8(said->second))
      return;
    findings.push_back({Severity::warning, "launch-differs",
                        fmt::format("{}: {}: {} is not the {} of the DeepSpeed JSON; {}", path,
                                    argument, said->second, ours, which)});
  };
  const auto text = [](const std::optional<std::int64_t>& number) {
    return number ? fmt::format("{}", *number) : "";
  };
  compare("micro_batch", "--micro-batch-size", text(config.batch.micro), "the launch's is taken");
  compare("global_batch", "--global-batch-size", text(config.batch.train), "the launch's is taken");
  compare("precision", "--bf16 or --fp16", precision_of(config), "the JSON's is taken");
}

void add_megatron(const std::string& path, const WhatIf& asked, Catalog& catalog, WhatIf& what_if,
                  std::vector<Finding>& findings) {
  of_key("megatron_args", [&] {
    const std::string* given = Words(asked).find("set_var");
    megatron::Arguments arguments =
        megatron::decode(catalog.texts()->config(path), path, variables_of(given));
    if (arguments.lacks_vocabulary && !asked.contains("model.vocab") && !asked.contains("model"))
      fail_input({path, 0, "--vocab-size"},
                 "is missing, and the vocabulary of the tokenizer is not known",
                 "--vocab-size N in the file, or --set model.vocab=N");
    add_deepspeed(arguments, path, asked, catalog, what_if, findings);
    auto keys = arguments.what_if;
    // Megatron-DeepSpeed passes its own Adam to DeepSpeed if the JSON names no optimizer.
    if (const auto config = what_if.find("config");
        config != what_if.end() && !arguments.config_name.empty()) {
      drop_offload_note(*catalog.config(config->second), arguments.findings);
      find_other_stage(arguments, path, catalog.config(config->second)->zero.stage.value,
                       arguments.findings);
      find_differences(arguments, path, *catalog.config(config->second), arguments.findings);
      const bool names_optimizer = catalog.config(config->second)->optimizer.has_value();
      const bool names_precision = !precision_of(*catalog.config(config->second)).empty();
      std::erase_if(keys, [&](const auto& key) {
        return key.first == "zero_stage" ||
               (names_precision && key.first == "precision" && !is_fp8(key.second)) ||
               (names_optimizer && key.first == "optimizer" && key.second == "adam");
      });
    }
    write(keys, asked, what_if);
    std::string model = is_path(path) ? path : "./" + path;
    if (given != nullptr) model += " with " + *given;
    if (given != nullptr) catalog.texts()->add("model " + model, arguments.model);
    if (!arguments.model.empty()) what_if.emplace("model", model);
    findings.insert(findings.end(), arguments.findings.begin(), arguments.findings.end());
  });
}

void add_torchtitan(const std::string& path, const WhatIf& asked, Catalog& catalog, WhatIf& what_if,
                    std::vector<Finding>& findings) {
  of_key("torchtitan", [&] {
    const torchtitan::Job job = torchtitan::decode(catalog.texts()->config(path), path);
    write(job.what_if, asked, what_if);
    for (const Finding& finding : job.findings)
      if (finding.code != "no-preset") {
        findings.push_back(finding);
      } else if (!asked.contains("model")) {
        throw Error(Exit::usage, finding.message);
      }
  });
}

// Returns the path of a file that another names: from the working folder, or next to
// that file.
std::string path_from(const std::string& file, const std::string& named) {
  std::error_code error;
  if (named.empty() || std::filesystem::exists(named, error)) return named;
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / named;
  return std::filesystem::exists(beside, error) ? beside.string() : std::string();
}

// Replaces the YAML of a launcher by the DeepSpeed JSON that it contains or names, if any.
void add_launcher_file(const std::string& path, const WhatIf& asked, Catalog& catalog,
                       WhatIf& what_if, std::vector<Finding>& findings) {
  of_key("config", [&] {
    const launchers::LauncherFile file = launchers::decode(catalog.texts()->config(path), path);
    if ((file.program == "LLaMA-Factory" || file.program == "axolotl") && !asked.contains("model"))
      fail_input({path, 0, "model"}, fmt::format("{} names a model of a hub", file.program),
                 "--model with a preset or the config.json of that model");
    what_if.erase("config");
    write(file.what_if, asked, what_if);
    findings.insert(findings.end(), file.findings.begin(), file.findings.end());
    if (!file.model.empty() && !asked.contains("model")) {
      const std::string name = (is_path(path) ? path : "./" + path) + " as a model";
      catalog.texts()->add("model " + name, file.model);
      what_if.emplace("model", name);
    }
    const std::string named = path_from(path, file.config_path);
    if (!file.config.empty()) {
      const std::string name = path + " as DeepSpeed JSON";
      catalog.texts()->add("config " + name, file.config);
      what_if.emplace("config", name);
    } else if (!named.empty()) {
      what_if.emplace("config", named);
    } else if (!file.config_path.empty()) {
      fail_input({path, 0, "deepspeed"},
                 fmt::format("the file '{}' is not found", file.config_path),
                 "a DeepSpeed JSON in the working folder or next to this file");
    }
  });
}

// Throws Error if the cluster does not fit the keys that a file states, or those of the user's own
// flags.
void check_fit(const std::string& path, const ForeignDescription& stated, Catalog& catalog,
               const WhatIf& what_if) {
  const auto cluster = what_if.find("cluster");
  if (cluster == what_if.end()) return;
  Overrides own, all;
  for (const auto& [key, value] : what_if) {
    if (!key.starts_with("cluster.")) continue;
    all.emplace_back(key.substr(8), value);
    if (std::ranges::find(stated.keys, all.back()) == stated.keys.end()) own.push_back(all.back());
  }
  try {
    catalog.cluster(cluster->second, all);
  } catch (const Error& error) {
    catalog.cluster(cluster->second, own);
    std::string what = error.what();
    if (what.starts_with("--set ")) what.erase(0, std::min(what.find(": ") + 2, what.size()));
    fail_input({path, 0, {}}, fmt::format("does not fit {}: {}; try: a preset of the same hardware",
                                          cluster->second, what));
  }
}

// Fills keys of the cluster from the structure described in a file of another program.
void add_topology(const std::string& path, const std::vector<std::string>& hosts, Catalog& catalog,
                  WhatIf& what_if, std::vector<Finding>& findings) {
  of_key("topology", [&] {
    const auto stated = foreign_description(catalog.texts()->config(path), hosts);
    if (!stated || stated->keys.empty())
      fail_input({path, 0, {}},
                 stated ? fmt::format("is {}, which leaves open {}", stated->format, stated->open)
                        : "states no structure of a cluster",
                 "NCCL's topology XML or log of NCCL_DEBUG=INFO, the output of nvidia-smi topo -m, "
                 "Slurm's topology.conf or topology.yaml with switches");
    std::string filled;
    for (const auto& [key, value] : stated->keys)
      if (what_if.emplace("cluster." + key, value).second)
        filled += fmt::format("{}{} = {}", filled.empty() ? "" : ", ", key, value);
    check_fit(path, *stated, catalog, what_if);
    const std::string unknown = unknown_topology_keys(catalog.texts()->config(path));
    if (!unknown.empty())
      findings.push_back({Severity::note, "unknown-key",
                          fmt::format("{}: {}: unknown: not applied", path, unknown)});
    findings.push_back(
        {Severity::note, "topology-filled",
         fmt::format(
             "{} is {}: {}; rates are those of the cluster{}", path, stated->format,
             filled.empty() ? "--set gives all that it states" : filled,
             stated->open.empty() ? "" : fmt::format("; it leaves open {}", stated->open))});
  });
}

// Sets the nodes from the hosts of a job, unless a flag sets them.
std::vector<std::string> add_hosts(const Words& words, WhatIf& what_if) {
  const std::string* list = words.find("hosts");
  if (list == nullptr) return {};
  const auto hosts = host_names(*list);
  if (!hosts)
    fail_input(flag("hosts"), fmt::format("'{}' is not a list of hosts", *list),
               "a list as SLURM_JOB_NODELIST has it, n[01-04,7],m1, of up to 100000");
  if (!words.find("gpus") && !words.find("dp"))
    what_if.emplace("nodes", fmt::format("{}", hosts->size()));
  what_if.erase("hosts");
  return *hosts;
}

}  // namespace

bool has_run_files(const WhatIf& asked) {
  constexpr std::array files{"config", "megatron_args", "torchtitan", "topology", "hosts"};
  return std::ranges::any_of(files, [&](const char* key) { return asked.contains(key); });
}

void name_file_of_checkpoint(WhatIf& asked) {
  const auto model = asked.find("model");
  std::error_code error;
  if (model == asked.end() || !is_path(model->second) ||
      !std::filesystem::is_directory(model->second, error))
    return;
  const std::filesystem::path config = std::filesystem::path(model->second) / "config.json";
  if (!std::filesystem::exists(config, error))
    fail_input({"", 0, "--model"}, fmt::format("the folder {} has no config.json", model->second),
               "a preset's name, a file, or the folder of a Hugging Face checkpoint");
  model->second = config.string();
}

namespace {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

// Returns the what-if keys that a DeepSpeed JSON sets. Only the keys are used; some values are
// empty.
KeyValues keys_of(const deepspeed::DeepSpeedConfig& config) {
  KeyValues keys = config.layout;
  const auto add = [&](const char* key, bool given) {
    if (given) keys.emplace_back(key, "");
  };
  add("micro_batch", config.batch.micro.has_value());
  add("grad_accum", config.batch.gas.has_value());
  add("global_batch", config.batch.train.has_value());
  add("zero_stage", config.zero.stage.given);
  add("optimizer", config.optimizer.has_value());
  add("precision", !precision_of(config).empty());
  return keys;
}

}  // namespace

std::vector<InputLedger> input_ledgers(const WhatIf& asked, Catalog& catalog) {
  const Words words(asked);
  std::vector<InputLedger> ledgers;
  const auto add = [&](const std::string& file, std::vector<LedgerEntry> entries,
                       const KeyValues& keys = {}) {
    InputLedger& ledger = ledgers.emplace_back(InputLedger{file, std::move(entries)});
    for (const auto& [key, value] : keys)
      if (asked.contains(key) || is_overruled(key, asked)) ledger.replaced.push_back(key);
  };
  const auto add_json = [&](const std::string& text, const std::string& file) {
    add(file, deepspeed::key_ledger(text, file), keys_of(deepspeed::parse_config(text, file)));
  };
  if (const std::string* path = words.find("megatron_args")) {
    const megatron::Arguments arguments = megatron::decode(catalog.texts()->config(*path), *path,
                                                           variables_of(words.find("set_var")));
    add(*path, arguments.ledger, arguments.what_if);
    if (!arguments.config.empty() && !asked.contains("config"))
      add_json(arguments.config, arguments.config_name);
  }
  if (const std::string* path = words.find("torchtitan")) {
    const torchtitan::Job job = torchtitan::decode(catalog.texts()->config(*path), *path);
    add(*path, job.ledger, job.what_if);
  }
  if (const std::string* path = words.find("config")) {
    const std::string& text = catalog.texts()->config(*path);
    if (launchers::is_launcher_file(text)) {
      const launchers::LauncherFile file = launchers::decode(text, *path);
      add(*path, file.ledger, file.what_if);
      if (!file.config.empty()) add_json(file.config, *path + " as DeepSpeed JSON");
    } else {
      add_json(text, *path);
    }
  }
  WhatIf files = asked;
  name_file_of_checkpoint(files);
  if (const std::string* path = Words(files).find("model"); path != nullptr && is_path(*path)) {
    const std::string& text = catalog.texts()->model(*path);
    add(*path,
        is_config_json(text) ? huggingface::key_ledger(text, *path) : description_ledger(text));
  }
  if (const std::string* path = words.find("topology"))
    add(*path, topology_ledger(catalog.texts()->config(*path)));
  if (const std::string* path = words.find("cluster"); path != nullptr && is_path(*path))
    add(*path, description_ledger(catalog.texts()->cluster(*path)));
  if (const std::string* path = words.find("device"); path != nullptr && is_path(*path))
    add(*path, description_ledger(catalog.texts()->device(*path)));
  return ledgers;
}

WhatIf with_run_files(const WhatIf& asked, Catalog& catalog, std::vector<Finding>& findings) {
  const Words words(asked);
  const std::string* megatron = words.find("megatron_args");
  const std::string* torchtitan = words.find("torchtitan");
  if (megatron != nullptr && torchtitan != nullptr)
    fail_input(flag("torchtitan"), "is another run than that of --megatron-args");
  WhatIf what_if = asked;
  what_if.erase("megatron_args");
  what_if.erase("torchtitan");
  if (megatron == nullptr && asked.contains("set_var"))
    fail_input(flag("set_var"), "is for the script of --megatron-args");
  what_if.erase("set_var");
  const std::string* config = words.find("config");
  const auto is_of_launcher = [&] {
    return launchers::is_launcher_file(catalog.texts()->config(*config));
  };
  if (config != nullptr && of_key("config", is_of_launcher))
    add_launcher_file(*config, asked, catalog, what_if, findings);
  const std::vector<std::string> hosts = add_hosts(words, what_if);
  what_if.erase("topology");
  if (const std::string* topology = words.find("topology"))
    add_topology(*topology, hosts, catalog, what_if, findings);
  if (megatron != nullptr) add_megatron(*megatron, asked, catalog, what_if, findings);
  if (torchtitan != nullptr) add_torchtitan(*torchtitan, asked, catalog, what_if, findings);
  return what_if;
}

}  // namespace lambcast
