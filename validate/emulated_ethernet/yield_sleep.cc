// Preloaded into MPI ranks that outnumber the cores: sched_yield() sleeps 20 us instead.
//
// An idle Open MPI rank polls and yields (mpi_yield_when_idle 1). With more ranks than cores the
// pollers keep the cores from the kernel's packet processing and from the one rank that has work: a
// 1 kB all-reduce of 8 ranks on 2 cores takes 6 to 25 ms. Sleeping ranks leave the cores free. The
// cost is up to one sleep per step of a collective.
#include <sys/prctl.h>

#include <ctime>

namespace {

// Timers of ordinary processes may be 50 us late; this sets the slack to 1 us.
int make_timers_precise() { return prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); }

}  // namespace

extern "C" int sched_yield() noexcept {
  thread_local const int precise = make_timers_precise();
  (void)precise;
  const timespec nap{0, 20000};
  nanosleep(&nap, nullptr);
  return 0;
}
