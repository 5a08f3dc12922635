#include "models/device/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "embedded/device_files.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// A curve's own kind and source; a profile says them once, at its device.
Provenance evidence(const Table& table, const Provenance& of_device) {
  if (!table.has("kind")) return of_device;
  const std::vector<std::string> kinds{"measured", "published", "fitted", "assumed"};
  const auto kind = static_cast<Kind>(table.choice("kind", kinds));
  return {kind, table.get<std::string>("source")};
}

// Equally long lists of positive numbers, the first one ascending.
std::vector<double> axis(const Table& table, std::string_view key) {
  auto values = table.get<std::vector<double>>(key);
  if (values.empty()) fail_input(table.where(key), "is empty");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] > 0) || (i > 0 && values[i] <= values[i - 1]))
      fail_input(table.where(key), "must be ascending and above zero");
  return values;
}

std::vector<double> ordinates(const Table& table, std::string_view key, std::size_t count,
                              bool zero_too = false) {
  auto values = table.get<std::vector<double>>(key);
  if (values.size() != count)
    fail_input(table.where(key), fmt::format("has {} values for {} points", values.size(), count));
  for (const double value : values)
    if (!(value > 0 || (zero_too && value == 0)))
      fail_input(table.where(key), zero_too ? "must not be negative" : "must be above zero");
  return values;
}

TrainingCurve decode_training_curve(const Table& table, const Provenance& of_device) {
  TrainingCurve curve;
  curve.model = table.get<std::string>("model");
  curve.implementation = table.get<std::string>("implementation");
  curve.seq_len = table.integer("seq_len", 1, 1 << 20);
  curve.micro_batch = axis(table, "micro_batch");
  curve.samples_per_s = ordinates(table, "samples_per_s", curve.micro_batch.size());
  curve.provenance = evidence(table, of_device);
  for (std::size_t i = 1; i < curve.micro_batch.size(); ++i) {
    if (curve.micro_batch[i] / curve.samples_per_s[i] <
        curve.micro_batch[i - 1] / curve.samples_per_s[i - 1])
      fail_input(table.where("samples_per_s"), "gives a larger micro batch less time");
  }
  return curve;
}

KernelCurve decode_kernel(const Table& table, const Provenance& of_device) {
  KernelCurve curve;
  curve.name = table.get<std::string>("name");
  curve.elements = axis(table, "elements");
  curve.time_us = ordinates(table, "time_us", curve.elements.size());
  curve.bytes_per_element = table.get_or<double>("bytes_per_element", 0);
  if (table.has("spread_us"))
    curve.spread_us = ordinates(table, "spread_us", curve.elements.size(), true);
  table.has("copy_share");  // for readers of the profile
  curve.provenance = evidence(table, of_device);
  return curve;
}

LayerCurve decode_layer(const Table& table, const Provenance& of_device) {
  LayerCurve curve;
  curve.hidden = table.integer("hidden", 1, 1 << 20);
  curve.heads = table.integer("heads", 1, 1 << 16);
  curve.ffn = table.integer("ffn", 1, 1 << 22);
  curve.seq_len = table.integer("seq_len", 1, 1 << 20);
  curve.micro_batch = axis(table, "micro_batch");
  curve.forward_us = ordinates(table, "forward_us", curve.micro_batch.size());
  curve.backward_us = ordinates(table, "backward_us", curve.micro_batch.size());
  curve.provenance = evidence(table, of_device);
  return curve;
}

}  // namespace

