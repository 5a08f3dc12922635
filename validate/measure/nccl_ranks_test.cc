#include "validate/measure/nccl_ranks.h"

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "kernels/cuda_on_cpu/fake_nccl.h"
#include "kernels/emulated_world/exchange/power_sgd.h"
#include "kernels/emulated_world/exchange/quantised_allreduce.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "sim/base/temporary_folder.h"
#include "validate/importers/importers.h"
#include "validate/measure/nccl_steps.h"
#include "validate/measure/survey.h"
#include "validate/survey/survey_tables.h"

using namespace lambcast;
using namespace lambcast::validate;
using namespace lambcast::cuda_on_cpu;

// Takes the place of CUDA graphs, which the emulated device does not have.
std::function<void()> lambcast::validate::captured_work(const Gpus&,
                                                        const std::function<void()>& enqueue) {
  return enqueue;
}

namespace {

constexpr Operation kOperations[] = {Operation::all_reduce,     Operation::all_gather,
                                     Operation::reduce_scatter, Operation::all_to_all,
                                     Operation::broadcast,      Operation::send_recv,
                                     Operation::reduce,         Operation::compressed_allreduce};

struct Outcome {
  int code;
  std::string text;
};

MeasureOptions small_sizes(Operation operation, int ranks) {
  MeasureOptions options;
  options.operation = operation;
  options.min_bytes = 60;
  options.max_bytes = 5000;
  options.factor = 9;
  options.iterations = 2;
  options.check_iterations = 2;
  options.root = std::min(1, ranks - 1);
  return options;
}

// Measures with one thread for all ranks, each on its own device, like the GPUs of one machine.
Outcome measure(const MeasureOptions& options, int ranks, FakeFault fault, Rendezvous& others) {
  MeasuredTable head;
  head.options = options;
  head.backend = Backend::nccl;
  head.has_spread = false;
  const cuda::NcclApi nccl = fake_nccl(fault);
  LocalRanks local{nccl, {}, 0, ranks, false};
  for (int rank = 0; rank < ranks; ++rank) local.devices.push_back(rank);
  std::ostringstream out;
  const int code = measure_ranks(head, local, others, out);
  return {code, out.str()};
}

Outcome measure(Operation operation, int ranks, FakeFault fault = FakeFault::none) {
  return measure(small_sizes(operation, ranks), ranks, fault, *meet_over_tcp({}, 1));
}

// A rendezvous in which another process is gone after `rounds` rounds.
class Abandoned final : public Rendezvous {
 public:
  explicit Abandoned(int rounds) : rounds_(rounds) {}
  std::vector<std::string> exchange(const std::string& mine) override {
    if (rounds_-- == 0) throw Error(Exit::failure, "a process of the measurement is gone");
    return {mine};
  }

 private:
  int rounds_;
};

// A rendezvous of two processes, of which the other sends invalid data.
class Gibberish final : public Rendezvous {
 public:
  explicit Gibberish(std::string said) : said_(std::move(said)) {}
  std::vector<std::string> exchange(const std::string& mine) override { return {said_, mine}; }

 private:
  std::string said_;
};

}  // namespace

TEST_CASE("messages of other processes are checked before they are read") {
  const auto measured_beside = [](const std::string& said) {
    Gibberish others(said);
    measure(small_sizes(Operation::all_reduce, 2), 2, FakeFault::none, others);
  };
  for (const char* said : {"a host without tabs\n", "host\tGPU\n", "host\tone\tGPU\n", "\n", "x"})
    CHECK_THROWS_WITH(measured_beside(said), Catch::Contains("sent what is not a place of a rank"));
  CHECK_THROWS_WITH(measured_beside("host\t0\tGPU\n"), Catch::Contains("hold 3 ranks together"));
  CHECK_THROWS_WITH(measured_beside(""),
                    Catch::Contains("sent what is not a name of an NCCL communicator"));
}

