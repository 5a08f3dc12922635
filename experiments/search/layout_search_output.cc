#include "experiments/search/layout_search_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "sim/base/counted.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

// Returns the command that forecasts this layout.
std::string simulate_line(const WhatIf& what_if) {
  std::string line = "lambcast simulate";
  for (const auto& [key, value] : what_if) {
    if (key.find('.') != std::string::npos) {
      line += fmt::format(" --set '{}={}'", key, value);
      continue;
    }
    std::string flag = key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (key == "cuda_aware") {
      if (value == "true") line += " --cuda-aware";
      continue;
    }
    line += fmt::format(" --{} {}", flag, value);
  }
  return line;
}

// Returns the first word of a refusal, such as "memory".
std::string reason_of(const std::string& refused) { return refused.substr(0, refused.find(':')); }

std::string compression_text(const std::optional<CompressedLayout>& compressed) {
  if (!compressed) return "";
  if (!compressed->step_time_us) return fmt::format("no ({})", reason_of(compressed->refused));
  const RatioInterval& speedup = compressed->speedup;
  return fmt::format("{:.2f}x {:.2f} to {:.2f}", speedup.value, speedup.low, speedup.high);
}

bool is_sequence_parallel(const LayoutCandidate& layout) {
  return layout.sequence_parallel == "true";
}

// Formats the layout, without the degrees that are 1: "tp 2, pp 16 in 5 chunks, dp 4".
std::string layout_words(const FoundLayout& found) {
  const LayoutCandidate& layout = found.layout;
  std::string out;
  const auto add = [&](const char* name, int ranks) {
    if (ranks > 1) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, ranks);
  };
  add("tp", layout.tp);
  if (is_sequence_parallel(layout)) out += " and sequence";
  add("cp", layout.cp);
  add("pp", layout.pp);
  if (layout.interleave > 1) out += fmt::format(" in {} chunks", layout.interleave);
  if (layout.split) out += fmt::format(" (layers {})", found.split);
  add("ep", layout.ep);
  add("dp", found.dp);
  return out.empty() ? "one GPU" : out;
}

std::string tight_text(const FoundLayout& found) {
  return found.tight ? fmt::format(", which may not fit: up to {}", to_text(found.peak_high)) : "";
}

// Formats the memory of a row; "!" marks a layout that may not fit.
std::string memory_cell(const FoundLayout& found) {
  return fmt::format("{:>9}{}", bytes_cell(found.peak), found.tight ? "!" : "");
}

// Returns the words for the first layout, since a faster one that may not fit can rank behind it.
std::string_view fastest_text(const LayoutSearch& search) {
  const FoundLayout& best = search.best.front();
  const bool faster = std::ranges::any_of(search.best, [&](const FoundLayout& found) {
    return found.tight && found.step.step_time < best.step.step_time;
  });
  return faster ? "Fastest with memory to spare" : "Fastest";
}

std::string answer_of(const LayoutSearch& search) {
  if (search.best.empty()) return "no layout runs\n";
  const FoundLayout& best = search.best.front();
  const auto [loss, share] = best.shares.largest_loss();
  std::string out = fmt::format(
      "{} of {} layouts that run: {}, micro batch {}, ZeRO stage {}, recompute {}: "
      "{:.2f} ms a step ({:.2f} to {:.2f}), {} of memory{}. Largest loss: {} ({:.0f} %).",
      fastest_text(search), search.forecast, layout_words(best), best.layout.micro_batch,
      best.layout.zero_stage, best.layout.recompute, best.step.step_time.us() * 1e-3,
      best.step.step_time_low.us() * 1e-3, best.step.step_time_high.us() * 1e-3, to_text(best.peak),
      tight_text(best), loss, 100 * share);
  if (search.best.size() > 1) {
    const RatioInterval second = ratio_of(search.best[1].time, best.time);
    out += fmt::format(" The second takes {:.2f} ({:.2f} to {:.2f}) times as long{}.", second.value,
                       second.low, second.high,
                       second.low > 1 ? "" : ": which of the two is faster is not certain");
  }
  if (best.compressed)
    out += best.compressed->step_time_us
               ? fmt::format(" A compressed step of {} is {} as fast.", best.compressed->optimizer,
                             ratio_text(best.compressed->speedup))
               : fmt::format(" Not with {}: {}.", best.compressed->optimizer,
                             reason_of(best.compressed->refused));
  return out + "\n";
}

// Names a framework whose best layout is faster; empty if there is none.
std::string faster_text(const LayoutSearch& search) {
  if (!search.faster) return "";
  const FoundLayout& found = search.faster->found;
  return fmt::format(
      "\nFaster as {0} does it: {1}, micro batch {2}, ZeRO stage {3}, recompute {4}: {5:.2f} ms a "
      "step, {6} as fast; --framework {0}\n",
      found.what_if.at("framework"), layout_words(found), found.layout.micro_batch,
      found.layout.zero_stage, found.layout.recompute, found.step.step_time.us() * 1e-3,
      ratio_text(search.faster->speedup));
}

