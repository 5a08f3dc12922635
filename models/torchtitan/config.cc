#include "models/torchtitan/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "models/torchtitan/known_keys.h"
#include "models/unknown_keys.h"
#include "sim/base/table.h"

namespace lambcast::torchtitan {
namespace {

class Decoder {
 public:
  Decoder(std::string_view text, const std::string& file) : root_(Table::parse(text, file)) {
    check_keys();
  }

  Job decode() {
    set("framework", "torchtitan");
    set("attention", "flash2");
    model();
    parallelism();
    training();
    recomputation();
    optimizer();
    name_unapplied();
    write_ledger();
    return std::move(job_);
  }

 private:
  void set(const char* key, std::string value) { job_.what_if.emplace_back(key, std::move(value)); }

  void check(const Table& table, const Names& known) {
    for (const std::string& key : table.keys()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      if (const std::string meant = closest(key, known); !meant.empty())
        fail_input(table.where(key), fmt::format("unknown key, did you mean '{}'?", meant));
      job_.findings.push_back(
          {Severity::note, "unknown-key", describe(table.where(key), "unknown key: not applied")});
      refuse_many_unknown_keys(job_.findings, table.where().file, "torchtitan");
    }
  }

  void check_keys() {
    Names sections = silent_sections();
    for (const auto& [section, keys] : known_keys()) sections.push_back(section);
    check(root_, sections);
    for (const auto& [section, keys] : known_keys()) check(root_.table(section), keys);
    const Names names = root_.keys();
    if (std::none_of(names.begin(), names.end(),
                     [](const std::string& name) { return known_keys().contains(name); }))
      fail_input(root_.where(), "has no section of a torchtitan job",
                 "[model], [training], [parallelism], ...");
  }

  // Returns a degree; nothing if it is -1 or absent, which means the remaining ranks.
  std::optional<std::int64_t> degree(const Table& table, const char* key) const {
    if (!table.has(key) || table.get<std::int64_t>(key) == -1) return std::nullopt;
    return table.integer(key, 1, 65536);
  }

  void model() {
    const Table model = root_.table("model");
    static const std::map<std::pair<std::string, std::string>, std::string> presets{
        {{"llama3", "8B"}, "llama3-8b"},         {{"llama3", "70B"}, "llama3-70b"},
        {{"llama3", "405B"}, "llama3-405b"},     {{"deepseek_v3", "671B"}, "deepseek-v3"},
        {{"qwen3", "30B-A3B"}, "qwen3-30b-a3b"}, {{"qwen3", "235B-A22B"}, "qwen3-235b-a22b"},
        {{"gpt_oss", "20b"}, "gpt-oss-20b"},     {{"gpt_oss", "120b"}, "gpt-oss-120b"}};
    const auto preset = presets.find(
        {model.get_or<std::string>("name", ""), model.get_or<std::string>("flavor", "")});
    if (preset != presets.end()) {
      set("model", preset->second);
      // By default torchtitan's DeepSeek-V3 has no multi-token prediction layer
      // (models/deepseek_v3, num_mtp_layers).
      if (preset->second == "deepseek-v3") set("model.predicted_layers", "0");
    } else
      job_.findings.push_back(
          {Severity::note, "no-preset",
           describe(model.where("flavor"), "no preset is this model; try: --model")});
    for (const std::string& converter : converters_of(model)) {
      if (converter.ends_with("float8"))
        fp8_ = "fp8";
      else if (converter.ends_with("mx"))
        fp8_ = "mxfp8";
      else
        fail_input(model.where("converters"), fmt::format("'{}' is not modelled", converter),
                   "float8, mx, quantize.linear.float8, quantize.linear.mx");
    }
  }

  // Reads a list or, in releases of 2024 and 2025, one text with commas.
  static Names converters_of(const Table& model) {
    const auto text = model.find_text("converters");
    if (!text) return model.get_or<Names>("converters", {});
    Names names;
    std::istringstream parts(*text);
    for (std::string name; std::getline(parts >> std::ws, name, ',');) names.push_back(name);
    return names;
  }

