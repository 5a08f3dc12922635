// Sends bytes of strangers and members to a measurement. The input has three texts separated by
// lines "----": from a stranger to rank 0, from a member to rank 0, and from rank 0 to a member.
// For any input, the receiver must end soon, with the exchanged texts or with Error.
#include "validate/measure/rendezvous.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "sim/base/fuzz_target.h"

namespace {

using lambcast::validate::Launch;
using lambcast::validate::meet_over_tcp;

// A TCP socket of 127.0.0.1 that closes without lingering, so that thousands leave no ports behind.
class Peer {
 public:
  explicit Peer(int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
      : descriptor_(descriptor) {}
  ~Peer() {
    const linger at_once{1, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(descriptor_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  static sockaddr_in at(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  bool connects(int port) const {
    const sockaddr_in address = at(port);
    return connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  int listens() const {  // returns the port
    sockaddr_in address = at(0);
    socklen_t size = sizeof address;
    bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(descriptor_, 4);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }
  int accepted() const { return accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC); }
  void say(std::string_view bytes) const {
    send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void say_hello() const {
    const std::uint32_t words[] = {0x6c616d63, 1, 2, 4};  // rank 1 of 2, a token of 4 bytes
    say({reinterpret_cast<const char*>(words), sizeof words});
    say("ours");
  }
  void wait_for_answer() const {
    std::uint32_t word = 0;
    recv(descriptor_, &word, sizeof word, MSG_WAITALL);
  }
  void say_no_more() const { shutdown(descriptor_, SHUT_WR); }

 private:
  int descriptor_;
};

void meets(const Launch& launch, std::string_view mine) {
  lambcast::may_refuse([&] {
    if (meet_over_tcp(launch, 5, 5)->exchange(std::string(mine)).size() != 2)
      throw std::logic_error("two processes exchange two texts");
  });
}

void to_rank_0(std::string_view strange, std::string_view said) {
  const int port = Peer().listens();
  std::thread root([port] { meets({0, 2, 0, "127.0.0.1", port, "ours"}, "root"); });
  {
    const Peer stranger, member;
    while (!stranger.connects(port)) std::this_thread::yield();
    stranger.say(strange);
    stranger.say_no_more();
    member.connects(port);
    member.say_hello();
    member.wait_for_answer();
    member.say(said);
    member.say_no_more();
    root.join();
  }
}

void to_member(std::string_view said) {
  const Peer listener;
  const int port = listener.listens();
  std::thread member([port] { meets({1, 2, 1, "127.0.0.1", port, "ours"}, "member"); });
  {
    const Peer connection(listener.accepted());
    connection.say(std::string_view("\0\0\0\0", 4));  // welcome
    connection.say(said);
    connection.say_no_more();
    member.join();
  }
}

}  // namespace

FUZZ_TARGET(rendezvous, text) {
  std::string_view parts[3];
  for (std::string_view& part : parts) {
    const std::size_t end = std::min(text.find("----\n"), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 5, text.size()));
  }
  to_rank_0(parts[0], parts[1]);
  to_member(parts[2]);
}
