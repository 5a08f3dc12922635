// Reads files of Accelerate (launcher_file.h).
#pragma once

#include <cstdint>

#include "models/launchers/key_reader.h"

namespace lambcast::launchers {

void read_accelerate(KeyReader& keys, LauncherFile& result);
// Reads the keys of PyTorch's FSDP, with or without "fsdp_" in front. `second` means FSDP2.
void read_fsdp(KeyReader keys, std::int64_t machines, bool second);

}  // namespace lambcast::launchers
