#include "experiments/phases/freeze_log.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

using namespace lambcast;

namespace {

// A variance that falls as 1 + 5 0.9^k. With D = 10 its ratio to ten steps before is at least 0.96
// from step 52 on (derived in kernels/reference/freeze_test.cc).
double falls(int step) { return 1 + 5 * std::pow(0.9, step); }
const reference::FreezeOptions ten_steps{.beta2 = 0.9};

std::string lines(int from, int to, int by, const std::function<std::string(int)>& values) {
  std::string text;
  for (int step = from; step <= to; step += by) text += fmt::format("{}{}\n", step, values(step));
  return text;
}

FreezeChoice chosen(const std::string& text, const reference::FreezeOptions& options = ten_steps,
                    bool losses = false) {
  return choose_freeze_step(parse_freeze_log(text, "log", {}, losses), options);
}

}  // namespace

TEST_CASE("a log of the variance chooses the step that the monitor would have chosen") {
  const auto value = [](int step) { return fmt::format(",{}", falls(step)); };
  const FreezeChoice table = chosen("step,model\n" + lines(1, 200, 1, value));
  CHECK(table.step == 52);
  CHECK(table.share == 1);
  CHECK(table.share_before == 0);
  REQUIRE(table.layers.size() == 1);
  CHECK(table.layers[0].before == Approx(falls(42)));
  CHECK(table.layers[0].now == Approx(falls(52)));
  CHECK(table.layers[0].settled_since == 52);
  // The same values as plain lines, with the comments and white space of real logs.
  const auto spaced = [](int step) { return fmt::format("  {}\r", falls(step)); };
  CHECK(chosen("# from rank 0\n\n" + lines(1, 200, 1, spaced)).step == 52);
  // With a measurement every fourth step, each value is compared with that of 12 steps before.
  CHECK(chosen("step,model\n" + lines(4, 200, 4, value)).step == 56);
  CHECK(chosen("step,model\n" + lines(1, 51, 1, value)).step == 0);
}

TEST_CASE("layers are weighted by their elements if the log has them") {
  const auto rows = [](int step) {
    return fmt::format(",big,3,90\n{},small,{},10", step, std::pow(0.9, step));
  };
  const std::string text = "step,layer,norm,elements\n" + lines(1, 60, 1, rows);
  CHECK(chosen(text).step == 20);  // the earliest step, 2 D: the layer "big" never changes
  CHECK(chosen(text, {.beta2 = 0.9, .earliest = 33}).step == 33);
  const FreezeChoice never = chosen(text, {.beta2 = 0.9, .share = 0.91});
  CHECK(never.step == 0);
  CHECK(never.judged_at == 60);
  CHECK(never.share == Approx(0.9));
  CHECK(!never.layers[1].settled);
  const auto both = [](int step) { return fmt::format(",3,{}", std::pow(0.9, step)); };
  const std::string wide = "step,big,small\n" + lines(1, 60, 1, both);
  CHECK(chosen(wide).step == 0);
  CHECK(choose_freeze_step(parse_freeze_log(wide, "log", {"big"}, false), ten_steps).step == 20);
}

TEST_CASE("a loss is judged by its means, and the answer says so") {
  // The loss 2 + 8 0.9^k, with noise of 20 % from step to step that the means over ten steps
  // cancel.
  const auto shaken = [](int step) {
    return fmt::format(",{}", (2 + 8 * std::pow(0.9, step)) * (step % 2 == 0 ? 1.2 : 0.8));
  };
  const std::string text = "step,train_loss\n" + lines(1, 200, 1, shaken);
  const FreezeChoice choice = chosen(text);
  CHECK(choice.losses);
  // Means over (k-10, k] are 2 + x with x = 8 c 0.9^k, c = sum_i 0.9^-i / 10 = 1.681 over i = 0..9.
  // Their ratio over ten steps is at least 0.96 if 2 + x >= 0.96 (2 + x / 0.9^10), i.e. x <=
  // 0.0456, k = 54. The noise changes x by 1 %, so k may be 55.
  CHECK(choice.step >= 54);
  CHECK(choice.step <= 55);
  CHECK_THAT(freeze_table(choice), Catch::Contains("A stand-in"));
  CHECK(chosen(lines(1, 200, 1, [&](int s) { return shaken(s); }), ten_steps, true).step ==
        choice.step);
}

