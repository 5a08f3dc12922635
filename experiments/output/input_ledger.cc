#include "experiments/output/input_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/scenario/run_files.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr const char* treatment_names[] = {"applied", "costless", "named"};

}  // namespace

std::string ledger_table(const InputLedger& ledger) {
  const auto count = [&](Treatment treatment) {
    return std::ranges::count(ledger.entries, treatment, &LedgerEntry::treatment);
  };
  std::string out =
      fmt::format("{}: {} keys applied, {} costless, {} named in a finding\n", ledger.file,
                  count(Treatment::applied), count(Treatment::costless), count(Treatment::named));
  if (!ledger.replaced.empty())
    out += fmt::format("flags replace its {}\n", fmt::join(ledger.replaced, ", "));
  out += fmt::format("{:>6}  {:<44} {:<9} {}\n", "line", "key", "treatment", "reason");
  for (const LedgerEntry& entry : ledger.entries)
    out += fmt::format("{:>6}  {:<44} {:<9} {}\n", entry.line, entry.key,
                       treatment_names[static_cast<int>(entry.treatment)], entry.reason);
  return out;
}

std::string explain_inputs(const WhatIf& asked, Catalog& catalog) {
  std::string out;
  for (const InputLedger& ledger : input_ledgers(asked, catalog))
    out += (out.empty() ? "" : "\n") + ledger_table(ledger);
  if (out.empty())
    fail_input(
        {"", 0, "--explain"}, "'inputs' lists the keys of input files, and none is given",
        "a file for --megatron-args, --torchtitan, --config, --topology, --model, --cluster or "
        "--device; logs: lambcast calibrate --explain inputs");
  return out;
}

}  // namespace lambcast
