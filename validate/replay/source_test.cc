#include "validate/replay/source.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const std::string mapping = R"toml(
title = "made up"
citation = "nobody, 2026"
case = "{model} on {gpus}"
ignored = ["date"]
fitted = "gpus == 8"

[names.clusters]
H100 = "hgx-h100-ndr"

[let]
dp = "gpus / tp"
rounds = "batch / (dp * micro)"

[what_if]
model = "gpt2"
cluster = "{clusters[gpu]}"
gpus = "{gpus}"
grad_accum = "{rounds}"
sequence_parallel = "{if(tp > 1, 'true', '')}"

[model]
layers = "{layers}"

[[refuse]]
when = "model == 'moe'"
why = "experts are not modelled yet"

[[measured]]
column = "iter_ms"
quantity = "step_time_s"
value = "iter_ms / 1000"

[[measured]]
column = "mfu"
unless = "iter_ms"
quantity = "mfu_pct"
peak_tflops = "989"
flops_per_sample = "6 * layers"
)toml";
const std::string header = "date,model,gpu,gpus,tp,micro,batch,layers,iter_ms,mfu\n";

std::vector<SourceFigure> figures(const std::string& rows) {
  return Source::parse(mapping, "made_up").figures(parse_rows(header + rows, "rows.csv"));
}

std::string changed(const std::string& old_text, const std::string& new_text) {
  std::string text = mapping;
  return text.replace(text.find(old_text), old_text.size(), new_text);
}

TEST_CASE("source: a row becomes a what-if and its measured number") {
  const std::vector<SourceFigure> all = figures("monday,a,H100,8,2,1,32,12,1500,\n");
  REQUIRE(all.size() == 1);
  const SourceFigure& figure = all.front();
  CHECK(figure.refused.empty());
  CHECK(figure.source == "made_up");
  CHECK(figure.row == 1);
  CHECK(figure.name == "a on 8");
  CHECK(figure.quantity == Quantity::step_time_s);
  CHECK(figure.measured == 1.5);
  CHECK(figure.fitted);
  CHECK(figure.what_if == WhatIf{{"model", "gpt2"},
                                 {"cluster", "hgx-h100-ndr"},
                                 {"gpus", "8"},
                                 {"grad_accum", "8"},
                                 {"sequence_parallel", "true"},
                                 {"model.layers", "12"}});
}

TEST_CASE("source: one measurement stated twice counts once; empty keys are left out") {
  const std::vector<SourceFigure> all = figures(
      "m,a,H100,16,1,1,32,12,1500,40\nm,b,H100,16,1,1,32,12,,41\nm,c,H100,16,1,1,32,12,,\n");
  REQUIRE(all.size() == 3);
  CHECK(all[0].quantity == Quantity::step_time_s);
  CHECK_FALSE(all[0].fitted);
  CHECK_FALSE(all[0].what_if.contains("sequence_parallel"));
  CHECK(all[1].quantity == Quantity::mfu_pct);
  CHECK(all[1].measured == 41);
  CHECK(all[1].peak_tflops == 989);
  CHECK(all[1].flops_per_sample == 72);
  CHECK(all[1].row == 2);
  CHECK(all[2].row == 3);
  CHECK(all[2].refused == "this row has no measured value");
}

TEST_CASE("source: the time of a run is that of its steps and of its pauses") {
  const std::vector<std::string>& names = quantity_names();
  CHECK(std::find(names.begin(), names.end(), "run_time_s") != names.end());
  const Source source = load_source("mlperf_bert");
  int runs = 0;
  for (const SourceFigure& figure :
       source.figures(parse_rows(source_rows("mlperf_bert"), "mlperf_bert.csv"))) {
    if (figure.quantity != Quantity::run_time_s) continue;
    ++runs;
    INFO(figure.name);
    CHECK(figure.steps > 100);
    // The start-up of a log may be slightly negative, if its first interval was faster than later
    // ones.
    CHECK(figure.pauses_s > -4);
    CHECK(figure.pauses_s < 0.5 * figure.measured);
  }
  CHECK(runs > 50);
}

TEST_CASE("source: an invalid row gives the reason, and the other rows stay") {
  const std::vector<SourceFigure> all = figures(
      "m,moe,H100,8,2,1,32,12,1500,\nm,a,V100,8,2,1,32,12,1500,\nm,a,H100,eight,2,1,32,12,1500,\n"
      "m,a,H100,8,2,1,32,12,OOM,\nm,a,H100,8,0,1,32,12,1500,\nm,a,H100,8,2,1,32,12,0,\n"
      "m,a,H100,8,2,1,32,12,7,\n");
  REQUIRE(all.size() == 7);
  CHECK(all[0].refused == "experts are not modelled yet");
  CHECK(all[1].refused == "clusters have no 'V100'");
  CHECK(all[2].refused == "gpus: 'eight' is not a finite number");
  CHECK(all[3].refused == "iter_ms: 'OOM' is not a finite number");
  CHECK(all[4].refused == "a division by zero");
  CHECK(all[5].refused == "iter_ms must be above zero");
  CHECK(all[6].refused.empty());
}

