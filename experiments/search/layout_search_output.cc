#include "experiments/search/layout_search_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "sim/base/counted.h"

namespace lambcast {
namespace {

// Returns the first word of a refusal, such as "memory".
std::string reason_of(const std::string& refused) { return refused.substr(0, refused.find(':')); }

std::string compression_text(const std::optional<CompressedLayout>& compressed) {
  if (!compressed) return "";
  if (!compressed->step_time_us) return fmt::format("no ({})", reason_of(compressed->refused));
  const RatioInterval& speedup = compressed->speedup;
  return fmt::format("{:.2f}x {:.2f} to {:.2f}", speedup.value, speedup.low, speedup.high);
}

// Formats the layout, without the degrees that are 1: "tp 2, pp 16 in 5 chunks, dp 4".
std::string layout_words(const FoundLayout& found) {
  const LayoutCandidate& layout = found.layout;
  std::string out;
  const auto add = [&](const char* name, int ranks) {
    if (ranks > 1) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, ranks);
  };
  add("tp", layout.tp);
  if (layout.sequence_parallel == "true") out += " and sequence";
  add("cp", layout.cp);
  add("pp", layout.pp);
  if (layout.interleave > 1) out += fmt::format(" in {} chunks", layout.interleave);
  if (layout.split) out += fmt::format(" (layers {})", found.split);
  add("ep", layout.ep);
  add("dp", found.dp);
  return out.empty() ? "one GPU" : out;
}

std::string tight_text(const FoundLayout& found) {
  return found.tight ? fmt::format(", which may not fit: up to {}", bytes_cell(found.peak_high))
                     : "";
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
      best.step.step_time_low.us() * 1e-3, best.step.step_time_high.us() * 1e-3,
      bytes_cell(best.peak), tight_text(best), loss, 100 * share);
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
               : fmt::format(" It does not run with {}: {}.", best.compressed->optimizer,
                             reason_of(best.compressed->refused));
  return out + "\n";
}

// Names a framework whose best layout is faster; empty if there is none.
std::string faster_text(const LayoutSearch& search) {
  if (!search.faster) return "";
  const FoundLayout& found = search.faster->found;
  return fmt::format(
      "Faster with --framework {0}: {1}, micro batch {2}, ZeRO stage {3}, recompute {4}: {5:.2f} "
      "ms a "
      "step, {6} as fast; --framework {0}\n",
      found.what_if.at("framework"), layout_words(found), found.layout.micro_batch,
      found.layout.zero_stage, found.layout.recompute, found.step.step_time.us() * 1e-3,
      ratio_text(search.faster->speedup));
}

// Returns the heading of the rate per GPU: tokens, or samples for a model of images.
const char* rate_title(std::int64_t seq_len) { return seq_len > 0 ? "tok/s" : "smp/s"; }

// A column of a table of layouts; its width is that of its longest cell.
struct Column {
  std::string title;
  std::function<std::string(const FoundLayout&)> cell;
  bool left_out_if_uniform = false;
};

