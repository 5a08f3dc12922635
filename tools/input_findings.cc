#include "tools/input_findings.h"

#include <algorithm>
#include <cstdio>

#include "experiments/output/judgement.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "tools/terminal.h"

namespace lambcast {

std::vector<Finding> findings_of(const WhatIf& asked, Catalog& catalog) {
  const Scenario scenario = resolve(asked, catalog);
  CollectiveCosts costs;
  return judgement_of(scenario, forecast(scenario.training, costs)).findings;
}

void print_findings(const std::vector<WhatIf>& questions, Catalog& catalog) {
  FindingTally tally;
  try {
    std::vector<Finding> shared = findings_of(questions.front(), catalog);
    for (const WhatIf& asked : questions) {
      const std::vector<Finding> others = findings_of(asked, catalog);
      std::erase_if(shared, [&](const Finding& finding) {
        return std::ranges::none_of(others, [&](const Finding& other) {
          return other.code == finding.code && other.message == finding.message;
        });
      });
    }
    tally.add(0, shared);
  } catch (const Error&) {
    return;  // the answer gives the reason
  }
  print_findings(tally, [](std::size_t) { return std::string(); });
}

void print_findings(const FindingTally& findings,
                    const std::function<std::string(std::size_t)>& name, bool brief) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return;
  for (const std::string& sentence :
       brief ? findings.brief(name, "--explain notes") : findings.sentences(name))
    say(sentence);
}

}  // namespace lambcast