TEST_CASE("source: a table with other columns gives one clear error") {
  const Source source = Source::parse(mapping, "made_up");
  CHECK_THROWS_WITH(
      source.figures(parse_rows("model,gpus\na,8\n", "rows.csv")),
      Contains("rows.csv: has no column '") && Contains("', which rows of made_up have"));
  std::string longer = header;
  longer.insert(longer.size() - 1, ",ep");
  CHECK_THROWS_WITH(source.figures(parse_rows(longer + "m,a,H100,8,2,1,32,12,7,,4\n", "rows.csv")),
                    Contains("rows.csv: ep: is not a column of made_up (allowed: batch, "));
  // An ignored column may be missing.
  CHECK(source
            .figures(parse_rows("model,gpu,gpus,tp,micro,batch,layers,iter_ms,mfu\n"
                                "a,H100,8,2,1,32,12,1500,\n",
                                "rows.csv"))
            .size() == 1);
}

TEST_CASE("source: comments may be on any line, and lines keep their numbers") {
  const csv::Table table = parse_rows("# one\n# two\na,b\n1,2\n# three\n3,4", "rows.csv");
  CHECK(table.rows.size() == 2);
  CHECK(table.lines == std::vector<int>{4, 6});
  CHECK_THROWS_WITH(parse_rows("a,b\n# 1,2\n", "rows.csv"), "rows.csv: holds no rows");
  CHECK_THROWS_WITH(parse_rows("# none", "rows.csv"), Contains("has no header row"));
  CHECK_THROWS_WITH(parse_rows("", "rows.csv"), Contains("has no header row"));
}

TEST_CASE("source: an invalid mapping is refused at its place") {
  struct Case {
    std::string old_text, new_text, expected;
  };
  const Case cases[] = {
      {"gpus / tp\"", "gpus /\"", "made_up.toml:12: let.dp: 'gpus /' is not an expression"},
      {"dp = \"gpus / tp\"", "dp = \"rounds\"", "uses 'rounds', which is not defined before"},
      {"[names.clusters]", "[names.machines]", "has no list 'clusters'"},
      {"\"step_time_s\"", "\"step_time\"", "did you mean 'step_time_s'"},
      {"flops_per_sample = \"6 * layers\"", "", "needs one of count and flops_per_sample"},
      {"peak_tflops = \"989\"", "", "is used only with mfu_pct"},
      {"ignored", "ignore", "unknown key 'ignore'"},
      {"nobody, 2026", "", "citation: is empty"},
      {"{layers}", "{layers", "a brace is never closed"},
  };
  for (const Case& bad : cases) {
    INFO(bad.expected);
    CHECK_THROWS_WITH(Source::parse(changed(bad.old_text, bad.new_text), "made_up"),
                      Contains(bad.expected));
  }
}

TEST_CASE("sources that ship: each reads its own rows") {
  CHECK(source_names().size() >= 38);
  for (const std::string& name : source_names()) {
    INFO(name);
    const Source source = load_source(name);
    CHECK_FALSE(source.title().empty());
    const std::vector<SourceFigure> all =
        source.figures(parse_rows(source_rows(name), name + ".csv"));
    CHECK_FALSE(all.empty());
    for (const SourceFigure& figure : all)
      CHECK(figure.refused.find("finite number") == std::string::npos);
  }
  CHECK_THROWS_WITH(load_source("mlperf_gpt"), Contains("did you mean 'mlperf_gpt3'"));
}

// At most two rows of a source may set the parameters of a machine; the exceptions are listed here.
TEST_CASE("source: at most two rows set a parameter of a machine") {
  struct Exception {
    std::size_t most;
    const char* why;
  };
  const std::map<std::string, Exception> exceptions{
      {"bert_large_single_gpu", {12, "the curves of the V100 are these rows"}},
      {"megatron_bridge",
       {3, "B200: two of Llama 3 8B set its shares, one of DeepSeek-V3 launches of experts"}},
      {"mlperf_bert", {8, "PCIe links that GPUs share, of several vendors' hosts as one machine"}},
      {"onebit_adam_table1",
       {3, "parts of one step, timed apart: compute, optimizer and links of each"}},
  };
  for (const std::string& name : source_names()) {
    std::map<std::string, std::set<int>> rows;  // by machine
    for (const SourceFigure& figure :
         load_source(name).figures(parse_rows(source_rows(name), name + ".csv")))
      if (figure.fitted && figure.refused.empty())
        rows[figure.what_if.at("cluster")].insert(figure.row);
    const auto exception = exceptions.find(name);
    const std::size_t most = exception == exceptions.end() ? 2 : exception->second.most;
    std::size_t largest = 0;
    for (const auto& [machine, of_machine] : rows) {
      INFO(name << " on " << machine << ": "
                << (exception == exceptions.end() ? "no exception" : exception->second.why));
      CHECK(of_machine.size() <= most);
      largest = std::max(largest, of_machine.size());
    }
    // An exception must be needed: some machine has as many rows as it allows.
    if (exception != exceptions.end()) CHECK(largest == most);
  }
}

}  // namespace
}  // namespace lambcast
