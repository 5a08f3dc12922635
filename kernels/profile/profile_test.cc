#include "kernels/profile.h"

#include <toml++/toml.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "kernels/profile/bert_large.h"
#include "kernels/profile/document.h"
#include "sim/base/error.h"

using namespace lambcast;

namespace {

DeviceProfileDocument sample() {
  DeviceProfileDocument d;
  d.name = "Some \"GPU\"";
  d.source = "a test";
  d.memory_bandwidth = Bandwidth(4e12);
  d.copy_bandwidth = Bandwidth(2e12);
  d.memory_capacity = Bytes(150123456789);
  d.launch_overhead = Duration::microseconds(2.5);
  d.pageable_d2h = d.pageable_h2d = Bandwidth(5e9);
  d.pinned_d2h = d.pinned_h2d = Bandwidth(50e9);
  d.kernels.push_back({"copy", 8, {1000000, 4000000}, {4, 20}, {0.1, 0.2}});
  d.compute_capability = 9;
  d.multiprocessors = 132, d.clock_mhz = 1980;
  d.products.push_back({"bf16", {512, 2048}, {1024, 4096}, {768, 4096}, {5, 20}, {0.1, 0.3}});
  d.layers.push_back({1024, 16, 4096, 128, {1, 2}, {100, 150}, {200, 300}});
  d.notes.push_back("a note\nof two lines");
  return d;
}

}  // namespace

TEST_CASE("the profile is TOML with the keys that the simulator reads") {
  const toml::table t = toml::parse(to_toml(sample()));
  const auto text = [&](const char* key) {
    return t["device"][key]["value"].value<std::string>().value();
  };
  CHECK(text("name") == "Some \"GPU\"");
  CHECK(parse_bandwidth(text("memory_bandwidth"), {}) == Bandwidth(4e12));
  CHECK(parse_bandwidth(text("copy_bandwidth"), {}) == Bandwidth(2e12));
  CHECK(parse_bytes(text("memory_capacity"), {}) == Bytes(150123456789));
  CHECK(parse_duration(text("launch_overhead"), {}) == Duration::microseconds(2.5));
  for (const char* key : {"pageable_d2h", "pageable_h2d"}) {
    CHECK(parse_bandwidth(text(key), {}) == Bandwidth(5e9));
  }
  for (const char* key : {"pinned_d2h", "pinned_h2d"}) {
    CHECK(parse_bandwidth(text(key), {}) == Bandwidth(50e9));
  }
  CHECK(t["device"]["compute_capability"].value<double>() == 9.0);
  CHECK(t["device"]["multiprocessors"].value<int>() == 132);
  CHECK(t["device"]["clock_mhz"].value<int>() == 1980);
  for (const auto& [key, value] : *t["device"].as_table()) {
    if (!value.is_table()) continue;
    CHECK(value.at_path("kind").value<std::string>() == "measured");
    CHECK(value.at_path("source").value<std::string>() == "a test");
  }
  const auto kernel = t["kernel"][0];
  CHECK(kernel["name"].value<std::string>() == "copy");
  CHECK(kernel["bytes_per_element"].value<double>() == 8);
  CHECK(kernel["elements"][1].value<std::int64_t>() == 4000000);
  CHECK(kernel["time_us"][1].value<double>() == 20);
  CHECK(kernel["spread_us"][0].value<double>() == 0.1);
  // 8 MB in 4 us is 2 TB/s, the copy bandwidth; 32 MB in 20 us is 1.6 TB/s.
  CHECK(kernel["copy_share"][0].value<double>() == Approx(1.0));
  CHECK(kernel["copy_share"][1].value<double>() == Approx(0.8));
  CHECK(t["product"][0]["format"].value<std::string>() == "bf16");
  CHECK(t["product"][0]["k"][0].value<int>() == 768);
  CHECK(t["product"][0]["time_us"][1].value<double>() == 20);
  CHECK(t["layer"][0]["hidden"].value<int>() == 1024);
  CHECK(t["layer"][0]["backward_us"][1].value<double>() == 300);
}

TEST_CASE("the requested sizes, with BERT-Large's buffer among them") {
  const auto sizes = profile_sizes({});
  CHECK(sizes.front() == 65536);
  CHECK(sizes.back() == std::size_t{1} << 30);
  CHECK(std::count(sizes.begin(), sizes.end(), bert_large_elements) == 1);
  CHECK(std::is_sorted(sizes.begin(), sizes.end()));
  ProfileOptions small;
  small.max_bytes = 1 << 20;
  small.factor = 2;
  CHECK(profile_sizes(small) == std::vector<std::size_t>{65536, 131072, 262144});
}

TEST_CASE("options out of range are rejected by their flag") {
  const auto message = [](auto change) {
    ProfileOptions o;
    change(o);
    try {
      profile_sizes(o);
    } catch (const Error& e) {
      CHECK(e.code() == Exit::usage);
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  using O = ProfileOptions;
  CHECK(message([](O& o) { o.min_bytes = 3; }) == "-b: must be at least 4 bytes, one element");
  CHECK(message([](O& o) { o.max_bytes = 8; }) == "-e: must not be below -b");
  CHECK(message([](O& o) { o.factor = 1; }) == "-f: must be above 1");
  CHECK(message([](O& o) { o.iterations = 0; }) == "-n: must be at least 1");
  CHECK(message([](O& o) { o.warmup = -1; }) == "-w: must not be negative");
}

TEST_CASE("BERT-Large has 398 tensors and 335,184,706 elements in the optimizer") {
  const TensorLayout bert = bert_large_tensors();
  CHECK(bert.tensors() == 398);
  CHECK(bert.elements() == bert_large_elements);
  for (const std::size_t elements : {std::size_t{65536}, std::size_t{1} << 30}) {
    const TensorLayout scaled = bert_like_tensors(elements);
    CHECK(scaled.tensors() == 398);
    CHECK(scaled.elements() == elements);
    CHECK(std::is_sorted(scaled.offsets.begin(), scaled.offsets.end()));
  }
}

TEST_CASE("without a GPU the profiler reports it and exits with code 4") {
  ProfileOptions options;
  options.max_bytes = options.min_bytes;
  options.iterations = 1;
  options.layers = false;
  std::string profile;
  try {
    profile = profile_device(options);
  } catch (const Error& e) {
    CHECK(e.code() == Exit::missing);
    const std::string why = e.what();
    CHECK((why.rfind("no usable NVIDIA GPU: ", 0) == 0 ||
           why == "this lambcast was built without CUDA and cannot profile a GPU"));
    return;
  }
  CHECK(profile.find("[[kernel]]") != std::string::npos);  // there is a GPU, which was profiled
}
