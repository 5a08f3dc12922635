// The bytes that every kernel of the profile moves, compared with its own figure and limits.md.
#include "kernels/cuda_on_cpu/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "kernels/cuda/compression.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/factored.h"
#include "kernels/cuda/gradient.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/cuda/lars.h"
#include "kernels/cuda/lion.h"
#include "kernels/cuda/muon.h"
#include "kernels/profile/kernels.h"

using namespace lambcast;
using namespace lambcast::cuda;
using cuda_on_cpu::Between;

namespace {

// Bytes per element are the difference between two sizes, which excludes constants of each block
// (sums, counts of bins). top_k uses more elements, because the margin of its list grows with the
// square root of its length.
constexpr std::size_t few = std::size_t{1} << 14, many = std::size_t{1} << 21;
std::size_t elements_for(const std::string& name) { return name.starts_with("top_k") ? many : few; }

// Copies of the driver are not counted.
bool is_copy(const std::string& name) { return name == "copy" || name.starts_with("mpi_staging_"); }

// Returns the cells of rows that begin with a name in the table of limits.md under `heading`.
std::vector<std::vector<std::string>> rows_under(const std::string& heading) {
  std::ifstream file(LAMBCAST_KERNEL_LIMITS);
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) inside = line == heading;
    if (!inside || !line.starts_with("| `")) continue;
    std::istringstream cells(line.substr(1));
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string text; std::getline(cells, text, '|');) row.push_back(text);
    row[0] = row[0].substr(2, row[0].rfind('`') - 2);
  }
  return rows;
}

// Columns: `name` | counted | once | accessed data
const std::vector<std::vector<std::string>>& rows_in_cache() {
  static const auto rows = rows_under("### Tensors that fit on the chip");
  return rows;
}
bool is_in_cache_table(const std::string& name) {
  return std::ranges::any_of(rows_in_cache(), [&](const auto& cell) { return cell[0] == name; });
}

struct Counted {
  double says = 0, bytes = 0;  // per element
  double cached = 0;           // if all accessed data stays in the cache; for kernels in that table
};

const std::map<std::string, Counted>& counted() {
  static const std::map<std::string, Counted> all = [] {
    cuda_on_cpu::watch_device_memory();
    std::map<std::string, Counted> found;
    for (const std::size_t elements : {few, 2 * few, many, 2 * many}) {
      const Workbench bench(elements);
      REQUIRE(bench.refill(nullptr) == cudaSuccess);
      for (const auto& entry : bench.entries()) {
        const std::size_t base = elements_for(entry.name);
        if (is_copy(entry.name) || (elements != base && elements != 2 * base)) continue;
        const double share = (elements == base ? -1 : 1) / static_cast<double>(base);
        const auto bytes = [&](Between between) {
          const auto launch = [&] { REQUIRE(entry.launch(nullptr) == cudaSuccess); };
          return share * cuda_on_cpu::traffic_of(launch, between).bytes();
        };
        Counted& kernel = found[entry.name];
        kernel.says = entry.bytes_per_element;
        kernel.bytes += bytes(Between::memory);
        if (is_in_cache_table(entry.name)) kernel.cached += bytes(Between::cache);
      }
    }
    return found;
  }();
  return all;
}

// Columns: `name` | counted | once | least | cause
struct Row {
  std::string name;
  double counted = 0, once = 0, least = 0;
  std::string cause;
};
std::vector<Row> counted_rows() {
  std::vector<Row> rows;
  for (const auto& cell : rows_under("## Counted, kernel by kernel")) {
    rows.push_back({cell[0], std::stod(cell[1]), std::stod(cell[2]), std::stod(cell[3]),
                    cell[4].find_first_not_of(' ') == std::string::npos ? "" : cell[4]});
  }
  return rows;
}

// Checks the bytes per element of the paths of 1-bit LAMB, with the 16-bit copy of the weights (2
// bytes).
void paths_stay_within_their_limits() {
  const auto bytes = [](const char* name) { return counted().at(name).bytes; };
  const double after_worker = bytes("onebit_server_n8") + bytes("onebit_decode");
  CHECK(bytes("onebit_worker_momentum") + after_worker <= 26);
  CHECK(bytes("onebit_worker_momentum_fp16") + after_worker <= 19.4);
  CHECK(bytes("lamb_step_fp16") <= 40.1);
  CHECK(bytes("onebit_lamb_step") <= 36.4 + 2);
}

}  // namespace

