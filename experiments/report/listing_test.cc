#include "experiments/report/listing.h"
#include "sim/base/json.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
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

// Returns the text of row `row` in a column of texts.
Json name_at(const Json& of, std::size_t row) {
  return of.at("names").at(of.contains("same") ? of.at("same").get<std::size_t>()
                                               : of.at("cells").at(row).get<std::size_t>());
}

}  // namespace

TEST_CASE("listing: keys by name, figures in units for people, what all rows say once") {
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
  // The step of a freeze_step compresses already.
  CHECK(column(rows, "warmup_percent").at("names") == Json::parse(R"([10, 5, 16.7, ""])"));
  CHECK(column(rows, "status").at("kind") == "fact");
}

TEST_CASE("listing: a key that settings alone name has a column, empty where it was not set") {
  const Json rows =
      json_of(listing_of("gpus,settings\n8,\n8,cluster.nic.bandwidth=1 Gbit/s; tp=2\n8,tp=4; "
                         "node.link=25GB/s\n8,\n"));
  CHECK(column(rows, "cluster.nic.bandwidth").is_null());
  const Json tp = column(rows, "tp"), link = column(rows, "node.link");
  for (const auto& [row, said] :
       {std::pair{0, Json("")}, {1, Json(2)}, {2, Json(4)}, {3, Json("")}})
    CHECK(name_at(tp, static_cast<std::size_t>(row)) == said);
  // A description from a file has its name in a column, and the file in its settings.
  const Json file = json_of(listing_of("cluster,settings\nmine,cluster=./a.toml\n"));
  CHECK(column(file, "cluster").at("names") == Json::parse(R"(["mine"])"));
  CHECK(column(file, "cluster file").at("names") == Json::parse(R"(["./a.toml"])"));
  CHECK(name_at(link, 2) == "25GB/s");
  CHECK(name_at(link, 1) == "");
}

TEST_CASE("listing: settings without end have one column for what is past the limit") {
  std::string text = "gpus,settings\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("8,k{}={}\n", i, i);
  const Json rows = json_of(listing_of(text));
  CHECK(rows.at("columns").size() == 1 + Listing::most_settings + 1);
  CHECK(name_at(column(rows, "settings"), 99) == "k99=99");
}

TEST_CASE("listing: no name ends the script that it stands in") {
  const Listing listing = listing_of("model\n</script><script>alert(1)\n");
  std::string text;
  listing.append_json(text);
  CHECK(text.find('<') == std::string::npos);
  CHECK(name_at(column(json_of(listing), "model"), 0) == "</script><script>alert(1)");
}

TEST_CASE(
    "listing: of more rows than fit a page whole values of the longest key stay, and it says so") {
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
    // The cells of a kept row belong together.
    CHECK((row % 997 != 0 || name_at(kept, row) == run.at("cells").at(row)));
  }
  CHECK(kept.at("names").size() == values.size());
  CHECK(values.size() * 3 == listing.kept());
  CHECK(values.count(1) + values.count(3) == 2);
  CHECK(values.count(2) == 0);
}

TEST_CASE("listing: rows that no key tells apart are thinned as rows") {
  std::string text = "gpus,run_time_s\n";
  for (std::size_t i = 0; i < 4 * Listing::most_rows + 1; ++i) text += "8,3600\n";
  const Listing listing = listing_of(text);
  CHECK(listing.thinning() == "one row in 8");
  CHECK(listing.kept() == Listing::most_rows / 2 + 1);
}
