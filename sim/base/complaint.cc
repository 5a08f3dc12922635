#include "sim/base/complaint.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "sim/base/check.h"
#include "sim/base/durable_file.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

std::string fault_of_ours(std::string_view what) {
  return fmt::format("internal error, please report it with its command: {}", what);
}

std::string of_path(const std::filesystem::filesystem_error& error) {
  std::string paths = error.path1().string();
  if (!error.path2().empty()) paths += fmt::format(" and {}", error.path2().string());
  const std::string_view advice = is_of_disk(error.code().value())
                                      ? "try a disk with free space"
                                      : "check the path and its permissions";
  return fmt::format("{}{}{}; {}", paths, paths.empty() ? "" : ": ", error.code().message(),
                     advice);
}

std::string of_json(const nlohmann::json::exception& error) {
  const std::string& file = last_file_read();
  const bool torn = dynamic_cast<const nlohmann::json::parse_error*>(&error) != nullptr;
  return fmt::format("{}{}; try the file as the program that made it wrote it",
                     file.empty() ? "" : file + ": ",
                     torn ? "is not JSON" : "a key is missing or holds a value of another kind");
}

// Returns the kind of a standard exception whose message only names a place in the library.
std::string_view fault_in_words(const std::exception& error) {
  const auto is = [&]<typename T>(const T*) { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is(static_cast<const std::length_error*>(nullptr))) return "a text or list has no valid size";
  if (is(static_cast<const std::out_of_range*>(nullptr)))
    return "a value is looked up that is not there";
  if (is(static_cast<const std::invalid_argument*>(nullptr)))
    return "a text is read as the number that it is not";
  if (is(static_cast<const fmt::format_error*>(nullptr))) return "a message has a wrong format";
  return "an unexpected exception";
}

}  // namespace

Complaint complaint_of(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return {ours->what(), ours->code()};
  if (dynamic_cast<const InternalError*>(&error) != nullptr) return {fault_of_ours(error.what())};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return {no_memory};
  if (const auto* path = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {of_path(*path)};
  if (const auto* system = dynamic_cast<const std::system_error*>(&error))
    return {fmt::format("the system refused a request: {}; try again with fewer threads",
                        system->code().message())};
  if (const auto* json = dynamic_cast<const nlohmann::json::exception*>(&error))
    return {of_json(*json), Exit::usage};
  return {fault_of_ours(fault_in_words(error))};
}

}  // namespace lambcast
