#include "validate/measure/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include "sim/base/error.h"
#include "validate/measure/socket.h"
#include "validate/measure/token_file.h"

namespace lambcast::validate {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(Exit::failure, what); }

constexpr std::uint32_t kLongest = 1 << 20;

// First message of a process; its token follows.
struct Hello {
  std::uint32_t magic = 0x6c616d63;  // "lamc"; identifies the protocol
  std::uint32_t rank = 0;
  std::uint32_t processes = 0;
  std::uint32_t token_bytes = 0;
};

// Answer of rank 0.
enum class Answer : std::uint32_t { welcome, wrong_token, other_launch, rank_taken };

bool send_text(const Socket& socket, const std::string& text, Deadline deadline) {
  const auto length = static_cast<std::uint32_t>(text.size());
  return send_all(socket, &length, sizeof length, deadline) &&
         send_all(socket, text.data(), length, deadline);
}

std::optional<std::string> receive_text(const Socket& socket, Deadline deadline) {
  std::uint32_t length = 0;
  if (!receive_all(socket, &length, sizeof length, deadline) || length > kLongest) return {};
  std::string text(length, '\0');
  if (!receive_all(socket, text.data(), length, deadline)) return {};
  return text;
}

void check_length(const std::string& text) {
  if (text.size() > kLongest) fail("a text of more than 1 MiB cannot be exchanged");
}

[[noreturn]] void fail_gone(int rank, int patience_s) {
  fail(
      fmt::format("rank {} of the measurement is gone: its connection broke, or it was silent for "
                  "{} s",
                  rank, patience_s));
}

// Formats numbers as ranges: "1, 3-5".
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

class Alone final : public Rendezvous {
 public:
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
};

// The rendezvous on rank 0. A connection without a complete hello is a stranger; no member waits
// for a stranger.
class Root final : public Rendezvous {
 public:
  Root(const Launch& launch, int timeout_s, int patience_s)
      : launch_(launch),
        patience_s_(patience_s),
        members_(static_cast<std::size_t>(launch.processes)) {
    const Deadline deadline = in_seconds(timeout_s);
    const Listener listener = listen_at(launch.address, launch.port);
    // The token is written only once this rank listens, so a stranger at the port never gets a
    // valid one.
    std::optional<TokenFile> file;
    if (!launch_.token_file.empty()) launch_.token = file.emplace(launch_.token_file).token();
    std::vector<Stranger> strangers;
    while (!missing().empty() && milliseconds_until(deadline) > 0) {
      wait(listener, strangers, deadline);
      while (auto socket = accept_one(listener)) admit(std::move(*socket), strangers);
      std::erase_if(strangers, [&](Stranger& stranger) { return is_through(stranger); });
    }
    if (const std::vector<int> ranks = missing(); !ranks.empty())
      fail(
          fmt::format("rank{} {} of {} did not come to {}, port {} (MASTER_ADDR, MASTER_PORT), "
                      "within {} s",
                      ranks.size() == 1 ? "" : "s", ranges(ranks), launch.processes,
                      listener.address, launch.port, timeout_s));
  }

  std::vector<std::string> exchange(const std::string& mine) override {
    check_length(mine);
    const Deadline deadline = in_seconds(patience_s_);
    std::vector<std::string> all{mine};
    for (int rank = 1; rank < launch_.processes; ++rank) {
      std::optional<std::string> text = receive_text(member(rank), deadline);
      if (!text) fail_gone(rank, patience_s_);
      all.push_back(std::move(*text));
    }
    for (int rank = 1; rank < launch_.processes; ++rank)
      for (const std::string& text : all)
        if (!send_text(member(rank), text, deadline)) fail_gone(rank, patience_s_);
    return all;
  }

 private:
  struct Stranger {
    Socket socket;
    Deadline until;
    std::string said;
  };
  static constexpr int kHelloWithin_s = 5;
  static constexpr std::size_t kMostStrangers = 256;