TEST_CASE("every operation over several ranks comes out exact, padding included") {
  for (const Operation operation : kOperations) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      INFO(name_of(operation) << " on " << ranks << " ranks");
      const Outcome outcome = measure(operation, ranks);
      CHECK(outcome.code == 0);
      CHECK_THAT(outcome.text, Catch::Contains("# Out of bounds values : 0 OK"));
      // 60, 540 and 4860 bytes, rounded down to whole blocks, give three rows, each checked.
      std::istringstream lines(outcome.text);
      int rows = 0;
      for (std::string line; std::getline(lines, line);) {
        if (line[0] == '#') continue;
        ++rows;
        const bool in_place = operation != Operation::all_to_all &&
                              operation != Operation::send_recv && operation != Operation::reduce &&
                              operation != Operation::compressed_allreduce;
        CHECK_THAT(line, Catch::EndsWith(in_place ? " 0" : " N/A"));
        CHECK_THAT(line, Catch::Contains(" 0  "));
      }
      CHECK(rows == 3);
    }
  }
}

TEST_CASE("every operation comes out exact in every type that training sends") {
  for (const DataType type : data_types)
    for (const Operation operation : kOperations) {
      if (operation == Operation::compressed_allreduce) continue;
      INFO(name_of(operation) << " of " << name_of(type));
      MeasureOptions options = small_sizes(operation, 3);
      options.type = type;
      options.cycles = 2;
      const Outcome outcome = measure(options, 3, FakeFault::none, *meet_over_tcp({}, 1));
      CHECK(outcome.code == 0);
      CHECK_THAT(outcome.text, Catch::Contains(fmt::format(" {} ", name_of(type))));
      CHECK(measure(options, 3, FakeFault::flipped_bit, *meet_over_tcp({}, 1)).code == 1);
    }
}

TEST_CASE("a flipped bit is detected in every operation") {
  for (const Operation operation : kOperations) {
    INFO(name_of(operation));
    const Outcome outcome = measure(operation, 3, FakeFault::flipped_bit);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.text, Catch::Contains("FAILED"));
  }
}

TEST_CASE("data of the wrong rank is detected in every operation that could have it") {
  for (const Operation operation : {Operation::all_gather, Operation::all_to_all,
                                    Operation::broadcast, Operation::compressed_allreduce}) {
    INFO(name_of(operation));
    CHECK(measure(operation, 3, FakeFault::swapped_senders).code == 1);
  }
}

TEST_CASE("a call that fails leaves no group open behind it") {
  for (const Operation operation : kOperations) {
    INFO(name_of(operation));
    CHECK_THROWS_AS(measure(operation, 3, FakeFault::failed_call), Error);
    CHECK(fake_counts().made == 3);
    CHECK(fake_counts().torn_in_group == 0);
  }
  CHECK_THROWS_AS(measure(Operation::all_reduce, 3, FakeFault::failed_init), Error);
  CHECK(fake_counts().made == 1);
  CHECK(fake_counts().torn_in_group == 0);
}

TEST_CASE(
    "ranks exchange messages after their buffers, before NCCL would wait for one that is "
    "gone") {
  Abandoned others(2);  // two rounds succeed, places and id; that of the buffers fails
  CHECK_THROWS_WITH(measure(small_sizes(Operation::all_reduce, 2), 2, FakeFault::none, others),
                    Catch::Contains("is gone"));
  CHECK(fake_counts().made == 0);
}

TEST_CASE("options without checks, warm-up or in-place columns make fewer calls") {
  MeasureOptions options = small_sizes(Operation::all_reduce, 2);
  options.min_bytes = options.max_bytes;
  options.check_iterations = options.warmup = 0;
  const auto groups = [&] {
    measure(options, 2, FakeFault::none, *meet_over_tcp({}, 1));
    return fake_counts().groups;
  };
  CHECK(groups() == 4);
  options.check_iterations = options.warmup = 1;
  CHECK(groups() == 8);
  options.operation = Operation::reduce;  // has no in-place form
  CHECK(groups() == 4);
}