// One test, because the count takes ten seconds.
TEST_CASE(
    "every kernel moves the bytes of the profile and of limits.md, with the reason if there are "
    "more") {
  for (const auto& [name, kernel] : counted()) {
    INFO(name << ": counted " << kernel.bytes << ", says " << kernel.says);
    CHECK(kernel.bytes == Approx(kernel.says).epsilon(0.02).margin(0.05));
  }
  const std::vector<Row> rows = counted_rows();
  CHECK(rows.size() == counted().size());
  for (const Row& row : rows) {
    INFO(row.name);
    const auto kernel = counted().find(row.name);
    REQUIRE(kernel != counted().end());
    CHECK(row.counted == Approx(kernel->second.bytes).epsilon(0.01).margin(0.01));
    CHECK(row.once <= row.least);
    CHECK(row.least <= row.counted * 1.01);
    CHECK(row.counted <= 1.1 * row.least);
    CHECK((row.counted <= 1.1 * row.once || !row.cause.empty()));
    CHECK((row.counted <= 1.1 * row.once || is_in_cache_table(row.name)));
  }
  // With a cache each byte moves once for all passes together.
  for (const auto& cell : rows_in_cache()) {
    INFO(cell[0]);
    const auto kernel = counted().find(cell[0]);
    REQUIRE(kernel != counted().end());
    CHECK(std::stod(cell[1]) == Approx(kernel->second.cached).epsilon(0.01).margin(0.01));
    CHECK(kernel->second.cached <= 1.1 * std::stod(cell[2]));
    const auto same = [&](const Row& row) { return row.name == cell[0]; };
    CHECK(std::ranges::find_if(rows, same)->once == std::stod(cell[2]));
  }
  paths_stay_within_their_limits();
}

TEST_CASE("a kernel reads two bytes less per element of a gradient in 16 bits") {
  cuda_on_cpu::watch_device_memory();
  constexpr std::size_t n = std::size_t{1} << 14;
  const DeviceBuffer<float> p(n), m(n), v(n), u(n), full(n), factor(1), scale(1);
  const DeviceBuffer<std::uint16_t> half(n);
  const DeviceBuffer<std::uint8_t> signs(n / 8);
  const DeviceBuffer<double> workspace(reduction_slots), squares(2);
  const LambTensors tensors(tensor_layout(std::vector<std::size_t>{n}));
  const AdamState adam{p.data(), m.data(), v.data(), u.data(), {}, n};
  const LambState lamb = tensors.state(p.data(), m.data(), v.data());
  const auto worker = [&](const float* x, const Gradient& g) {
    WorkerPhase phase;
    phase.x = x, phase.gradient = g, phase.elements = phase.padded = phase.counted = n;
    phase.error = {u.data(), scale.data()};
    phase.signs = signs.data(), phase.workspace = workspace.data();
    return worker_phase(phase, nullptr);
  };
  using Kernel = std::function<cudaError_t(const Gradient&)>;
  const std::map<std::string, Kernel> kernels{
      {"worker_phase of a momentum", [&](const auto& g) { return worker(m.data(), g); }},
      {"worker_phase of a gradient", [&](const auto& g) { return worker(nullptr, g); }},
      {"adam_step", [&](const auto& g) { return adam_step(adam, g, {}, 1, nullptr); }},
      {"zero_one_onebit_step",
       [&](const auto& g) { return zero_one_onebit_step(adam, g, {}, nullptr); }},
      {"zero_one_local_step",
       [&](const auto& g) { return zero_one_local_step(adam, g, {}, nullptr); }},
      {"zero_one_sync_begin",
       [&](const auto& g) { return zero_one_sync_begin(adam, g, {}, nullptr); }},
      {"lion_step",
       [&](const auto& g) {
         return lion_step({p.data(), m.data(), {}, n}, g, {}, nullptr);
       }},
      {"lamb_step", [&](const auto& g) { return lamb_step(lamb, g, {}, {}, nullptr); }},
      {"lars_norms", [&](const auto& g) { return lars_norms(lamb, g, squares.data(), nullptr); }},
      {"lars_apply",
       [&](const auto& g) { return lars_apply(lamb, g, {}, squares.data(), nullptr); }}};
  for (const auto& [name, kernel] : kernels) {
    const auto bytes = [&, &launch = kernel](const Gradient& g) {
      const auto run = [&] { REQUIRE(launch(g) == cudaSuccess); };
      return cuda_on_cpu::traffic_of(run).bytes();
    };
    for (const HalfFormat format : {HalfFormat::fp16, HalfFormat::bf16}) {
      INFO(name);
      const HalfPointer narrow(half.data(), format);
      CHECK(bytes({full.data(), factor.data()}) - bytes({narrow, factor.data()}) == 2. * n);
    }
  }
}

