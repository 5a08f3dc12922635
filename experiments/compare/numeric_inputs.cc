#include "experiments/compare/numeric_inputs.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "models/device/compute.h"

namespace lambcast {
namespace {

double raw(double value) { return value; }
double raw(Duration value) { return value.s(); }
template <typename Tag>
double raw(Amount<Tag> value) {
  return value.value();
}

void multiply(double& value, double factor) { value *= factor; }
void multiply(Duration& value, double factor) { value = value.scaled(factor); }
template <typename Tag>
void multiply(Amount<Tag>& value, double factor) {
  value = value * factor;
}

std::string input_text(double value) { return fmt::format("{:.4g}", value); }
std::string input_text(Duration value) { return to_text(value); }
std::string input_text(Bytes value) { return to_text(value); }
std::string input_text(Bandwidth value) { return to_text_bytes(value); }
std::string input_text(FlopRate value) {
  return fmt::format("{:.4g} TFLOP/s", value.value() * 1e-12);
}

// Text form of each type of number in a description.
template <typename T>
struct InText;
template <>
struct InText<double> {
  static std::string write(double number) { return fmt::format("{}", number); }
  static std::string words(double number) { return input_text(number); }
  static double read(std::string_view text, const Where& where) {
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc{} || end != text.data() + text.size() || !(number > 0))
      fail_input(where, fmt::format("'{}' is not a number above zero", text));
    return number;
  }
};
template <>
struct InText<Duration> {
  static std::string write(double s) { return fmt::format("{} us", s * 1e6); }
  static std::string words(double s) { return input_text(Duration::seconds(s)); }
  static double read(std::string_view text, const Where& where) {
    return parse_duration(text, where).s();
  }
};
template <>
struct InText<Bytes> {
  static std::string write(double bytes) { return fmt::format("{} B", bytes); }
  static std::string words(double bytes) { return input_text(Bytes(bytes)); }
  static double read(std::string_view text, const Where& where) {
    return parse_bytes(text, where).value();
  }
};
template <>
struct InText<Bandwidth> {
  static std::string write(double rate) { return fmt::format("{} bit/s", rate * 8); }
  static std::string words(double rate) { return input_text(Bandwidth(rate)); }
  static double read(std::string_view text, const Where& where) {
    return parse_bandwidth(text, where).value();
  }
};
template <>
struct InText<FlopRate> {
  static std::string write(double rate) { return fmt::format("{} FLOP/s", rate); }
  static std::string words(double rate) { return input_text(FlopRate(rate)); }
  static double read(std::string_view text, const Where& where) {
    return parse_flop_rate(text, where).value();
  }
};

class Inputs {
 public:
  explicit Inputs(const TrainingPlan& training)
      : cluster_(*training.cluster), device_(*training.device) {}

  // Adds an input. `find` returns its Sourced number in a cluster and device, const or not.
  template <typename Find>
  void add(std::string key, Find find) {
    const auto& number = find(std::as_const(cluster_), std::as_const(device_));
    if (raw(number.value) == 0) return;
    using Text = InText<std::decay_t<decltype(number.value)>>;
    all.push_back({std::move(key), input_text(number.value), number.provenance,
                   [find](Cluster& cluster, Device& device, double factor) {
                     multiply(find(cluster, device).value, factor);
                   },
                   raw(number.value), &Text::write, Text::words, Text::read});
  }
  // Adds another number that is scaled together with the last input.
  template <typename Find>
  void with(Find find) {
    all.back().scale = [before = all.back().scale, find](Cluster& cluster, Device& device,
                                                         double factor) {
      before(cluster, device, factor);
      multiply(find(cluster, device).value, factor);
    };
  }
  template <typename Find>
  void add_optional(std::string key, Find find) {
    if (find(std::as_const(cluster_), std::as_const(device_)))
      add(
          std::move(key), [find](auto& cluster, auto& device) -> auto& {
            return *find(cluster, device);
          });
  }

  std::vector<NumericInput> all;

