#include "experiments/report/listing.h"
#include "models/optimizer/passes.h"
#include "models/training/run/step_parts.h"
#include "sim/base/json.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

using namespace lambcast;
using namespace lambcast::report;
namespace {

Json json_of(const Listing& listing) {
  std::string text = "{";
  listing.append_json(text);
  return Json::parse(text + "}");
}

Listing listing_of(const std::string& text) {
  csv::Reader reader = csv::Reader::of_text(text, "results.csv");
  Listing listing(reader);
  while (reader.next()) listing.add(reader);
  return listing;
}

Json column(const Json& rows, const std::string& key) {
  for (const Json& one : rows.at("columns"))
    if (one.at("key") == key) return one;
  return nullptr;
}

std::uint32_t unpacked(const std::string& text, std::size_t width, std::size_t row) {
  std::string characters;
  for (char c = '#'; c <= '~'; ++c)
    if (c != '<' && c != '\\') characters += c;
  std::uint32_t value = 0;
  for (const char c : text.substr(width * row, width))
    value = value * 90 + static_cast<std::uint32_t>(characters.find(c));
  return value;
}

// Returns the cell of a row in a column whose rows differ.
Json cell_at(const Json& of, std::size_t row) {
  if (of.contains("cells")) return of.at("cells").at(row);
  const auto width = of.at("width").get<std::size_t>();
  if (of.contains("packed")) {
    const std::uint32_t place = unpacked(of.at("packed").get_ref<const std::string&>(), width, row);
    return of.contains("values") ? of.at("values").at(place) : Json(place);
  }
  const std::uint32_t code = unpacked(of.at("decimals").get_ref<const std::string&>(), width, row);
  if (code < 2) return code == 0 ? Json(nullptr) : Json(0);
  const int power = static_cast<int>((code - 2) / 90'000), powers = of.at("powers").get<int>();
  return std::stod(fmt::format("{}{}e{}", power < powers ? "" : "-", 10'000 + (code - 2) % 90'000,
                               power % powers + of.at("least").get<int>()));
}

// Returns the text of row `row` in a column of texts.
Json name_at(const Json& of, std::size_t row) {
  return of.at("names").at(of.contains("same") ? of.at("same").get<std::size_t>()
                                               : cell_at(of, row).get<std::size_t>());
}

}  // namespace

TEST_CASE("listing: keys by name, figures in display units, values common to all rows once") {
  const Json rows =
      json_of(listing_of("model,gpus,steps,freeze_step,run_time_s,compression_forward_us,status\n"
                         "a,8,1000,101,7200,2500,ok\n"
                         "a,16,1000,51,3600,,ok\n"
                         "a,x,1000,16.7%,,,infeasible: <b>\n"
                         "a,x,1000,,,,infeasible: <b>\n"));
  CHECK(rows.at("rows") == 4);
  CHECK(column(rows, "model") == Json::parse(R"({"key": "model", "label": "model", "kind": "key",
                                                 "names": ["a"], "same": 0})"));
  CHECK(column(rows, "gpus").at("names") == Json::parse(R"([8, 16, "x"])"));
  CHECK(column(rows, "gpus").at("cells") == Json::parse("[0, 1, 2, 2]"));
  CHECK(column(rows, "run_time_s").at("cells") == Json::parse("[2, 1, null, null]"));
  CHECK(column(rows, "run_time_s").at("label") == "run (h)");
  CHECK(column(rows, "compression_forward_us").at("cells") ==
        Json::parse("[2.5, null, null, null]"));
  CHECK(column(rows, "compression_forward_us").at("kind") == "detail");
  // Step freeze_step itself compresses, so the warm-up is one step shorter.
  CHECK(column(rows, "warmup_percent").at("names") == Json::parse(R"([10, 5, 16.7, ""])"));
  CHECK(column(rows, "status").at("kind") == "fact");
}

TEST_CASE("listing: a verdict is in words, not in the code of the file") {
  const Json rows = json_of(listing_of("gpus,verdict\n1,yes\n2,cannot_tell\n3,\n4,no\n"));
  CHECK(column(rows, "verdict").at("names") == Json({"pays", "not certain", "", "does not pay"}));
}

TEST_CASE("listing: a key found only in settings has a column, empty if it was not set") {
  const Json rows =
      json_of(listing_of("gpus,settings\n8,\n8,cluster.nic.bandwidth=1 Gbit/s; tp=2\n8,tp=4; "
                         "node.link=25GB/s\n8,\n"));
  CHECK(column(rows, "cluster.nic.bandwidth").is_null());
  const Json tp = column(rows, "tp"), link = column(rows, "node.link");
  for (const auto& [row, said] :
       {std::pair{0, Json("")}, {1, Json(2)}, {2, Json(4)}, {3, Json("")}})
    CHECK(name_at(tp, static_cast<std::size_t>(row)) == said);
  // A description from a file has its name in its column and its file in `settings`.
  const Json file = json_of(listing_of("cluster,settings\nmine,cluster=./a.toml\n"));
  CHECK(column(file, "cluster").at("names") == Json::parse(R"(["mine"])"));
  CHECK(column(file, "cluster file").at("names") == Json::parse(R"(["./a.toml"])"));
  CHECK(name_at(link, 2) == "25GB/s");
  CHECK(name_at(link, 1) == "");
}

TEST_CASE("listing: settings beyond the limit share one column") {
  std::string text = "gpus,settings\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("8,k{}={}\n", i, i);
  const Json rows = json_of(listing_of(text));
  CHECK(rows.at("columns").size() == 1 + Listing::most_settings + 1);
  CHECK(name_at(column(rows, "settings"), 99) == "k99=99");
}

TEST_CASE("listing: a name with </script> does not end the script element") {
  const Listing listing = listing_of("model\n</script><script>alert(1)\n");
  std::string text;
  listing.append_json(text);
  CHECK(text.find('<') == std::string::npos);
  CHECK(name_at(column(json_of(listing), "model"), 0) == "</script><script>alert(1)");
}

TEST_CASE(
    "listing: if rows do not fit a page, complete slices of the longest key stay, and it says "
    "so") {
  std::string text = "gpus,steps,run_time_s\n";
  const std::size_t steps = Listing::most_rows / 2 + 10;
  for (std::size_t s = 1; s <= steps; ++s)
    for (const int gpus : {8, 16, 32}) text += fmt::format("{},{},{}\n", gpus, s, s * 3600);
  const Listing listing = listing_of(text);
  CHECK(listing.rows() == 3 * steps);
  CHECK(listing.kept() == 3 * ((steps + 1) / 2));
  CHECK(listing.thinning() == "one in 2 values of steps");
  const Json rows = json_of(listing);
  const Json kept = column(rows, "steps"), gpus = column(rows, "gpus"),
             run = column(rows, "run_time_s");
  std::set<double> values;
  for (std::size_t row = 0; row < listing.kept(); ++row) {
    values.insert(name_at(kept, row).get<double>());
    // The cells of a kept row stay together.
    CHECK((row % 997 != 0 || name_at(kept, row) == cell_at(run, row)));
  }
  CHECK(kept.at("names").size() == values.size());
  CHECK(values.size() * 3 == listing.kept());
  CHECK(values.count(1) + values.count(3) == 2);
  CHECK(values.count(2) == 0);
}

TEST_CASE("listing: rows that differ in no key are thinned as rows") {
  std::string text = "gpus,run_time_s\n";
  for (std::size_t i = 0; i < 4 * Listing::most_rows + 1; ++i) text += "8,3600\n";
  const Listing listing = listing_of(text);
  CHECK(listing.thinning() == "one row in 8");
  CHECK(listing.kept() == Listing::most_rows / 2 + 1);
}

// Cells: five digits of any size, few distinct values, whole numbers with more digits, and empty
// ones.
TEST_CASE("listing: packed cells equal those that are written as text") {
  std::string text = "gpus,run_time_s,mfu,speedup_vs_baseline,gpu_hours,tflops_per_gpu\n";
  std::vector<std::vector<double>> said(5);
  unsigned state = 1;
  const auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  constexpr int rows = 12'000;
  for (int row = 0; row < rows; ++row) {
    const double wide = std::pow(10., static_cast<int>(random() % 30) - 25) *
                        (row % 2 ? 1e-3 : 1e9) * (1e4 + random() % 90'000);
    const double values[] = {3600 * wide, -wide, static_cast<double>(row % 50),
                             static_cast<double>(random()), row % 3 ? 0.25 * row : -1};
    text += std::to_string(8 << row % 5);
    for (std::size_t i = 0; i < 5; ++i) {
      const bool none = i == 4 && row % 3 == 0;
      text += none ? "," : fmt::format(",{}", values[i]);
      said[i].push_back(none ? std::nan("") : values[i] / (i == 0 ? 3600 : 1));
    }
    text += '\n';
  }
  const Json of = json_of(listing_of(text));
  std::set<std::string> forms;
  std::size_t at = 0;
  for (const char* key :
       {"run_time_s", "mfu", "speedup_vs_baseline", "gpu_hours", "tflops_per_gpu"}) {
    INFO(key);
    const Json numbers = column(of, key);
    for (const char* form : {"cells", "decimals", "values"})
      if (numbers.contains(form)) forms.insert(form);
    for (std::size_t row = 0; row < rows; ++row) {
      const Json cell = cell_at(numbers, row);
      const double wanted = said[at][row];
      const bool whole = wanted == std::floor(wanted) && std::abs(wanted) < 1e7;
      const bool same = std::isnan(wanted) ? cell.is_null()
                                           : std::abs(cell.get<double>() - wanted) <=
                                                 (whole ? 0 : 0.6e-4) * std::abs(wanted);
      if (!same) FAIL(key << ": " << cell << " is not " << wanted);
    }
    ++at;
  }
  CHECK(forms == std::set<std::string>{"cells", "decimals", "values"});
}

TEST_CASE("listing: a page with very many columns still opens") {
  std::string text = "gpus,steps";
  for (const StepKind kind : step_kinds)
    for (const std::string_view part : step_parts)
      text += fmt::format(",{}_{}_us", name_of(kind), part);
  text += '\n';
  const auto columns = static_cast<std::size_t>(std::ranges::count(text, ',')) - 1;
  for (std::size_t row = 0; row < 100'000; ++row) {
    text += fmt::format("{},{}", 8 << row % 4, row / 4);
    for (std::size_t i = 0; i < columns; ++i) text += fmt::format(",{}.{}", row, i);
    text += '\n';
  }
  const Listing listing = listing_of(text);
  std::string json;
  listing.append_json(json);
  CHECK(json.size() < 11'500'000);
  CHECK(listing.kept() > 20'000);
  CHECK(listing.kept() < listing.rows());
  CHECK_FALSE(listing.thinning().empty());
}
