#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "validate/calibrate/calibrate.h"
#include "validate/interval_score.h"
#include "validate/priors/learn_priors.h"

namespace lambcast::validate {
namespace {

constexpr std::size_t bands = 3;

std::size_t band_of(Bytes size) {
  return size.value() < small_below ? 0 : size.value() < medium_below ? 1 : 2;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST_CASE("priors: the shipped priors are those learned from the fabrics") {
  const auto fabrics = fabrics_to_learn_from(LAMBCAST_VALIDATE);
  const std::string text = priors_text(learn_priors(fabrics), fabrics);
  const Priors learned = decode_priors(Table::parse(text, "learned"));
  for (const LearningFabric& fabric : fabrics)
    CHECK(text.find('"' + fabric.name + '"') != std::string::npos);
  for (const NetworkKind network : {NetworkKind::rdma, NetworkKind::socket}) {
    const Priors::OfKind &fresh = learned.on(network), &shipped = shipped_priors().on(network);
    CHECK(fresh.fabrics == shipped.fabrics);
    REQUIRE(fresh.of.size() == shipped.of.size());
    for (const auto& [key, prior] : shipped.of) {
      INFO(key);
      REQUIRE(fresh.of.contains(key));
      // Compilers round differently, and the minima are flat.
      CHECK(std::abs(std::log(fresh.typical(key) / prior.typical)) < 0.05);
    }
  }
}

// Held-out errors of one size band: the fabric's own tables are left out of the priors.
struct LeftOut {
  std::vector<double> off;  // |log(forecast / measured)|
  double inside = 0, score = 0;

  double median() const { return std::expm1(quantile(off, 0.5)); }
  double coverage() const { return inside / static_cast<double>(off.size()); }
  double mean_score() const { return score / static_cast<double>(off.size()); }
};

std::array<LeftOut, bands> left_out(const LearningFabric& fabric, const Priors& others) {
  const Typical typical = fabric.network == NetworkKind::rdma ? Typical::rdma : Typical::socket;
  std::array<LeftOut, bands> all;
  for (const RowError& row : errors_under(fabric, others)) {
    const auto [low, high, calibrated, ground] =
        uncalibrated_interval(row.size, 16, NicRate::nominal, typical, Duration::microseconds(1e6));
    const double measured = std::exp(-row.error);
    LeftOut& band = all[band_of(row.size)];
    band.off.push_back(std::abs(row.error));
    band.inside += low.s() <= measured && measured <= high.s() ? 1 : 0;
    band.score += interval_score(low.s(), high.s(), measured);
  }
  return all;
}

// Returns the rows of the table with this heading in a page of validate/, by their first cell.
std::map<std::string, std::vector<std::string>> table_below(const std::string& file,
                                                            const std::string& heading) {
  std::ifstream page(std::string(LAMBCAST_VALIDATE) + "/" + file);
  std::map<std::string, std::vector<std::string>> rows;
  std::string line;
  while (std::getline(page, line) && !line.starts_with(heading)) {
  }
  std::getline(page, line);  // the rule below the heading
  while (std::getline(page, line) && line.starts_with("| ")) {
    std::istringstream text(line.substr(2));
    std::vector<std::string> cells;
    for (std::string cell; std::getline(text, cell, '|');) cells.push_back(cell);
    const std::string name = cells.front().substr(0, cells.front().find_last_not_of(' ') + 1);
    rows[name].assign(cells.begin() + 1, cells.end());
  }
  return rows;
}

// Checks that the numbers of a cell are the computed ones, to the last printed digit.
void check_printed(const std::string& cell, const std::vector<double>& computed) {
  INFO("'" << cell << "' is printed");
  std::string numbers = cell;
  for (char& each : numbers)
    if (each == ',' || each == '%') each = ' ';
  std::istringstream words(numbers);
  std::size_t count = 0;
  for (std::string word; words >> word; ++count) {
    REQUIRE(count < computed.size());
    const auto point = word.find('.');
    const double digit = point == std::string::npos
                             ? 1
                             : std::pow(10, -static_cast<double>(word.size() - point - 1));
    CHECK(std::stod(word) == Approx(computed[count]).epsilon(0).margin(0.501 * digit));
  }
  CHECK(count == computed.size());
}

// Leaves out each fabric in turn. It is forecast only from its description, with priors learned
// anew from the others, as if it had not been shipped.
class LeftOutInTurn {
 public:
  void add(NetworkKind network) {
    const auto fabrics = fabrics_to_learn_from(LAMBCAST_VALIDATE);
    for (const LearningFabric& fabric : fabrics) {
      if (fabric.network != network) continue;
      Priors others;
      Priors::OfKind& kind = network == NetworkKind::rdma ? others.rdma : others.socket;
      kind = learn_kind(fabrics, network, fabric.name, false);
      REQUIRE(kind.fabrics == shipped_priors().on(network).fabrics - 1);
      add(fabric.name, left_out(fabric, others));
    }
  }

  double median(std::size_t band) const { return quantile(medians_[band], 0.5); }
  double coverage(std::size_t band) const { return mean(covered_[band]); }

  double mean_score(std::size_t band) const { return mean(scores_[band]); }

  // Compares with the tables of the manual: each fabric in methods.md, and the summary line of
  // trust.md that begins with `row`.
  void check_page(const std::string& row) const {
    const auto fabrics = table_below("methods.md", "| fabric | below 64 KiB |");
    for (const auto& [name, computed] : by_name_) {
      INFO(name);
      REQUIRE(fabrics.contains(name));
      for (std::size_t band = 0; band < bands; ++band)
        check_printed(fabrics.at(name).at(band), computed[band]);
    }
    const auto all = table_below("trust.md", "| forecast of |");
    const auto found = all.lower_bound(row);
    REQUIRE((found != all.end() && found->first.starts_with(row)));
    INFO(row);
    check_printed(found->second.at(0), {static_cast<double>(by_name_.size())});
    check_printed(found->second.at(1), {100 * median(0), 100 * median(1), 100 * median(2)});
    check_printed(found->second.at(2), {100 * coverage(0), 100 * coverage(1), 100 * coverage(2)});
    check_printed(found->second.at(3), {mean_score(0), mean_score(1), mean_score(2)});
  }
  std::size_t fabrics() const { return by_name_.size(); }

  // Prints the cases added since the last call, and all of them.
  void print(const char* which) {
    fmt::print("{:<26}{:^24}{:^24}{:^24}\n{}{:<26}", "left out: median, in, score", "below 64 KiB",
               "to 4 MiB", "above", lines_, which);
    for (std::size_t band = 0; band < bands; ++band)
      fmt::print("{}", figures(median(band), coverage(band), mean_score(band)));
    fmt::print("\n");
    lines_.clear();
  }

 private:
  static std::string figures(double median, double coverage, double score) {
    return fmt::format("{:>9.1f}% {:>4.0f}% {:>6.2f} ", median * 100, coverage * 100, score);
  }

  void add(const std::string& name, const std::array<LeftOut, bands>& all) {
    lines_ += fmt::format("{:<26}", name);
    auto& computed = by_name_[name];
    for (std::size_t band = 0; band < bands; ++band) {
      if (all[band].off.empty()) {
        lines_ += fmt::format("{:24}", "");
        continue;
      }
      medians_[band].push_back(all[band].median());
      covered_[band].push_back(all[band].coverage());
      computed[band] = {100 * medians_[band].back(), 100 * covered_[band].back()};
      scores_[band].push_back(all[band].mean_score());
      lines_ += figures(medians_[band].back(), covered_[band].back(), scores_[band].back());
    }
    lines_ += "\n";
  }

  std::vector<double> medians_[bands], covered_[bands], scores_[bands];
  std::map<std::string, std::array<std::vector<double>, bands>> by_name_;  // in percent
  std::string lines_;
};

TEST_CASE("priors: a fabric without measurements is forecast from the others") {
  LeftOutInTurn turn;
  turn.add(NetworkKind::rdma);
  turn.print("over RDMA fabrics");
  turn.check_page("the RDMA fabrics");
  const double most_of_rdma[] = {0.30, 0.35, 0.20};
  for (std::size_t band = 0; band < bands; ++band) {
    INFO("band " << band);
    CHECK(turn.median(band) < most_of_rdma[band]);
    CHECK(turn.coverage(band) > 0.85);
    CHECK(turn.coverage(band) < 0.95);
  }
  turn.add(NetworkKind::socket);
  turn.print("over all fabrics");
  turn.check_page("a fabric without any table");
  CHECK(table_below("methods.md", "| fabric | below 64 KiB |").size() == turn.fabrics());
  const double most[] = {0.50, 0.35, 0.20};
  for (std::size_t band = 0; band < bands; ++band) {
    INFO("band " << band);
    CHECK(turn.median(band) < most[band]);
    CHECK(turn.coverage(band) > 0.85);
    CHECK(turn.coverage(band) < 0.95);
  }
}

TEST_CASE("priors: a TCP fabric without measurements is forecast from the other one") {
  LeftOutInTurn turn;
  turn.add(NetworkKind::socket);
  turn.print("over TCP fabrics");
  turn.check_page("the two of TCP");
  for (std::size_t band = 0; band < bands; ++band) CHECK(turn.coverage(band) > 0.85);
}

}  // namespace
}  // namespace lambcast::validate
