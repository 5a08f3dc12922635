// SYNTHETIC results for tests of the report: the columns of results.csv, filled by made-up closed
// forms. They have the form of a sweep but no meaning.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/results.h"

namespace lambcast::report {

struct SyntheticCluster {
  std::string name;
  int gpus_per_node;
  double nic_Gbps;
};

struct SyntheticBackend {
  std::string name;
  bool cuda_aware;
};

// A Cartesian sweep. Plain optimizers run on nccl only, and once for all freeze shares.
struct SyntheticSweep {
  std::string model = "bert-large";
  std::vector<SyntheticCluster> clusters;
  std::vector<std::string> optimizers;  // lamb, onebit_lamb, ...
  std::vector<SyntheticBackend> backends = {{"nccl", true}};
  std::vector<int> gpus, global_batches;
  std::vector<double> freeze_shares = {1000.0 / 5993};
  int micro_batch = 64;
  int steps = 5993;
};

std::string synthetic_header();
std::string synthetic_rows(const SyntheticSweep& sweep);

// Returns results in the form of the default study: the sweep above over two clusters, and a scan
// of NIC bandwidth.
std::string synthetic_study();

// Parses `text` into results.
Results results_of(const std::string& text);

// A new folder with `text` as results.csv and a small manifest.json. The destructor removes it.
struct ResultsFolder {
  ResultsFolder(const std::string& name, const std::string& text);
  ~ResultsFolder();
  ResultsFolder(const ResultsFolder&) = delete;
  ResultsFolder& operator=(const ResultsFolder&) = delete;

  std::filesystem::path path;
};

std::string file_text(const std::filesystem::path& path);

}  // namespace lambcast::report
