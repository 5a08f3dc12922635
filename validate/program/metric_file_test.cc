#include "validate/program/metric_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"
#include "validate/program/training_log.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::string metrics(const std::string& column, double value) {
  std::string text = fmt::format("epoch,lr,{},step\n", column);
  for (int i = 0; i < 30; ++i)
    text += i % 3 == 0 ? fmt::format("0,,{:.3f},{}\n", value, i) : fmt::format("0,1e-4,,{}\n", i);
  return text;
}

TEST_CASE("metric file: each column of metrics.csv is read as its quantity") {
  const std::pair<const char*, Quantity> columns[] = {
      {"train_step_timing in s", Quantity::step_time_s},
      {"samples_per_sec", Quantity::samples_per_s},
      {"device/samples_per_sec", Quantity::samples_per_s},
      {"tokens_per_sec_per_gpu", Quantity::tokens_per_gpu_s},
      {"train|device|samples_per_sec", Quantity::samples_per_s},
      {"train/device/batches_per_sec", Quantity::samples_per_s},
      {"device|items_per_sec", Quantity::tokens_per_gpu_s}};
  for (const auto& [column, quantity] : columns) {
    INFO(column);
    const TrainingLog log = read_training_log(metrics(column, 3.25), "metrics.csv");
    CHECK(log.quantity == quantity);
    CHECK(log.median == Approx(3.25));
    CHECK(log.rows == 8);  // of 10 rows, of which a fifth is warm-up
  }
  CHECK_THROWS_WITH(read_training_log(metrics("loss", 1), "metrics.csv"),
                    Contains("is metrics.csv without the time of a step"));
}

TEST_CASE("metric file: Lightning's rates of ranks become those of the job") {
  // Lightning's own test has 3 samples per second for a rank in a world of 2, and 6 in total.
  struct Case {
    const char *column, *tp;
    double logged, job;
  };
  const Case cases[] = {{"device/samples_per_sec", "1", 3, 6},
                        {"samples_per_sec", "1", 6, 6},
                        {"train|device|samples_per_sec", "1", 3, 6},
                        {"train|samples_per_sec", "1", 6, 6},
                        {"device/batches_per_sec", "1", 3, 12},
                        {"batches_per_sec", "1", 6, 12},
                        // Both ranks of a replica count the same samples.
                        {"device/samples_per_sec", "2", 3, 3},
                        {"samples_per_sec", "2", 6, 3},
                        {"device/items_per_sec", "2", 3, 1.5},
                        {"train_step_timing in s", "2", 3, 3}};
  for (const Case& one : cases) {
    INFO(one.column << " at tp " << one.tp);
    std::string filled;
    const SourceFigure figure =
        figure_of(read_training_log(metrics(one.column, one.logged), "metrics.csv"), "metrics.csv",
                  {{"cluster", "dgx-a100-80g"},
                   {"model", "bert-large"},
                   {"optimizer", "adam"},
                   {"gpus", "2"},
                   {"micro_batch", "2"},
                   {"grad_accum", "1"},
                   {"framework", "other"},
                   {"tp", one.tp}},
                  filled);
    CHECK(figure.measured == Approx(one.job));
    CHECK((filled.find("counts ranks") != filled.npos) == (one.logged != one.job));
  }
}

TEST_CASE("metric file: trainer_state.json has one mean, of the whole run") {
  const std::string text =
      R"({"global_step": 100, "train_batch_size": 8, "log_history": [{"loss": NaN, "step": 10},
          {"train_runtime": 302.1, "train_samples_per_second": 21.18, "step": 100}]})";
  const TrainingLog log = read_training_log(text, "trainer_state.json");
  CHECK(log.program == "Hugging Face Trainer");
  CHECK(log.quantity == Quantity::samples_per_s);
  CHECK(log.median == Approx(21.18));
  CHECK(log.steps_of_run == 100);
  CHECK_THROWS_WITH(read_training_log(text.substr(0, 130), "trainer_state.json"),
                    Contains("truncated"));
  CHECK_THROWS_WITH(read_training_log(R"({"log_history": [{"loss": 1}]})", "trainer_state.json"),
                    Contains("holds no train_samples_per_second"));
}

TEST_CASE("metric file: a gzip log reads as its text, and a truncated one is refused") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "run.log").string();
  const std::string text = metrics("train_step_timing in s", 1.5);
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  CHECK(read_log_file(path) == text);
  std::ifstream in(path, std::ios::binary);
  const std::string packed{std::istreambuf_iterator<char>(in), {}};
  for (const std::size_t kept : {std::size_t{3}, packed.size() / 2, packed.size() - 1}) {
    INFO(kept);
    std::ofstream(path, std::ios::binary) << packed.substr(0, kept);
    CHECK_THROWS_WITH(read_log_file(path), Contains("--log: is a gzip file that is truncated"));
  }
  std::ofstream(path, std::ios::binary) << packed << packed;
  CHECK(read_log_file(path) == text + text);
  std::ofstream(path, std::ios::binary) << text;
  CHECK(read_log_file(path) == text);
}

}  // namespace
}  // namespace lambcast