TEST_CASE("a byte that a kernel accesses again counts once, and again for the next kernel") {
  cuda_on_cpu::watch_device_memory();
  const DeviceBuffer<float> x(4096);
  const DeviceBuffer<double> slots(reduction_slots), norm(1);
  for (const int calls : {1, 3}) {
    const cuda_on_cpu::Traffic traffic = cuda_on_cpu::traffic_of([&] {
      for (int i = 0; i < calls; ++i)
        REQUIRE(measure_gradient(x.data(), x.size(), norm.data(), slots.data(), nullptr) ==
                cudaSuccess);
    });
    CHECK(traffic.read_bytes >= calls * 4. * 4096);
    CHECK(traffic.read_bytes < calls * 4.1 * 4096);
    CHECK(traffic.written_bytes < calls * 100);
  }
}

TEST_CASE("with a cache, data that a path has accessed is not read from memory again") {
  cuda_on_cpu::watch_device_memory();
  constexpr double bytes = 4. * 4096;
  const DeviceBuffer<float> x(4096), y(4096);
  const DeviceBuffer<std::uint8_t> signs(512);
  const auto path = [&] {
    const auto n = x.size();
    REQUIRE(pack_signs(x.data(), signs.data(), n, reference::SignRule::not_negative, nullptr) ==
            cudaSuccess);
    REQUIRE(unpack_signs(signs.data(), y.data(), n, nullptr) == cudaSuccess);
    REQUIRE(apply_mask(y.data(), x.data(), n, nullptr) == cudaSuccess);
  };
  const auto memory = cuda_on_cpu::traffic_of(path), cached = traffic_of(path, Between::cache);
  CHECK(memory.read_bytes == bytes + 512 + 2 * bytes);
  CHECK(memory.written_bytes == 512 + bytes + bytes);
  CHECK(cached.read_bytes == bytes);
  CHECK(cached.written_bytes == 512 + bytes);
}

TEST_CASE("Adafactor reads weights for their norm only if it is needed and not kept") {
  cuda_on_cpu::watch_device_memory();
  constexpr std::size_t rows = 64, columns = 1024;
  const reference::Part part = reference::whole_part({rows, columns});
  const DeviceBuffer<float> p(rows * columns), g(rows * columns), thin(2 * rows + 2 * columns);
  const DeviceBuffer<double> sums(rows + columns), workspace(factored_workspace(part)),
      kept(factored_kept(part));
  FactoredTensor tensor;
  tensor.part = part, tensor.p = p.data(), tensor.g = g.data();
  tensor.moment = {thin.data(), thin.data() + rows, thin.data() + rows + columns};
  tensor.sums = sums.data(), tensor.workspace = workspace.data();
  const auto bytes = [&](const reference::AdafactorOptions& options, bool keeps) {
    tensor.kept = keeps ? kept.data() : nullptr;
    const FactoredTensors tensors(std::span(&tensor, 1));
    const auto norms = [&] {
      REQUIRE(adafactor_norms(tensors.batch(), {options}, 1, nullptr) == cudaSuccess);
    };
    return cuda_on_cpu::traffic_of(norms).read_bytes / static_cast<double>(rows * columns);
  };
  CHECK(bytes({}, false) == Approx(8).margin(0.5));
  CHECK(bytes({}, true) == Approx(4).margin(0.5));
  CHECK(bytes({.scale_parameter = false}, false) == Approx(4).margin(0.5));
  CHECK(bytes({.rms_stays_zero = true}, false) == Approx(4).margin(0.5));
}

TEST_CASE("a step of Muon moves 30 bytes per element without its products") {
  cuda_on_cpu::watch_device_memory();
  constexpr std::size_t rows = 16, columns = 1024, n = rows * columns;
  const DeviceBuffer<float> p(n), m(n), full(n);
  const DeviceBuffer<std::uint16_t> half(n), half_p(n);
  MuonStep muon({rows, columns}, {});
  const auto bytes = [&](const Gradient& g, HalfPointer copy) {
    const auto step = [&] { muon.step(p.data(), m.data(), g, copy, nullptr); };
    return cuda_on_cpu::traffic_of(step).bytes() / static_cast<double>(n);
  };
  const HalfPointer narrow(half.data(), HalfFormat::bf16), copy(half_p.data(), HalfFormat::bf16);
  CHECK(bytes(full.data(), {}) == Approx(30).margin(0.1));
  CHECK(bytes(narrow, {}) == Approx(28).margin(0.1));
  CHECK(bytes(narrow, copy) == Approx(30).margin(0.1));
}

TEST_CASE("the table of limits.md", "[.write-table]") {
  for (const auto& [name, kernel] : counted())
    fmt::print("| `{}` | {:.3f} | {:.6g} | | in the cache {:.3f}\n", name, kernel.bytes,
               kernel.says, kernel.cached);
}
