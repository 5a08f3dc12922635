// Compares the effect of shallow switch queues on exchanges over TCP, measured on the emulated
// Ethernet (validate/emulated_ethernet/measure-incast), with the equation of
// sim/collectives/incast.h. The equation has no fitted constant; the link's efficiency is fitted to
// eight hosts without losses. The settings of 4, 6, 8, 12 and 16 hosts were known when the
// equation's variance was chosen; those of 3, 5, 7, 9 and 10 hosts were measured afterwards.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast {
namespace {

struct IncastRow {
  int hosts = 0;
  double rate_Mbps = 0;
  Bytes port_queue;
  Duration measured, forecast, without;  // `without` the queue in the description
};

// Returns whether the queue holds, on average, less than one packet per flow.
bool overflows(const IncastRow& row) { return row.port_queue / full_packet < row.hosts - 1; }
bool lossless(const IncastRow& row) { return row.port_queue >= Bytes(2097152); }
// Returns whether the row was measured after the equation had its present form.
bool measured_later(const IncastRow& row) { return row.hosts % 2 == 1 || row.hosts == 10; }

Duration forecast_of(const validate::Measurement& table, Overrides overrides, Bytes size) {
  overrides.insert(overrides.end(), {{"nic.burst", "3 KiB"}, {"mpi.nic_efficiency", "0.875"}});
  validate::MeasuredSeries series =
      series_of(table, load_cluster("emulated-ethernet-100mbit", overrides), Backend::mpi_host);
  return forecast_time(series, size);
}

std::vector<IncastRow> measured_rows() {
  const csv::Table table = csv::parse(read_file(LAMBCAST_INCAST), "incast.csv");
  std::vector<IncastRow> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    validate::Measurement one;
    one.operation = validate::parse_operation(table.text(i, "collective"), {});
    one.algorithm = table.text(i, "algorithm");
    one.ranks = static_cast<int>(table.number(i, "hosts"));
    one.nodes = one.ranks;
    const Bytes size(table.number(i, "size_bytes"));
    const Overrides link{{"nic.bandwidth", table.text(i, "rate_Mbps") + " Mbit/s"}};
    Overrides shallow = link;
    shallow.emplace_back("nic.port_queue", table.text(i, "port_queue_bytes") + " B");
    rows.push_back({one.ranks, table.number(i, "rate_Mbps"),
                    Bytes(table.number(i, "port_queue_bytes")),
                    Duration::microseconds(table.number(i, "time_us")),
                    forecast_of(one, shallow, size), forecast_of(one, link, size)});
  }
  return rows;
}

// Factors between forecast and measurement: their median, the largest, and the share up to 1.5.
struct Factors {
  double median, worst, within;
};

Factors factors_of(const std::vector<IncastRow>& rows,
                   const std::function<bool(const IncastRow&)>& wanted,
                   Duration IncastRow::*forecast) {
  std::vector<double> factors;
  for (const IncastRow& row : rows)
    if (wanted(row))
      factors.push_back(std::max(row.*forecast / row.measured, row.measured / row.*forecast));
  REQUIRE(factors.size() >= 8);
  const auto within =
      std::count_if(factors.begin(), factors.end(), [](double factor) { return factor <= 1.5; });
  return {validate::quantile(factors, 0.5), *std::max_element(factors.begin(), factors.end()),
          static_cast<double>(within) / static_cast<double>(factors.size())};
}

TEST_CASE("incast: queues that hold less than a packet of each flow") {
  const std::vector<IncastRow> rows = measured_rows();
  REQUIRE(rows.size() == 116);
  const Factors all = factors_of(rows, overflows, &IncastRow::forecast);
  CHECK(all.median < 1.25);
  CHECK(all.within > 0.85);
  CHECK(all.worst < 1.8);
  const Factors later = factors_of(
      rows, [](const IncastRow& row) { return overflows(row) && measured_later(row); },
      &IncastRow::forecast);
  CHECK(later.median < 1.1);
  CHECK(later.within == 1);
  CHECK(factors_of(rows, overflows, &IncastRow::without).median > 2);
}

// Exchanges with these queues wait sometimes, on few hosts more often than the equation states. So
// forecasts are too low, though less so than without the queue. The reason is unknown; jitter of
// the processor, which lets packets of many hosts arrive together, may contribute (at 50 Mbit/s the
// rows agree).
TEST_CASE("incast: queues that hold more, but not everything") {
  const std::vector<IncastRow> rows = measured_rows();
  const auto between = [](const IncastRow& row) { return !overflows(row) && !lossless(row); };
  const Factors with = factors_of(rows, between, &IncastRow::forecast);
  const Factors without = factors_of(rows, between, &IncastRow::without);
  CHECK(with.median < 1.3);
  CHECK(with.within > 0.65);
  CHECK(with.worst < 4.2);
  CHECK(without.median > 1.5);
  CHECK(without.within < 0.5);
  const Factors slow = factors_of(
      rows, [&](const IncastRow& row) { return between(row) && row.rate_Mbps == 50; },
      &IncastRow::forecast);
  CHECK(slow.within > 0.9);
}

TEST_CASE("incast: queues that hold everything cost nothing") {
  const std::vector<IncastRow> rows = measured_rows();
  CHECK(factors_of(rows, lossless, &IncastRow::forecast).worst < 1.25);
  for (const IncastRow& row : rows)
    if (lossless(row)) CHECK(row.forecast == row.without);
}

}  // namespace
}  // namespace lambcast
