#include "experiments/sweep/sweep_ranks.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

#include "experiments/sweep/sweep_case.h"
#include "experiments/sweep/sweep_check.h"
#include "experiments/sweep/sweep_message.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// A sweep of 10 GPU counts x 3 optimizers x 6 sequence lengths, the last of which is too long for
// the model.
constexpr std::string_view many_points = R"(
name = "many"
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 100
freeze_step = "20%"
[grid]
optimizer = ["lamb", "onebit_lamb", "onebit_adam"]
gpus = "4:40:4"
seq_len = [32, 64, 128, 256, 512, 1024]
)";

// Mailboxes in memory, one per rank.
struct Post {
  explicit Post(int ranks) : boxes(static_cast<std::size_t>(ranks)) {}
  std::mutex mutex;
  std::condition_variable left;
  std::vector<std::deque<Ranks::Message>> boxes;
  std::size_t gone = 0;
};

class MemoryRanks : public Ranks {
 public:
  MemoryRanks(Post& post, int rank) : post_(post), rank_(rank) {}

  int rank() const override { return rank_; }
  int count() const override { return static_cast<int>(post_.boxes.size()); }
  void send(int to, std::string text) override {
    const std::lock_guard lock(post_.mutex);
    post_.boxes[static_cast<std::size_t>(to)].push_back({rank_, std::move(text)});
  }
  std::optional<Message> receive() override {
    const std::lock_guard lock(post_.mutex);
    auto& box = post_.boxes[static_cast<std::size_t>(rank_)];
    if (box.empty()) return std::nullopt;
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }
  void leave() override {
    std::unique_lock lock(post_.mutex);
    ++post_.gone;
    post_.left.notify_all();
    post_.left.wait(lock, [&] { return post_.gone == post_.boxes.size(); });
  }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }

 private:
  Post& post_;
  int rank_;
};

// Ranks as threads of this process; the test is rank 0.
class World {
 public:
  explicit World(int ranks, const RowOf& row_of = sweep_row) : post_(ranks), first_(post_, 0) {
    codes_.resize(static_cast<std::size_t>(ranks));
    for (int rank = 1; rank < ranks; ++rank)
      threads_.emplace_back([this, rank, row_of] {
        MemoryRanks mine(post_, rank);
        codes_[static_cast<std::size_t>(rank)] = serve_sweep(mine, row_of);
      });
  }
  ~World() { end(1); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Ranks& first() { return first_; }
  // Ends the other ranks; returns their exit codes.
  std::vector<int> end(int code) {
    if (!threads_.empty()) CHECK(end_ranks(first_, code, std::chrono::seconds(30)));
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return {codes_.begin() + 1, codes_.end()};
  }

 private:
  Post post_;
  MemoryRanks first_;
  std::vector<int> codes_;
  std::vector<std::thread> threads_;
};

std::vector<std::string> rows_of(SweepExecutor& executor, std::size_t count) {
  std::vector<std::string> rows;
  while (rows.size() < count)
    for (SweepRow& row : executor.next(std::chrono::milliseconds(100)))
      rows.push_back(std::move(row.text));
  return rows;
}

TEST_CASE("sweep on ranks: the same bytes for any number of ranks and of threads") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(many_points);
  const auto alone = folder.path() / "alone";
  run_sweep(sweep, {.out = alone});
  for (const int ranks : {1, 2, 3, 5})
    for (const int jobs : {1, 3}) {
      INFO(ranks << " ranks of " << jobs << " threads");
      World world(ranks);
      const auto out = folder.path() / fmt::format("{}-{}", ranks, jobs);
      CHECK(run_sweep(sweep, {.out = out, .jobs = jobs, .ranks = &world.first()}).complete);
      CHECK(world.end(0) == std::vector<int>(static_cast<std::size_t>(ranks) - 1, 0));
      CHECK(text_of(out / "results.csv") == text_of(alone / "results.csv"));
      CHECK(text_of(out / "manifest.json") == text_of(alone / "manifest.json"));
    }
}

TEST_CASE("sweep on ranks: the other ranks compute, with the descriptions of rank 0") {
  const TemporaryFolder folder;
  const std::string cluster =
      folder.file("mine.toml", std::string(cluster_text("paper-eth40-v100")));
  const SweepPlan sweep = plan(many_points, {{"cluster", {cluster}}});
  const auto texts = std::make_shared<DescriptionTexts>();
  Catalog catalog(texts);
  check_values(sweep.points, catalog);
  std::filesystem::remove(cluster);
  // Rank 0 itself computes nothing here.
  World world(3);
  SweepRanks others(world.first(), sweep, *texts, 1);
  SweepExecutor executor(sweep.points, 0, 0, texts, sweep_row, &others);
  const auto rows = rows_of(executor, sweep.points.size());
  CollectiveCosts costs;
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK(rows[i] == sweep_row(sweep.points[i], catalog, costs).text);
  CHECK(world.end(0) == std::vector<int>{0, 0});
}

