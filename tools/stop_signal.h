// SIGINT and SIGTERM as a flag that long work polls, so that it ends in order: rows on disk, no
// gnuplot left behind.
#pragma once

namespace lambcast {

// From here on the two signals no longer end the program.
void catch_stop_signals();

// The signal that came, 0 while none has. A stopped command exits with 128 more than it.
int stop_signal();

}  // namespace lambcast
