// Feeds every fixture, and thousands of damaged copies, to every importer. For any text an importer
// must return valid tables or throw Error.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "validate/importers/fixtures.h"
#include "validate/importers/importers.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(LAMBCAST_FIXTURES))
    names.push_back(file.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Text that often breaks parsers: wrong types, extreme numbers, partial keywords, stray bytes.
const std::vector<std::string> kPieces{"nan",
                                       "-1",
                                       "1e999",
                                       "99999999999999999999",
                                       "0",
                                       "\n",
                                       "{",
                                       "[",
                                       "\"",
                                       "null",
                                       "#",
                                       " ",
                                       "N/A",
                                       "inf",
                                       "1e-30",
                                       "Rank",
                                       "on",
                                       "float",
                                       "2147483648",
                                       "NCCL INFO",
                                       "\x1b[",
                                       "\x1b[31m",
                                       "# Size",
                                       "#bytes",
                                       "9223372036854775807"};

std::string broken(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const std::size_t edits = 1 + below(3);
  for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = below(text.size());
    const std::size_t length = below(24);
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), length));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.replace(at, 1 + below(6), kPieces[below(kPieces.size())]);
        break;
      default: {  // delete a line
        const std::size_t end = text.find('\n', at);
        text.erase(at, end == std::string::npos ? end : end - at + 1);
      }
    }
  }
  return text;
}

bool is_sound(const Measurement& m) {
  bool sound = m.ranks >= 1 && !m.rows.empty() && (!m.nodes || *m.nodes >= 1);
  for (const Row& row : m.rows) {
    sound = sound && row.size.value() > 0 && row.time.ps() > 0;
    sound = sound && (!row.spread || row.spread->low <= row.spread->high);
  }
  return sound;
}

// Returns how many of the importers accepted the text.
int feed_all(const std::string& text, const ImportHints& hints) {
  int accepted = 0;
  std::vector<decltype(Importer::read)> all_importers{import_measurements};
  for (const Importer& importer : importers()) all_importers.push_back(importer.read);
  for (const auto importer : all_importers) {
    try {
      const std::vector<Measurement> all = importer(text, "fuzz", hints);
      ++accepted;
      if (all.empty()) FAIL("accepted a text without a table:\n" << text);
      for (const Measurement& m : all) {
        if (!is_sound(m)) FAIL("an unsound table out of:\n" << text);
      }
    } catch (const Error&) {
      // An Error is the expected result. Anything else is not caught and fails the test.
    }
  }
  return accepted;
}

}  // namespace

TEST_CASE("no text makes an importer fail otherwise than with Error") {
  std::mt19937 random(20261121);
  ImportHints ranks;
  ranks.ranks = 8;
  int accepted = 0;
  int fed = 0;
  for (const std::string& name : fixtures()) {
    const std::string good = fixture(name);
    REQUIRE(feed_all(good, name == "osu_alltoall.txt" ? ranks : ImportHints{}) +
                feed_all(good, {.operation = Operation::all_reduce, .ranks = 16, .nodes = {}}) >
            0);
    for (int i = 0; i < 400; ++i) {
      const std::string bad = broken(good, random);
      accepted += feed_all(bad, i % 2 == 0 ? ImportHints{} : ranks);
      ++fed;
    }
  }
  // The edits must lead to both results: some texts are accepted, many are rejected by all
  // importers.
  CHECK(accepted > fed / 10);
  CHECK(accepted < 2 * fed);
}
