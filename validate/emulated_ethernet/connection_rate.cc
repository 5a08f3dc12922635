// Preloaded into MPI ranks, it limits every TCP connection to CONNECTION_RATE bytes per second,
// like the limits of providers (AWS: 5 Gbit/s each outside a placement group).
//
// Linux itself paces a socket (SO_MAX_PACING_RATE, net/ipv4/tcp_output.c).
#include <dlfcn.h>
#include <sys/socket.h>

#include <cstdlib>

namespace {

int paced(int descriptor) {
  static const char* const rate = std::getenv("CONNECTION_RATE");
  if (descriptor >= 0 && rate != nullptr) {
    const auto bytes_per_s = static_cast<unsigned>(std::strtoul(rate, nullptr, 10));
    setsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof bytes_per_s);
  }
  return descriptor;
}

template <typename Function>
Function* preloaded_over(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int socket(int domain, int type, int protocol) noexcept {
  static auto* const real = preloaded_over<int(int, int, int)>("socket");
  return paced(real(domain, type, protocol));
}

extern "C" int accept(int descriptor, sockaddr* address, socklen_t* length) {
  static auto* const real = preloaded_over<int(int, sockaddr*, socklen_t*)>("accept");
  return paced(real(descriptor, address, length));
}
