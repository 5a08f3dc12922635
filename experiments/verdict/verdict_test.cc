#include "experiments/verdict/verdict.h"

#include <catch2/catch.hpp>

#include <limits>
#include "sim/base/ratio.h"

namespace lambcast {
namespace {

const auto by_number = [](std::size_t run) { return "run " + std::to_string(run); };

VerdictCounts counts_of(const std::vector<Speedup>& speedups, std::string_view measure = "") {
  VerdictCounts counts;
  for (std::size_t i = 0; i < speedups.size(); ++i)
    counts.add(i, speedups[i], verdict_of(speedups[i], 1, true), measure);
  return counts;
}

const Speedup wins{2, 1.5, 2.5}, loses{0.5, 0.4, 0.6}, untold{1.1, 0.9, 1.3},
    hardly{1.01, 0.99, 1.03};

TEST_CASE("verdict: a run is judged by its whole interval") {
  CHECK(verdict_of(wins, 1, true) == Verdict::yes);
  CHECK(verdict_of(loses, 1, true) == Verdict::no);
  CHECK(verdict_of(untold, 1, true) == Verdict::cannot_tell);
  CHECK(verdict_of(hardly, 1, true) == Verdict::hardly);
  CHECK(verdict_of({1.04, 1.01, 1.2}, 1, true) == Verdict::hardly);
  CHECK(verdict_of(wins, 0.049, true) == Verdict::not_judged);
  CHECK(verdict_of(wins, 0.05, true) == Verdict::yes);
  CHECK(verdict_of(wins, 0.01, false) == Verdict::does_not_fit);
}

TEST_CASE("verdict: each code has its words, and any other text is unchanged") {
  for (const Verdict verdict : {Verdict::does_not_fit, Verdict::not_judged, Verdict::yes,
                                Verdict::hardly, Verdict::no, Verdict::cannot_tell})
    CHECK(words_of_code(name_of(verdict)) == words_of(verdict));
  CHECK(words_of_code("cannot_tell") == "not certain");
  for (const char* other : {"", "Yes", "no "}) CHECK(words_of_code(other) == other);
}

TEST_CASE("verdict: many runs get one sentence, which begins with the verdict") {
  CHECK(in_words(counts_of({wins}), {}, by_number) ==
        "Pays in 1 point, most with run 0: 2.00x (1.50 to 2.50x).");
  CHECK(in_words(counts_of({wins, {3, 2, 4}}), {}, by_number) ==
        "Pays in all 2 points, most with run 1: 3.00x (2.00 to 4.00x).");
  CHECK(in_words(counts_of({loses, wins, untold, hardly}, "the wire"), {}, by_number) ==
        "Pays in 1 of 4 points, most with run 1: 2.00x (1.50 to 2.50x); does not pay in 1; "
        "no difference in 1; not certain in 1. Measure first: the wire.");
  CHECK(in_words(counts_of({loses, untold}, "the wire"), {}, by_number) ==
        "Not certain in 1 of 2 points: at best with run 1 compression makes the run 1.10x (0.90 to "
        "1.30x) as fast; does not pay in 1. Measure first: the wire.");
  CHECK(in_words(counts_of({loses}), {}, by_number) ==
        "Does not pay in any point: at best with run 0 compression makes the run 0.50x (0.40 to "
        "0.60x) as fast.");
  CHECK(in_words({}, {}, by_number).empty());
}

TEST_CASE("verdict: the measurement that most runs need comes first") {
  VerdictCounts counts;
  counts.add(0, untold, Verdict::cannot_tell, "a");
  counts.add(1, untold, Verdict::cannot_tell, "b");
  counts.add(2, untold, Verdict::cannot_tell, "b");
  counts.add(3, wins, Verdict::yes, "c");
  CHECK_THAT(in_words(counts, {}, by_number), Catch::EndsWith("Measure first: b."));
}

TEST_CASE("verdict: other kernels are named if they change the answer") {
  const VerdictCounts own = counts_of({loses}), fused = counts_of({wins});
  CHECK_THAT(in_words(own, fused, by_number),
             Catch::EndsWith("With the fused kernels that ship here (--kernels fused): pays "
                             "in 1 point, most with run 0: 2.00x (1.50 to 2.50x)."));
  CHECK(in_words(own, own, by_number) == in_words(own, {}, by_number));
  CHECK_THAT(in_words(counts_of({wins}), counts_of({{2.2, 1.5, 2.9}}), by_number),
             Catch::Contains("fused"));
}

TEST_CASE("verdict: unusual shares of warm-up are recognised") {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(warm_up_of(none, 1000) == WarmUp::usual);
  CHECK(warm_up_of(0, 1000) == WarmUp::none);
  CHECK(warm_up_of(1, 1000) == WarmUp::none);
  CHECK(warm_up_of(2, 1000) == WarmUp::early);
  CHECK(warm_up_of(99, 1000) == WarmUp::early);
  CHECK(warm_up_of(100, 1000) == WarmUp::usual);
  CHECK(warm_up_of(99, 999) == WarmUp::usual);  // "10%" of 999 steps
  CHECK(warm_up_of(501, 1000) == WarmUp::usual);
  CHECK(warm_up_of(502, 1000) == WarmUp::most_of_the_run);
  CHECK(warm_up_of(501, 999) == WarmUp::usual);  // "50%" of 999 steps
  CHECK(warm_up_of(502, 999) == WarmUp::most_of_the_run);
  CHECK(left_out_text({}).empty());
  CHECK(left_out_text({2, 4, 1, 3}) ==
        "3 whose backend ends with an error; 2 without warm-up (freeze_step 0 or 1): the variance "
        "is not yet known; 4 that freeze in the first 10 % of their steps, earlier than "
        "published recipes; 1 that warm up for more than 50 % of their steps");
  LeftOut left_out;
  CHECK_FALSE(left_out.add(WarmUp::usual, false));
  CHECK(left_out.add(WarmUp::usual, true));
  CHECK(left_out.add(WarmUp::none, true));
  CHECK(left_out.add(WarmUp::none, false));
  CHECK(left_out.add(WarmUp::most_of_the_run, false));
  CHECK(left_out.add(WarmUp::early, false));
  CHECK(left_out_text(left_out) == left_out_text({1, 1, 1, 2}));
  CHECK(left_out.all() == 5);
}

TEST_CASE("verdict: a backend that fails is told by its code alone") {
  CHECK(backend_fails("backend-fails"));
  CHECK(backend_fails("memory-tight backend-fails"));
  CHECK(backend_fails("backend-fails freeze-early"));
  CHECK_FALSE(backend_fails(""));
  CHECK_FALSE(backend_fails("backend-fails-not not-backend-fails"));
}

TEST_CASE("verdict: a ratio has enough digits to show on which side of 1 it lies") {
  CHECK(ratio_digits(0.84) == "0.84");
  CHECK(ratio_digits(1.0) == "1.00");
  CHECK(ratio_digits(1.004) == "1.004");
  CHECK(ratio_digits(0.9961) == "0.996");
  CHECK(ratio_digits(0.99962) == "0.9996");
  CHECK(ratio_digits(1.00001) == "1.0000");
  CHECK(ratio_digits(1.005) != "1.00");
  CHECK(times_as_long(1.0011) == "1.001 times as long");
  CHECK(times_as_long(1.0001) == "1.0001 times as long");
  CHECK(times_as_long(1.00001) == "as long");
  CHECK(times_as_long(1.2) == "1.20 times as long");
}

}  // namespace
}  // namespace lambcast