 private:
  const Cluster& cluster_;
  const Device& device_;
};

// Adds the inputs of one library, which `get` finds in a cluster: its efficiencies and the
// latencies of its protocols.
template <typename Get>
void add_library(Inputs& inputs, const std::string& name, const LibrarySpec& spec, Get get) {
  const auto share = [&](const char* key, auto member) {
    inputs.add(
        fmt::format("cluster.{}.{}", name, key),
        [ get, member ](auto& cluster, auto&) -> auto& { return get(cluster).*member; });
  };
  share("nic_efficiency", &LibrarySpec::nic_efficiency);
  if (spec.rules == DecisionRules::nccl) share("link_efficiency", &LibrarySpec::link_efficiency);
  share("single_gpu_efficiency", &LibrarySpec::single_gpu_efficiency);
  share("tree_efficiency", &LibrarySpec::tree_efficiency);
  share("all_to_all_efficiency", &LibrarySpec::all_to_all_efficiency);
  share("queue_ahead", &LibrarySpec::queue_ahead);
  share("message_overhead", &LibrarySpec::message_overhead);
  inputs.add_optional(
      fmt::format("cluster.{}.slice", name), [get](auto& cluster, auto&) -> auto& {
        return get(cluster).slice;
      });
  inputs.add_optional(
      fmt::format("cluster.{}.flow_cap", name), [get](auto& cluster, auto&) -> auto& {
        return get(cluster).flow_cap;
      });
  for (std::size_t i = 0; i < spec.protocols.size(); ++i) {
    const std::string prefix = fmt::format("cluster.{}.{}.", name, spec.protocols[i].name);
    const auto of_protocol = [get, i](auto member) {
      return [ get, i, member ](auto& cluster, auto&) -> auto& {
        return get(cluster).protocols[i].*member;
      };
    };
    for (const auto& [key, ring, tree] :
         {std::tuple("base", &ProtocolSpec::base, &ProtocolSpec::tree_base),
          std::tuple("local_hop", &ProtocolSpec::local_hop, &ProtocolSpec::tree_local_hop),
          std::tuple("network_hop", &ProtocolSpec::network_hop, &ProtocolSpec::tree_network_hop)}) {
      if ((spec.protocols[i].*ring).value == Duration()) continue;
      inputs.add(prefix + key, of_protocol(ring));
      inputs.with(of_protocol(tree));
    }
    inputs.add(prefix + "efficiency", of_protocol(&ProtocolSpec::efficiency));
    inputs.add_optional(prefix + "alone_base", of_protocol(&ProtocolSpec::alone_base));
    inputs.add_optional(prefix + "alone_local_hop", of_protocol(&ProtocolSpec::alone_local_hop));
    inputs.add_optional(prefix + "node_cap", of_protocol(&ProtocolSpec::node_cap));
  }
}

void add_cluster(Inputs& inputs, const Cluster& cluster) {
  const auto number = [&](const char* key, auto member) {
    inputs.add(
        key, [member](auto& of, auto&) -> auto& { return of.*member; });
  };
  number("cluster.nic.bandwidth", &Cluster::nic_bandwidth);
  number("cluster.nic.burst", &Cluster::nic_burst);
  number("cluster.node.gpu_link", &Cluster::gpu_link);
  if (cluster.gpu_peers == GpuPeers::pcie)
    inputs.with([](auto& of, auto&) -> auto& { return of.gpu_nic; });
  else
    number("cluster.node.gpu_nic", &Cluster::gpu_nic);
  number("cluster.node.host_link", &Cluster::host_link);
  number("cluster.node.host_memory", &Cluster::host_memory);
  // A single switch and a torus have no oversubscription.
  if (cluster.fabric.kind != FabricKind::single_switch && cluster.fabric.kind != FabricKind::torus)
    inputs.add(
        "cluster.fabric.oversubscription",
        [](auto& of, auto&) -> auto& { return of.fabric.oversubscription; });
  add_library(
      inputs, "nccl", cluster.nccl, [](auto& of) -> auto& { return of.nccl; });
  add_library(
      inputs, "mpi", cluster.mpi, [](auto& of) -> auto& { return of.mpi; });
  const auto copy = [&](const char* key, auto member) {
    inputs.add_optional(
        fmt::format("cluster.host_copy.{}", key), [member](auto& of, auto&) -> auto& {
          return of.host_copy.*member;
        });
  };
  copy("pageable_to_host", &HostCopySpec::pageable_to_host);
  copy("pageable_to_device", &HostCopySpec::pageable_to_device);
  copy("staged_by_mpi", &HostCopySpec::staged_by_mpi);
  const auto stack = [&](const char* key, auto member) {
    inputs.add(
        fmt::format("cluster.stack.{}", key), [member](auto& of, auto&) -> auto& {
          return of.stack.*member;
        });
  };
  stack("compute_scale", &StackSpec::compute_scale);
  stack("compute_spread", &StackSpec::compute_spread);
  stack("gpu_spread", &StackSpec::gpu_spread);
  stack("optimizer_scale", &StackSpec::optimizer_scale);
}

void add_rates(Inputs& inputs, const GpuRates& rates) {
  const auto rate = [&](const char* key, auto member) {
    inputs.add(
        fmt::format("device.rates.{}", key), [member](auto&, auto& device) -> auto& {
          return (*device.rates).*member;
        });
  };
  rate("peak_vector", &GpuRates::peak_vector);
  rate("exponentials", &GpuRates::exponentials);
  rate("kernel_start", &GpuRates::kernel_start);
  if (rates.share_attention)
    inputs.add(
        "device.rates.share_attention",
        [](auto&, auto& device) -> auto& { return *device.rates->share_attention; });
  const auto peak = [&](const char* key, std::initializer_list<MatrixFormat> formats) {
    bool first = true;
    for (const MatrixFormat format : formats) {
      if (rates.of(format).peak.value == FlopRate()) continue;
      const auto find = [place = static_cast<std::size_t>(format)](auto&, auto& device) -> auto& {
        return device.rates->matrix[place].peak;
      };
      if (std::exchange(first, false))
        inputs.add(key, find);
      else
        inputs.with(find);
    }
  };
  peak("device.rates.peak_fp8", {MatrixFormat::fp8, MatrixFormat::mxfp8});
  peak("device.rates.peak_fp4", {MatrixFormat::nvfp4});
  for (std::size_t format = 0; format < matrix_formats; ++format)
    if (rates.matrix[format].peak.value != FlopRate())
      inputs.add(
          fmt::format("device.rates.share_{}", name_of(static_cast<MatrixFormat>(format))),
          [format](auto&, auto& device) -> auto& { return device.rates->matrix[format].share; });
}

void add_device(Inputs& inputs, const Device& device) {
  const auto number = [&](const char* key, auto member) {
    inputs.add(
        fmt::format("device.{}", key), [member](auto&, auto& of) -> auto& { return of.*member; });
  };
  // Rates of kernels repeat three numbers of the device, which are scaled together with them.
  number("copy_bandwidth", &Device::copy_bandwidth);
  if (device.rates) inputs.with([](auto&, auto& of) -> auto& { return of.rates->memory; });
  for (const auto& [key, member, format] :
       {std::tuple("peak_half", &Device::peak_half, MatrixFormat::half),
        std::tuple("peak_single", &Device::peak_single, MatrixFormat::single)}) {
    if ((device.*member).value == FlopRate()) continue;
    number(key, member);
    const auto place = static_cast<std::size_t>(format);
    if (device.rates)
      inputs.with([place](auto&, auto& of) -> auto& { return of.rates->matrix[place].peak; });
  }
  number("matrix_efficiency", &Device::matrix_efficiency);
  number("launch_overhead", &Device::launch_overhead);
  number("framework_launch", &Device::framework_launch);
  number("sync_overhead", &Device::sync_overhead);
  number("forward_share", &Device::forward_share);
  number("pageable_d2h", &Device::pageable_d2h);
  number("pageable_h2d", &Device::pageable_h2d);
  number("pinned_d2h", &Device::pinned_d2h);
  number("pinned_h2d", &Device::pinned_h2d);
  if (device.rates) add_rates(inputs, *device.rates);
}

// Adds the values of one list of a curve as a single input. `find` returns the curve of a device,
// const or not.
template <typename Curve, typename Find>
void add_curve(std::vector<NumericInput>& all, const Device& device, const Curve& curve,
               const char* key, Find find) {
  const std::vector<double> values = find(device);
  all.push_back({fmt::format("device.{}.{}", curve_name(curve), key),
                 fmt::format("{} points", values.size()), curve.provenance,
                 [find](Cluster&, Device& of, double factor) {
                   for (double& value : find(of)) value *= factor;
                 },
                 1,
                 [values](double factor) {
                   std::vector<std::string> scaled;
                   for (const double value : values)
                     scaled.push_back(fmt::format("{}", value * factor));
                   return fmt::format("[{}]", fmt::join(scaled, ", "));
                 }});
}

// Adds the measured and published curves of the device.
void add_curves(std::vector<NumericInput>& all, const ModelShape& model, const Device& device) {
  for (std::size_t i = 0; i < device.training_curves.size(); ++i) {
    const TrainingCurve& curve = device.training_curves[i];
    if (is_curve_of(curve, model))
      add_curve(
          all, device, curve,
          "samples_per_s", [i](auto& of) -> auto& { return of.training_curves[i].samples_per_s; });
  }
  for (std::size_t i = 0; i < device.kernels.size(); ++i)
    add_curve(
        all, device, device.kernels[i],
        "time_us", [i](auto& of) -> auto& { return of.kernels[i].time_us; });
  for (std::size_t i = 0; i < device.layers.size(); ++i) {
    add_curve(
        all, device, device.layers[i],
        "forward_us", [i](auto& of) -> auto& { return of.layers[i].forward_us; });
    add_curve(
        all, device, device.layers[i],
        "backward_us", [i](auto& of) -> auto& { return of.layers[i].backward_us; });
  }
}

}  // namespace

std::vector<NumericInput> numeric_inputs(const TrainingPlan& training) {
  Inputs inputs(training);
  add_cluster(inputs, *training.cluster);
  add_device(inputs, *training.device);
  add_curves(inputs.all, *training.model, *training.device);
  return std::move(inputs.all);
}

TrainingPlan scaled(const TrainingPlan& training, const NumericInput& input, double factor) {
  Cluster cluster = *training.cluster;
  Device device = *training.device;
  input.scale(cluster, device, factor);
  TrainingPlan changed = training;
  changed.cluster = std::make_shared<Cluster>(std::move(cluster));
  changed.device = std::make_shared<Device>(std::move(device));
  return changed;
}

}  // namespace lambcast