Device decode_device(const Table& root) {
  const Table table = root.table("device");
  const auto assumed = [](double value, const char* why) {
    return Sourced<double>{value, {Kind::assumed, why}};
  };
  Device device;
  const auto quantity = [&](const char* key, const char* text, const char* why) {
    return table.get_or<Sourced<Bandwidth>>(key, {parse_bandwidth(text, {}), {Kind::assumed, why}});
  };
  device.name = table.get<Sourced<std::string>>("name").value;
  device.memory_capacity = table.get<Sourced<Bytes>>("memory_capacity").value;
  device.memory_bandwidth = table.get<Sourced<Bandwidth>>("memory_bandwidth");
  device.copy_bandwidth = table.get<Sourced<Bandwidth>>("copy_bandwidth");
  // What `lambcast profile` cannot measure without cuBLASLt.
  device.peak_half = table.get_or<Sourced<FlopRate>>(
      "peak_half", {FlopRate(150 * device.memory_bandwidth.value.value()),
                    {Kind::assumed, "150 FLOP per byte of memory; V100 to B200 have 139 to 295"}});
  device.peak_single = table.get_or<Sourced<FlopRate>>(
      "peak_single", {device.peak_half.value * 0.5, {Kind::assumed, "half of peak_half"}});
  device.matrix_efficiency = table.get_or<Sourced<double>>(
      "matrix_efficiency", assumed(0.4, "usual share of peak in transformer training"));
  device.launch_overhead = table.get_or<Sourced<Duration>>(
      "launch_overhead",
      {Duration::microseconds(3), {Kind::assumed, "one launch from C++, stream not full"}});
  device.framework_launch = table.get_or<Sourced<Duration>>(
      "framework_launch",
      {Duration::microseconds(6), {Kind::assumed, "PyTorch eager mode, one elementwise kernel"}});
  device.pageable_d2h = quantity("pageable_d2h", "3 GB/s", "pageable copy, PCIe");
  device.pageable_h2d = quantity("pageable_h2d", "3 GB/s", "pageable copy, PCIe");
  device.pinned_d2h = quantity("pinned_d2h", "6 GB/s", "pinned buffers, several GPUs at once");
  device.pinned_h2d = quantity("pinned_h2d", "6 GB/s", "pinned buffers, several GPUs at once");
  device.sync_overhead = table.get_or<Sourced<Duration>>(
      "sync_overhead",
      {Duration::microseconds(20), {Kind::assumed, "PyTorch .item(): copy, wait and wake-up"}});
  device.forward_share = table.get_or<Sourced<double>>(
      "forward_share",
      {0.36, {Kind::published, "1-bit Adam paper (arXiv 2102.02888), Table 1: 32.8 of 91.5 ms"}});
  if (root.has("rates"))
    device.rates = decode_rates(root.table("rates"), {device.name, device.peak_single,
                                                      device.peak_half, device.copy_bandwidth});
  const Provenance of_device = device.copy_bandwidth.provenance;
  for (const Table& curve : root.tables("training_curve"))
    device.training_curves.push_back(decode_training_curve(curve, of_device));
  for (const Table& curve : root.tables("kernel"))
    device.kernels.push_back(decode_kernel(curve, of_device));
  for (const Table& curve : root.tables("layer"))
    device.layers.push_back(decode_layer(curve, of_device));
  root.finish();
  return device;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : device_files()) {
    std::string name(file.name.substr(file.name.rfind('/') + 1));
    names.push_back(name.substr(0, name.size() - std::string_view(".toml").size()));
  }
  return names;
}

std::string device_text(const std::string& name) {
  for (const EmbeddedFile& file : device_files())
    if (file.name.ends_with("/" + name + ".toml")) return std::string(file.text);
  fail_unknown({"", 0, "--device"}, "device profile", name, device_names());
}

Device load_device(const std::string& name_or_path) {
  if (!is_path(name_or_path))
    return decode_device(Table::parse(device_text(name_or_path), name_or_path + ".toml"));
  return decode_device(Table::parse(read_file(name_or_path), name_or_path));
}

const KernelCurve* find_kernel(const Device& device, std::string_view name) {
  if (name.empty()) return nullptr;
  for (const KernelCurve& kernel : device.kernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

double interpolate(const std::vector<double>& x, const std::vector<double>& y, double at) {
  if (x.size() == 1) return y[0] * at / x[0];
  const auto above = std::upper_bound(x.begin(), x.end(), at);
  const auto i = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(above - x.begin(), 1, static_cast<std::ptrdiff_t>(x.size()) - 1));
  const double slope = (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
  return std::max(0.0, y[i - 1] + slope * (at - x[i - 1]));
}

}  // namespace lambcast