  Socket& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 1; rank < members_.size(); ++rank)
      if (!members_[rank].is_open()) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  static void wait(const Listener& listener, const std::vector<Stranger>& strangers,
                   Deadline deadline) {
    std::vector<pollfd> waiting{{listener.socket.descriptor(), POLLIN, 0}};
    for (const Stranger& stranger : strangers) {
      waiting.push_back({stranger.socket.descriptor(), POLLIN, 0});
      deadline = std::min(deadline, stranger.until);
    }
    poll(waiting.data(), waiting.size(), milliseconds_until(deadline));
  }

  // Adds a connection without a hello; drops the oldest one if there are kMostStrangers.
  static void admit(Socket socket, std::vector<Stranger>& strangers) {
    if (strangers.size() == kMostStrangers) strangers.erase(strangers.begin());
    strangers.push_back({std::move(socket), in_seconds(kHelloWithin_s), {}});
  }

  // Reads the received bytes. Returns true once the connection has been admitted or is to be
  // closed.
  bool is_through(Stranger& stranger) {
    while (true) {
      const std::size_t wanted = still_wanted(stranger.said);
      if (wanted == 0) break;
      std::string part(wanted, '\0');
      const ssize_t got = recv(stranger.socket.descriptor(), part.data(), wanted, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return milliseconds_until(stranger.until) == 0;
      if (got <= 0) return true;
      stranger.said.append(part, 0, static_cast<std::size_t>(got));
    }
    const std::optional<Answer> answer = judge(stranger.said);
    if (!answer) return true;
    if (!send_all(stranger.socket, &*answer, sizeof *answer, stranger.until)) return true;
    if (*answer == Answer::welcome)
      member(static_cast<int>(hello_of(stranger.said).rank)) = std::move(stranger.socket);
    return true;
  }

  static Hello hello_of(const std::string& said) {
    Hello hello;
    std::memcpy(&hello, said.data(), sizeof hello);
    return hello;
  }

  // Returns the number of bytes that are missing for a decision. Of a token with another length
  // than the valid one, nothing is read.
  std::size_t still_wanted(const std::string& said) const {
    if (said.size() < sizeof(Hello)) return sizeof(Hello) - said.size();
    const Hello hello = hello_of(said);
    if (hello.magic != Hello().magic || hello.token_bytes != launch_.token.size()) return 0;
    return sizeof(Hello) + hello.token_bytes - said.size();
  }

  // Returns the answer to a hello; nothing if the peer uses another protocol.
  std::optional<Answer> judge(const std::string& said) {
    const Hello hello = hello_of(said);
    if (hello.magic != Hello().magic) return {};
    if (said.substr(sizeof(Hello)) != launch_.token || hello.token_bytes != launch_.token.size())
      return Answer::wrong_token;
    const auto processes = static_cast<std::uint32_t>(launch_.processes);
    if (hello.processes != processes || hello.rank < 1 || hello.rank >= processes)
      return Answer::other_launch;
    if (member(static_cast<int>(hello.rank)).is_open()) return Answer::rank_taken;
    return Answer::welcome;
  }

  Launch launch_;
  int patience_s_;
  std::vector<Socket> members_;  // by rank; the one of rank 0 stays closed
};

std::string refusal(Answer answer, const Launch& launch) {
  const std::string place =
      fmt::format("{}, port {} (MASTER_ADDR, MASTER_PORT)", launch.address, launch.port);
  switch (answer) {
    case Answer::wrong_token:
      return fmt::format(
          "another launch measures at {}: its token is not ours; wait for it, take another port, "
          "or set LAMBCAST_TOKEN to the same for all processes",
          place);
    case Answer::rank_taken:
      return fmt::format("rank {} is at {} already: two processes have the same rank", launch.rank,
                         place);
    case Answer::other_launch:
    case Answer::welcome:
      break;
  }
  return fmt::format("rank 0 at {} knows no rank {} of {} processes", place, launch.rank,
                     launch.processes);
}

