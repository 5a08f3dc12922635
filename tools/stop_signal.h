// SIGINT and SIGTERM as a flag that long work polls, so that it ends in order: rows are on disk,
// and no gnuplot keeps running.
#pragma once

namespace lambcast {

// After this call the two signals no longer end the program.
void catch_stop_signals();

// Returns the received signal, or 0. A stopped command exits with 128 plus the signal.
int stop_signal();

}  // namespace lambcast
