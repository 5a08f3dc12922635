// Reads files of GPT-NeoX (launcher_file.h): its model, layout and batch, and the DeepSpeed JSON
// that it passes on. GPT-NeoX merges several files; here the model and the optimizer must be in
// one. Source: EleutherAI/gpt-neox ea7aefd, megatron/neox_arguments, megatron/model/transformer.py.
#pragma once

#include "models/launchers/key_reader.h"

namespace lambcast::launchers {

void read_neox(KeyReader& keys, LauncherFile& result);

}  // namespace lambcast::launchers
