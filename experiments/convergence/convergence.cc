// The convergence study; see README.md in this folder.
//
//   convergence_study train CURVES.csv [THREADS [RUN...]]
//       trains the runs that the file lacks, or only those named of them: some seconds each
//   convergence_study train-large CURVES.csv [THREADS [RUN...]]
//       the same on seven times as many parameters: a minute each
//   convergence_study report CURVES.csv FOLDER [CLUSTER [GPUS]]
//       summary.csv and the figures in FOLDER, hours by the forecast on CLUSTER (commodity-10gbe,
//       64)
//   convergence_study paired PAIRS.csv DRAWS [THREADS [RUN...]]
//       exchanges of gradients, or the named runs, against their plain runs over DRAWS draws and
//       two batches: the mean difference of the losses and its spread
//   convergence_study variance LOG.csv
//   convergence_study variance-large LOG.csv
//       the norms of 1-bit LAMB's variance while nothing freezes it, for lambcast freeze
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "experiments/convergence/curves.h"
#include "experiments/convergence/figures.h"
#include "experiments/convergence/paired.h"
#include "sim/base/durable_file.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace {

using namespace lambcast;
using namespace lambcast::convergence;

// Level above the plain optimizer's final loss; about 2 % of that loss.
constexpr double level_above = 0.03;

int count_of(const char* of, const std::string& text, int most) {
  int count = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (status != std::errc{} || end != text.data() + text.size() || count < 1 || count > most)
    fail_input({"", 0, of}, fmt::format("'{}'", text), fmt::format("1 to {}", most));
  return count;
}

std::vector<Curve> curves_in(const std::string& path, const std::vector<Run>& runs) {
  const std::string text = std::filesystem::exists(path) ? read_file(path) : "";
  return text.empty() ? std::vector<Curve>() : parse_curves(text, path, runs);
}

// Returns the runs with these names. Throws Error (usage) for an unknown name.
std::vector<Run> runs_named(const std::vector<Run>& runs, const std::vector<std::string>& named) {
  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(run.name());
  std::vector<Run> found;
  for (const std::string& name : named) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) fail_unknown({}, "run", name, names);
    found.push_back(runs[static_cast<std::size_t>(at - names.begin())]);
  }
  return found;
}

void pair_up(const std::string& path, int draws, int threads,
             const std::vector<std::string>& named) {
  constexpr int sequences[] = {1, 2};
  const std::vector<std::string> usual{"lamb, int4",
                                       "lamb, 1 bit",
                                       "lamb, 1 bit in two levels",
                                       "lamb, 64 of 4,096",
                                       "lamb, 64 signs of cosines",
                                       "adam, DiLoCo, 16 steps in 4 fragments"};
  const Recipe recipe;
  const std::vector<Run> runs = runs_named(study_runs(recipe), named.empty() ? usual : named);
  const std::vector<Pair> pairs = train_pairs(recipe, runs, sequences, draws, threads);
  replace_file(path, pairs_csv(pairs));
  fmt::print("{}", paired_table(paired_differences(pairs), recipe.ranks));
}

// Trains the missing runs. Rewrites the file after every run, so that an interruption loses at most
// one run.
void train_missing(const Recipe& recipe, const std::string& path, int threads,
                   const std::vector<std::string>& named) {
  const text::Transformer model = text::transformer(recipe.shape);
  std::map<std::string, Curve> trained;
  for (Curve& curve : curves_in(path, study_runs(recipe))) trained[curve.run.name()] = curve;
  runs_named(study_runs(recipe), named);
  std::vector<Run> missing;
  for (const Run& run : study_runs(recipe)) {
    const bool wanted = named.empty() || std::ranges::find(named, run.name()) != named.end();
    if (wanted && !trained.contains(run.name())) missing.push_back(run);
  }
  std::atomic<std::size_t> next = 0;
  std::mutex writing;
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      const Curve curve = train(model, recipe, missing[i]);
      const std::lock_guard lock(writing);
      trained[missing[i].name()] = curve;
      std::vector<Curve> all;
      for (const Run& run : study_runs(recipe))
        if (trained.contains(run.name())) all.push_back(trained.at(run.name()));
      replace_file(path, curves_csv(all));
      fmt::print(stderr, "{}: {:.4f}\n", missing[i].name(), final_loss(curve));
    }
  };
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) workers.emplace_back(work);
}

void report_on(const std::string& path, const std::string& folder, const Clock& clock) {
  const std::vector<Curve> curves = parse_curves(read_file(path), path, study_runs(Recipe{}));
  const std::vector<Study> studies{judge(curves, true, level_above, clock),
                                   judge(curves, false, level_above, clock)};
  report::Paths written;
  report::draw(figures(studies), folder, written);
  replace_file(folder + "/summary.csv", study_csv(studies));
  for (const std::string& message : written.messages) fmt::print(stderr, "{}\n", message);
}

// Logs every fifth step up to the one at which the monitor finds that the variance has settled.
void log_variance(const Recipe& recipe, const std::string& path) {
  const text::Transformer model = text::transformer(recipe.shape);
  std::string text = "step,layer,norm,elements\n";
  train(model, recipe, {Optimizer::onebit_lamb, Exchange::plain, 0},
        [&](int step, std::span<const double> norms) {
          for (std::size_t t = 0; t < norms.size(); ++t)
            text += fmt::format("{},{},{},{}\n", step, t, norms[t], model.tensors.size(t));
        });
  replace_file(path, text);
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  const bool large = command == "train-large";
  if ((command == "train" || large) && words.size() >= 2) {
    const auto named = words.begin() + std::min<std::ptrdiff_t>(std::ssize(words), 3);
    train_missing(large ? large_recipe() : Recipe{}, words[1],
                  words.size() >= 3 ? count_of("THREADS", words[2], 1024) : 1,
                  {named, words.end()});
  } else if (command == "report" && words.size() >= 3 && words.size() <= 5) {
    Clock clock;
    if (words.size() > 3) clock.cluster = words[3];
    if (words.size() > 4) clock.gpus = count_of("GPUS", words[4], 65536);
    report_on(words[1], words[2], clock);
  } else if (command == "paired" && words.size() >= 3) {
    const auto named = words.begin() + std::min<std::ptrdiff_t>(std::ssize(words), 4);
    pair_up(words[1], count_of("DRAWS", words[2], 1000),
            words.size() >= 4 ? count_of("THREADS", words[3], 1024) : 1, {named, words.end()});
  } else if ((command == "variance" || command == "variance-large") && words.size() == 2) {
    log_variance(command == "variance" ? Recipe{} : large_recipe(), words[1]);
  } else {
    throw Error(Exit::usage,
                "unknown command, or other arguments than it takes: train or train-large "
                "CURVES.csv [THREADS [RUN...]], report CURVES.csv FOLDER [CLUSTER "
                "[GPUS]], paired PAIRS.csv DRAWS [THREADS [RUN...]], or variance or variance-large "
                "LOG.csv");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const Error& error) {
    fmt::print(stderr, "convergence_study: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
