// The WebAssembly module: one call, which takes a question as JSON and returns an answer as JSON.
//
//   {"command": "advise", "texts": {"model": "bert-large", ...}}  ->  {"answer": {...}}
//                                                 or {"error": "FLAG: what is wrong", "code": 2}
//
// The page allocates the question, and frees it and the answer. No exception leaves the call.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/base/complaint.h"
#include "sim/base/error.h"
#include "sim/base/json.h"
#include "tools/answers.h"
#include "tools/web/log_answer.h"
#include "tools/web/preset_answer.h"

namespace lambcast {
namespace {

Texts texts_of(const Json& question, const char* key) {
  return question.contains(key) ? question[key].get<Texts>() : Texts{};
}

WhatIf what_if_of(const Json& question) {
  WhatIf texts;
  if (question.contains("texts"))
    for (const auto& [key, value] : question["texts"].items())
      texts[key] = value.get<std::string>();
  return texts;
}

using Answerer = std::string (*)(const Json&);
const std::map<std::string, Answerer>& answerers() {
  static const std::map<std::string, Answerer> all{
      {"presets", [](const Json&) { return preset_answer(); }},
      {"simulate",
       [](const Json& asked) {
         return simulate_answer(what_if_of(asked), texts_of(asked, "then"));
       }},
      {"advise",
       [](const Json& asked) {
         return advise_answer(what_if_of(asked), texts_of(asked, "lists"),
                              texts_of(asked, "scans"));
       }},
      {"compare",
       [](const Json& asked) {
         return compare_answer(texts_of(asked, "names"), what_if_of(asked),
                               texts_of(asked, "clusters"), texts_of(asked, "optimizers"),
                               texts_of(asked, "exchanges"));
       }},
      {"solve",
       [](const Json& asked) {
         return solve_answer({asked.value("key", ""), asked.value("wanted", "")},
                             what_if_of(asked));
       }},
      {"sensitivity", [](const Json& asked) { return sensitivity_answer(what_if_of(asked), 10); }},
      {"curve",
       [](const Json& asked) {
         return curve_answer(what_if_of(asked), asked.value("key", ""), texts_of(asked, "values"));
       }},
      {"calibrate",
       [](const Json& asked) {
         return calibrate_answer({asked.value("text", ""), asked.value("file", "")},
                                 what_if_of(asked));
       }},
      {"inputs", [](const Json& asked) { return inputs_answer(what_if_of(asked)); }}};
  return all;
}

std::string answer_to(std::string_view text) {
  const Json question = parse_json(text);
  const std::string command = question.value("command", "");
  const auto found = answerers().find(command);
  if (found == answerers().end())
    throw Error(Exit::usage, fmt::format("unknown command '{}'", command));
  return found->second(question);
}

// Returns a newly allocated copy of the text with a NUL at the end.
char* handed_out(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace
}  // namespace lambcast

extern "C" {

__attribute__((export_name("lambcast_alloc"))) char* lambcast_alloc(std::size_t bytes) {
  return static_cast<char*>(std::malloc(bytes));
}

__attribute__((export_name("lambcast_free"))) void lambcast_free(char* text) { std::free(text); }

__attribute__((export_name("lambcast_ask"))) char* lambcast_ask(const char* question,
                                                                std::size_t bytes) {
  try {
    return lambcast::handed_out("{\"answer\":" + lambcast::answer_to({question, bytes}) + "}");
  } catch (const std::exception& error) {
    const lambcast::Complaint complaint = lambcast::complaint_of(error);
    return lambcast::handed_out(fmt::format("{{\"error\":{},\"code\":{}}}",
                                            lambcast::json_string(complaint.text),
                                            static_cast<int>(complaint.code)));
  } catch (...) {
    return nullptr;
  }
}
}
