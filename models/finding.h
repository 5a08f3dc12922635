// Message of a check about a configuration that could be read.
//
// A user mistake that leaves nothing to go on with is an Error (sim/base/error.h) and stops at
// once. A finding is gentler: it is collected, shown beside the forecast and turned into an Error
// only where the caller insists (refuse_errors), so that all of them are seen at once and flags
// that override the file have had their say.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

enum class Severity {
  error,    // the run modelled would not start
  warning,  // it would start, but does not do what the file seems to say
  note,     // for information
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
  std::string message;  // a sentence for people, which starts with its place: "ds.json:12: key: "
};

// Throws Error{Exit::usage} with the messages of all findings of severity error, one a line, if
// there is any.
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
