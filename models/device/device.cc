#include "models/device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "embedded/device_files.h"
#include "models/device/profiled_rates.h"
#include "models/shape/load.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/range.h"
#include "sim/base/required_keys.h"

namespace lambcast {
namespace {

// Limits of a curve: a time above an hour or below a femtosecond has a wrong unit.
constexpr double most_elements = 1e15, most_us = 3.6e9, most_rate = 1e15, least = 1e-9;

// Reads a list of positive, ascending numbers, the x axis of a curve.
std::vector<double> axis(const Table& table, std::string_view key) {
  auto values = table.get<std::vector<double>>(key);
  if (values.empty()) fail_input(table.where(key), "is empty");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(values[i] >= least && values[i] <= most_elements) ||
        (i > 0 && values[i] <= values[i - 1]))
      fail_input(table.where(key), "must be ascending and above zero",
                 fmt::format("up to {:g}", most_elements));
  return values;
}

std::vector<double> ordinates(const Table& table, std::string_view key, std::size_t count,
                              double most, bool zero_too = false) {
  auto values = table.get<std::vector<double>>(key);
  if (values.size() != count)
    fail_input(table.where(key), fmt::format("has {} values for {} points", values.size(), count));
  for (const double value : values)
    if (!((value >= least && value <= most) || (zero_too && value == 0)))
      fail_input(table.where(key), fmt::format("{:g} is out of range", value),
                 fmt::format("{} to {:g}", zero_too ? "0" : fmt::format("{:g}", least), most));
  return values;
}

// Checks that the model of a curve can have its length: 0 for images, whose samples have no length.
void check_length(const Table& table, const TrainingCurve& curve) {
  std::int64_t low = 0, high = 1 << 20;
  if (const ModelShape* preset = find_model_preset(curve.model)) {
    high = preset->max_seq_len;
    low = std::min<std::int64_t>(1, high);
  }
  if (curve.seq_len < low || curve.seq_len > high)
    fail_input(table.where("seq_len"),
               fmt::format("{} is out of range for {}", curve.seq_len, curve.model),
               fmt::format("{} to {}", low, high));
}

// Reads a training curve. It states its own kind and source; a profile states them once, for the
// device.
TrainingCurve decode_training_curve(const Table& table, const Provenance& of_device) {
  TrainingCurve curve;
  curve.model = table.get<std::string>("model");
  curve.implementation = table.get<std::string>("implementation");
  curve.seq_len = table.integer("seq_len", 0, 1 << 20);
  check_length(table, curve);
  curve.micro_batch = axis(table, "micro_batch");
  curve.samples_per_s = ordinates(table, "samples_per_s", curve.micro_batch.size(), most_rate);
  curve.provenance = table.provenance_or(of_device);
  for (std::size_t i = 1; i < curve.micro_batch.size(); ++i) {
    if (curve.micro_batch[i] / curve.samples_per_s[i] <
        curve.micro_batch[i - 1] / curve.samples_per_s[i - 1])
      fail_input(table.where("samples_per_s"),
                 "a larger micro batch takes less time than a smaller one");
  }
  return curve;
}

KernelCurve decode_kernel(const Table& table, const Provenance& of_device) {
  KernelCurve curve;
  curve.name = table.get<std::string>("name");
  curve.elements = axis(table, "elements");
  curve.time_us = ordinates(table, "time_us", curve.elements.size(), most_us);
  curve.bytes_per_element = table.get_or<double>("bytes_per_element", 0);
  if (!(curve.bytes_per_element >= 0 && curve.bytes_per_element <= 1e6))
    fail_input(table.where("bytes_per_element"),
               fmt::format("{:g} is out of range", curve.bytes_per_element), "0 to 1e+06");
  if (table.has("spread_us"))
    curve.spread_us = ordinates(table, "spread_us", curve.elements.size(), most_us, true);
  table.has("copy_share");  // read by other programs
  curve.provenance = table.provenance_or(of_device);
  return curve;
}

LayerCurve decode_layer(const Table& table, const Provenance& of_device) {
  LayerCurve curve;
  curve.hidden = table.integer("hidden", 1, 1 << 20);
  curve.heads = table.integer("heads", 1, 1 << 16);
  curve.ffn = table.integer("ffn", 1, 1 << 22);
  curve.seq_len = table.integer("seq_len", 1, 1 << 20);
  curve.micro_batch = axis(table, "micro_batch");
  curve.forward_us = ordinates(table, "forward_us", curve.micro_batch.size(), most_us);
  curve.backward_us = ordinates(table, "backward_us", curve.micro_batch.size(), most_us);
  curve.provenance = table.provenance_or(of_device);
  return curve;
}

}  // namespace

