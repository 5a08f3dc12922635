// TCP between the processes of one measurement: one address, and reads and writes with a deadline.
// Sockets are not inherited by programs that this one starts.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace lambcast::validate {

using Deadline = std::chrono::steady_clock::time_point;
Deadline in_seconds(int seconds);

// For poll(): returns the time left, rounded up, at least 0 and at most an hour.
int milliseconds_until(Deadline deadline);

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

struct Listener {
  Socket socket;
  std::string address;  // numeric form, since `host` may be a name
};

// Listens on the address of `host` on this machine and on none of its other addresses. Throws
// Error{Exit::failure} if `host` is no address of this machine, or if the port is taken.
Listener listen_at(const std::string& host, int port);

// Returns a connection that waits at the listener, if there still is one.
std::optional<Socket> accept_one(const Listener& listener);

// Connects to the first address of `host` that answers before the deadline.
std::optional<Socket> connect_to(const std::string& host, int port, Deadline deadline);

// Transfer exactly `bytes` bytes; return false if the connection ended or the deadline passed
// before.
bool send_all(const Socket& socket, const void* data, std::size_t bytes, Deadline deadline);
bool receive_all(const Socket& socket, void* data, std::size_t bytes, Deadline deadline);

}  // namespace lambcast::validate
