// Tests loading: overrides, files, and the message of every error.
#include "models/shape/load.h"

#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "models/shape/families.h"
#include "models/shape/with_test.h"

using namespace lambcast;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

// A description in the working directory, which is removed with this object. The name has the
// process number, since test cases may run in parallel.
struct File {
  const std::string path = "./load_test_" + std::to_string(getpid()) + ".toml";
  explicit File(const std::string& text) { std::ofstream(path) << text; }
  ~File() { std::remove(path.c_str()); }
};

const std::string small =
    "[model]\n"
    "name = \"pair\"\n"
    "family = \"tensors\"\n"
    "forward_flops_per_sample = 1000\n";

void refuses(const std::string& text, const std::string& sentence) {
  const File file(text);
  CHECK_THROWS_WITH(load_model(file.path), file.path + sentence);
}

std::string tensor(const std::string& keys) { return "[[tensor]]\n" + keys; }

}  // namespace

TEST_CASE("an unknown model is refused with a suggestion and a list") {
  CHECK_THROWS_WITH(load_model("bert-larg"),
                    StartsWith("--model: unknown model 'bert-larg', did you mean 'bert-large'?") &&
                        Contains("allowed: bert-base, bert-large, gpt2,") && Contains("vit-l16"));
  CHECK_THROWS_WITH(load_model(""), StartsWith("--model: unknown model ''"));
  try {
    load_model("bert-larg");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
  }
}

TEST_CASE("an error names the file that cannot be read") {
  CHECK_THROWS_WITH(load_model("no/such.toml"),
                    "no/such.toml: cannot be read: No such file or directory");
  CHECK_THROWS_WITH(load_model("absent.toml"),
                    "absent.toml: cannot be read: No such file or directory");
  CHECK_THROWS_WITH(load_model("./"), "./: cannot be read: Is a directory: name a file in it");
}

TEST_CASE("overrides change a key, and only keys that exist") {
  CHECK(with("gpt2", {{"model.layers", "24"},
                      {"model.hidden", "1024"},
                      {"model.heads", "16"},
                      {"model.ffn", "4096"}})
            .tensors.size() == 24 * 12 + 4);
  CHECK_THROWS_WITH(with("gpt2", {{"model.layrs", "24"}}),
                    StartsWith("--set model.layrs=24: model.layrs: unknown key 'layrs', did you "
                               "mean 'layers'?"));
  CHECK_THROWS_WITH(with("gpt2", {{"layers", "24"}}),
                    "--set layers=24: layers: is not a key of a model (allowed: model.KEY)");
  CHECK_THROWS_WITH(with("gpt2", {{"model.layers", "many"}}),
                    StartsWith("--set model.layers=many: model.layers: is not a whole number"));
}

