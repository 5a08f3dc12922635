#include "validate/measure/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sim/base/error.h"

namespace lambcast::validate {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) list = nullptr;
  return {list, freeaddrinfo};
}

std::string numeric(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0,
              NI_NUMERICHOST);
  return text.data();
}

bool wait_for(const Socket& socket, short events, Deadline deadline) {
  pollfd waiting{socket.descriptor(), events, 0};
  while (true) {
    const int left = milliseconds_until(deadline);
    const int ready = poll(&waiting, 1, left);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left == 0) return false;
  }
}

void send_at_once(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

bool connects(const Socket& socket, const addrinfo& at, Deadline deadline) {
  if (connect(socket.descriptor(), at.ai_addr, at.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, deadline)) return false;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

// Returns whether a transfer that moved nothing may be tried again, once the socket is ready for
// it.
bool may_retry(const Socket& socket, short events, Deadline deadline) {
  if (errno == EINTR) return true;
  return (errno == EAGAIN || errno == EWOULDBLOCK) && wait_for(socket, events, deadline);
}

}  // namespace

Deadline in_seconds(int seconds) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

int milliseconds_until(Deadline deadline) {
  constexpr std::chrono::milliseconds most = std::chrono::hours(1);
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), most).count());
}

Socket::~Socket() {
  if (is_open()) close(descriptor_);
}

Listener listen_at(const std::string& host, int port) {
  const Addresses list = addresses_of(host, port);
  std::string reason = "it names no address";
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Listener listener{Socket(::socket(at->ai_family, kKind, 0)), numeric(*at)};
    const int on = 1;
    setsockopt(listener.socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener.socket.is_open() &&
        bind(listener.socket.descriptor(), at->ai_addr, at->ai_addrlen) == 0 &&
        listen(listener.socket.descriptor(), 1024) == 0)
      return listener;
    reason = fmt::format("{}: {}", listener.address, std::strerror(errno));
  }
  throw Error(Exit::failure,
              fmt::format("rank 0 cannot listen on {} (MASTER_ADDR), port {} (MASTER_PORT): {}",
                          host, port, reason));
}

std::optional<Socket> accept_one(const Listener& listener) {
  Socket socket(
      accept4(listener.socket.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return std::nullopt;
  send_at_once(socket);
  return socket;
}

std::optional<Socket> connect_to(const std::string& host, int port, Deadline deadline) {
  const Addresses list = addresses_of(host, port);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Socket socket(::socket(at->ai_family, kKind, 0));
    if (!socket.is_open() || !connects(socket, *at, deadline)) continue;
    send_at_once(socket);
    return socket;
  }
  return std::nullopt;
}

bool send_all(const Socket& socket, const void* data, std::size_t bytes, Deadline deadline) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket.descriptor(), from, bytes, MSG_NOSIGNAL);
    if (sent <= 0) {
      if (sent < 0 && may_retry(socket, POLLOUT, deadline)) continue;
      return false;
    }
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(const Socket& socket, void* data, std::size_t bytes, Deadline deadline) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket.descriptor(), to, bytes, 0);
    if (got <= 0) {
      if (got < 0 && may_retry(socket, POLLIN, deadline)) continue;
      return false;
    }
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace lambcast::validate
