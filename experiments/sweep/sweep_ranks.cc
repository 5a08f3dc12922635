#include "experiments/sweep/sweep_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "experiments/output/commit.h"
#include "experiments/output/forecast_output.h"
#include "experiments/sweep/sweep_message.h"
#include "sim/base/complaint.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using Clock = std::chrono::steady_clock;

// Chunks per thread: one in progress, and one more in transit.
constexpr int chunks_ahead = 2;
constexpr std::chrono::seconds greeting_period{1};
// Time after which rank 0 counts as lost; its file system may stall it for minutes.
constexpr std::chrono::minutes patience_with_rank_0{10};
constexpr std::chrono::microseconds shortest_pause{100}, longest_pause{10'000};

// All ranks must run the same build.
std::string build() { return fmt::format("{} ({})", tool_version, tool_commit); }

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string plan_message(const SweepPlan& plan, const DescriptionTexts& texts, int jobs) {
  SweepMessage message(SweepWord::plan);
  message.add(build()).add(static_cast<std::uint64_t>(jobs)).add(plan.text);
  message.add(plan.flags.size());
  for (const auto& [key, values] : plan.flags) {
    message.add(key).add(values.size());
    for (const std::string& value : values) message.add(value);
  }
  for (const auto& [what, text] : texts.texts()) message.add(what).add(text);
  return message.bytes();
}

struct Task {
  SweepPoints points;
  std::shared_ptr<DescriptionTexts> texts;
  int jobs = 1;
};

Task read_task(SweepMessageReader& message) {
  const std::string program(message.text());
  if (program != build())
    throw Error(Exit::failure, fmt::format("is lambcast {}, rank 0 is {}", build(), program));
  Task task;
  task.jobs = static_cast<int>(message.number());
  const std::string text(message.text());
  std::vector<Axis> axes;
  for (std::uint64_t left = message.number(); left > 0; --left) {
    Axis& axis = axes.emplace_back(std::string(message.text()), std::vector<std::string>());
    for (std::uint64_t values = message.number(); values > 0; --values)
      axis.second.emplace_back(message.text());
  }
  task.points = plan_sweep(text, "the sweep", axes).points;
  std::map<std::string, std::string> texts;
  while (!message.empty()) {
    std::string what(message.text());
    texts.emplace(std::move(what), message.text());
  }
  task.texts = std::make_shared<DescriptionTexts>(std::move(texts));
  return task;
}

// Passes points and rows between the threads of a rank and the thread that talks to rank 0.
class Desk : public SweepQueue {
 public:
  SweepChunk take() override {
    std::unique_lock lock(mutex_);
    asked_.wait(lock, [&] { return over_ || !chunks_.empty(); });
    if (over_) return {};
    const SweepChunk chunk = chunks_.front();
    chunks_.pop_front();
    return chunk;
  }

  bool give(std::size_t point, SweepRow row, bool last_of_chunk) override {
    const std::lock_guard lock(mutex_);
    rows_.push_back({point, last_of_chunk, std::move(row)});
    if (last_of_chunk) {
      whole_ = true;
      answered_.notify_one();
    }
    return !over_;
  }

  void fail(std::exception_ptr thrown) override {
    const std::lock_guard lock(mutex_);
    failure_ = thrown;
    answered_.notify_one();
  }

  void ask(SweepChunk chunk) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back(chunk);
    asked_.notify_one();
  }

  // Returns the rows of a chunk, or after a while those that are ready; waits at most for
  // `patience`. Throws an exception thrown in a thread.
  std::vector<NumberedRow> answers(Clock::duration patience) {
    std::unique_lock lock(mutex_);
    answered_.wait_for(lock, patience, [&] { return whole_ || failure_ != nullptr; });
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (!whole_ && Clock::now() - last_answer_ < longest_pause) return {};
    whole_ = false;
    last_answer_ = Clock::now();
    return std::exchange(rows_, {});
  }

  void close() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    asked_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable asked_, answered_;
  std::deque<SweepChunk> chunks_;
  std::vector<NumberedRow> rows_;
  std::exception_ptr failure_;
  Clock::time_point last_answer_ = Clock::now();
  bool whole_ = false;  // the rows include the end of a chunk
  bool over_ = false;
};

// Computes on a rank other than 0: takes chunks from rank 0 and returns their rows.
class Server {
 public:
  Server(Ranks& ranks, const RowOf& row_of) : ranks_(ranks), row_of_(row_of) {
    send(SweepMessage(SweepWord::hello).add(host_name()));
  }

  int run() {
    Clock::duration pause = shortest_pause;
    while (true) {
      bool busy = false;
      while (const auto message = ranks_.receive()) {
        SweepMessageReader reader(message->text);
        if (reader.word() == SweepWord::end) return end(static_cast<int>(reader.number()));
        heard_ = Clock::now();
        attempt([&] { obey(reader); });
        busy = true;
      }
      attempt([&] { busy = report(pause) || busy; });
      pause = busy ? shortest_pause : std::min<Clock::duration>(2 * pause, longest_pause);
      if (Clock::now() - said_ > greeting_period) send(SweepMessage(SweepWord::alive));
      // Rank 0 is lost, so the error cannot be sent to it.
      if (Clock::now() - heard_ > patience_with_rank_0) ranks_.abort(1);
    }
  }

 private:
  void send(const SweepMessage& message) {
    ranks_.send(0, message.bytes());
    said_ = Clock::now();
  }

