#include "models/parallel/pipeline_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace lambcast::parallel {
namespace {

// Returns "F0a F1a B0a W0a": kind, micro batch, chunk.
std::string text_of(const std::vector<PipelineSlot>& slots) {
  std::string text;
  for (const PipelineSlot& slot : slots) {
    if (!text.empty()) text += ' ';
    text += "FBIW"[static_cast<std::size_t>(slot.kind)];
    text += std::to_string(slot.micro_batch);
    text += static_cast<char>('a' + slot.chunk);
  }
  return text;
}

std::vector<Pipeline> many_pipelines() {
  std::vector<Pipeline> pipelines;
  for (const std::string& name : pipeline_schedule_names())
    for (const int stages : {1, 2, 3, 4, 7})
      for (const int chunks : {1, 2, 3})
        for (const int micro_batches : {1, 2, 3, 4, 7, 8, 14, 21}) {
          const Pipeline pipeline{parse_pipeline_schedule(name, {}), stages, chunks, micro_batches};
          if (refusal(pipeline).empty()) pipelines.push_back(pipeline);
        }
  return pipelines;
}

}  // namespace

TEST_CASE("pipeline: names are parsed, unknown ones are refused with a suggestion") {
  for (const std::string& name : pipeline_schedule_names())
    CHECK(name_of(parse_pipeline_schedule(name, {})) == name);
  CHECK_THROWS_WITH(parse_pipeline_schedule("zb1", {"", 0, "--pipeline-schedule"}),
                    Catch::Contains("did you mean 'zb1p'"));
}

TEST_CASE("pipeline: invalid pipelines are refused in a sentence that names the rule") {
  using enum PipelineSchedule;
  CHECK(refusal({interleaved, 4, 2, 10}) ==
        "interleaved needs micro batches (10) divisible by pp 4");
  CHECK(refusal({interleaved, 4, 2, 8}).empty());
  CHECK(refusal({zbv, 4, 1, 8}) == "zbv has 2 chunks per stage, not 1");
  CHECK(refusal({one_f_one_b, 4, 2, 8}) == "1f1b has one chunk per stage, not 2");
  CHECK(refusal({gpipe, 4, 1, 0}) == "4 stages, 1 chunks and 0 micro batches make no pipeline");
  CHECK_FALSE(refusal({interleaved, 2, 257, 8}).empty());
}

TEST_CASE("pipeline: orders as printed by the papers and programs") {
  using enum PipelineSchedule;
  CHECK(text_of(stage_slots({gpipe, 2, 1, 3}, 1)) == "F0a F1a F2a B2a B1a B0a");
  // Orders of Narayanan et al. 2021, figure 4: first and last of 4 devices.
  CHECK(text_of(stage_slots({one_f_one_b, 4, 1, 6}, 0)) ==
        "F0a F1a F2a F3a B0a F4a B1a F5a B2a B3a B4a B5a");
  CHECK(text_of(stage_slots({one_f_one_b, 4, 1, 3}, 3)) == "F0a B0a F1a B1a F2a B2a");
  // As in Megatron-LM with pp 2, 2 chunks and 4 micro batches: the stages begin with 4 and 2
  // forward slots.
  CHECK(text_of(stage_slots({interleaved, 2, 2, 4}, 0)) ==
        "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  CHECK(text_of(stage_slots({interleaved, 2, 2, 4}, 1)) ==
        "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
  // Orders of Qi et al. 2024, figures 2 and 3, here with 2 devices.
  CHECK(text_of(stage_slots({zb1p, 2, 1, 3}, 0)) == "F0a F1a I0a W0a F2a I1a W1a I2a W2a");
  CHECK(text_of(stage_slots({zb1p, 2, 1, 3}, 1)) == "F0a I0a F1a I1a W0a F2a I2a W1a W2a");
  CHECK(text_of(stage_slots({zb2p, 2, 1, 4}, 0)) ==
        "F0a F1a F2a I0a W0a F3a I1a W1a I2a W2a I3a W3a");
  CHECK(text_of(stage_slots({zb2p, 2, 1, 4}, 1)) ==
        "F0a I0a F1a I1a F2a I2a W0a F3a I3a W1a W2a W3a");
  CHECK(text_of(stage_slots({zbv, 2, 2, 3}, 0)) ==
        "F0a F1a F2a F0b I0b W0b F1b I1b W1b I0a W0a F2b I2b W2b I1a W1a I2a W2a");
}

TEST_CASE("pipeline: positions count chunks in the order of a forward pass") {
  for (const Pipeline& pipeline : many_pipelines())
    for (int stage = 0; stage < pipeline.stages; ++stage)
      for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
        const int position = pipeline.position(stage, chunk);
        CHECK(pipeline.stage_at(position) == stage);
        CHECK(pipeline.chunk_at(position) == chunk);
      }
  const Pipeline vee{PipelineSchedule::zbv, 4, 2, 8};
  CHECK(vee.stage_at(3) == 3);
  CHECK(vee.stage_at(4) == 3);  // here the order of stages reverses
  CHECK(vee.stage_at(7) == 0);  // the loss is on the embedding's stage
}

