#include "validate/program/training_log.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/error.h"

namespace lambcast {
namespace {

std::string megatron_row(int iteration, double ms, int batch = 64, int skipped = 0) {
  return fmt::format(
      " [2026-05-04 10:11:12] iteration {:8}/    1000 | consumed samples: {:12} | elapsed time per "
      "iteration (ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): 466.2 | learning rate: "
      "1.000000E-04 | global batch size: {:5} | lm loss: 5.1E+00 | number of skipped iterations: "
      "{:3} | number of nan iterations:   0 |\n",
      iteration, iteration * batch, ms, batch, skipped);
}

TEST_CASE("training log: the median of Megatron-LM's steady iterations") {
  std::string text = "using world size: 8, data-parallel size: 4\n";
  text += megatron_row(1, 41000);  // start-up
  for (int i = 2; i <= 40; ++i) text += "[default7]:" + megatron_row(i, i % 2 == 0 ? 3020 : 3022);
  text += megatron_row(41, 1500, 64, 1);  // a skipped step did no update
  text += megatron_row(42, 9000);         // a checkpoint
  const TrainingLog log = read_training_log(text, "run.log");
  CHECK(log.program == "Megatron-LM");
  CHECK(log.quantity == Quantity::step_time_s);
  CHECK(log.median == Approx(3.021).margin(0.0011));
  CHECK(log.spread < 0.001);
  CHECK(log.global_batch == 64);
  // Among 42 rows one is skipped, five are warm-up and one is the checkpoint.
  CHECK(log.rows == 35);
  CHECK(log.left_out == 7);
  std::string filled;
  const SourceFigure figure = figure_of(log, "run.log", {}, filled);
  CHECK(figure.standard_error == Approx(1.2533 * log.spread / std::sqrt(35.0)));
  CHECK_THAT(filled, Catch::Contains("run.log: 35 of 42 steps, without the first 5, 1 outlier, 1 "
                                     "without an update; spread 0."));
}

TEST_CASE("training log: only rows with the last batch of a ramp count") {
  std::string text;
  for (int i = 1; i <= 20; ++i) text += megatron_row(i, 1000, 32);
  for (int i = 21; i <= 30; ++i) text += megatron_row(i, 2000, 64);
  CHECK(read_training_log(text, "ramp.log").median == Approx(2));
}

TEST_CASE("training log: each program's own row is read in its own unit") {
  struct Case {
    const char *program, *row;
    Quantity quantity;
    double value;
  };
  const Case cases[] = {
      {"Megatron-LM",
       "[default7]: iteration 5/ 10 | elapsed time per iteration (s): 105.22 | lr: 1",
       Quantity::step_time_s, 105.22},
      {"Megatron-LM", " iteration 5/ 10 | elapsed time per iteration (ms): 3021.4/3019.8 |",
       Quantity::step_time_s, 3.0214},
      {"MaxText", "completed step: 20, seconds: 3.021, TFLOP/s/device: 466.200, loss: 5.1",
       Quantity::step_time_s, 3.021},
      {"NeMo", "Training epoch 0, iteration 19/999 | train_step_timing in s: 3.021 | lr: 0.1",
       Quantity::step_time_s, 3.021},
      {"DeepSpeed", "steps: 10 loss: 5.1234 iter time (s): 3.021 samples/sec: 21.184",
       Quantity::step_time_s, 3.021},
      {"DeepSpeed", "global_step=10, RunningAvgSamplesPerSec=41.2, CurrSamplesPerSec=42.0, Mem",
       Quantity::samples_per_s, 42},
      {"torchtitan",
       "\x1b[31mstep: 20  \x1b[32mloss:  5.1  \x1b[33mmemory: 60.11GiB(75.93%)  \x1b[34mtps: "
       "10,845  \x1b[36mtflops: 466.20  mfu: 47.14%\x1b[39m",
       Quantity::tokens_per_gpu_s, 10845},
      {"torchtitan", "step: 20  loss:  5.1  memory: 60.11GiB(75.93%)  wps: 10,845  mfu: 47.14%",
       Quantity::tokens_per_gpu_s, 10845},
      {"torchtune", "Step 5 | loss:1.9 lr:2e-05 tokens_per_second_per_gpu:10845.2",
       Quantity::tokens_per_gpu_s, 10845.2},
      {"Composer", "\t Train throughput/device/tokens_per_sec: 10845.2", Quantity::tokens_per_gpu_s,
       10845.2},
      {"OLMo", "    throughput/device/tokens_per_second=10,845", Quantity::tokens_per_gpu_s, 10845},
  };
  for (const Case& one : cases) {
    INFO(one.row);
    std::string text;
    for (int i = 0; i < 12; ++i) text += fmt::format("{}\n", one.row);
    const TrainingLog log = read_training_log(text, "run.log");
    CHECK(log.program == one.program);
    CHECK(log.quantity == one.quantity);
    CHECK(log.median == Approx(one.value));
  }
}

TEST_CASE("training log: the Trainer's rates are read in quotes, and from its JSON") {
  for (const char* text :
       {"{'train_runtime': '3021.4', 'train_samples_per_second': '21.18', 'epoch': '1'}\n",
        "{\n \"train_runtime\": 3021.4,\n \"train_samples_per_second\": 21.18\n}\n"}) {
    const TrainingLog log = read_training_log(text, "run.log");
    CHECK(log.program == "Hugging Face Trainer");
    CHECK(log.median == Approx(21.18));
  }
}

TEST_CASE("training log: the program of the steps fills the framework, and contradicts others") {
  std::string metrics = "epoch,samples_per_sec,step\n",
              nemo = "epoch,train_step_timing in s,step\n";
  for (int i = 0; i < 12; ++i) {
    metrics += fmt::format("0,21.5,{}\n", i);
    nemo += fmt::format("0,3.02,{}\n", i);
  }
  std::string megatron;
  for (int i = 1; i < 12; ++i) megatron += megatron_row(i, 3000);
  const std::string trainer = "{'train_samples_per_second': 21.18, 'epoch': 1.0}\n";
  struct Case {
    std::string text;
    const char *framework, *also, *never;
  };
  const Case cases[] = {
      {megatron, "megatron", "deepspeed", "torchtitan"},
      {nemo, "nemo", "megatron", "deepspeed"},
      {metrics, "pytorch", "deepspeed", "megatron"},
      {trainer, "pytorch", "deepspeed", "megatron"},
      // A log with a ZeRO stage is from DeepSpeed.
      {"  zero_optimization_stage ...... 2\n" + trainer, "deepspeed", "pytorch", "megatron"}};
  const WhatIf run{{"cluster", "dgx-a100-80g"},
                   {"model", "bert-large"},
                   {"gpus", "8"},
                   {"optimizer", "adam"},
                   {"global_batch", "64"}};
  for (const Case& one : cases) {
    INFO(one.text.substr(0, 60));
    const auto framework_of = [&](const char* stated, std::string& filled) {
      WhatIf what_if = run;
      if (*stated != '\0') what_if["framework"] = stated;
      return figure_of(read_training_log(one.text, "run.log"), "run.log", what_if, filled)
          .what_if.at("framework");
    };
    std::string filled;
    CHECK(framework_of("", filled) == one.framework);
    CHECK_THAT(filled, Catch::Contains(fmt::format("--framework {} (line", one.framework)));
    CHECK(framework_of(one.also, filled) == one.also);
    CHECK_THROWS_WITH(
        framework_of(one.never, filled),
        Catch::Contains(fmt::format("--framework: {} contradicts the log", one.never)));
  }
}

TEST_CASE("training log: the Trainer's last record is a mean of the run") {
  const TrainingLog log = read_training_log(
      "{'loss': 1.91, 'epoch': 0.1}\n{'train_runtime': 3021.4, 'train_samples_per_second': 21.18, "
      "'train_steps_per_second': 0.331, 'epoch': 1.0}\n",
      "out.txt");
  CHECK(log.median == Approx(21.18));
  CHECK(log.rows == 1);
  CHECK(log.steps_of_run == 1000);
  std::string filled;
  CHECK_THAT(figure_of(log, "out.txt", {}, filled).name,
             Catch::Equals("out.txt: mean of 1000 steps of Hugging Face Trainer"));
}

TEST_CASE("training log: a text without steps, and one with two, are refused by name") {
  CHECK_THROWS_WITH(read_training_log("hello\n", "x.log"), Catch::Contains("x.log"));
  CHECK_THROWS_WITH(read_training_log(megatron_row(1, 9) + megatron_row(2, 9), "x.log"),
                    Catch::Contains("2 steady steps"));
}

TEST_CASE("training log: its batch fills an open setting and contradicts other flags") {
  TrainingLog log{"Megatron-LM", Quantity::step_time_s, 3, 0.01, 30, 5, 64, 7, {}};
  const auto batch_of = [&](const WhatIf& what_if) {
    std::string filled;
    return figure_of(log, "x.log", what_if, filled).what_if.at("global_batch");
  };
  CHECK(batch_of({{"micro_batch", "2"}}) == "64");
  CHECK_THROWS_WITH(batch_of({{"global_batch", "32"}}), Catch::Contains("64"));
  CHECK(batch_of({{"micro_batch", "2"}, {"grad_accum", "4"}}) == "64");
  CHECK_THROWS_WITH(read_training_log("|CurSamplesPerSec=7.7, AvgSamplesPerSec=7.5|", "x.log"),
                    Catch::Contains("DeepSpeed-Chat"));
}

}  // namespace
}  // namespace lambcast