// Formats the layouts. Columns with `left_out_if_uniform` are left out if all rows have the same
// value.
std::string table_of(const std::vector<FoundLayout>& best, const std::vector<Column>& columns) {
  std::vector<std::string> lines{" #"};
  for (std::size_t i = 0; i < best.size(); ++i) lines.push_back(fmt::format("{:>2}", i + 1));
  for (const Column& column : columns) {
    std::vector<std::string> cells{column.title};
    for (const FoundLayout& found : best) cells.push_back(column.cell(found));
    const bool uniform = std::ranges::all_of(
        cells.begin() + 1, cells.end(), [&](const std::string& cell) { return cell == cells[1]; });
    if (column.left_out_if_uniform && uniform && best.size() > 1) continue;
    const std::size_t width = std::ranges::max(cells, {}, &std::string::size).size();
    for (std::size_t i = 0; i < lines.size(); ++i)
      lines[i] += fmt::format(" {:>{}}", cells[i], width);
  }
  std::string out;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

// Returns the columns for the degrees and settings of a layout.
std::vector<Column> layout_columns(bool left_out_if_uniform) {
  const auto number = [&](const char* title, int LayoutCandidate::*of) {
    return Column{title,
                  [of](const FoundLayout& found) { return fmt::format("{}", found.layout.*of); },
                  left_out_if_uniform};
  };
  const auto text = [&](const char* title, auto cell) {
    return Column{title, cell, left_out_if_uniform};
  };
  return {number("tp", &LayoutCandidate::tp),
          text("sp",
               [](const FoundLayout& found) {
                 return std::string(found.layout.sequence_parallel == "true" ? "y" : "-");
               }),
          number("cp", &LayoutCandidate::cp),
          number("pp", &LayoutCandidate::pp),
          number("v", &LayoutCandidate::interleave),
          text("split",
               [](const FoundLayout& found) {
                 return found.split == "none" ? std::string("-") : found.split;
               }),
          number("ep", &LayoutCandidate::ep),
          text("dp", [](const FoundLayout& found) { return fmt::format("{}", found.dp); }),
          text("batch",
               [](const FoundLayout& found) {
                 return fmt::format("{}x{}", found.layout.micro_batch, found.micro_batches);
               }),
          number("ZeRO", &LayoutCandidate::zero_stage),
          text("recompute", [](const FoundLayout& found) { return found.layout.recompute; })};
}

Column memory_column() {
  return {"memory", [](const FoundLayout& found) {
            return bytes_cell(found.peak) + (found.tight ? "!" : " ");
          }};
}

Column utilization_column() {
  return {"MFU",
          [](const FoundLayout& found) { return fmt::format("{:.0f}%", 100 * found.utilization); }};
}

Column loss_column() {
  return {"largest loss", [](const FoundLayout& found) {
            const auto [loss, share] = found.shares.largest_loss();
            return fmt::format("{} {:.0f}%", loss, 100 * share);
          }};
}

// Formats the layouts for one screen: settings that differ, memory and step time.
std::string short_table(const std::vector<FoundLayout>& best) {
  std::vector<Column> columns = layout_columns(true);
  columns.push_back(memory_column());
  columns.push_back(
      {"step", [](const FoundLayout& found) { return time_cell(found.step.step_time.s()); }});
  columns.push_back({"within", [](const FoundLayout& found) {
                       return time_range(found.step.step_time.s(), found.step.step_time_low.s(),
                                         found.step.step_time_high.s());
                     }});
  columns.push_back(loss_column());
  // A table that is too wide loses these columns, the least important first. --explain layouts
  // prints them too.
  for (const std::string_view title : {"largest loss", "split", "v", "within"}) {
    const std::string table = table_of(best, columns);
    if (table.find('\n') <= page_width) return table;
    std::erase_if(columns, [&](const Column& column) { return column.title == title; });
  }
  return table_of(best, columns);
}

// Rates and utilization are those of the step, so they have its interval upside down.
std::string step_table(const std::vector<FoundLayout>& best, std::int64_t seq_len, int gpus) {
  const auto rate = [=](const FoundLayout& found) {
    return (seq_len > 0 ? found.tokens_per_s : found.samples_per_s) / gpus;
  };
  const auto digits = [=](const FoundLayout& found) { return rate(found) < 1000 ? 1 : 0; };
  const auto within = [](const FoundLayout& found, double value, int decimals) {
    const double s = found.step.step_time.s();
    return fmt::format("{:.{}f} to {:.{}f}", value * s / found.step.step_time_high.s(), decimals,
                       value * s / found.step.step_time_low.s(), decimals);
  };
  return table_of(
      best, {{"step (ms)",
              [](const FoundLayout& found) {
                return fmt::format("{:.2f}", found.step.step_time.us() * 1e-3);
              }},
             {"within",
              [](const FoundLayout& found) {
                return fmt::format("{:.2f} to {:.2f}", found.step.step_time_low.us() * 1e-3,
                                   found.step.step_time_high.us() * 1e-3);
              }},
             {rate_title(seq_len),
              [=](const FoundLayout& found) {
                return fmt::format("{:.{}f}", rate(found), digits(found));
              }},
             {"within",
              [=](const FoundLayout& found) { return within(found, rate(found), digits(found)); }},
             utilization_column(),
             {"within", [=](const FoundLayout& found) {
                return within(found, 100 * found.utilization, 0);
              }}});
}

// Prints the largest loss of each layout, and the effect of compression.
std::string compression_table(const std::vector<FoundLayout>& best) {
  std::vector<Column> columns{loss_column()};
  const auto add = [&](const std::string& title, std::optional<CompressedLayout> FoundLayout::*of) {
    if (std::ranges::any_of(best,
                            [&](const FoundLayout& found) { return (found.*of).has_value(); }))
      columns.push_back(
          {title, [of](const FoundLayout& found) { return compression_text(found.*of); }});
  };
  add(best.front().compressed ? "with " + best.front().compressed->optimizer : "compressed",
      &FoundLayout::compressed);
  add("with ZeRO++", &FoundLayout::quantized);
  add("fp8 exchange", &FoundLayout::fp8);
  return table_of(best, columns);
}

// States how many layouts do not run, by reason.
std::string counts_text(const LayoutSearch& search) {
  if (search.refused.empty()) return "";
  constexpr std::size_t most = 3;
  std::string out = fmt::format("{} of {} layouts do not run:", search.candidates - search.forecast,
                                search.candidates);
  for (std::size_t i = 0; i < std::min(most, search.refused.size()); ++i)
    out += fmt::format("{} {} {}", i == 0 ? "" : ",", search.refused[i].count,
                       search.refused[i].reason);
  return out + fmt::format("{} (--explain refused)\n", search.refused.size() > most ? ", ..." : "");
}

// Returns the reason of the fastest layout with several replicas that does not compress.
std::string why_none(const LayoutSearch& search) {
  for (const FoundLayout& found : search.best)
    if (found.compressed && !found.compressed->refused.empty() &&
        !found.compressed->refused.starts_with("one replica"))
      return reason_of(found.compressed->refused);
  return "a single replica exchanges no gradients";
}

// Returns the sentence on the best layout of the 1-bit optimizer.
std::string compressed_text(const LayoutSearch& search) {
  if (!search.best_compressed)
    return search.best.empty() || search.compressing.empty()
               ? ""
               : fmt::format("no layout runs with {}: {}\n", search.compressing, why_none(search));
  const FoundLayout& found = *search.best_compressed;
  std::string out =
      fmt::format("best with {}: {}, micro batch {}, recompute {}: {:.2f} ms ({:.2f} to {:.2f}){}",
                  found.what_if.at("optimizer"), layout_words(found), found.layout.micro_batch,
                  found.layout.recompute, found.step.step_time.us() * 1e-3,
                  found.step.step_time_low.us() * 1e-3, found.step.step_time_high.us() * 1e-3,
                  tight_text(found));
  if (!search.best.empty())
    out +=
        fmt::format(", {} as fast as the best with {}",
                    ratio_text(ratio_of(search.best.front().time, found.time)), search.optimizer);
  return out + "\n";
}

// Returns the question: model, optimizer, cluster, batch and framework.
std::string question_text(const LayoutSearch& search) {
  const TrainingPlan& base = search.space.base;
  const std::string adapters =
      base.model->adapters
          ? fmt::format(", adapters of rank {} on frozen weights,", base.model->adapters->rank)
          : "";
  return fmt::format("{} with {}{} on {}: {} ({}), batch {}{}, as {} does it", base.model->name,
                     search.optimizer, adapters, base.cluster->name, counted(base.gpus, "GPU"),
                     counted(base.nodes(), "node"), search.space.global_batch,
                     base.seq_len > 0 ? fmt::format(", sequence {}", base.seq_len) : "",
                     name_of(base.parallelism->framework.name));
}

}  // namespace

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

