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
    // Whether the table measures `op`. False for a barrier, which is modelled as an all_reduce of
    // zero bytes.
    bool covers = true;
  };
  std::vector<Part> parts;  // one part, or several in sequence
  // Whether the parts are the messages of compressed_allreduce.
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

// Returns the series of a table. Throws Error if the operation is not listed above, if the number
// of nodes is missing, if the table does not fit the cluster, or if it has only one rank.
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

// Returns only the time of forecast(), without the algorithm.
Duration forecast_time(MeasuredSeries& series, Bytes size);

}  // namespace lambcast::validate