TEST_CASE("the answer is printed as text, JSON and CSV") {
  const auto value = [](int step) { return fmt::format(",{}", falls(step)); };
  const FreezeChoice choice = chosen("step,model\n" + lines(1, 200, 1, value));
  CHECK_THAT(freeze_table(choice), Catch::StartsWith("freeze_step 52: compression may begin"));
  const auto json = nlohmann::json::parse(freeze_json(choice));
  CHECK(json["freeze_step"] == 52);
  CHECK(json["memory_steps"] == 10);
  CHECK(json["layers"][0]["settled_since"] == 52);
  CHECK_THAT(freeze_csv(choice), Catch::Contains("\n52,52,model,1,"));
  FreezeChoice comma = choice;
  comma.layers[0].name = "head, bias";
  CHECK_THAT(freeze_csv(comma), Catch::Contains("\n52,52,\"head, bias\",1,"));
  const FreezeChoice none = chosen("step,model\n" + lines(1, 51, 1, value));
  CHECK(nlohmann::json::parse(freeze_json(none))["freeze_step"].is_null());
  CHECK_THAT(freeze_table(none), Catch::StartsWith("No step from 1 to 51"));
}

TEST_CASE("the answer reports missing gradients and a coarse log") {
  const FreezeChoice none = chosen("step,model\n" + lines(1, 200, 1, [](int) { return ",0"; }));
  CHECK(none.step == 0);
  CHECK_THAT(freeze_table(none), Catch::Contains("is 0: no gradient has come yet"));
  const auto value = [](int step) { return fmt::format(",{}", falls(step)); };
  const std::string fine = freeze_table(chosen("step,model\n" + lines(1, 200, 1, value)));
  CHECK_THAT(fine, Catch::Contains("over the 10 steps that the variance averages over"));
  const std::string coarse = freeze_table(chosen("step,model\n" + lines(4, 200, 4, value)));
  CHECK_THAT(coarse, Catch::Contains("over 12 steps, the fewest of the log that hold the 10"));
}

TEST_CASE(
    "at the latest step compression begins without a settled variance, and the answer says "
    "so") {
  const auto value = [](int step) { return fmt::format(",{}", falls(step)); };
  const std::string text = "step,model\n" + lines(1, 200, 1, value);
  const FreezeChoice latest = chosen(text, {.beta2 = 0.9, .latest = 40});
  CHECK(latest.step == 40);
  CHECK(latest.share == 0);
  CHECK_THAT(freeze_table(latest), Catch::Contains("the latest step, not a settled one"));
  CHECK(nlohmann::json::parse(freeze_json(latest))["latest_step"] == 40);
  const FreezeChoice settled = chosen(text, {.beta2 = 0.9, .latest = 60});
  CHECK(settled.step == 52);
  CHECK_THAT(freeze_table(settled), !Catch::Contains("the latest step"));
  CHECK_THROWS_WITH(chosen(text, {.beta2 = 0.9, .latest = 5}),
                    Catch::Contains("--latest") && Catch::Contains("11 and later"));
}

TEST_CASE("invalid logs are refused in one line") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH(chosen(text), Catch::Contains(why));
  };
  refused("", "log: ");
  refused("step,a\n1,2\n", "fewer than two measurements");
  refused("step,a\n1,2\n2,2\n", "too few");
  refused("step,a\n1,2\n1,2\n", "log:3: step: 1 follows 1");
  refused("step,a\n1,2\n2,2\n4,2\n", "log:4: step: 4 follows 2 where steps are 1 apart");
  refused("step,a\n1,2\n2,-2\n", "log:3: a: -2 is neither a norm nor a loss");
  refused("step,a\n1.5,2\n2,2\n", "log:2: step: 1.5 is not a step");
  refused("step,a\n1,x\n", "log:2");
  refused("time,a\n1,2\n", "step");
  refused("step\n1\n2\n", "has no column but the step");
  refused("step,loss,lr\n1,2,3\n2,2,3\n", "a column of losses among others");
  refused("1 2\n2 2 3\n", "log:2: 2 values where the first line has 1");
  refused("1 2\n2 x\n", "log:2: is not a line of numbers");
  refused("step,layer,norm\n1,a,2\n1,a,2\n", "'a' occurs twice");
  refused("step,layer,norm\n1,a,2\n1,b,2\n2,b,2\n", "'b' is out of order");
  refused("step,layer,norm\n1,a,2\n1,b,2\n2,a,2\n3,a,2\n", "step 2 has 1 of 2 layers");
  CHECK_THROWS_WITH(choose_freeze_step(parse_freeze_log("step,a\n1,2\n2,2\n", "log", {}, false),
                                       {.threshold = 2}),
                    "threshold: must be between 0 and 1");
  CHECK_THROWS_WITH(parse_freeze_log("step,a\n1,2\n", "log", {"b"}, false),
                    Catch::Contains("unknown column 'b'"));
}

TEST_CASE("a log refuses --columns with a name that it does not have") {
  for (const char* text : {"step,layer,norm\n1,a,2\n2,a,2\n", "1 2\n2 2\n", "step,a\n1,2\n2,2\n"})
    CHECK_THROWS_WITH(parse_freeze_log(text, "log", {"foo"}, false),
                      Catch::Contains("log: --columns"));
}