// The rendezvous on any other rank.
class Member final : public Rendezvous {
 public:
  Member(const Launch& launch, int timeout_s, int patience_s)
      : launch_(launch), patience_s_(patience_s) {
    const Deadline deadline = in_seconds(timeout_s);
    while (milliseconds_until(deadline) > 0) {
      auto socket = has_token() ? connect_to(launch.address, launch.port, deadline) : std::nullopt;
      if (socket && introduced(*socket, deadline)) {
        root_ = std::move(*socket);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (is_refused_) fail(refusal(Answer::wrong_token, launch_));
    fail(fmt::format("rank 0 does not answer at {}:{} (MASTER_ADDR, MASTER_PORT) within {} s",
                     launch.address, launch.port, timeout_s));
  }

  std::vector<std::string> exchange(const std::string& mine) override {
    check_length(mine);
    const Deadline deadline = in_seconds(patience_s_);
    if (!send_text(root_, mine, deadline)) fail_gone(0, patience_s_);
    std::vector<std::string> all;
    for (int rank = 0; rank < launch_.processes; ++rank) {
      std::optional<std::string> text = receive_text(root_, deadline);
      if (!text) fail_gone(0, patience_s_);
      all.push_back(std::move(*text));
    }
    return all;
  }

 private:
  // Reads the file each time, since rank 0 may not yet have replaced that of an earlier launch.
  bool has_token() {
    if (launch_.token_file.empty()) return true;
    const auto token = read_token(launch_.token_file);
    launch_.token = token.value_or("");
    return token.has_value();
  }

  // Returns whether rank 0 answered. Another program may use the port, and rank 0 may start later.
  bool introduced(const Socket& socket, Deadline deadline) {
    Hello hello;
    hello.rank = static_cast<std::uint32_t>(launch_.rank);
    hello.processes = static_cast<std::uint32_t>(launch_.processes);
    hello.token_bytes = static_cast<std::uint32_t>(launch_.token.size());
    Answer answer{};
    if (!send_all(socket, &hello, sizeof hello, deadline) ||
        !send_all(socket, launch_.token.data(), launch_.token.size(), deadline) ||
        !receive_all(socket, &answer, sizeof answer, deadline))
      return false;
    is_refused_ = answer == Answer::wrong_token;
    if (is_refused_ && !launch_.token_file.empty()) return false;
    if (answer != Answer::welcome) fail(refusal(answer, launch_));
    return true;
  }

  Launch launch_;
  int patience_s_;
  bool is_refused_ = false;  // the token of a file was rejected; the file may change
  Socket root_;
};

// State shared by the threads.
struct Meeting {
  explicit Meeting(int members) : given(static_cast<std::size_t>(members)), barrier(members) {}
  std::vector<std::string> given;
  std::barrier<> barrier;
};

class ThreadRendezvous final : public Rendezvous {
 public:
  ThreadRendezvous(std::shared_ptr<Meeting> meeting, std::size_t member)
      : meeting_(std::move(meeting)), member_(member) {}

  std::vector<std::string> exchange(const std::string& mine) override {
    meeting_->given[member_] = mine;
    meeting_->barrier.arrive_and_wait();
    std::vector<std::string> all = meeting_->given;
    meeting_->barrier.arrive_and_wait();  // all must have read before the next round begins
    return all;
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  std::size_t member_;
};

}  // namespace

std::unique_ptr<Rendezvous> meet_over_tcp(const Launch& launch, int timeout_s, int patience_s) {
  if (launch.processes == 1) return std::make_unique<Alone>();
  if (launch.rank == 0) return std::make_unique<Root>(launch, timeout_s, patience_s);
  return std::make_unique<Member>(launch, timeout_s, patience_s);
}

std::vector<std::unique_ptr<Rendezvous>> meet_in_process(int members) {
  const auto meeting = std::make_shared<Meeting>(members);
  std::vector<std::unique_ptr<Rendezvous>> all;
  for (std::size_t i = 0; i < meeting->given.size(); ++i) {
    all.push_back(std::make_unique<ThreadRendezvous>(meeting, i));
  }
  return all;
}

}  // namespace lambcast::validate
