// Parses a message of another process about the places of its ranks.
#include "sim/base/fuzz_target.h"
#include "validate/measure/rank_place.h"

FUZZ_TARGET(places, text) {
  using namespace lambcast::validate;
  places_in(place_lines(places_in(text)));
}