// Returns the heading of the rate per GPU: tokens, or samples for a model of images.
const char* rate_title(std::int64_t seq_len) { return seq_len > 0 ? "tok/s" : "smp/s"; }

std::string layout_table(const std::vector<FoundLayout>& best) {
  std::string out = fmt::format(
      "{:>2} {:>3} {:>2} {:>2} {:>3} {:>2} {:>10} {:>3} {:>4} {:>8} {:>4} {:>9} {:>9}\n", "#", "tp",
      "sp", "cp", "pp", "v", "split", "ep", "dp", "batch", "ZeRO", "recompute", "memory");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const LayoutCandidate& layout = best[i].layout;
    out += fmt::format(
        "{:>2} {:>3} {:>2} {:>2} {:>3} {:>2} {:>10} {:>3} {:>4} {:>8} {:>4} {:>9} {}\n", i + 1,
        layout.tp, is_sequence_parallel(layout) ? "y" : "-", layout.cp, layout.pp,
        layout.interleave, best[i].split == "none" ? "-" : best[i].split, layout.ep, best[i].dp,
        fmt::format("{}x{}", layout.micro_batch, best[i].micro_batches), layout.zero_stage,
        layout.recompute, memory_cell(best[i]));
  }
  return out;
}

// Rates and utilization are those of the step, so they have its interval upside down.
std::string step_table(const std::vector<FoundLayout>& best, std::int64_t seq_len, int gpus) {
  std::string out = fmt::format("{:>2} {:>10} {:>22} {:>6} {:>15} {:>5} {:>9}\n", "#", "step (ms)",
                                "within", rate_title(seq_len), "within", "MFU", "within");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const FoundLayout& found = best[i];
    const double ms = found.step.step_time.us() * 1e-3;
    const double low = found.step.step_time_low.us() * 1e-3;
    const double high = found.step.step_time_high.us() * 1e-3;
    const double rate = (seq_len > 0 ? found.tokens_per_s : found.samples_per_s) / gpus;
    const int digits = rate < 1000 ? 1 : 0;
    out += fmt::format(
        "{:>2} {:>10.2f} {:>22} {:>6.{}f} {:>15} {:>4.0f}% {:>9}\n", i + 1, ms,
        fmt::format("{:.2f} to {:.2f}", low, high), rate, digits,
        fmt::format("{:.{}f} to {:.{}f}", rate * ms / high, digits, rate * ms / low, digits),
        100 * found.utilization,
        fmt::format("{:.0f} to {:.0f}", 100 * found.utilization * ms / high,
                    100 * found.utilization * ms / low));
  }
  return out;
}

// Prints the largest loss of each layout, and the effect of compression.
std::string compression_table(const std::vector<FoundLayout>& best) {
  struct Column {
    std::string title;
    std::optional<CompressedLayout> FoundLayout::*of;
  };
  const std::string optimizer =
      best.front().compressed ? "with " + best.front().compressed->optimizer : "compressed";
  std::vector<Column> columns{{optimizer, &FoundLayout::compressed},
                              {"with ZeRO++", &FoundLayout::quantized},
                              {"fp8 exchange", &FoundLayout::fp8}};
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(
        best, [&](const FoundLayout& found) { return (found.*column.of).has_value(); });
  });
  std::string out = fmt::format("{:>2} largest loss    ", "#");
  for (const Column& column : columns) out += fmt::format(" {:>19}", column.title);
  out += '\n';
  for (std::size_t i = 0; i < best.size(); ++i) {
    const auto [loss, share] = best[i].shares.largest_loss();
    out += fmt::format("{:>2} {:<11} {:>3.0f}%", i + 1, loss, 100 * share);
    for (const Column& column : columns)
      out += fmt::format(" {:>19}", compression_text(best[i].*column.of));
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string counts_text(const LayoutSearch& search) {
  std::string out = fmt::format("{} layouts: {} run", search.candidates, search.forecast);
  for (const RefusedLayouts& refused : search.refused)
    out += fmt::format("\n{:>8} {:<17} {}", refused.count, refused.reason,
                       refused.example.substr(0, refused.example.find('\n')));
  out += '\n';
  return out;
}

Json compressed_json(const std::optional<CompressedLayout>& compressed) {
  if (!compressed) return nullptr;
  const bool runs = compressed->step_time_us.has_value();
  return {{"optimizer", compressed->optimizer},
          {"step_time_us", runs ? Json(*compressed->step_time_us) : Json(nullptr)},
          {"speedup", runs ? Json(compressed->speedup.value) : Json(nullptr)},
          {"refused", compressed->refused},
          {"speedup_low", runs ? Json(compressed->speedup.low) : Json(nullptr)},
          {"speedup_high", runs ? Json(compressed->speedup.high) : Json(nullptr)}};
}

Json layout_json(const FoundLayout& found) {
  const LayoutCandidate& layout = found.layout;
  const auto [loss, share] = found.shares.largest_loss();
  Json json{{"tp", layout.tp},
            {"cp", layout.cp},
            {"ep", layout.ep},
            {"etp", layout.etp == 0 ? layout.tp : layout.etp},
            {"pp", layout.pp},
            {"dp", found.dp},
            {"interleave", layout.interleave},
            {"split", found.split},
            {"micro_batch", layout.micro_batch},
            {"micro_batches", found.micro_batches},
            {"zero_stage", layout.zero_stage},
            {"recompute", layout.recompute},
            {"sequence_parallel", is_sequence_parallel(layout)},
            {"step_time_us", found.step.step_time.us()},
            {"step_time_low_us", found.step.step_time_low.us()},
            {"step_time_high_us", found.step.step_time_high.us()},
            {"peak_bytes_per_gpu", found.peak.value()},
            {"samples_per_s", found.samples_per_s},
            {"tokens_per_s", found.tokens_per_s},
            {"tflops_per_gpu", found.tflops_per_gpu},
            {"mfu", found.utilization},
            {"shares",
             {{"compute", found.shares.compute},
              {"layers", found.shares.layers},
              {"gradients", found.shares.gradients},
              {"bubble", found.shares.bubble},
              {"compression", found.shares.compression},
              {"optimizer", found.shares.optimizer}}},
            {"largest_loss", loss},
            {"largest_loss_share", share},
            {"compressed", compressed_json(found.compressed)},
            {"quantized", compressed_json(found.quantized)},
            {"fp8", compressed_json(found.fp8)},
            {"simulate", simulate_line(found.what_if)},
            {"memory_tight", found.tight}};
  return json;
}

}  // namespace

