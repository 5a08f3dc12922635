#include "validate/measure/rank_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.h"

namespace lambcast::validate {
namespace {

RankPlace place_in(std::string_view line) {
  const std::size_t first = line.find('\t');
  const std::size_t second = first == std::string_view::npos ? first : line.find('\t', first + 1);
  if (second == std::string_view::npos) fail_gibberish("place of a rank");
  RankPlace place{std::string(line.substr(0, first)), 0, std::string(line.substr(second + 1))};
  const auto [end, status] =
      std::from_chars(line.data() + first + 1, line.data() + second, place.device);
  if (status != std::errc{} || end != line.data() + second) fail_gibberish("place of a rank");
  return place;
}

}  // namespace

std::string place_lines(const std::vector<RankPlace>& places) {
  std::string lines;
  for (const RankPlace& place : places)
    lines += fmt::format("{}\t{}\t{}\n", place.host, place.device, place.device_name);
  return lines;
}

std::vector<RankPlace> places_in(std::string_view lines) {
  std::vector<RankPlace> places;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    places.push_back(place_in(lines.substr(at, end - at)));
    at = end + 1;
  }
  return places;
}

void fail_gibberish(std::string_view what) {
  throw Error(
      Exit::failure,
      fmt::format("a process of the measurement sent what is not a {}: all must be the same "
                  "version of lambcast",
                  what));
}

}  // namespace lambcast::validate
