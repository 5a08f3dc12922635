#include "experiments/report/synthetic_sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>

#include "models/optimizer/optimizer_model.h"
#include "models/training/run/forecast.h"
#include "sim/base/csv.h"

namespace lambcast::report {
namespace {

constexpr double gradient_bytes = 672e6, us = 1e6;

// Made-up costs of one step in microseconds. Computation takes 6 ms per sample. An exchange sends 2
// x bytes at a quarter of the NIC's rate and waits 40 us per GPU. Packing and unpacking take 120 ms
// and 200 us per GPU.
struct StepCost {
  double forward, backward, comm, exposed, compress, decompress, optimizer, wire;
  double step() const {
    return forward + backward + exposed + compress + decompress + optimizer + 500;
  }
};

StepCost step_cost(StepKind kind, const SyntheticBackend& backend, double samples, double gpus,
                   double nic_Gbps) {
  const bool silent = kind == StepKind::silent;
  const bool packed = silent || kind == StepKind::compression;
  const double bytes = silent ? 0 : gradient_bytes / (packed ? 16 : 1);
  const double rate = 0.25 * nic_Gbps * 1e9 / 8;
  double comm = (2 * bytes / rate) * us + (bytes > 0 ? 40 * gpus : 0);
  if (packed && backend.name == "mpi") comm *= backend.cuda_aware ? 1.4 : 2.5;
  const double compute = 0.006 * samples * us;
  const double hidden = packed ? 0 : std::min(0.3 * comm, 20e3);
  return {compute / 3,   2 * compute / 3,    comm,
          comm - hidden, packed ? 60e3 : 0., packed ? 60e3 + 200 * gpus : 0.,
          12e3,          2 * bytes};
}

std::vector<StepKind> kinds_of(const std::string& optimizer) {
  if (optimizer == name_of(OptimizerType::zero_one_adam))
    return {StepKind::warmup, StepKind::compression, StepKind::silent};
  if (optimizer.starts_with("onebit_")) return {StepKind::warmup, StepKind::compression};
  return {StepKind::uniform};
}

constexpr auto written_kinds = std::span(step_kinds).first<first_step_kinds>();

struct Case {
  const SyntheticSweep& sweep;
  const SyntheticCluster& cluster;
  std::string optimizer;
  SyntheticBackend backend;
  int gpus, global_batch;
  double freeze_share;
};

struct Run {
  double time_s = 0, wire = 0;
  std::vector<std::string> fields;  // for all kinds of step
};

Run run_of(const Case& c, const std::string& optimizer) {
  const double samples = static_cast<double>(c.global_batch) / c.gpus;
  const std::vector<StepKind> kinds = kinds_of(optimizer);
  Run run;
  const double warm = std::round(c.freeze_share * c.sweep.steps);
  for (const StepKind kind : written_kinds) {
    if (std::ranges::find(kinds, kind) == kinds.end()) {
      run.fields.resize(run.fields.size() + 16);
      continue;
    }
    double steps = c.sweep.steps;
    if (kinds.size() > 1) steps = kind == kinds[0] ? warm : (steps - warm) / (kinds.size() - 1);
    const StepCost k = step_cost(kind, c.backend, samples, c.gpus, c.cluster.nic_Gbps);
    const double rate = c.global_batch / k.step() * us;
    for (const double v : {steps, k.step(), k.forward, k.backward, k.comm, k.exposed, k.compress,
                           k.decompress, k.optimizer, 0., k.wire, k.wire * c.cluster.gpus_per_node,
                           300., rate, rate * 128, rate / c.gpus * 0.22}) {
      run.fields.push_back(csv::number(v));
    }
    run.time_s += steps * k.step() / us;
    run.wire += steps * k.wire;
  }
  return run;
}

std::string row_of(const Case& c) {
  const bool packed = kinds_of(c.optimizer).size() > 1;
  const std::string baseline = c.optimizer.find("adam") != std::string::npos ? "adam" : "lamb";
  const int accum = c.global_batch / (c.sweep.micro_batch * c.gpus);
  const int nodes = std::max(1, c.gpus / c.cluster.gpus_per_node);
  const double freeze = packed ? std::round(c.freeze_share * c.sweep.steps) : 0;
  std::vector<std::string> row = {c.sweep.model,
                                  c.cluster.name,
                                  c.optimizer,
                                  c.backend.name,
                                  std::to_string(nodes),
                                  std::to_string(c.gpus),
                                  std::to_string(c.sweep.micro_batch),
                                  std::to_string(accum),
                                  std::to_string(c.global_batch),
                                  "128",
                                  std::to_string(c.sweep.steps),
                                  packed ? csv::number(freeze) : ""};
  if (accum == 0) {
    row.resize(row.size() + 4 * 16 + 10);
    row.push_back(fmt::format("infeasible: global batch {} is less than micro batch {} on {} GPUs",
                              c.global_batch, c.sweep.micro_batch, c.gpus));
  } else {
    const Run run = run_of(c, c.optimizer), plain = run_of(c, baseline);
    row.insert(row.end(), run.fields.begin(), run.fields.end());
    for (const double v : {run.time_s, c.global_batch * c.sweep.steps / run.time_s,
                           run.time_s * c.gpus / 3600, run.time_s * c.gpus / 3600 * 2.5, run.wire,
                           plain.wire / run.wire, plain.time_s / run.time_s}) {
      row.push_back(csv::number(v));
    }
    row.insert(row.end(), {baseline, "11811160064", "true", "ok"});
  }
  row.insert(row.end(), {"assumed", c.backend.cuda_aware ? "true" : "false",
                         csv::number(c.cluster.nic_Gbps), "synthetic", "analytic"});
  return csv::row(row) + "\n";
}

}  // namespace

std::string synthetic_header() {
  std::string text =
      "model,cluster,optimizer,backend,nodes,gpus,micro_batch,grad_accum,global_batch,seq_len,"
      "steps,freeze_step";
  for (const StepKind kind : written_kinds) {
    text += fmt::format(",{}_steps", name_of(kind));
    for (const StepFigure& figure : step_figures())
      text += fmt::format(",{}_{}", name_of(kind), figure.name);
  }
  return text +
         ",run_time_s,run_samples_per_s,gpu_hours,cost_usd,run_wire_bytes_per_gpu,"
         "volume_reduction,speedup_vs_baseline,baseline_optimizer,peak_bytes_per_gpu,fits,status,"
         "cost_source,cuda_aware,nic_bandwidth_Gbps,kernels,network\n";
}

std::string synthetic_rows(const SyntheticSweep& s) {
  std::string text;
  for (const SyntheticCluster& cluster : s.clusters) {
    for (const std::string& optimizer : s.optimizers) {
      const bool packed = kinds_of(optimizer).size() > 1;
      for (const SyntheticBackend& backend : s.backends) {
        if (!packed && &backend != s.backends.data()) continue;
        for (const int batch : s.global_batches) {
          for (const int gpus : s.gpus) {
            for (const double& share : s.freeze_shares) {
              if (!packed && &share != s.freeze_shares.data()) continue;
              text += row_of({s, cluster, optimizer, backend, gpus, batch, share});
            }
          }
        }
      }
    }
  }
  return text;
}

std::string synthetic_study() {
  const SyntheticSweep sweep{
      .clusters = {{"paper-eth40-v100", 4, 40}, {"paper-edr100-v100", 8, 100}},
      .optimizers = {"lamb", "onebit_lamb", "adam", "onebit_adam"},
      .backends = {{"nccl", true}, {"mpi", true}, {"mpi", false}, {"compressed", true}},
      .gpus = {8, 16, 32, 64, 128, 256},
      .global_batches = {8192, 16384, 32768, 65536},
      .freeze_shares = {0, 0.1, 1000.0 / 5993, 0.25, 0.5, 0.75, 1}};
  std::string text = synthetic_header() + synthetic_rows(sweep);
  SyntheticSweep scan = sweep;
  scan.backends = {{"nccl", true}};
  scan.freeze_shares = {1000.0 / 5993};
  scan.global_batches = {16384};
  scan.clusters.clear();
  for (const double nic : {1, 2, 5, 10, 25, 40, 100, 200, 400}) {
    scan.clusters.push_back({"paper-eth40-v100", 4, nic});
    scan.clusters.push_back({"paper-edr100-v100", 8, nic});
  }
  return text + synthetic_rows(scan);
}

Results results_of(const std::string& text) {
  return read_results(csv::Reader::of_text(text, "results.csv"));
}

ResultsFolder::ResultsFolder(const std::string& name, const std::string& text)
    : path(std::filesystem::temp_directory_path() /
           fmt::format("lambcast_report_{}_{}", name, getpid())) {
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  std::ofstream(path / "results.csv") << text;
  std::ofstream(path / "manifest.json")
      << R"({"tool": "lambcast", "version": "synthetic", "inputs": {"sweep": "synthetic.toml"},)"
      << R"( "cost_sources": ["https://example.org/a <b>"], "warnings": ["made-up numbers"]})";
}

ResultsFolder::~ResultsFolder() { std::filesystem::remove_all(path); }

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace lambcast::report
