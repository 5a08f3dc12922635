#include "kernels/profile/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/check.h"

namespace lambcast {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Control characters, such as a line end in a driver's device name, would break the file.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

std::string array(const std::vector<double>& values) {
  std::string out;
  for (const double value : values) {
    out += fmt::format("{}{:.4g}", out.empty() ? "" : ", ", value);
  }
  return "[" + out + "]";
}

template <typename T>
std::string whole_array(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

}  // namespace

double copy_share(const KernelTimes& kernel, std::size_t row, Bandwidth copy_bandwidth) {
  const double bytes = kernel.bytes_per_element * static_cast<double>(kernel.elements[row]);
  return bytes / (kernel.time_us[row] * 1e-6) / copy_bandwidth.value();
}

std::string to_toml(const DeviceProfileDocument& d) {
  std::string out = "# Device profile, written by `lambcast profile`.\n";
  for (const std::string& note : d.notes) out += fmt::format("# {}\n", one_line(note));
  const std::string source = quoted(one_line(d.source));
  const auto value = [&](std::string_view key, const std::string& text) {
    out += fmt::format("{} = {{ value = {}, kind = \"measured\", source = {} }}\n", key,
                       quoted(text), source);
  };
  out += "\n[device]\n";
  value("name", one_line(d.name));
  value("memory_bandwidth", to_text_bytes(d.memory_bandwidth));
  value("copy_bandwidth", to_text_bytes(d.copy_bandwidth));
  value("memory_capacity", fmt::format("{:.0f} B", d.memory_capacity.value()));
  value("launch_overhead", fmt::format("{:.3f} us", d.launch_overhead.us()));
  if (d.peak_half.value() > 0)
    value("peak_half", fmt::format("{:.1f} TFLOP/s", d.peak_half.value() / 1e12));
  value("pageable_d2h", to_text_bytes(d.pageable_d2h));
  value("pageable_h2d", to_text_bytes(d.pageable_h2d));
  value("pinned_d2h", to_text_bytes(d.pinned_d2h));
  value("pinned_h2d", to_text_bytes(d.pinned_h2d));
  if (d.compute_capability > 0)
    out += fmt::format("compute_capability = {:.1f}\nmultiprocessors = {}\nclock_mhz = {}\n",
                       d.compute_capability, d.multiprocessors, d.clock_mhz);

  for (const KernelTimes& k : d.kernels) {
    LAMBCAST_CHECK(k.elements.size() == k.time_us.size() && k.elements.size() == k.spread_us.size(),
                   "{}: {} sizes, {} times", k.name, k.elements.size(), k.time_us.size());
    std::vector<double> share;
    for (std::size_t row = 0; row < k.elements.size(); ++row) {
      share.push_back(copy_share(k, row, d.copy_bandwidth));
    }
    out += fmt::format(
        "\n[[kernel]]\nname = {}\nbytes_per_element = {:.6g}\nelements = {}\ntime_us = {}\n"
        "spread_us = {}\ncopy_share = {}\n",
        quoted(k.name), k.bytes_per_element, whole_array(k.elements), array(k.time_us),
        array(k.spread_us), array(share));
  }
  for (const ProductTimes& p : d.products)
    out += fmt::format(
        "\n[[product]]\nformat = {}\nm = {}\nn = {}\nk = {}\ntime_us = {}\nspread_us = {}\n",
        quoted(p.format), whole_array(p.m), whole_array(p.n), whole_array(p.k), array(p.time_us),
        array(p.spread_us));
  for (const LayerTimes& l : d.layers) {
    LAMBCAST_CHECK(!l.micro_batch.empty(), "no micro batch of hidden {}", l.hidden);
    out += fmt::format(
        "\n[[layer]]\nhidden = {}\nheads = {}\nffn = {}\nseq_len = {}\nmicro_batch = {}\n"
        "forward_us = {}\nbackward_us = {}\n",
        l.hidden, l.heads, l.ffn, l.seq_len, whole_array(l.micro_batch), array(l.forward_us),
        array(l.backward_us));
  }
  return out;
}

}  // namespace lambcast
