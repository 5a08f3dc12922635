// What another process says of where its ranks run.
#include "sim/base/fuzz_target.h"
#include "validate/measure/rank_place.h"

FUZZ_TARGET(places, text) {
  using namespace lambcast::validate;
  places_in(place_lines(places_in(text)));
}
