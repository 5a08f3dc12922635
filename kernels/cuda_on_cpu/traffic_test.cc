// The bytes that every kernel of the profile moves, against what it says and what guide.md lists.
#include "kernels/cuda_on_cpu/traffic.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/gradient.h"
#include "kernels/profile/kernels.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// What a kernel moves per element is how much more it moves of twice as many: what each block keeps
// besides (sums, counts of bins) is left out. top_k's list has room for the doubt of its sample,
// which grows by the root of what it keeps: of few elements it would be much.
constexpr std::size_t few = std::size_t{1} << 14, many = std::size_t{1} << 17;
std::size_t elements_for(const std::string& name) { return name.starts_with("top_k") ? many : few; }

// Copies of the driver are not counted.
bool is_copy(const std::string& name) { return name == "copy" || name.starts_with("mpi_staging_"); }

struct Counted {
  double says = 0, bytes = 0;  // per element
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
        const cuda_on_cpu::Traffic traffic =
            cuda_on_cpu::traffic_of([&] { REQUIRE(entry.launch(nullptr) == cudaSuccess); });
        Counted& kernel = found[entry.name];
        kernel.says = entry.bytes_per_element;
        kernel.bytes += (elements == base ? -1 : 1) * traffic.bytes() / static_cast<double>(base);
      }
    }
    return found;
  }();
  return all;
}

// The rows `name` | counted | once | least | cause of the table under "## Counted, kernel by
// kernel".
struct Row {
  std::string name;
  double counted = 0, once = 0, least = 0;
  std::string cause;
};
std::vector<Row> rows_of_guide() {
  std::ifstream file(LAMBCAST_KERNELS_GUIDE);
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) inside = line == "## Counted, kernel by kernel";
    if (!inside || !line.starts_with("| `")) continue;
    std::istringstream cells(line);
    std::string cell[6];
    for (std::string& text : cell) std::getline(cells, text, '|');
    const std::string& name = cell[1];
    rows.push_back({name.substr(2, name.rfind('`') - 2), std::stod(cell[2]), std::stod(cell[3]),
                    std::stod(cell[4]),
                    cell[5].find_first_not_of(' ') == std::string::npos ? "" : cell[5]});
  }
  return rows;
}

}  // namespace

// One test, for the count takes a minute.
TEST_CASE("every kernel moves what the profile says, and stands in the guide, with why if more") {
  for (const auto& [name, kernel] : counted()) {
    INFO(name << ": counted " << kernel.bytes << ", says " << kernel.says);
    CHECK(kernel.bytes == Approx(kernel.says).epsilon(0.02).margin(0.05));
  }
  const std::vector<Row> rows = rows_of_guide();
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
  }
}

TEST_CASE("a byte that a kernel touches again counts once, of the next kernel again") {
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

TEST_CASE("the table of the guide", "[.write-table]") {
  for (const auto& [name, kernel] : counted())
    fmt::print("| `{}` | {:.3f} | {:.6g} | |\n", name, kernel.bytes, kernel.says);
}
