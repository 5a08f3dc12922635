#include "tools/stop_signal.h"

#include <atomic>
#include <csignal>

namespace lambcast {
namespace {

std::atomic<int> stopped_by = 0;

void stop(int signal) { stopped_by = signal; }

}  // namespace

void catch_stop_signals() {
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
}

int stop_signal() { return stopped_by; }

}  // namespace lambcast
