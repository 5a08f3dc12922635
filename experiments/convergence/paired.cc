#include "experiments/convergence/paired.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "experiments/convergence/curves.h"
#include "sim/base/csv.h"

namespace lambcast::convergence {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns the standard deviation; 0 for a single value.
double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

bool PairedDifference::is_resolved() const {
  return draws > 1 && std::abs(mean) > 2 * deviation / std::sqrt(draws);
}

std::vector<Pair> train_pairs(const Recipe& recipe, std::span<const Run> runs,
                              std::span<const int> sequences, int draws, int threads) {
  using Name = std::tuple<std::string, int, unsigned>;
  struct Trained {
    Run run;
    double loss = 0;
  };
  std::map<Name, Trained> trained;  // each plain run once, shared by all runs of its optimizer
  const auto plain_of = [](const Run& run) {
    return Run{run.optimizer, Exchange::plain, run.freeze_step};
  };
  std::vector<Pair> pairs;
  for (const Run& run : runs)
    for (const int count : sequences)
      for (unsigned draw = 0; draw < static_cast<unsigned>(draws); ++draw) {
        pairs.push_back({run.name(), count, draw, 0, 0});
        for (const Run& one : {run, plain_of(run)}) trained[{one.name(), count, draw}] = {one, 0};
      }
  auto next = trained.begin();
  std::mutex taking;
  const auto take = [&] {
    const std::lock_guard lock(taking);
    return next == trained.end() ? next : next++;
  };
  const auto work = [&] {
    for (auto job = take(); job != trained.end(); job = take()) {
      Recipe of = recipe;
      of.sequences = std::get<1>(job->first);
      const text::Transformer model = text::transformer(of.shape, std::get<2>(job->first));
      job->second.loss = final_loss(train(model, of, job->second.run));
    }
  };
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) workers.emplace_back(work);
  workers.clear();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Run& run = runs[i / (sequences.size() * static_cast<std::size_t>(draws))];
    Pair& pair = pairs[i];
    pair.loss = trained.at({pair.run, pair.sequences, pair.draw}).loss;
    pair.plain_loss = trained.at({plain_of(run).name(), pair.sequences, pair.draw}).loss;
  }
  return pairs;
}

std::vector<PairedDifference> paired_differences(std::span<const Pair> pairs) {
  std::vector<PairedDifference> all;
  for (std::size_t begin = 0; begin < pairs.size();) {
    const Pair& first = pairs[begin];
    std::vector<double> differences, plain;
    for (; begin < pairs.size() && pairs[begin].run == first.run &&
           pairs[begin].sequences == first.sequences;
         ++begin) {
      differences.push_back(pairs[begin].difference());
      plain.push_back(pairs[begin].plain_loss);
    }
    all.push_back({first.run, first.sequences, static_cast<int>(differences.size()),
                   mean_of(differences), deviation_of(differences), deviation_of(plain)});
  }
  return all;
}

std::string pairs_csv(std::span<const Pair> pairs) {
  std::string out = "run,sequences,draw,loss,plain_loss\n";
  for (const Pair& pair : pairs)
    out += fmt::format("{},{},{},{},{}\n", csv::field(pair.run), pair.sequences, pair.draw,
                       pair.loss, pair.plain_loss);
  return out;
}

std::string paired_table(std::span<const PairedDifference> differences, int ranks) {
  std::string out = fmt::format("{:<38} {:>6} {:>6} {:>12} {:>8} {:>12}\n", "run", "batch", "draws",
                                "more loss", "spread", "plain alone");
  for (const PairedDifference& of : differences)
    out += fmt::format("{:<38} {:>6} {:>6} {:>+12.4f} {:>8.4f} {:>12.4f}{}\n", of.run,
                       ranks * of.sequences, of.draws, of.mean, of.deviation, of.plain_deviation,
                       of.is_resolved() ? "" : "  not resolved");
  return out;
}

}  // namespace lambcast::convergence