  template <typename Work>
  void attempt(Work work) {
    try {
      work();
    } catch (const std::exception& error) {
      send(SweepMessage(SweepWord::failure).add(complaint_of(error).text));
    }
  }

  void obey(SweepMessageReader& message) {
    if (message.word() == SweepWord::plan) {
      Task task = read_task(message);
      threads_.emplace(task.jobs, std::move(task.points), std::move(task.texts), row_of_, desk_);
      if (threads_->none())
        throw Error(Exit::failure,
                    "cannot start a worker thread; try: a smaller --jobs, or a higher limit of "
                    "processes (ulimit -u)");
    } else if (message.word() == SweepWord::chunk) {
      const auto begin = static_cast<std::size_t>(message.number());
      desk_->ask({begin, static_cast<std::size_t>(message.number())});
    }
  }

  bool report(Clock::duration patience) {
    const std::vector<NumberedRow> rows = desk_->answers(patience);
    if (rows.empty()) return false;
    SweepMessage message(SweepWord::rows);
    for (const NumberedRow& row : rows) add_row(message, row);
    send(message);
    return true;
  }

  int end(int code) {
    desk_->close();
    send(SweepMessage(SweepWord::bye));
    ranks_.leave();
    if (threads_) threads_->leave();
    return code;
  }

  Ranks& ranks_;
  RowOf row_of_;
  std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  std::optional<SweepThreads> threads_;
  Clock::time_point said_ = Clock::now(), heard_ = Clock::now();
};

}  // namespace

SweepRanks::SweepRanks(Ranks& ranks, const SweepPlan& plan, const DescriptionTexts& texts, int jobs,
                       std::chrono::milliseconds patience)
    : ranks_(ranks),
      jobs_(jobs),
      patience_(patience),
      others_(static_cast<std::size_t>(ranks.count()) - 1) {
  const std::string message = plan_message(plan, texts, jobs);
  for (int rank = 1; rank < ranks.count(); ++rank) ranks_.send(rank, message);
}

std::string SweepRanks::name_of(int rank) {
  const std::string& host = other(rank).host;
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host);
}

bool SweepRanks::exchange(const std::function<SweepChunk()>& take,
                          const std::function<void(std::size_t, SweepRow)>& give) {
  const bool came = take_in(give), went = hand_out(take);
  watch();
  return came || went;
}

bool SweepRanks::take_in(const std::function<void(std::size_t, SweepRow)>& give) {
  bool came = false;
  while (const auto message = ranks_.receive()) {
    SweepMessageReader reader(message->text);
    Other& from = other(message->from);
    from.silent = {};
    if (reader.word() == SweepWord::hello) from.host = reader.text();
    if (reader.word() == SweepWord::failure)
      throw Error(Exit::failure, fmt::format("{}: {}", name_of(message->from), reader.text()));
    while (reader.word() == SweepWord::rows && !reader.empty()) {
      NumberedRow row = read_row(reader);
      if (row.last_of_chunk) --from.chunks;
      give(row.point, std::move(row.row));
      came = true;
    }
  }
  return came;
}

// Gives one chunk to each rank that has room for one, so that the last chunks are spread over the
// ranks.
bool SweepRanks::hand_out(const std::function<SweepChunk()>& take) {
  bool went = false;
  for (int rank = 1; rank < ranks_.count(); ++rank) {
    if (other(rank).chunks >= chunks_ahead * jobs_) continue;
    const SweepChunk chunk = take();
    if (chunk.empty()) break;
    ranks_.send(rank, SweepMessage(SweepWord::chunk).add(chunk.begin).add(chunk.end).bytes());
    ++other(rank).chunks;
    went = true;
  }
  return went;
}

// Counts only the time in which rank 0 was running. After a stall of its own, for example if all
// ranks were suspended, the other ranks get time to answer.
void SweepRanks::watch() {
  const Clock::time_point now = Clock::now();
  const Clock::duration passed = std::min<Clock::duration>(now - watched_, std::chrono::seconds(1));
  watched_ = now;
  for (int rank = 1; rank < ranks_.count(); ++rank) {
    other(rank).silent += passed;
    if (other(rank).silent > patience_)
      throw Error(
          Exit::failure,
          fmt::format("{} is lost: no message for {} s; finished rows are on disk", name_of(rank),
                      std::chrono::duration_cast<std::chrono::seconds>(patience_).count()));
  }
  if (now - greeted_ < greeting_period) return;
  greeted_ = now;
  for (int rank = 1; rank < ranks_.count(); ++rank)
    ranks_.send(rank, SweepMessage(SweepWord::alive).bytes());
}

int serve_sweep(Ranks& ranks, const RowOf& row_of) { return Server(ranks, row_of).run(); }

bool end_ranks(Ranks& ranks, int code, std::chrono::milliseconds patience) {
  for (int rank = 1; rank < ranks.count(); ++rank)
    ranks.send(rank, SweepMessage(SweepWord::end).add(static_cast<std::uint64_t>(code)).bytes());
  int left = ranks.count() - 1;
  for (const Clock::time_point until = Clock::now() + patience; left > 0;) {
    if (const auto message = ranks.receive()) {
      if (SweepMessageReader(message->text).word() == SweepWord::bye) --left;
    } else if (Clock::now() > until) {
      return false;
    } else {
      std::this_thread::sleep_for(shortest_pause);
    }
  }
  ranks.leave();
  return true;
}

}  // namespace lambcast
