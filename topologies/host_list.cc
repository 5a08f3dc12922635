#include "topologies/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/whole_number.h"

namespace lambcast {
namespace {

constexpr std::int64_t most_hosts = 10'000'000;
constexpr std::size_t most_names = 100'000;

bool is_all(std::string_view list) {
  constexpr std::string_view all = "all";
  return std::ranges::equal(list, all,
                            [](unsigned char a, char b) { return std::tolower(a) == b; });
}

// Appends each entry of a bracket, "01-03,7", to each of the names in front of it.
bool multiply(std::vector<std::string>& names, std::string_view bracket) {
  std::vector<std::string> longer;
  for (std::size_t from = 0; from <= bracket.size();) {
    const std::size_t comma = std::min(bracket.find(',', from), bracket.size());
    const std::string_view range = bracket.substr(from, comma - from);
    const std::string_view first = range.substr(0, range.find('-'));
    const std::int64_t low = whole_number(first).value_or(0);
    const std::int64_t high = first.size() == range.size()
                                  ? low
                                  : whole_number(range.substr(first.size() + 1)).value_or(0);
    for (std::int64_t i = low; i <= high; ++i)
      for (const std::string& name : names)
        longer.push_back(fmt::format("{}{:0{}}", name, i, first.size()));
    if (longer.size() > most_names) return false;
    from = comma + 1;
  }
  names = std::move(longer);
  return true;
}

}  // namespace

std::optional<std::int64_t> hosts_in(std::string_view list) {
  std::int64_t all = 0, item = 1;
  bool named = false;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at == list.size() || list[at] == ',') {
      if (!named) return std::nullopt;
      all += item;
      item = 1;
      named = false;
    } else if (list[at] == '[') {
      const std::size_t close = list.find(']', at);
      if (close == list.npos) return std::nullopt;
      std::int64_t inside = 0;
      for (std::size_t from = at + 1; from <= close;) {
        const std::size_t comma = std::min({list.find(',', from), close});
        const std::string_view range = list.substr(from, comma - from);
        const std::size_t dash = range.find('-');
        const auto low = whole_number(range.substr(0, dash));
        const auto high = dash == range.npos ? low : whole_number(range.substr(dash + 1));
        if (!low || !high || *high < *low || *low < 0 || *high >= most_hosts) return std::nullopt;
        inside += *high - *low + 1;
        from = comma + 1;
      }
      item *= inside;
      at = close;
    } else {
      constexpr std::string_view marks = "-_.";
      const auto c = static_cast<unsigned char>(list[at]);
      if (std::isalnum(c) == 0 && marks.find(list[at]) == marks.npos) return std::nullopt;
      named = true;
    }
    if (item > most_hosts || all > most_hosts) return std::nullopt;
  }
  return is_all(list) ? std::nullopt : std::optional(all);
}

std::optional<std::vector<std::string>> host_names(std::string_view list) {
  const auto count = hosts_in(list);
  if (!count || *count > static_cast<std::int64_t>(most_names)) return std::nullopt;
  std::vector<std::string> all, names{""};
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at == list.size() || list[at] == ',') {
      all.insert(all.end(), names.begin(), names.end());
      names = {""};
    } else if (list[at] == '[') {
      const std::size_t close = list.find(']', at);
      if (!multiply(names, list.substr(at + 1, close - at - 1))) return std::nullopt;
      at = close;
    } else {
      for (std::string& name : names) name += list[at];
    }
  }
  return all;
}

}  // namespace lambcast