std::string layout_search_table(const LayoutSearch& search) {
  const TrainingPlan& base = search.space.base;
  const std::string adapters =
      base.model->adapters
          ? fmt::format(", adapters of rank {} on frozen weights,", base.model->adapters->rank)
          : "";
  std::string out =
      fmt::format("{} with {}{} on {}: {} ({}), batch {}{}, as {} does it\n\n", base.model->name,
                  search.optimizer, adapters, base.cluster->name, counted(base.gpus, "GPU"),
                  counted(base.nodes(), "node"), search.space.global_batch,
                  base.seq_len > 0 ? fmt::format(", sequence {}", base.seq_len) : "",
                  name_of(base.parallelism->framework.name));
  out += fmt::format("{}\n", answer_of(search));
  if (!search.best.empty())
    out += fmt::format("{}\n{}\n{}\n", layout_table(search.best),
                       step_table(search.best, base.seq_len, base.gpus),
                       compression_table(search.best));
  out += counts_text(search) + faster_text(search);
  if (search.best_compressed) {
    const FoundLayout& found = *search.best_compressed;
    out += fmt::format(
        "\nbest with {}: tp {} cp {} pp {} x {} ep {} dp {}, micro batch {}, recompute {}{}: "
        "{:.2f} ms ({:.2f} to {:.2f}){}",
        found.what_if.at("optimizer"), found.layout.tp, found.layout.cp, found.layout.pp,
        found.layout.interleave, found.layout.ep, found.dp, found.layout.micro_batch,
        found.layout.recompute, is_sequence_parallel(found.layout) ? ", sequence parallel" : "",
        found.step.step_time.us() * 1e-3, found.step.step_time_low.us() * 1e-3,
        found.step.step_time_high.us() * 1e-3, tight_text(found));
    if (!search.best.empty())
      out +=
          fmt::format(", {} as fast as the best with {}",
                      ratio_text(ratio_of(search.best.front().time, found.time)), search.optimizer);
    out += "\n";
  } else if (!search.best.empty() && !search.compressing.empty()) {
    out += fmt::format(
        "\nno layout with several replicas runs with {}: one alone has nothing to compress\n",
        search.compressing);
  }
  if (search.best.empty()) return out;
  out += fmt::format(
             "\nsp: sequence parallel. v: chunks of a stage. split: of the layers over stages. "
             "batch: samples of a micro batch x how many. {}: of a GPU. MFU: model FLOPs over the "
             "peak of the format computed in. !: may not fit, by the interval of memory, {:.0f} % "
             "either way, and stands behind layouts that do. Memory leaves out what the allocator "
             "wastes. --framework: layouts of another program.\nThe first one alone: ",
             rate_title(base.seq_len), 100 * memory_error) +
         simulate_line(search.best.front().what_if) + "\n";
  return out;
}

