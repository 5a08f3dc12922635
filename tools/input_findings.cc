#include "tools/input_findings.h"

#include "experiments/judgement.h"
#include "models/training/forecast.h"
#include "sim/base/error.h"
#include "tools/terminal.h"

namespace lambcast {

void print_findings(const WhatIf& asked, Catalog& catalog) {
  FindingTally findings;
  try {
    const Scenario scenario = resolve(asked, catalog);
    CollectiveCosts costs;
    findings.add(0, judgement_of(scenario, forecast(scenario.training, costs)).findings);
  } catch (const Error&) {
    return;  // the command's own answer says why it does not run
  }
  print_findings(findings, [](std::size_t) { return std::string(); });
}

void print_findings(const FindingTally& findings,
                    const std::function<std::string(std::size_t)>& name) {
  for (const std::string& sentence : findings.sentences(name)) say(sentence);
}

}  // namespace lambcast