TEST_CASE("values out of range are refused") {
  const auto refused = [](const std::string& name, const std::string& key, const std::string& value,
                          const std::string& sentence) {
    INFO(name << " " << key << "=" << value);
    CHECK_THROWS_WITH(with(name, {{key, value}}),
                      "--set " + key + "=" + value + ": " + key + ": " + sentence);
  };
  refused("gpt2", "model.layers", "0", "0 is out of range (allowed: 1 to 10000)");
  refused("gpt2", "model.layers", "10001", "10001 is out of range (allowed: 1 to 10000)");
  refused("gpt2", "model.hidden", "1000001", "1000001 is out of range (allowed: 1 to 1000000)");
  refused("gpt2", "model.heads", "7", "hidden 768 is not divisible by 7 heads");
  refused("gpt2", "model.ffn", "-1", "-1 is out of range (allowed: 1 to 10000000)");
  refused("gpt2", "model.vocab", "0", "0 is out of range (allowed: 1 to 10000000)");
  refused("gpt2", "model.vocab_multiple", "0", "0 is out of range (allowed: 1 to 10000000)");
  refused("gpt2", "model.max_seq_len", "0", "0 is out of range (allowed: 1 to 16777216)");
  refused("bert-base", "model.default_seq_len", "513", "513 is out of range (allowed: 1 to 512)");
  refused("bert-base", "model.type_vocab", "0", "0 is out of range (allowed: 1 to 1000)");
  refused("bert-base", "model.masked_fraction", "0",
          "0 is out of range (allowed: above 0, up to 1)");
  refused("bert-base", "model.masked_fraction", "1.5",
          "1.5 is out of range (allowed: above 0, up to 1)");
  refused("llama2-7b", "model.kv_heads", "5", "32 heads are not divisible by 5 kv_heads");
  refused("llama2-7b", "model.kv_heads", "64", "64 is out of range (allowed: 1 to 32)");
  refused("llama2-7b", "model.norms", "3",
          "a block has norms before both halves, or before and behind both (allowed: 2 or 4)");
  refused("llama2-7b", "model.qk_norm_whole", "true", "has no effect without qk_norm = true");
  refused("llama2-7b", "model.positions", "4095",
          "4095 is out of range (allowed: 4096 to 1073741824)");
  refused("mistral-7b", "model.window_layers", "2", "2 is out of range (allowed: 1 to 1)");
  refused("mixtral-8x7b", "model.experts", "5000", "5000 is out of range (allowed: 1 to 4096)");
  refused("mixtral-8x7b", "model.experts", "4096",
          "4096 experts in each of 32 layers are too many (allowed: experts times layers up to "
          "100000)");
  // A product of 100,000 is allowed. A GPT counts only its layers with experts.
  CHECK(with("mixtral-8x7b", {{"model.experts", "3125"}}).experts == 3125);
  CHECK(with("gpt2", {{"model.layers", "40"},
                      {"model.experts", "4096"},
                      {"model.experts_per_token", "1"},
                      {"model.sparse_every", "40"}})
            .experts == 4096);
  refused("mixtral-8x7b", "model.experts_per_token", "9", "9 is out of range (allowed: 1 to 8)");
  refused("t5-large", "model.head_dim", "0", "0 is out of range (allowed: 1 to 10000)");
  refused("t5-large", "model.relative_buckets", "0", "0 is out of range (allowed: 1 to 1000000)");
  refused("t5-large", "model.decoder_layers", "0", "0 is out of range (allowed: 1 to 10000)");
  refused("switch-base-64", "model.sparse_every", "0", "0 is out of range (allowed: 1 to 10000)");
  refused("resnet50", "model.blocks", "[]", "0 stages are out of range (allowed: 1 to 6 stages)");
  refused("resnet50", "model.blocks", "[3, 0]", "0 is out of range (allowed: 1 to 1000)");
  refused("resnet50", "model.width", "5000", "5000 is out of range (allowed: 1 to 4096)");
  refused("resnet18", "model.block", "wide", "unknown value 'wide' (allowed: bottleneck, basic)");
  refused("vgg16", "model.convolutions", "[]",
          "0 stages are out of range (allowed: 1 to 6 stages)");
  refused("vgg16", "model.convolutions", "[2, 0]", "0 is out of range (allowed: 1 to 100)");
  refused("resnet50", "model.image_size", "0", "0 is out of range (allowed: 1 to 10000)");
  refused("vit-l16", "model.patch_size", "15", "image_size 224 is not divisible by patch_size 15");
  refused("vit-l16", "model.classes", "0", "0 is out of range (allowed: 1 to 10000000)");
  refused("gpt2", "model.name", "", "is empty");
  refused("gpt2", "model.family", "lama",
          "unknown value 'lama', did you mean 'llama'? (allowed: bert, gpt, llama, decoder, "
          "moe-llama, moe, "
          "t5, switch, resnet, vgg, vit, swin, feed-forward, tensors)");
}

TEST_CASE("a model beyond 1e15 parameters is refused") {
  // The model would have 10,000 * (4 * 1e12 + 2 * 1e13) = 2.4e17 parameters.
  CHECK_THROWS_WITH(with("gpt2", {{"model.layers", "10000"},
                                  {"model.hidden", "1000000"},
                                  {"model.heads", "1000"},
                                  {"model.ffn", "10000000"}}),
                    Contains("model: 2.4e+17 parameters are too many (allowed: up to 1e+15)"));
}

TEST_CASE("a model with experts in only its first layer has a layer with experts") {
  const File file(small + "experts = 2\nexperts_per_token = 1\n" +
                  tensor("name = \"e\"\nelements = 4\nlayer = 0\nexpert = true\n"));
  CHECK(load_model(file.path).expert_layers == std::vector<bool>{true});
}

TEST_CASE("any model can be described tensor by tensor") {
  const File file(small +
                  "activation_bytes_per_sample = \"4 kB\"\n"
                  "experts = 4\nexperts_per_token = 1\n" +
                  tensor("name = \"a\"\nelements = 300\nlayer = 0\n") +
                  tensor("name = \"b\"\nelements = 100\nlayer = 1\ngroup = \"none\"\n") +
                  tensor("name = \"e\"\nelements = 400\nlayer = 1\nexpert = true\n") +
                  tensor("name = \"c\"\nelements = 200\noptimized = false\n"));
  const ModelShape shape = load_model(file.path);
  CHECK(parameters(shape) == 1000);
  CHECK(optimized_parameters(shape) == 800);
  CHECK(active_parameters(shape) == 700);  // one expert of four is active
  CHECK(shape.layers == 2);
  CHECK(shape.groups == std::vector<std::string>{"decay", "none"});
  CHECK(shape.provenance.kind == Kind::assumed);
  CHECK(shape.provenance.source == file.path);
  CHECK(shape.expert_layers == std::vector<bool>{false, true});
  // 1000 FLOPs and 4000 bytes are split in proportion to elements: 300 + 500 + 200 FLOPs.
  CHECK(block_forward_flops(shape, 0, 0).value() == Approx(300));
  CHECK(block_forward_flops(shape, 1, 0).value() == Approx(500));
  CHECK(outside_forward_flops(shape, 0).value() == Approx(200));
  CHECK(activation_bytes(shape, 2, 0, true).value() == Approx(8000));
}

