// A source of measured training runs: a published table, and a mapping file that states the meaning
// of its columns (validate/replay/sources/NAME.toml). Unseen rows are forecast with the same file
// and the same parameters.
//
//   title, citation, case        origin of the table; name of a row, as a template
//   ignored = ["date"]           columns without an effect on the forecast; any other unknown
//                                column is an error, and so is a missing one that is used
//   names.LIST                   words of the table and their meaning here: LIST[column]
//   let.NAME                     expressions for later use
//   what_if, model, cluster      templates of what-if keys, of "model.KEY" and of "cluster.KEY"; an
//                                empty result leaves the key out
//   fitted                       expression: rows that set a parameter of the machine
//   machine                      template: state of the machine, if rows before and after a change
//                                are not to be compared
//   [[refuse]] when, why         rows that cannot be forecast yet, with the reason
//   [[measured]]                 column, quantity (below); value: expression if the column needs
//                                arithmetic; unless: a column that already states it; when: rows
//                                that have it; what_if: keys of this figure only; stage; parts of
//                                memory, or all parts `without` those its tool does not measure
//   limits.time, limits.memory   of |error|: median, p90
//
// Quantities: step_time_s, samples_per_s, tokens_per_s, tokens_per_gpu_s, days (of `samples`
// samples), run_time_s (of `steps` steps, and `pauses` seconds of start-up and evaluations between
// them), layer_forward_s and layer_backward_s (of one block and micro batch), memory_gib, and rates
// of arithmetic: tflops_per_gpu and mfu_pct (of peak_tflops). The source states the FLOPs of such a
// rate: flops_per_sample, or count = "model", "causal" or "full" recomputation as counted by
// models/parallel/model_flops.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "sim/base/csv.h"
#include "sim/base/table.h"
#include "validate/replay/row_expression.h"

namespace lambcast {

enum class Quantity {
  step_time_s,
  samples_per_s,
  tokens_per_s,
  tokens_per_gpu_s,
  tflops_per_gpu,
  mfu_pct,
  memory_gib,
  layer_forward_s,
  layer_backward_s,
  days,
  run_time_s
};
const std::vector<std::string>& quantity_names();
std::string_view name_of(Quantity quantity);
std::string_view unit_of(Quantity quantity);  // "s", "tokens/s/GPU"

enum class FlopsCount { model, causal, full_recompute };

// One measured number, and the run that it belongs to.
struct SourceFigure {
  std::string source;
  int row = 0;  // data rows, from 1
  std::string name;
  std::string machine;  // state of the machine; empty if it is the same for all rows
  Quantity quantity = Quantity::step_time_s;
  double measured = 0;
  double standard_error = 0;  // of the logarithm of the measured value; 0 unless steps were logged
  WhatIf what_if;
  // Descriptions that the row names and that are not files, by "model NAME" (DescriptionTexts).
  std::map<std::string, std::string> texts;
  std::string stage;            // empty: the only one, or the first
  double flops_per_sample = 0;  // 0: as given by `count`
  FlopsCount count = FlopsCount::model;
  double peak_tflops = 0, samples = 0, steps = 0, pauses_s = 0;
  std::vector<std::string> parts, without;  // parts of memory that count (empty: all) or do not
  bool fitted = false;
  std::string refused;  // reason why there is no forecast; else empty
};

struct ErrorLimit {
  double median = 0, p90 = 0;
};

class Source {
 public:
  // Parses a mapping. Throws Error (file:line:key) for an invalid one.
  static Source parse(std::string_view text, const std::string& name);

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }
  const std::optional<ErrorLimit>& time_limit() const { return time_limit_; }
  const std::optional<ErrorLimit>& memory_limit() const { return memory_limit_; }

  // Returns every measured number of the table. Throws Error for a table with other columns. A row
  // whose values give no valid run is a figure with the reason.
  std::vector<SourceFigure> figures(const csv::Table& table) const;

 private:
  struct Refusal {
    RowExpression when;
    std::string why;
  };
  struct Measured {
    std::string column;
    Quantity quantity = Quantity::step_time_s;
    std::optional<RowExpression> value, when, flops_per_sample, peak_tflops, samples, steps, pauses;
    std::string unless, stage;
    std::vector<std::string> parts, without;
    FlopsCount count = FlopsCount::model;
    std::vector<std::pair<std::string, RowTemplate>> what_if;
  };

  static Measured read_measured(const Table& entry);
  void read_names(const Table& names);
  void collect(std::set<std::string>& names, std::set<std::string>& lists) const;
  void check_columns(const csv::Table& table) const;
  RowScope scope_of(const csv::Table& table, std::size_t row) const;
  std::string refusal_of(const RowScope& scope) const;
  void add_figure(const csv::Table& table, std::size_t row, const Measured& measured,
                  std::vector<SourceFigure>& figures) const;

  std::string name_, title_;
  Where where_;
  RowTemplate case_;
  std::optional<RowTemplate> machine_;
  std::vector<std::string> ignored_;
  std::map<std::string, std::map<std::string, std::string>> names_;
  std::map<std::string, RowExpression> let_;
  std::vector<std::pair<std::string, RowTemplate>> what_if_;
  std::optional<RowExpression> fitted_;
  std::vector<Refusal> refusals_;
  std::vector<Measured> measured_;
  std::optional<ErrorLimit> time_limit_, memory_limit_;
};

// Parses a table in which all lines that start with '#' are comments.
csv::Table parse_rows(std::string_view text, const std::string& name);

// Return the names of the shipped sources, the mapping of a source (a name or path), and its rows
// (empty if none ship).
std::vector<std::string> source_names();
Source load_source(const std::string& name);
std::string_view source_rows(const std::string& name);

}  // namespace lambcast
