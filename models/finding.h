// A message about a configuration that could be read.
//
// A user error that makes a forecast impossible is an Error (sim/base/error.h), thrown at once. A
// finding is milder: findings are collected and shown next to the forecast, so that all are visible
// at once and flags that override the file are considered. They become an Error only by
// refuse_errors().
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

enum class Severity {
  error,    // the modelled run would not start
  warning,  // the run would start, but differs from what the file suggests
  note,     // information only
};

constexpr std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "";
}

struct Finding {
  Severity severity = Severity::note;
  std::string code;     // kebab-case, for scripts: "zero-with-onebit"
  std::string message;  // a sentence with its place in front: "ds.json:12: key: "
};

// Throws Error{Exit::usage} if a finding has severity error. Its message has all such findings, one
// per line.
inline void refuse_errors(std::span<const Finding> findings) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::error) continue;
    if (!text.empty()) text += '\n';
    text += finding.message;
  }
  if (!text.empty()) throw Error(Exit::usage, text);
}

}  // namespace lambcast