TEST_CASE("pipeline: each stage runs every micro batch of every chunk once, in causal order") {
  for (const Pipeline& pipeline : many_pipelines()) {
    CAPTURE(name_of(pipeline.schedule), pipeline.stages, pipeline.chunks, pipeline.micro_batches);
    const std::size_t passes = splits_backward(pipeline.schedule) ? 3 : 2;
    for (const auto& slots : pipeline_slots(pipeline)) {
      std::map<std::pair<int, int>, std::string> order;  // order of kinds, by chunk and micro batch
      for (const PipelineSlot& slot : slots)
        order[{slot.chunk, slot.micro_batch}] += "FBIW"[static_cast<std::size_t>(slot.kind)];
      const auto expected = static_cast<std::size_t>(pipeline.chunks * pipeline.micro_batches);
      CHECK(order.size() == expected);
      CHECK(slots.size() == passes * expected);
      for (const auto& [key, kinds] : order) {
        CHECK(key.second >= 0);
        CHECK(key.second < pipeline.micro_batches);
        CHECK(kinds == (passes == 3 ? "FIW" : "FB"));
      }
    }
  }
}

TEST_CASE("pipeline: micro batches in flight follow the closed forms") {
  using enum PipelineSchedule;
  for (const int p : {2, 3, 4, 8})
    for (const int m : {4 * p, 5 * p})
      for (int r = 0; r < p; ++r) {
        CAPTURE(p, m, r);
        CHECK(in_flight({gpipe, p, 1, m}, r) == m);
        CHECK(in_flight({one_f_one_b, p, 1, m}, r) == p - r);
        for (const int v : {2, 3, 6}) {
          const int chunks = in_flight({interleaved, p, v, m}, r);
          CHECK(chunks == 2 * (p - r - 1) + (v - 1) * p + 1);
          // The first stage keeps p (1 + (p - 1) / (p v)) micro batches of 1 / v of the stage
          // (Korthikanti et al. 2022).
          if (r == 0)
            CHECK(chunks / static_cast<double>(v) == Approx(p * (1 + (p - 1.) / (p * v))));
        }
        // Qi et al. 2024, table 2 (stages counted from 1 there). In zb1p a stage keeps p - r whole
        // micro batches and r that await their weight gradient, in zb2p 2 (p - r) - 1 and 2 r.
        const double whole[] = {1};
        const double none[] = {0};
        const auto h1 = stage_slots({zb1p, p, 1, m}, r);
        CHECK(peak_held(h1, whole, none) == p - r);
        CHECK(peak_held(h1, whole, whole) == p);
        const auto h2 = stage_slots({zb2p, p, 1, m}, r);
        CHECK(peak_held(h2, whole, none) == 2 * (p - r) - 1);
        CHECK(peak_held(h2, whole, whole) == 2 * p - 1);
        // A zbv stage has two chunks of half a stage and keeps p micro batches, as 1f1b does, on
        // every stage.
        CHECK(in_flight({zbv, p, 2, m}, r) == 2 * p);
      }
  CHECK(in_flight({one_f_one_b, 8, 1, 3}, 0) == 3);  // there are only 3
}

TEST_CASE("pipeline schedule: a short pipeline keeps as many micro batches as a long one") {
  const std::vector<double> held{5, 1, 3}, none{0, 0, 0};
  for (const int p : {1, 2, 3, 8})
    for (const int v : {1, 2, 3})
      for (const int turns : {1, 2, 3, 4, 5, 9}) {
        const Pipeline longer{PipelineSchedule::interleaved, p, v, p * turns};
        const Pipeline shorter = shortest_alike(longer);
        CHECK(refusal(shorter).empty());
        CHECK(shorter.micro_batches <= 4 * p);
        for (int stage = 0; stage < p; ++stage)
          CHECK(peak_held(stage_slots(shorter, stage), held, none) ==
                peak_held(stage_slots(longer, stage), held, none));
      }
  CHECK(shortest_alike({PipelineSchedule::gpipe, 2, 1, 100}).micro_batches == 100);
}

TEST_CASE("pipeline: kept activations are weighted by chunk") {
  const auto slots = stage_slots({PipelineSchedule::interleaved, 2, 2, 4}, 0);
  const double first_only[] = {1, 0};
  const double second_only[] = {0, 1};
  // Before its first backward slot, the first chunk has four forward slots and the second two: F0a
  // F1a F0b F1b F2a B0b F3a.
  CHECK(peak_held(slots, first_only, first_only) == 4);
  CHECK(peak_held(slots, second_only, second_only) == 2);
}

}  // namespace lambcast::parallel
