#include "models/deepspeed/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace lambcast::deepspeed {
namespace {

struct TypeName {
  std::string_view key;  // compared with the lower-case type
  OptimizerType type;
  std::string_view spelling;  // usual spelling in configurations
};

constexpr std::array<TypeName, 8> type_names{{
    {"adam", OptimizerType::adam, "Adam"},
    {"adamw", OptimizerType::adamw, "AdamW"},
    {"lamb", OptimizerType::lamb, "Lamb"},
    {"onebitadam", OptimizerType::onebit_adam, "OneBitAdam"},
    {"onebitlamb", OptimizerType::onebit_lamb, "OneBitLamb"},
    {"zerooneadam", OptimizerType::zero_one_adam, "ZeroOneAdam"},
    {"lion", OptimizerType::lion, "Lion"},
    {"muon", OptimizerType::muon, "Muon"},
}};

// Optimizers that DeepSpeed has and lambcast does not model: deepspeed/runtime/config.py 0.16.5 and
// 0.19.6, and those of torch.optim.
constexpr std::array<std::string_view, 15> unmodelled_types{
    "adagrad", "muadam", "muadamw", "musgd", "sgd",   "rmsprop",   "adadelta",  "adamax",
    "radam",   "nadam",  "asgd",    "rprop", "lbfgs", "adafactor", "sparseadam"};

const std::vector<std::string>& known_backends() {
  static const std::vector<std::string> names{"nccl", "mpi", "hccl", "compressed"};
  return names;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::vector<std::string> spellings() {
  std::vector<std::string> names;
  for (const TypeName& name : type_names) names.emplace_back(name.spelling);
  return names;
}

OptimizerType parse_type(const Where& where, const std::string& text) {
  const std::string key = lower(text);
  for (const TypeName& name : type_names)
    if (name.key == key) return name.type;
  const std::vector<std::string> known = spellings();
  const std::string allowed = fmt::format("{}", fmt::join(known, ", "));
  if (std::find(unmodelled_types.begin(), unmodelled_types.end(), key) != unmodelled_types.end())
    fail_input(where, fmt::format("lambcast has no model of the optimizer '{}'", text), allowed);
  std::string what = fmt::format("{} is not a supported DeepSpeed Optimizer", text);
  const std::string guess = closest(text, known);
  if (!guess.empty()) what += fmt::format(", did you mean '{}'?", guess);
  fail_input(where, what, allowed);
}

void read_backend(const Section& params, Setting<std::string>& setting) {
  Setting<std::optional<std::string>> name;
  read(params, "comm_backend_name", name);
  if (!name.given) return;
  const std::vector<std::string>& known = known_backends();
  if (std::find(known.begin(), known.end(), *name.value) == known.end())
    fail_unknown(where_of(params, "comm_backend_name", name.line), "communication backend",
                 *name.value, known);
  setting = {*name.value, true, name.line};
}

// Returns the keyword arguments of the constructor that DeepSpeed calls with the params.
std::vector<std::string> keywords(OptimizerType type) {
  if (type == OptimizerType::lion) return {"lr", "betas", "weight_decay", "set_grad_none"};
  if (type == OptimizerType::muon)
    return {"lr", "momentum", "weight_decay", "muon_lr", "adam_lr", "betas", "eps", "ns_method"};
  std::vector<std::string> names{"lr",           "betas",           "eps",
                                 "weight_decay", "bias_correction", "amsgrad"};
  const auto also = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (type == OptimizerType::adam || type == OptimizerType::adamw)
    also({"adam_w_mode", "torch_adam", "set_grad_none"});
  else
    also({"eps_inside_sqrt"});
  if (is_lamb(type)) also({"max_coeff", "min_coeff"});
  if (is_onebit(type)) also({"cuda_aware", "comm_backend_name"});
  if (type == OptimizerType::onebit_adam || type == OptimizerType::onebit_lamb)
    also({"freeze_step"});
  if (type == OptimizerType::onebit_lamb)
    also({"coeff_beta", "factor_max", "factor_min", "factor_threshold"});
  if (type == OptimizerType::zero_one_adam)
    also({"var_freeze_step", "var_update_scaler", "local_step_scaler", "local_step_clipper"});
  return names;
}

void check_keywords(const Section& params, OptimizerType type) {
  const std::vector<std::string> known = keywords(type);
  for (const hjson::Member& member : params.object.members) {
    if (member.key == "max_grad_norm") {
      add(params, Severity::error, "max-grad-norm", member.key, member.line,
          "'max_grad_norm' is not supported as an optimizer parameter, please switch to using the "
          "deepspeed parameter 'gradient_clipping' see: "
          "https://www.deepspeed.ai/docs/config-json/#gradient-clipping for more details");
    } else if (std::find(known.begin(), known.end(), member.key) == known.end()) {
      std::string what =
          fmt::format("__init__() got an unexpected keyword argument '{}'", member.key);
      const std::string guess = closest(member.key, known);
      if (!guess.empty()) what += fmt::format(", did you mean '{}'?", guess);
      // This is only a warning for plain optimizers: their type may select one of several classes
      // with different keywords.
      add(params, is_onebit(type) ? Severity::error : Severity::warning, "unknown-optimizer-param",
          member.key, member.line, what);
    }
  }
}

void read_params(const Section& params, OptimizerConfig& config) {
  read(params, "lr", config.lr);
  read(params, "betas", config.betas, 0.0, 1.0);
  read(params, "eps", config.eps, 0.0);
  read(params, "weight_decay", config.weight_decay);
  read(params, "bias_correction", config.bias_correction);
  read(params, "eps_inside_sqrt", config.eps_inside_sqrt);
  read(params, "amsgrad", config.amsgrad);
  read(params, "adam_w_mode", config.adam_w_mode);
  read(params, "torch_adam", config.torch_adam);
  read(params, "set_grad_none", config.set_grad_none);
  read(params, "max_coeff", config.max_coeff, 0.0);
  read(params, "min_coeff", config.min_coeff, 0.0);
  read(params, "freeze_step", config.freeze_step, 0);
  read_backend(params, config.comm_backend_name);
  read(params, "cuda_aware", config.cuda_aware);
  read(params, "coeff_beta", config.coeff_beta, 0.0, 1.0);
  read(params, "factor_max", config.factor_max, 0.0);
  read(params, "factor_min", config.factor_min, 0.0);
  read(params, "factor_threshold", config.factor_threshold, 0.0);
  read(params, "var_freeze_step", config.var_freeze_step, 0);
  read(params, "var_update_scaler", config.var_update_scaler, 1);
  read(params, "local_step_scaler", config.local_step_scaler, 1);
  read(params, "local_step_clipper", config.local_step_clipper, 1);
}

void check_amsgrad(const Section& params, const OptimizerConfig& config) {
  if (!config.amsgrad.value || config.torch_adam.value) return;
  add(params, Severity::error, "amsgrad", "amsgrad", config.amsgrad.line,
      fmt::format("{} does not support the AMSGrad variant.", model_of(config.type).label));
}

}  // namespace

std::optional<Backend> backend_of(const OptimizerConfig& config) {
  if (config.comm_backend_name.value == "hccl") return std::nullopt;
  return backend_of(config.comm_backend_name.value, config.cuda_aware.value);
}

std::optional<OptimizerConfig> read_optimizer(const Section& root) {
  const std::optional<Section> block = subsection(root, "optimizer");
  if (!block) return std::nullopt;
  find_unknown_keys(*block, std::array<std::string, 3>{"type", "params", "legacy_fusion"});
  Setting<std::optional<std::string>> type;
  read(*block, "type", type);
  if (!type.given) return std::nullopt;
  OptimizerConfig config;
  config.type = parse_type(where_of(*block, "type", type.line), *type.value);
  config.line = type.line;
  if (const std::optional<Section> params = subsection(*block, "params")) {
    check_keywords(*params, config.type);
    read_params(*params, config);
    check_amsgrad(*params, config);
  }
  return config;
}

}  // namespace lambcast::deepspeed
