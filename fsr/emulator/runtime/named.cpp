// Barriers with numbers (PTX's bar.sync and bar.arrive): some threads of a block wait for each other, or for others that
// arrive and go on. Each thread counts for itself, so that a warp of which lanes are missing is waited for in vain.
#include "api.h"
#include "state.h"

using namespace fsr;

extern "C" void fsr_named_barrier(unsigned name, unsigned threads, int waits, int line) {
  if (name >= kNamed) raise(kTrap, line, "barrier %u: there are %u", name, kNamed);
  if (threads % kWarp || threads > (launch.threads + kWarp - 1) / kWarp * kWarp)
    raise(kTrap, line, "a barrier of %u threads, of a block of %u: whole warps can meet", threads, launch.threads);
  if (!threads) threads = launch.threads;
  Named& at = flight->named[name];
  if (at.arrived && at.expected != threads)
    raise(kDivergentBarrier, line, "threads meet at barrier %u that wait for %u and for %u threads", name, at.expected, threads);
  at.expected = threads;
  recorder_named(&at, true);
  if (++at.arrived == threads) {
    at.arrived = 0;
    release_named(name);
  } else if (waits) {
    wait_named(name, line);
  }
  if (waits) recorder_named(&at, false);
}
