#include "models/shape/likeness.h"

#include <catch2/catch.hpp>

#include "models/shape/load.h"

namespace lambcast {
namespace {

Likeness to_bert(const std::vector<ModelOverride>& changes) {
  return likeness(load_model("bert-large", changes), model_preset("bert-large"));
}

TEST_CASE("likeness: names and lengths of samples do not matter") {
  CHECK(to_bert({}) == Likeness::same);
  CHECK(to_bert({{"model.name", "renamed"}}) == Likeness::same);
  CHECK(to_bert({{"model.max_seq_len", "1024"}}) == Likeness::same);
}

TEST_CASE("likeness: equal blocks are alike in any number and with any vocabulary outside them") {
  CHECK(to_bert({{"model.layers", "48"}}) == Likeness::blocks);
  CHECK(to_bert({{"model.vocab", "50304"}}) == Likeness::blocks);
  for (const char* key : {"model.hidden", "model.ffn"}) {
    INFO(key);
    CHECK(to_bert({{key, "2048"}}) == Likeness::other);
  }
  CHECK(to_bert({{"model.heads", "8"}}) == Likeness::other);
}

TEST_CASE("likeness: convolutional nets are alike with any number of blocks and classes") {
  const ModelShape& net = model_preset("resnet50");
  CHECK(likeness(load_model("resnet50", std::vector<ModelOverride>{{"model.classes", "1001"}}),
                 net) == Likeness::blocks);
  CHECK(likeness(model_preset("resnet101"), net) == Likeness::blocks);
  CHECK(likeness(model_preset("resnet34"), net) == Likeness::other);
  CHECK(likeness(model_preset("vgg16"), net) == Likeness::other);
}

TEST_CASE("likeness: no two presets are alike") {
  for (const std::string& a : model_presets())
    for (const std::string& b : model_presets()) {
      INFO(a << ", " << b);
      CHECK((likeness(model_preset(a), model_preset(b)) == Likeness::same) == (a == b));
    }
}

}  // namespace
}  // namespace lambcast
