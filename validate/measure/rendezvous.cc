#include "validate/measure/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "sim/base/error.h"

namespace lambcast::validate {
namespace {

constexpr std::uint32_t kHello = 0x6c616d62;  // "lamb": a stranger's connection is told apart
constexpr std::uint32_t kLongest = 1 << 20;

[[noreturn]] void fail(const std::string& what) { throw Error(Exit::failure, what); }

bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket, to, bytes, 0);
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void send_text(int socket, const std::string& text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  if (!send_all(socket, &length, sizeof length) || !send_all(socket, text.data(), length)) {
    fail("a process of the measurement is gone (its connection broke while sending)");
  }
}

std::string receive_text(int socket) {
  std::uint32_t length = 0;
  if (!receive_all(socket, &length, sizeof length) || length > kLongest) {
    fail("a process of the measurement is gone (its connection broke while receiving)");
  }
  std::string text(length, '\0');
  if (!receive_all(socket, text.data(), length)) {
    fail("a process of the measurement is gone (its connection broke while receiving)");
  }
  return text;
}

void send_at_once(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// A silent connection must not hold the others up.
void limit_wait(int socket, int timeout_s) {
  const timeval limit{timeout_s, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

// Listens at all addresses of this machine: one socket takes both kinds, unless there is no IPv6.
int listen_on(int port) {
  sockaddr_in6 both{};
  both.sin6_family = AF_INET6;
  both.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_port = both.sin6_port;
  const int on = 1;
  const int off = 0;
  for (const bool v6 : {true, false}) {
    const int socket = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (v6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const int bound = v6 ? bind(socket, reinterpret_cast<sockaddr*>(&both), sizeof both)
                         : bind(socket, reinterpret_cast<sockaddr*>(&old), sizeof old);
    if (bound == 0 && listen(socket, 1024) == 0) return socket;
    close(socket);
  }
  return -1;
}

// Tries each address that `host` stands for.
int connect_to(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return -1;
  int connected = -1;
  for (const addrinfo* at = list; at != nullptr && connected < 0; at = at->ai_next) {
    const int socket = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    if (connect(socket, at->ai_addr, at->ai_addrlen) == 0) {
      connected = socket;
    } else {
      close(socket);
    }
  }
  freeaddrinfo(list);
  return connected;
}

using Clock = std::chrono::steady_clock;

class TcpRendezvous final : public Rendezvous {
 public:
  TcpRendezvous(const Launch& launch, int timeout_s) : launch_(launch) {
    if (launch_.processes == 1) return;
    if (launch_.rank == 0) {
      accept_all(timeout_s);
    } else {
      connect_to_root(timeout_s);
    }
  }
  ~TcpRendezvous() override {
    for (const int socket : sockets_) {
      if (socket >= 0) close(socket);
    }
  }
  TcpRendezvous(const TcpRendezvous&) = delete;
  TcpRendezvous& operator=(const TcpRendezvous&) = delete;

  std::vector<std::string> exchange(const std::string& mine) override;

 private:
  void accept_all(int timeout_s);
  void connect_to_root(int timeout_s);

  Launch launch_;
  std::vector<int> sockets_;  // at rank 0 one per other rank; elsewhere one
};

void TcpRendezvous::accept_all(int timeout_s) {
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_s);
  const int listener = listen_on(launch_.port);
  if (listener < 0) fail(fmt::format("cannot listen on port {} (MASTER_PORT)", launch_.port));
  sockets_.assign(static_cast<std::size_t>(launch_.processes - 1), -1);
  int missing = launch_.processes - 1;
  while (missing > 0 && Clock::now() < deadline) {
    pollfd waiting{listener, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    limit_wait(socket, timeout_s);
    std::array<std::uint32_t, 2> hello{};
    const bool ours = receive_all(socket, hello.data(), sizeof hello) && hello[0] == kHello &&
                      hello[1] >= 1 && hello[1] < static_cast<std::uint32_t>(launch_.processes) &&
                      sockets_[hello[1] - 1] < 0;
    if (!ours) {
      close(socket);
      continue;
    }
    limit_wait(socket, 0);  // from here on a measurement may take its time
    send_at_once(socket);
    sockets_[hello[1] - 1] = socket;
    --missing;
  }
  close(listener);
  if (missing > 0) {
    fail(fmt::format("{} of {} processes did not come to port {} within {} s", missing,
                     launch_.processes, launch_.port, timeout_s));
  }
}

void TcpRendezvous::connect_to_root(int timeout_s) {
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_s);
  while (Clock::now() < deadline) {
    const int socket = connect_to(launch_.address, launch_.port);
    if (socket >= 0) {
      send_at_once(socket);
      const std::array<std::uint32_t, 2> hello{kHello, static_cast<std::uint32_t>(launch_.rank)};
      sockets_.push_back(socket);
      if (send_all(socket, hello.data(), sizeof hello)) return;
      fail("rank 0 closed the connection");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail(fmt::format("rank 0 does not answer at {}:{} (MASTER_ADDR, MASTER_PORT) within {} s",
                   launch_.address, launch_.port, timeout_s));
}

std::vector<std::string> TcpRendezvous::exchange(const std::string& mine) {
  if (mine.size() > kLongest) fail("a text of more than 1 MiB cannot be exchanged");
  std::vector<std::string> all(static_cast<std::size_t>(launch_.processes));
  if (launch_.rank != 0) {
    send_text(sockets_[0], mine);
    for (std::string& text : all) text = receive_text(sockets_[0]);
    return all;
  }
  all[0] = mine;
  for (std::size_t i = 1; i < all.size(); ++i) all[i] = receive_text(sockets_[i - 1]);
  for (const int socket : sockets_) {
    for (const std::string& text : all) send_text(socket, text);
  }
  return all;
}

// What the threads share.
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
    meeting_->barrier.arrive_and_wait();  // nobody gives anew before all have read
    return all;
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  std::size_t member_;
};

}  // namespace

std::unique_ptr<Rendezvous> meet_over_tcp(const Launch& launch, int timeout_s) {
  return std::make_unique<TcpRendezvous>(launch, timeout_s);
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
