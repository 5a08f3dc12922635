// Replays a training run on the emulated world, for training_test.py.
//
//   emulated_replay FOLDER
//
// FOLDER/problem.txt has a key and its values per line; initial.f32 has the weights, gradients.f32
// the gradients of every rank's optimizer, [step][rank][element], rates.f64 the learning rate of
// every step. Writes weights.f32, [step][rank][element].
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/onebit_lamb.h"
#include "kernels/emulated_world/zero_one_adam.h"
#include "sim/base/error.h"

using namespace lambcast;

namespace {

using Problem = std::map<std::string, std::vector<double>>;

template <typename T>
std::vector<T> numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.begin(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
  return values;
}

Problem problem_of(const std::string& path) {
  std::ifstream file(path);
  Problem problem;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    problem[key] = {std::istream_iterator<double>(words), {}};
  }
  return problem;
}

double number(const Problem& problem, const char* key) {
  const auto found = problem.find(key);
  if (found == problem.end() || found->second.size() != 1)
    throw Error(Exit::usage, fmt::format("problem.txt: {} is missing", key));
  return found->second[0];
}
int whole(const Problem& problem, const char* key) {
  return static_cast<int>(number(problem, key));
}

emulated::World world_of(const Problem& problem, const std::string& folder) {
  emulated::World world;
  std::vector<std::size_t> sizes;
  for (const double size : problem.at("sizes")) sizes.push_back(static_cast<std::size_t>(size));
  world.tensors = tensor_layout(sizes);
  world.ranks = whole(problem, "ranks");
  world.initial = numbers<float>(folder + "/initial.f32");
  world.mask = numbers<float>(folder + "/mask.f32");
  world.gradient_clipping = number(problem, "max_grad_norm");
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    world.group_of.push_back({problem.at("lr_scale")[t], problem.at("weight_decay")[t]});
    world.non_freeze.push_back(problem.at("non_freeze")[t] != 0);
  }
  return world;
}

// Calls step(optimizer, gradients) for every step, with its learning rate set through `rate`.
template <typename Optimizer>
void replay(Optimizer optimizer, double& (*rate)(Optimizer&), const std::string& folder) {
  const std::vector<float> all = numbers<float>(folder + "/gradients.f32");
  const std::vector<double> rates = numbers<double>(folder + "/rates.f64");
  const std::size_t n = optimizer.world.size(), elements = optimizer.world.tensors.elements();
  std::ofstream out(folder + "/weights.f32", std::ios::binary);
  auto at = all.begin();
  for (const double lr : rates) {
    std::vector<std::vector<float>> gradients;
    for (std::size_t r = 0; r < n; ++r) {
      const auto end = at + static_cast<std::ptrdiff_t>(elements);
      gradients.emplace_back(at, end);
      at = end;
    }
    rate(optimizer) = lr;
    step(optimizer, gradients);
    for (int r = 0; r < optimizer.world.ranks; ++r) {
      const auto p = weights(optimizer, r);
      out.write(reinterpret_cast<const char*>(p.data()),
                static_cast<std::streamsize>(p.size_bytes()));
    }
  }
}

void run(const std::string& folder) {
  const Problem problem = problem_of(folder + "/problem.txt");
  const emulated::World world = world_of(problem, folder);
  AdamOptions adam;
  adam.beta1 = number(problem, "beta1");
  adam.beta2 = number(problem, "beta2");
  if (problem.contains("OneBitLamb")) {
    OnebitLambOptions options;
    options.lamb.beta1 = adam.beta1;
    options.lamb.beta2 = adam.beta2;
    options.freeze_step = whole(problem, "freeze_step");
    replay<emulated::OnebitLamb>(
        onebit_lamb(world, options),
        [](emulated::OnebitLamb& o) -> double& { return o.options.lamb.lr; }, folder);
  } else if (problem.contains("OneBitAdam")) {
    replay<emulated::OnebitAdam>(
        onebit_adam(world, {.adam = adam, .freeze_step = whole(problem, "freeze_step")}),
        [](emulated::OnebitAdam& o) -> double& { return o.options.adam.lr; }, folder);
  } else {
    replay<emulated::ZeroOneAdam>(
        zero_one_adam(world, {.adam = adam,
                              .var_freeze_step = whole(problem, "var_freeze_step"),
                              .var_update_scaler = whole(problem, "var_update_scaler"),
                              .local_step_scaler = whole(problem, "local_step_scaler"),
                              .local_step_clipper = whole(problem, "local_step_clipper")}),
        [](emulated::ZeroOneAdam& o) -> double& { return o.options.adam.lr; }, folder);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw Error(Exit::usage, "emulated_replay FOLDER");
    run(argv[1]);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "emulated_replay: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
