// Fuzzes descriptions of devices.
#include "models/device/device.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(device, text) { lambcast::decode_device(lambcast::Table::parse(text, "device.toml")); }
