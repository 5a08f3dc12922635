// Catch2 3 under the names of Catch2 2, which the tests use. LambcastTest.cmake adds this folder only if it finds the newer one.
#pragma once

#include <catch2/catch_all.hpp>

using Catch::Approx;

namespace Catch {
using Matchers::ContainsSubstring, Matchers::EndsWith, Matchers::Equals, Matchers::Matches,
    Matchers::StartsWith, Matchers::WithinRel;
}

// Of a text. The newer Contains is about elements of ranges, and takes a text for one.
#define Contains ContainsSubstring