TEST_CASE("calls in a group, CUDA graphs and waits change the calls as nccl-tests does") {
  MeasureOptions options = small_sizes(Operation::all_reduce, 2);
  options.operation = Operation::reduce;
  options.min_bytes = options.max_bytes = 4000;
  options.check_iterations = 0;
  options.format = ReportFormat::csv;
  const auto sent = [&] {
    const Outcome outcome = measure(options, 2, FakeFault::none, *meet_over_tcp({}, 1));
    CHECK(outcome.code == 0);
    return std::pair(fake_counts().groups, outcome.text);
  };
  CHECK(sent().first == 3);  // a warm-up and two iterations
  options.aggregated = 5;    // five calls in each group
  CHECK(sent().first == 3);
  CHECK_THROWS_WITH(import_measurements(sent().second, "f"), Catch::Contains("groups of 5 (-m)"));
  options.aggregated = 1;
  options.graph_launches = 4;  // the stand-in for a captured graph runs its calls at each launch
  CHECK(sent().first == 9);
  CHECK_THROWS_WITH(import_measurements(sent().second, "f"), Catch::Contains("(-G)"));
  options.graph_launches = 0;
  options.blocking = true;
  CHECK(sent().first == 3);
  CHECK_THROWS_WITH(import_measurements(sent().second, "f"), Catch::Contains("(-z 1)"));
}

TEST_CASE("a survey measures a table of each operation and type, and asks before each") {
  const TemporaryFolder folder;
  MeasureOptions options = small_sizes(Operation::all_reduce, 3);
  options.root = 0;
  MeasuredTable head;
  head.backend = Backend::nccl;
  head.has_spread = false;
  const cuda::NcclApi nccl = fake_nccl(FakeFault::none);
  const auto ranks = surveyed_nccl_ranks(head, {nccl, {0, 1, 2}, 0, 3, false}, {});
  SurveyOptions survey{folder.path().string(),
                       {Operation::all_reduce, Operation::all_gather},
                       {DataType::float32, DataType::half}};
  survey.steered = true;
  std::istringstream answers("go\ngo\ngo\nstop\n");
  std::ostringstream news;
  CHECK(run_survey(survey, options, *ranks, answers, news) == 0);
  CHECK(news.str() == "plan\nall_reduce-n1.csv\nall_reduce-half-n1.csv\nall_gather-n1.csv\n");
  CHECK_FALSE(exists(folder.path() / "tables" / "all_gather-half-n1.csv"));
  const auto tables = surveyed_tables(folder.path());
  REQUIRE(tables.size() == 3);
  for (const Measurement& table : tables) {
    CHECK(table.rows.size() == 3);
    CHECK(table.backend == Backend::nccl);
  }
}

TEST_CASE("a survey times a whole step of every shipped optimizer before the tables") {
  const TemporaryFolder folder;
  MeasureOptions options = small_sizes(Operation::all_reduce, 2);
  options.root = 0;
  MeasuredTable head;
  head.backend = Backend::nccl;
  head.has_spread = false;
  const cuda::NcclApi nccl = fake_nccl(FakeFault::none);
  const auto ranks = surveyed_nccl_ranks(head, {nccl, {0, 1}, 0, 2, false}, {});
  SurveyOptions survey{folder.path().string()};
  survey.step_weights = 5000;
  std::istringstream answers("");
  std::ostringstream news;
  CHECK(run_survey(survey, options, *ranks, answers, news) == 0);
  const std::string path = (folder.path() / "steps.csv").string();
  const csv::Table steps = csv::parse(read_file(path), path);
  std::vector<std::string> timed;
  for (std::size_t row = 0; row < steps.rows.size(); ++row) {
    timed.push_back(steps.text(row, "optimizer") + " " + steps.text(row, "exchange"));
    CHECK(steps.number(row, "step_us") > 0);
    CHECK(steps.text(row, "ranks") == "2");
  }
  CHECK(timed == std::vector<std::string>{"adam all_reduce", "onebit_adam one_bit",
                                          "zero_one_adam one_bit", "lamb all_reduce",
                                          "onebit_lamb one_bit", "adam all_reduce", "adam int4+ef",
                                          "adam powersgd:4"});
  // Steps of a model that needs more memory than a GPU has are not started.
  survey.step_weights = std::uint64_t{1} << 40;
  CHECK(run_survey(survey, options, *ranks, answers, news) == 0);
  CHECK(csv::parse(read_file(path), path).rows.empty());
}

