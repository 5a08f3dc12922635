// A measured table as input of the model: the collectives that it consists of, prepared for the
// sizes of its rows.
//
// Most tables hold one collective. DeepSpeed's compressed exchange over MPI (compressed_allreduce
// of S bytes of fp32) consists of several (sim/collectives/compressed_exchange.h). If the table was
// measured with staging, every buffer is also copied between device and host memory
// (kernels/staging.h). Over NCCL such a table also includes the project's kernels and is not
// forecast here.
//
// Between two ranks, with messages of S bytes:
//
//   ping_pong            time = a send_recv of S
//   stream               time = max(message overhead, S / rate of its links): latencies overlap
//                        behind the messages before
//   stream, no library   time = S / min(nic.bandwidth, k flow_cap) over k streams
#pragma once

#include <memory>
#include <optional>

#include "models/training/plan/buffers.h"
#include "topologies/collective_forecast.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct MeasuredSeries {
  struct Part {
    Op op;
    CollectiveCurve curve;
    // whether its op applies; a barrier is written as one of zero bytes and does not count
    bool covers = true;
  };
  std::vector<Part> parts;  // one part, or several in sequence
  // whether the parts are the messages of compressed_allreduce
  bool exchange = false;
  std::optional<CollectiveSeries> message;  // set for a stream of messages, in place of the parts
  Bandwidth wire;                           // zero if a library moves the bytes
  std::optional<HostCopies> copies;
  int ranks = 0, nodes = 0, gpus_per_node = 0;
};

// Returns whether a row is informative for a description. An iperf3 or perftest message below 64
// KiB measures only the NIC's message rate, which no description contains.
bool counts(const Measurement& table, const Row& row);

// Returns the nodes stated in the table, or derived from its GPUs per node; 1 if it states neither.
int nodes_of(const Measurement& table);

// Returns the nodes as the cluster counts them. A log lists hosts of at most 16 GPUs. If a node of
// the cluster has more, it is an NVLink domain of several hosts (NVL72); these are assumed to fill
// one after another.
int nodes_of(const Measurement& table, const Cluster& cluster);

// Returns the series of a table. Throws Error if the table holds none of the above, does not state
// its number of nodes, does not fit the cluster, or has only one rank.
MeasuredSeries series_of(const Measurement& table, const Cluster& cluster, Backend backend);

// Updates the series of a table for a cluster that differs only in rates and latencies; `transport`
// is that of the cluster.
void reprice(MeasuredSeries& series, const Measurement& table, const Cluster& cluster,
             Backend backend, const std::shared_ptr<const Transport>& transport);

struct SeriesForecast {
  Duration time;
  RunBy by;  // algorithm of a single collective; its names live as long as the series
};

SeriesForecast forecast(MeasuredSeries& series, Bytes size);

// Returns the time of the series alone.
Duration forecast_time(MeasuredSeries& series, Bytes size);

}  // namespace lambcast::validate