TEST_CASE("sweep on ranks: warnings of all ranks are shown") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(
      "[base]\nmodel = \"mixtral-8x7b\"\ncluster = \"hgx-h100-ndr\"\n"
      "micro_batch = 1\nseq_len = 128\noptimizer = \"adamw\"\nprecision = \"fp32\"\n"
      "[grid]\ngpus = [64, 128]\nsteps = \"100:1600:100\"");
  World world(3);
  const auto said = run_sweep(sweep, {.out = folder.path(), .ranks = &world.first()})
                        .findings.sentences([](std::size_t) { return std::string(); });
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("warning: all 32 points: every GPU holds"));
}

TEST_CASE("sweep on ranks: a rank that cannot continue is named, after its finished rows") {
  const SweepPlan sweep = plan(many_points);
  const RowOf fails = [](const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
    if (point.at("gpus") == "40") throw std::bad_alloc();
    return sweep_row(point, catalog, costs);
  };
  World world(2, fails);
  const auto texts = std::make_shared<DescriptionTexts>();
  SweepRanks others(world.first(), sweep, *texts, 1);
  SweepExecutor executor(sweep.points, 0, 0, texts, sweep_row, &others);
  std::size_t rows = 0;
  std::string error;
  while (error.empty()) try {
      rows += executor.next(std::chrono::milliseconds(100)).size();
    } catch (const Error& thrown) {
      error = thrown.what();
    }
  CHECK(rows <= 54);  // the points of LAMB on fewer GPUs
  CHECK_THAT(error, Catch::StartsWith("rank 1 on ") && Contains(": there is not enough memory"));
  CHECK(world.end(1) == std::vector<int>{1});
}

TEST_CASE("sweep on ranks: a silent rank counts as lost, and earlier rows are kept") {
  const SweepPlan sweep = plan(many_points);
  Post post(2);  // rank 1 never reads its messages
  MemoryRanks first(post, 0);
  const auto texts = std::make_shared<DescriptionTexts>();
  const auto begun = std::chrono::steady_clock::now();
  SweepRanks others(first, sweep, *texts, 1, std::chrono::milliseconds(1200));
  SweepExecutor executor(sweep.points, 0, 1, texts, sweep_row, &others);
  std::size_t rows = 0;
  std::string error;
  while (error.empty()) try {
      rows += executor.next(std::chrono::milliseconds(100)).size();
    } catch (const Error& thrown) {
      error = thrown.what();
    }
  CHECK(std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(1200));
  CHECK(error == "rank 1 is lost: no message for 1 s; finished rows are on disk");
  CHECK(rows < sweep.points.size());
  CHECK_FALSE(end_ranks(first, 1, std::chrono::milliseconds(50)));
}

TEST_CASE("sweep on ranks: a stop does not wait for a point that takes minutes") {
  const TemporaryFolder folder;
  // Abandoned threads sleep until the process ends, and access nothing while it exits.
  const RowOf slow = [](const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
    std::this_thread::sleep_for(std::chrono::hours(1));
    return sweep_row(point, catalog, costs);
  };
  const auto begun = std::chrono::steady_clock::now();
  World world(3, slow);
  const auto stop = [&](std::size_t, std::size_t) {
    return std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(300);
  };
  const SweepSummary summary = run_sweep(
      plan(many_points), {.out = folder.path(), .ranks = &world.first(), .progress = stop});
  CHECK_FALSE(summary.complete);
  CHECK(world.end(143) == std::vector<int>{143, 143});
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}

TEST_CASE("sweep on ranks: another program is refused") {
  World world(2);
  world.first().send(1, SweepMessage(SweepWord::plan).add("0.0.1 (abc)").bytes());
  std::string failure;
  while (failure.empty())
    if (const auto message = world.first().receive()) {
      SweepMessageReader reader(message->text);
      if (reader.word() == SweepWord::failure) failure = reader.text();
    }
  CHECK_THAT(failure, Catch::StartsWith("is lambcast ") && Contains(", rank 0 is 0.0.1 (abc)"));
}

TEST_CASE("sweep on ranks: messages with any bytes arrive as sent, invalid ones are refused") {
  NumberedRow row{7, true, {}};
  row.row = {std::string("a,\"b\"\xff\0 12:", 12), true, {{Severity::warning, "code", "9:\n"}}};
  SweepMessage message(SweepWord::rows);
  add_row(message, row);
  add_row(message, {8, false, {}});
  SweepMessageReader reader(message.bytes());
  CHECK(reader.word() == SweepWord::rows);
  const NumberedRow read = read_row(reader);
  CHECK(read.point == 7);
  CHECK(read.last_of_chunk);
  CHECK(read.row.ok);
  CHECK(read.row.text == row.row.text);
  REQUIRE(read.row.findings.size() == 1);
  CHECK(read.row.findings[0].code == "code");
  CHECK(read.row.findings[0].message == "9:\n");
  CHECK(read_row(reader).point == 8);
  CHECK(reader.empty());
  for (const char* wrong : {"", "r5:abc", "r:", "rabc", "r99999999999999999999:a", "r-1:a"})
    CHECK_THROWS_AS(
        [&] {
          SweepMessageReader of_wrong(wrong);
          return of_wrong.text().size();
        }(),
        InternalError);
  CHECK_THROWS_AS(SweepMessageReader("r1:a").number(), InternalError);
}

}  // namespace
}  // namespace lambcast
