// TCP between the processes of one measurement: one address, and reads and writes that end by a
// deadline. All sockets are closed in programs that this one starts.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace lambcast::validate {

using Deadline = std::chrono::steady_clock::time_point;
Deadline in_seconds(int seconds);

// For poll(): what is left until then, rounded up, at least 0 and at most an hour.
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
  std::string address;  // as a number, where `host` may be a name
};

// Listens on what `host` stands for on this machine and on none of its other addresses. Throws
// Error{Exit::failure} when it stands for no address of this machine, or the port is taken.
Listener listen_at(const std::string& host, int port);

// One that waits at the listener, if any still does.
std::optional<Socket> accept_one(const Listener& listener);

// The first address that `host` stands for that answers by the deadline.
std::optional<Socket> connect_to(const std::string& host, int port, Deadline deadline);

// Exactly so many bytes; false when the connection ended or the deadline passed before.
bool send_all(const Socket& socket, const void* data, std::size_t bytes, Deadline deadline);
bool receive_all(const Socket& socket, void* data, std::size_t bytes, Deadline deadline);

}  // namespace lambcast::validate