namespace {

// Two ranks of one thread, connected, with the buffers of a step.
Gpus two_gpus(const cuda::NcclApi& nccl, std::size_t weights) {
  Gpus gpus;
  ncclUniqueId id{};
  nccl.ncclGetUniqueId(&id);
  for (int rank = 0; rank < 2; ++rank)
    gpus.push_back(std::make_unique<Gpu>(nccl, rank, rank, 2, step_buffer_bytes(weights, 2)));
  for (const auto& gpu : gpus) gpu->connect(id);
  return gpus;
}

}  // namespace

TEST_CASE("plain steps sum gradients, and compressed ones send a part of their bytes") {
  const cuda::NcclApi nccl = fake_nccl(FakeFault::none);
  constexpr std::size_t weights = 4096;
  const Gpus gpus = two_gpus(nccl, weights);
  for (const ShippedStep& shipped : shipped_steps()) {
    INFO(shipped.optimizer << " " << shipped.exchange);
    const std::string exchange = shipped.exchange;
    const auto step = shipped.make(gpus, weights);
    step();  // the step before the compression stage
    const auto before = fake_counts().all_reduced_bytes;
    step();
    step();
    const std::size_t element = shipped.gradient == std::string("fp16") ? 2 : 4;
    // A matrix of PowerSGD is 64 x 64 here, and both of its factors are summed.
    const std::size_t of_step = exchange == "all_reduce"   ? element * weights
                                : exchange == "powersgd:4" ? 2 * 4 * 4 * 64
                                                           : 0;
    CHECK(fake_counts().all_reduced_bytes - before == 2 * 2 * of_step);
  }
}

TEST_CASE("compressed exchanges give the mean that the emulated world gives, step after step") {
  const cuda::NcclApi nccl = fake_nccl(FakeFault::none);
  constexpr std::size_t weights = 16384;  // chunks of whole int4 scales; a matrix of 128 x 128
  emulated::QuantisedAllreduce int4{{WireFormat::int4, 2048}, true};
  emulated::PowerSgd power_sgd{{{0, {128, 128}}}};
  power_sgd.q = {std::vector<float>(4 * 128)};
  for (std::size_t e = 0; e < power_sgd.q[0].size(); ++e) power_sgd.q[0][e] = first_q(e);
  for (const bool quantised : {true, false}) {
    INFO((quantised ? "int4+ef" : "powersgd:4"));
    const Gpus gpus = two_gpus(nccl, weights);
    const auto step = (quantised ? int4_adam_step : power_sgd_adam_step)(gpus, weights);
    for (int call = 0; call < 3; ++call) {
      std::vector<std::vector<float>> all(2, std::vector<float>(weights));
      for (std::size_t rank = 0; rank < 2; ++rank) {
        for (std::size_t e = 0; e < weights; ++e)
          all[rank][e] = std::sin(float(e * (rank + 2)) + float(call));
        gpus[rank]->copy(gpus[rank]->send.data(), all[rank].data(), 4 * weights);
      }
      step();
      const std::vector<std::span<float>> views(all.begin(), all.end());
      quantised ? average(int4, views) : average(power_sgd, views);
      std::vector<float> mean(weights);
      gpus[1]->copy(mean.data(), gpus[1]->send.data(), 4 * weights);
      float worst = 0;
      for (std::size_t e = 0; e < weights; ++e)
        worst = std::max(worst, std::abs(mean[e] - all[1][e]));
      CHECK(worst < 1e-4f);
    }
  }
}
