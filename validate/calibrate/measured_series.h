// A measured table as input of the model: the collectives that it consists of, prepared for the
// sizes of its rows.
//
// Most tables hold one collective. DeepSpeed's compressed exchange over MPI (compressed_allreduce
// of S bytes of fp32) is several (sim/collectives/compressed_exchange.h). Where the table was
// measured with staging, every buffer is also copied between device and host memory
// (kernels/staging.h). Over NCCL such a table also holds the time of our kernels and is not
// forecast here.
//
// Between two ranks, with messages of S bytes:
//
//   ping_pong            time = a send_recv of S
//   stream               time = max(message overhead, S / what its links let pass): latencies hide
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
    bool covers = true;  // its op; a barrier, written as one of no bytes, tells nothing of it
  };
  std::vector<Part> parts;                  // one, or one after another:
  bool exchange = false;                    // the messages of compressed_allreduce
  std::optional<CollectiveSeries> message;  // in place of them, of a stream of messages
  Bandwidth wire;                           // zero: a library moves the bytes
  std::optional<HostCopies> copies;
  int ranks = 0, nodes = 0, gpus_per_node = 0;
};

// Whether its rows say something of a description: an iperf3 or perftest message below 64 KiB tells
// of the NIC's message rate only, which is no part of one.
bool counts(const Measurement& table, const Row& row);

// As the table says, or from its GPUs per node; 1 when it says neither.
int nodes_of(const Measurement& table);

// As the cluster counts them. A log lists hosts, of 16 GPUs at most; where a node of the cluster
// has more, it is an NVLink domain of several hosts (NVL72), which are taken to fill one after
// another.
int nodes_of(const Measurement& table, const Cluster& cluster);

// Throws Error when the table holds nothing of the above, does not say over how many nodes its
// ranks lie, does not fit the cluster, or is on one rank.
MeasuredSeries series_of(const Measurement& table, const Cluster& cluster, Backend backend);

// The same table on a cluster that differs in rates and latencies alone, whose transport is given.
void reprice(MeasuredSeries& series, const Measurement& table, const Cluster& cluster,
             Backend backend, const std::shared_ptr<const Transport>& transport);

struct SeriesForecast {
  Duration time;
  RunBy by;  // of a single collective; its names live as long as the series
};

SeriesForecast forecast(MeasuredSeries& series, Bytes size);

// Its time alone.
Duration forecast_time(MeasuredSeries& series, Bytes size);

}  // namespace lambcast::validate
