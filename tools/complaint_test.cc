// Every kind of exception that a library throws is reported to the user in one sentence of this
// program.
#include "sim/base/complaint.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <any>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

Complaint complaint_after(const std::function<void()>& fault) {
  try {
    fault();
  } catch (const std::exception& error) {
    return complaint_of(error);
  }
  FAIL("nothing is thrown");
  return {};
}

// A faulty call, and the beginning of its sentence.
struct Fault {
  std::string begins;
  std::function<void()> commit;
};

std::vector<Fault> faults_of_libraries() {
  const std::string ours = "internal error, please report it with its command: ";
  using Json = nlohmann::json;
  // Set at run time, so that the compiler does not detect a constant fault.
  static std::string text = "abc";
  static std::vector<int> numbers;
  return {
      {"m.json: is not JSON; try", [] { Json torn = Json::parse("{"); }},
      {"m.json: a key is missing", [] { (void)Json::object().at("flags"); }},
      {"m.json: a key is missing", [] { (void)Json(3).get<std::string>(); }},
      {"m.json: a key is missing", [] { (void)Json::array().at(3); }},
      {"m.json: a key is missing", [] { (void)Json("\xff").dump(); }},
      {ours, [] { (void)toml::parse("a = "); }},
      {ours, [] { throw CLI::ValidationError("--gpus", "raw words"); }},
      {ours, [] { throw CLI::OptionNotFound("--raw-words"); }},
      {"/raw/words: ", [] { (void)std::filesystem::file_size("/raw/words"); }},
      {"the system refused a request: ",
       [] { throw std::system_error(EAGAIN, std::generic_category(), "thread"); }},
      {"there is not enough memory for this; try", [] { throw std::bad_alloc(); }},
      {"there is not enough memory for this; try", [] { throw std::bad_array_new_length(); }},
      {ours + "a text or list", [] { numbers.reserve(numbers.max_size() + text.size()); }},
      {ours + "a value is looked up", [] { (void)text.at(7); }},
      {ours + "a value is looked up", [] { (void)text.substr(7); }},
      {ours + "a text is read", [] { (void)std::stoi(text); }},
      {ours + "a message", [] { (void)fmt::format(fmt::runtime("{"), 1); }},
      {ours, [] { (void)std::optional<int>().value(); }},
      {ours, [] { (void)std::get<int>(std::variant<int, std::string>("a")); }},
      {ours, [] { (void)std::any_cast<int>(std::any(text)); }},
      {ours, [] { (void)std::function<void()>()(); }},
      {ours, [] { (void)std::regex("("); }},
  };
}

TEST_CASE("complaints: users see no words of a library") {
  // The named file is the last one that was read.
  CHECK_THROWS_AS(read_file("m.json"), Error);
  for (const Fault& fault : faults_of_libraries()) {
    const Complaint complaint = complaint_after(fault.commit);
    CHECK_THAT(complaint.text, StartsWith(fault.begins));
    CHECK(complaint.text.find('\n') == std::string::npos);
    for (const char* raw : {"[json.", "basic_string", "vector", "_M_", "std::", "sto", "bad_",
                            "raw words", "filesystem error", "regex", "variant"})
      CHECK_THAT(complaint.text, !Contains(raw));
  }
}

TEST_CASE("complaints: own errors keep their words and exit code") {
  const Complaint usage = complaint_after([] { fail_input({"a.toml", 3, "gpus"}, "is missing"); });
  CHECK(usage.text == "a.toml:3: gpus: is missing");
  CHECK(usage.code == Exit::usage);
  CHECK(complaint_after([] { throw Error(Exit::missing, "no GPU"); }).code == Exit::missing);
  const Complaint broken = complaint_after([] { LAMBCAST_CHECK(1 == 2, "rank {}", 7); });
  CHECK_THAT(broken.text, StartsWith("internal error, please report it") && Contains("rank 7"));
  CHECK(broken.code == Exit::failure);
}

}  // namespace
}  // namespace lambcast