  void parallelism() {
    const Table table = root_.table("parallelism");
    const auto tp = degree(table, "tensor_parallel_degree").value_or(1);
    pp_ = degree(table, "pipeline_parallel_degree").value_or(1);
    const auto cp = degree(table, "context_parallel_degree").value_or(1);
    set("tp", fmt::format("{}", tp));
    set("pp", fmt::format("{}", pp_));
    set("cp", fmt::format("{}", cp));
    if (const auto ep = degree(table, "expert_parallel_degree").value_or(1); ep > 1) {
      set("ep", fmt::format("{}", ep));
      const auto etp = degree(table, "expert_tensor_parallel_degree").value_or(1);
      if (tp > 1) set("etp", fmt::format("{}", etp));
    }
    if (tp > 1) set("sequence_parallel", "true");
    const bool async = table.get_or<bool>("enable_async_tensor_parallel", false);
    set("tensor_overlap", async ? "all" : "none");
    shards(table, cp);
    if (pp_ > 1) schedule(table);
    for (const char* key : {"pipeline_parallel_split_points", "module_fqns_per_model_part"})
      if (table.has(key))
        job_.findings.push_back(
            {Severity::note, "not-modelled",
             describe(table.where(key), "layers are assumed to be spread evenly over the stages")});
    if (const auto shards = degree(table, "data_parallel_shard_degree");
        shards && degree(table, "data_parallel_replicate_degree").value_or(1) == 1)
      job_.findings.push_back(
          {Severity::note, "not-modelled",
           describe(table.where("data_parallel_shard_degree"),
                    fmt::format("--gpus decides the number of shards; {} are right for {} GPUs",
                                *shards, *shards * tp * pp_ * cp))});
  }

  void shards(const Table& table, std::int64_t cp) {
    const auto copies = degree(table, "data_parallel_replicate_degree").value_or(1);
    const auto shard = degree(table, "data_parallel_shard_degree");
    const std::size_t reshard =
        table.has("fsdp_reshard_after_forward")
            ? table.choice("fsdp_reshard_after_forward", {"default", "always", "never"})
            : 0;
    if (shard == 1 && copies > 1) return set("zero_stage", "0");
    const bool weights = reshard == 1 || (reshard == 0 && pp_ == 1);
    set("zero_stage", weights ? "3" : "2");
    if (copies == 1) return;
    if (shard)
      set("shard_ranks", fmt::format("{}", *shard * cp));
    else
      set("shard_groups", fmt::format("{}", copies));
  }

  void schedule(const Table& table) {
    static const Names names{"1F1B", "Interleaved1F1B", "GPipe", "ZBVZeroBubble",
                             "1f1b", "interleaved_1f1b"};
    const std::size_t chosen = table.has("pipeline_parallel_schedule")
                                   ? table.choice("pipeline_parallel_schedule", names)
                                   : 0;
    const char* words[] = {"1f1b", "interleaved", "gpipe", "zbv", "1f1b", "interleaved"};
    set("pipeline_schedule", words[chosen]);
    const bool two = std::string_view(words[chosen]) == "interleaved" ||
                     std::string_view(words[chosen]) == "zbv";
    if (two) set("interleave", "2");  // torchtitan's default for looped schedules
  }

