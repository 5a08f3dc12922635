#include "sim/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/base/shortened.h"

namespace lambcast {
namespace {

// Limits of the parts of a message, in bytes. A Linux path has at most 4096. The longest lists of
// allowed values are lists of keys.
constexpr std::size_t longest_path = 4096, longest_key = 200, longest_sentence = 1500;
constexpr std::size_t longest_list = 10'000;
// Longer words are not checked for typing errors, since an edit distance costs the product of both
// lengths.
constexpr std::size_t longest_slip = 100;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the edit distance, or `most` if it is not smaller.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0], least = i + 1;
    row[0] = i + 1;
    const char letter = lower(a[i]);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (letter == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, diagonal + 1});
      least = std::min(least, row[j + 1]);
    }
    if (least >= most) return most;  // the minimum of a row never decreases
  }
  return std::min(row[b.size()], most);
}

// Returns the candidates that contain the word, or none if `guess` is a likely typing error.
std::vector<std::string> holders_of(std::string_view word, const std::string& guess,
                                    std::span<const std::string> candidates) {
  constexpr std::size_t shortest = 4;
  std::vector<std::string> holders;
  if (word.size() < shortest || (!guess.empty() && edit_distance(word, guess, 3) < 3))
    return holders;
  for (const std::string& candidate : candidates)
    if (candidate.find(word) != std::string::npos) holders.push_back(candidate);
  return holders;
}

}  // namespace

std::string describe(const Where& where, std::string_view what, std::string_view allowed) {
  std::string text;
  if (!where.file.empty()) {
    text += shortened(where.file, longest_path);
    if (where.line > 0) text += fmt::format(":{}", where.line);
    text += ": ";
  }
  if (!where.key.empty()) text += shortened(where.key, longest_key) + ": ";
  text += shortened(what, longest_sentence);
  if (!allowed.empty()) text += fmt::format(" (allowed: {})", shortened(allowed, longest_list));
  // TOML and JSON names may contain "\u0000", at which what() would end.
  std::ranges::replace(text, '\0', ' ');
  return text;
}

void fail_input(const Where& where, std::string_view what, std::string_view allowed) {
  throw Error(Exit::usage, describe(where, what, allowed));
}

std::string closest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  if (word.size() > longest_slip) return best;
  std::size_t best_distance = std::max<std::size_t>(word.size() < 4 ? 1 : 2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (word.size() >= 3 && candidate.starts_with(word)) return candidate;
    // The edit distance is at least the difference of the lengths.
    const std::size_t longer = std::max(word.size(), candidate.size());
    if (2 * longer - word.size() - candidate.size() >= best_distance) continue;
    const std::size_t distance = edit_distance(word, candidate, best_distance);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void fail_unknown(const Where& where, std::string_view what, std::string_view word,
                  std::span<const std::string> candidates) {
  const std::string guess = closest(word, candidates);
  const std::vector<std::string> holders = holders_of(word, guess, candidates);
  std::string text = fmt::format("unknown {} '{}'", what, word);
  if (holders.size() > 1)
    text += fmt::format(", did you mean one of '{}'?", fmt::join(holders, "', '"));
  else if (!guess.empty() || !holders.empty())
    text += fmt::format(", did you mean '{}'?", guess.empty() ? holders.front() : guess);
  // A guess needs no list that fills a screen.
  constexpr std::size_t most_listed = 60;
  const bool is_listed = candidates.size() <= most_listed || text.ends_with('\'');
  fail_input(where, text, is_listed ? fmt::format("{}", fmt::join(candidates, ", ")) : "");
}

}  // namespace lambcast