std::string layout_search_table(const LayoutSearch& search) {
  if (search.best.empty())
    return answer_of(search) + compressed_text(search) + question_text(search) + "\n" +
           explain_layout_search(search, "refused");
  return fmt::format(
      "{}{}{}\n{}\n{}{}!: may not fit. Rates, losses, compression and the meaning of columns: "
      "--explain layouts\nThe first one alone: {}\n",
      answer_of(search), faster_text(search), compressed_text(search), question_text(search),
      short_table(search.best), counts_text(search), simulate_line(search.best.front().what_if));
}

std::string explain_layout_search(const LayoutSearch& search, std::string_view what) {
  if (what == "refused") {
    std::string out = fmt::format("{} layouts: {} run\n", search.candidates, search.forecast);
    for (const RefusedLayouts& refused : search.refused)
      out += fmt::format("{:>8} {:<17} {}\n", refused.count, refused.reason,
                         refused.example.substr(0, refused.example.find('\n')));
    return out;
  }
  if (search.best.empty()) return "no layout runs\n";
  const TrainingPlan& base = search.space.base;
  std::vector<Column> columns = layout_columns(false);
  columns.push_back(memory_column());
  return fmt::format(
      "{}\n\n{}\n{}\n{}\nsp: sequence parallel. v: chunks of a stage. split: of the layers over "
      "stages. batch: samples of a micro batch x how many. {}: of a GPU. MFU: model FLOPs over the "
      "peak of the format computed in. !: may not fit, by the interval of memory, {:.0f} % either "
      "way; listed after layouts that fit. Fragmentation of memory is not counted. "
      "--framework: layouts of another program.\n",
      question_text(search), table_of(search.best, columns),
      step_table(search.best, base.seq_len, base.gpus), compression_table(search.best),
      rate_title(base.seq_len), 100 * memory_error);
}

}  // namespace lambcast
