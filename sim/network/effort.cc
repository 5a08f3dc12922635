#include "sim/network/effort.h"

namespace lambcast {

Effort& effort() {
  thread_local Effort of_thread;
  return of_thread;
}

}  // namespace lambcast