TEST_CASE("a model described by tensors scales with its length") {
  const File file(small + "max_seq_len = 512\ndefault_seq_len = 100\n" +
                  tensor("name = \"a\"\nelements = 3\nlayer = 0\n"));
  const ModelShape shape = load_model(file.path);
  CHECK(forward_flops(shape, 100).value() == Approx(1000));
  CHECK(forward_flops(shape, 200).value() == Approx(2000));
}

// A model loads if only the required keys are given, and the reader uses all of them.
TEST_CASE(
    "required keys of a family are those that it reads, and an error names all missing ones") {
  for (const Family& family : families()) {
    INFO(family.name);
    std::string only = "[model]\n";
    std::istringstream lines{std::string(model_preset_text(family.preset))};
    for (std::string line; std::getline(lines, line);) {
      const std::string key = line.substr(0, line.find(" = "));
      if (key == "name" || std::ranges::count(family.required, key) > 0) only += line + "\n";
    }
    only += "family = \"" + std::string(family.name) + "\"\n";
    if (family.name == "tensors")
      only += "forward_flops_per_sample = 1\n" + tensor("name = \"a\"\nelements = 3\n");
    CHECK_NOTHROW(load_model(File(only).path));

    const File none("[model]\nfamily = \"" + std::string(family.name) + "\"\n");
    std::string said;
    try {
      load_model(none.path);
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK_THAT(said, Contains(std::to_string(family.required.size() + 1) + " keys are missing"));
    for (const std::string_view key : family.required)
      CHECK_THAT(said, Contains("model." + std::string(key)));
  }
}

TEST_CASE("errors in a description name their place") {
  const std::string a = tensor("name = \"a\"\nelements = 3\n");
  refuses(small, ":1: tensor: is missing (allowed: [[tensor]] tables)");
  refuses(small + a + a, ":9: tensor[1].name: tensor 'a' is listed twice");
  refuses(small + tensor("name = \"a\"\nelements = 0\n"),
          ":7: tensor[0].elements: 0 is out of range (allowed: 1 to 1000000000000000)");
  refuses(small + tensor("name = \"a\"\nelements = 3\nexpert = true\n"),
          ":8: tensor[0].expert: is true, but [model] has no 'experts'");
  refuses(small + tensor("name = \"a\"\nelements = 3\nlayer = 1\n"),
          ":5: tensor: layer 0 of 2 has no tensor (allowed: layers counted from 0 without gaps)");
  refuses(small + tensor("name = \"a\"\nelements = 3\nlayers = 1\n"),
          ":8: tensor[0].layers: unknown key 'layers', did you mean 'layer'? (allowed: elements, "
          "expert, group, layer, name, optimized)");
  refuses("[model]\nname = \"x\"\nfamily = \"tensors\"\nforward_flops_per_sample = 0\n" + a,
          ":4: model.forward_flops_per_sample: 0 is out of range (allowed: above 0, up to 1e24)");
  refuses("[model]\nname = \"x\"\nkind = \"published\"\n", ":1: model.source: is missing");
  refuses("[model]\nname = \"x\"\nsource = \"me\"\n", ":1: model.kind: is missing");
  refuses(
      "[model]\nfamily = \"gpt\"\nlayers = 1\nhidden = 8\nheads = 1\nffn = 8\nvocab = 8\n"
      "max_seq_len = 8\n",
      ":1: model.name: is missing");
  refuses(
      "[modle]\nname = \"x\"\n",
      ":1: 2 keys are missing: model.name, model.family; lambcast presets show bert-large prints a "
      "description that has them");
  const File mixed(
      "[model]\nname = \"x\"\nfamily = \"resnet\"\nblocks = [1]\nwidth = 8\n"
      "classes = 2\nimage_size = 8\n" +
      a);
  CHECK_THROWS_WITH(load_model(mixed.path),
                    StartsWith(mixed.path + ":8: tensor: unknown key 'tensor'"));
}
