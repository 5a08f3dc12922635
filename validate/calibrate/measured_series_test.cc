#include "validate/calibrate/measured_series.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace lambcast::validate {
namespace {

TEST_CASE("measured series: the exchange over MPI is the one that collective forecasts") {
  const Cluster cluster = load_cluster("perlmutter-a100", {});
  Measurement table;
  table.operation = Operation::compressed_allreduce;
  table.ranks = 8;
  table.nodes = 2;
  table.provenance = {Kind::measured, "made-up"};
  CollectiveSetting setting;
  setting.group.ranks = 8;
  setting.group.per_node = 4;
  const Bytes size(1 << 22);  // divisible into chunks of whole bytes, so without padding
  for (const bool staged : {false, true}) {
    if (staged) table.staging = "memcpy";
    MeasuredSeries series = series_of(table, cluster, Backend::mpi_host);
    if (staged)  // staging copies take no time here
      series.copies->pageable_to_host.value = series.copies->pageable_to_device.value =
          Bandwidth(1e30);
    setting.backend = Backend::mpi_host;
    Duration sum;
    CollectiveSeries exchange = prepare(cluster, setting);
    for (const Collective& part : compressed_exchange(exchange, setting.backend, size))
      if (staged || part.size.value() > 0) sum += part.time;
    // The time of each round is rounded to a picosecond, so the two sums differ slightly.
    CHECK(forecast_time(series, size).us() == Approx(sum.us()).epsilon(1e-6));
    const auto is_reduce = [](const MeasuredSeries::Part& part) {
      return part.covers && part.op == Op::all_reduce;
    };
    CHECK(std::none_of(series.parts.begin(), series.parts.end(), is_reduce));
  }
}

}  // namespace
}  // namespace lambcast::validate