Device decode_device(const Table& root, const std::optional<Provenance>& of_curves) {
  refuse_missing_keys(root,
                      {{"device", "name"},
                       {"device", "memory_capacity"},
                       {"device", "memory_bandwidth"},
                       {"device", "copy_bandwidth"}},
                      "a100-80g");
  const Table table = root.table("device");
  Device device;
  const auto quantity = [&](const char* key, const char* text, const char* why) {
    return get_within(table, key, any_bandwidth, {parse_bandwidth(text, {}), {Kind::assumed, why}});
  };
  device.name = table.get<Sourced<std::string>>("name").value;
  device.memory_capacity =
      get_within(table, "memory_capacity", Range<Bytes>{Bytes(1e6), Bytes(1e15)}).value;
  device.memory_bandwidth = get_within(table, "memory_bandwidth", any_bandwidth);
  // Copies may be slightly faster than the nominal rate, since it is rounded and caches help. A
  // profile has no nominal rate: its memory_bandwidth is that of one kernel.
  const bool name_plate = device.memory_bandwidth.provenance.kind != Kind::measured;
  device.copy_bandwidth = get_within(
      table, "copy_bandwidth",
      name_plate ? Range<Bandwidth>{any_bandwidth.low, 1.1 * device.memory_bandwidth.value}
                 : any_bandwidth);
  // Defaults of rates that `lambcast profile` cannot measure without cuBLASLt.
  device.peak_half =
      get_within(table, "peak_half", any_flop_rate,
                 {FlopRate(150 * device.memory_bandwidth.value.value()),
                  {Kind::assumed, "150 FLOP per byte of memory; V100 to B200 have 139 to 295"}});
  device.peak_single =
      get_within(table, "peak_single", any_flop_rate,
                 {device.peak_half.value * 0.5, {Kind::assumed, "half of peak_half"}});
  device.matrix_efficiency =
      get_within(table, "matrix_efficiency", Range<double>{0.001, 1},
                 {0.4, {Kind::assumed, "usual share of peak in transformer training"}});
  device.launch_overhead = get_within(
      table, "launch_overhead", any_latency,
      {Duration::microseconds(3), {Kind::assumed, "one launch from C++, stream not full"}});
  device.framework_launch = get_within(
      table, "framework_launch", any_latency,
      {Duration::microseconds(6), {Kind::assumed, "PyTorch eager mode, one elementwise kernel"}});
  device.pageable_d2h = quantity("pageable_d2h", "3 GB/s", "pageable copy, PCIe");
  device.pageable_h2d = quantity("pageable_h2d", "3 GB/s", "pageable copy, PCIe");
  device.pinned_d2h = quantity("pinned_d2h", "6 GB/s", "pinned buffers, several GPUs at once");
  device.pinned_h2d = quantity("pinned_h2d", "6 GB/s", "pinned buffers, several GPUs at once");
  device.sync_overhead = get_within(
      table, "sync_overhead", any_latency,
      {Duration::microseconds(20), {Kind::assumed, "PyTorch .item(): copy, wait and wake-up"}});
  device.forward_share = get_within(
      table, "forward_share", Range<double>{0.01, 0.99},
      {0.36, {Kind::published, "1-bit Adam paper (arXiv 2102.02888), Table 1: 32.8 of 91.5 ms"}});
  if (root.has("rates"))
    device.rates = decode_rates(root.table("rates"), {device.name, device.peak_single,
                                                      device.peak_half, device.copy_bandwidth});
  const Provenance of_device = of_curves.value_or(device.copy_bandwidth.provenance);
  for (const Table& curve : root.tables("training_curve"))
    device.training_curves.push_back(decode_training_curve(curve, of_device));
  for (const Table& curve : root.tables("kernel"))
    device.kernels.push_back(decode_kernel(curve, of_device));
  for (const Table& curve : root.tables("layer"))
    device.layers.push_back(decode_layer(curve, of_device));
  const TimedChip chip = decode_chip(table);
  const std::vector<TimedProducts> products = decode_products(root, of_device);
  if (!device.rates) device.rates = rates_of_profile(device, chip, products);
  device.timed_rates = device.rates;
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

bool emulates_bf16(const Device& device) {
  return device.rates && device.rates->compute_capability < generation::ampere;
}

Device in_emulated_bf16(Device device) {
  device.peak_half = device.peak_single;
  device.training_curves.clear();
  device.layers.clear();
  if (!device.rates) return device;
  auto& matrix = device.rates->matrix;
  matrix[static_cast<std::size_t>(MatrixFormat::half)] =
      matrix[static_cast<std::size_t>(MatrixFormat::single)];
  device.rates->held_out.reset();
  return device;
}

const KernelCurve* find_kernel(const Device& device, std::string_view name,
                               double bytes_per_element) {
  if (name.empty()) return nullptr;
  for (const KernelCurve& kernel : device.kernels) {
    if (kernel.name != name) continue;
    const double moved = kernel.bytes_per_element;
    const bool known = moved > 0 && bytes_per_element > 0;
    return known && std::abs(moved / bytes_per_element - 1) > 0.03 ? nullptr : &kernel;
  }
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