  void training() {
    const Table table = root_.table("training");
    const char* local_key = table.has("local_batch_size") ? "local_batch_size" : "batch_size";
    const std::int64_t local = table.has(local_key) ? table.integer(local_key, 1, 1'000'000) : 8;
    const Table parallel = root_.table("parallelism");
    const std::int64_t micro =
        pp_ == 1 ? local : degree(parallel, "pipeline_parallel_microbatch_size").value_or(1);
    if (local % micro != 0)
      fail_input(table.where(local_key),
                 fmt::format("{} is not divisible by micro batches of {}", local, micro));
    set("micro_batch", fmt::format("{}", micro));
    if (table.has("global_batch_size") && table.get<std::int64_t>("global_batch_size") != -1)
      set("global_batch", fmt::format("{}", table.integer("global_batch_size", 1, 1'000'000'000)));
    else
      set("grad_accum", fmt::format("{}", local / micro));
    const std::int64_t length = table.has("seq_len") ? table.integer("seq_len", 1, 1 << 24) : 2048;
    set("seq_len", fmt::format("{}", length));
    set("model.max_seq_len", fmt::format("{}", length));
    if (table.has("steps")) set("steps", fmt::format("{}", table.integer("steps", 1, 1L << 40)));
    const bool single = table.has("mixed_precision_param") &&
                        table.choice("mixed_precision_param", {"bfloat16", "float32"}) == 1;
    set("precision", single ? "fp32" : !fp8_.empty() ? fp8_ : "bf16");
    if (fp8_ == "fp8" && !single) set("fp8_weight_gather", gathers_float8() ? "true" : "false");
    if (table.get_or<bool>("enable_cpu_offload", false))
      fail_input(table.where("enable_cpu_offload"), "states on the host are not modelled", "false");
    // FSDP sums gradients in fp32 by default.
    if (table.has("mixed_precision_reduce") &&
        table.choice("mixed_precision_reduce", {"float32", "bfloat16"}) == 1) {
      if (single)
        fail_input(table.where("mixed_precision_reduce"),
                   "sums of fp32 gradients in bfloat16 are not modelled", "float32");
      set("fp32_gradients", "false");
    }
    compilation(table);
  }

  void compilation(const Table& training) {
    const Table table = root_.table("compile");
    const bool enabled =
        training.get_or<bool>("compile", false) || table.get_or<bool>("enable", false);
    const Names parts =
        table.has("components") ? table.get<Names>("components") : Names{"model", "loss"};
    const auto compiles = [&](const char* part) {
      return enabled && std::find(parts.begin(), parts.end(), part) != parts.end();
    };
    set("fusion", compiles("model") ? "compiled" : "eager");
    if (compiles("model") && !compiles("loss")) set("eager_loss", "true");
    if (compiles("loss") && !compiles("model"))
      job_.findings.push_back(
          {Severity::note, "not-modelled",
           describe(
               table.where("components"),
               "a compiled loss of a model that is not compiled is forecast as not compiled")});
    const auto backend = table.get_or<std::string>("backend", "inductor");
    if (enabled && backend != "inductor")
      job_.findings.push_back(
          {Severity::note, "not-modelled",
           describe(table.where("backend"), fmt::format("'{}' is forecast as inductor", backend))});
  }

  void recomputation() {
    const Table table = root_.table("activation_checkpoint");
    const std::size_t mode =
        table.has("mode") ? table.choice("mode", {"selective", "none", "full"}) : 0;
    const char* words[] = {"alternate", "none", "full"};
    set("recompute", words[mode]);
    const auto option = table.get_or<std::string>("selective_ac_option", "op");
    if (mode == 0 && option != "op")
      job_.findings.push_back(
          {Severity::note, "not-modelled",
           describe(table.where("selective_ac_option"),
                    "every second product is assumed to be repeated, not whole layers")});
  }

  void optimizer() {
    const Table table = root_.table("optimizer");
    const std::size_t name = table.has("name") ? table.choice("name", {"AdamW", "Adam"}) : 0;
    set("optimizer", name == 0 ? "adamw" : "adam");
  }

  static bool is_usual(const Table& table, const NamedKey& named) {
    return !table.has(named.key) || table.words(named.key) == Names{named.usual};
  }

  void name_unapplied() {
    for (const auto& [section, table] : formats())
      if (table.has("filter_fqns") && fp8_ == "fp8" &&
          table.get<Names>("filter_fqns") != Names{"output"})
        job_.findings.push_back(
            {Severity::note, "not-modelled",
             describe(table.where("filter_fqns"), "all products of blocks are taken in float8")});
    for (const NamedKey& named : named_keys())
      if (const Table table = root_.table(named.section); !is_usual(table, named))
        job_.findings.push_back(
            {Severity::note, "not-modelled", describe(table.where(named.key), named.sentence)});
  }

  // Returns why a key has no effect on this job; empty if it has one.
  const char* idle(const std::string& name) const {
    const auto is = [&](const char* key, const char* value) {
      return std::ranges::find(job_.what_if, std::pair<std::string, std::string>(key, value)) !=
             job_.what_if.end();
    };
    const auto begins = [&](const char* with) { return name.starts_with(with); };
    if (pp_ == 1 && (begins("parallelism.pipeline_parallel_schedule") ||
                     begins("parallelism.pipeline_parallel_microbatch_size")))
      return "no pipeline";
    if (name == "parallelism.expert_tensor_parallel_degree" &&
        degree(root_.table("parallelism"), "expert_parallel_degree").value_or(1) == 1)
      return "no expert parallelism";
    if (name == "activation_checkpoint.selective_ac_option" && !is("recompute", "alternate"))
      return "not in this mode";
    if ((name == "compile.backend" || name == "compile.components") && is("fusion", "eager"))
      return "the model is not compiled";
    return "";
  }

  LedgerEntry entry_of(const Table& table, const std::string& name, const std::string& key) const {
    LedgerEntry entry{name, table.where(key).line, Treatment::applied, {}};
    for (const Finding& finding : job_.findings)
      if (const std::size_t at = finding.message.find(name + ": "); at != std::string::npos) {
        entry.treatment = Treatment::named;
        entry.reason = finding.message.substr(at + name.size() + 2);
      }
    if (entry.treatment == Treatment::named) return entry;
    const bool usual = std::ranges::any_of(named_keys(), [&](const NamedKey& named) {
      return name == fmt::format("{}.{}", named.section, named.key);
    });
    const bool costless =
        files_and_values().find(fmt::format(" {} ", key)) != std::string_view::npos;
    const std::string no_effect = idle(name);
    if (!usual && !costless && no_effect.empty()) return entry;
    entry.treatment = Treatment::costless;
    entry.reason = !no_effect.empty() ? no_effect
                   : usual            ? "the usual value"
                                      : "a file, a sample or a value in formulas";
    return entry;
  }

  void write_ledger() {
    write_format_ledger();
    for (const std::string& section : root_.keys()) {
      if (!known_keys().contains(section)) {
        if (section == "float8" || section == "quantize") continue;
        LedgerEntry entry = entry_of(root_, section, section);
        if (entry.treatment == Treatment::applied) {
          entry.treatment = Treatment::costless;
          entry.reason = "logs, checkpoints or values of formats, outside a step";
        }
        job_.ledger.push_back(std::move(entry));
        continue;
      }
      const Table table = root_.table(section);
      for (const std::string& key : table.keys())
        job_.ledger.push_back(entry_of(table, fmt::format("{}.{}", section, key), key));
    }
  }

  // Returns the keys of products in narrow formats, by the names of their sections.
  std::vector<std::pair<std::string, Table>> formats() const {
    std::vector<std::pair<std::string, Table>> sections{{"float8", root_.table("float8")}};
    for (const char* products : {"linear", "grouped_mm"})
      for (const char* format : {"float8", "mx"})
        sections.emplace_back(fmt::format("quantize.{}.{}", products, format),
                              root_.table("quantize").table(products).table(format));
    return sections;
  }

  bool gathers_float8() const {
    return std::ranges::any_of(formats(), [](const auto& section) {
      const char* key = "enable_fsdp_float8_all_gather";
      return section.second.has(key) && section.second.template get<bool>(key);
    });
  }

  void write_format_ledger() {
    for (const auto& [section, table] : formats())
      for (const std::string& key : table.keys()) {
        LedgerEntry entry = entry_of(table, fmt::format("{}.{}", section, key), key);
        const bool gathers = key == "enable_fsdp_float8_all_gather" && fp8_ == "fp8";
        if (entry.treatment == Treatment::applied && !gathers) {
          entry.treatment = Treatment::costless;
          entry.reason = "a value of formats";
        }
        job_.ledger.push_back(std::move(entry));
      }
  }

  Table root_;
  Job job_;
  std::string fp8_;
  std::int64_t pp_ = 1;
};

}  // namespace

Job decode(std::string_view text, const std::string& file) { return Decoder(text, file).decode(); }

}  // namespace lambcast::torchtitan