std::string layout_search_json(const LayoutSearch& search) {
  const TrainingPlan& base = search.space.base;
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"inputs",
             {{"model", base.model->name},
              {"cluster", base.cluster->name},
              {"device", base.device->name},
              {"framework", std::string(name_of(base.parallelism->framework.name))},
              {"optimizer", search.optimizer},
              {"gpus", base.gpus},
              {"global_batch", search.space.global_batch},
              {"seq_len", base.seq_len}}},
            {"candidates", search.candidates},
            {"forecast", search.forecast},
            {"refused", Json::array()},
            {"layouts", Json::array()},
            {"best_compressed", nullptr}};
  for (const RefusedLayouts& refused : search.refused)
    json["refused"].push_back(
        {{"reason", refused.reason}, {"count", refused.count}, {"example", refused.example}});
  for (const FoundLayout& found : search.best) json["layouts"].push_back(layout_json(found));
  if (search.best_compressed) json["best_compressed"] = layout_json(*search.best_compressed);
  return json_lines(json);
}

namespace {

const std::vector<std::string> csv_columns{"rank",
                                           "tp",
                                           "cp",
                                           "ep",
                                           "pp",
                                           "dp",
                                           "interleave",
                                           "micro_batch",
                                           "micro_batches",
                                           "zero_stage",
                                           "recompute",
                                           "sequence_parallel",
                                           "step_time_us",
                                           "step_time_low_us",
                                           "step_time_high_us",
                                           "peak_bytes_per_gpu",
                                           "samples_per_s",
                                           "tokens_per_s",
                                           "tflops_per_gpu",
                                           "mfu",
                                           "largest_loss",
                                           "largest_loss_share",
                                           "compressed_optimizer",
                                           "compressed_step_time_us",
                                           "compressed_speedup",
                                           "compressed_refused",
                                           "quantized_step_time_us",
                                           "quantized_speedup",
                                           "fp8_step_time_us",
                                           "fp8_speedup",
                                           "split",
                                           "memory_tight",
                                           "compressed_speedup_low",
                                           "compressed_speedup_high",
                                           "quantized_speedup_low",
                                           "quantized_speedup_high",
                                           "fp8_speedup_low",
                                           "fp8_speedup_high"};

}  // namespace

std::string layout_search_csv(const LayoutSearch& search) {
  std::string out = csv::row(csv_columns) + "\n";
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    const FoundLayout& found = search.best[i];
    const LayoutCandidate& layout = found.layout;
    const auto [loss, share] = found.shares.largest_loss();
    const auto whole = [](std::int64_t value) { return fmt::format("{}", value); };
    const CompressedLayout compressed = found.compressed.value_or(CompressedLayout());
    const bool runs = compressed.step_time_us.has_value();
    const CompressedLayout quantized = found.quantized.value_or(CompressedLayout());
    const bool quantizes = quantized.step_time_us.has_value();
    const CompressedLayout fp8 = found.fp8.value_or(CompressedLayout());
    out += csv::row({whole(static_cast<std::int64_t>(i) + 1),
                     whole(layout.tp),
                     whole(layout.cp),
                     whole(layout.ep),
                     whole(layout.pp),
                     whole(found.dp),
                     whole(layout.interleave),
                     whole(layout.micro_batch),
                     whole(found.micro_batches),
                     whole(layout.zero_stage),
                     layout.recompute,
                     layout.sequence_parallel,
                     csv::number(found.step.step_time.us()),
                     csv::number(found.step.step_time_low.us()),
                     csv::number(found.step.step_time_high.us()),
                     csv::number(found.peak.value()),
                     csv::number(found.samples_per_s),
                     csv::number(found.tokens_per_s),
                     csv::number(found.tflops_per_gpu),
                     csv::number(found.utilization),
                     loss,
                     csv::number(share),
                     compressed.optimizer,
                     runs ? csv::number(*compressed.step_time_us) : "",
                     runs ? csv::number(compressed.speedup.value) : "",
                     compressed.refused,
                     quantizes ? csv::number(*quantized.step_time_us) : "",
                     quantizes ? csv::number(quantized.speedup.value) : "",
                     fp8.step_time_us ? csv::number(*fp8.step_time_us) : "",
                     fp8.step_time_us ? csv::number(fp8.speedup.value) : "",
                     found.split,
                     found.tight ? "true" : "false",
                     runs ? csv::number(compressed.speedup.low) : "",
                     runs ? csv::number(compressed.speedup.high) : "",
                     quantizes ? csv::number(quantized.speedup.low) : "",
                     quantizes ? csv::number(quantized.speedup.high) : "",
                     fp8.step_time_us ? csv::number(fp8.speedup.low) : "",
                     fp8.step_time_us ? csv::number(fp8.speedup.high) : ""}) +
           "\n";
  }
  return out;
}

}  // namespace lambcast
