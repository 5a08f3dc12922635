// Reads files of LLaMA-Factory and axolotl (launcher_file.h), both based on the Trainer of Hugging
// Face.
#pragma once

#include "models/launchers/key_reader.h"

namespace lambcast::launchers {

void read_llama_factory(KeyReader& keys, LauncherFile& result);
void read_axolotl(KeyReader& keys, LauncherFile& result);

}  // namespace lambcast::launchers
