#include "models/megatron/shell_words.h"

#include <catch2/catch.hpp>

#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (const ShellWord& word : shell_words(text, "args.sh")) all.push_back(word.text);
  return all;
}

TEST_CASE("shell words: quotes, comments and line continuations") {
  CHECK(words("--tp 8 \\\n  --name 'a b'  # not this\n--x=\"1 2\"") ==
        std::vector<std::string>{"--tp", "8", "--name", "a b", "--x=1 2"});
  CHECK(words("").empty());
  CHECK(words("''") == std::vector<std::string>{""});
  CHECK(shell_words("a\n\nb", "f")[1].line == 3);
}

TEST_CASE("shell words: lists, definitions and their use") {
  CHECK(words("TP=8\nARGS=(\n  --tp $TP\n  --pp ${PP:-2}\n)\n${ARGS[@]}\n") ==
        std::vector<std::string>{"--tp", "8", "--pp", "2"});
  CHECK(words("A=1\nB=\"$A$A\"\n--x ${B}") == std::vector<std::string>{"--x", "11"});
}

TEST_CASE("shell words: a variable without a value is named") {
  const std::vector<ShellWord> of =
      shell_words("P=$1\n--tp $TP --save ${P}/x --n $((2*3))", "a.sh");
  REQUIRE(of.size() == 6);
  CHECK(of[0].unset.empty());
  CHECK(of[1].unset == "TP");
  CHECK(of[3].unset == "1");
  CHECK(of[5].unset == "((2*3))");
  CHECK(words("N=${2:-\"7\"}\n--n $N") == std::vector<std::string>{"--n", "7"});
  CHECK(words("--n 5$") == std::vector<std::string>{"--n", "5$"});
  CHECK(words("#!/bin/sh\ntorchrun a.py --n 1 # --m 2").size() == 2);
}

TEST_CASE("shell words: a script's lists and launches, without its other commands") {
  const std::string script =
      "#!/bin/bash\nexport A=1\nmkdir -p \"$(dirname \"$1\")\" --parents\n"
      "MODEL=(\n  --num-layers 2  # two\n  \"--fp8-format hybrid\"\n)\n"
      "MORE=\" --a 1 \\\n --b\"\n"
      "if [ -n \"$X\" ]; then\n  MODEL+=(\n    --wandb-project x\n  )\nfi\n"
      "torchrun ${MODEL[@]} pretrain_gpt.py \\\n  ${MORE} --save $2\n";
  std::vector<std::string> all = words(script);
  REQUIRE(all.size() == 11);
  all.pop_back();  // $2, which has no value
  CHECK(all == std::vector<std::string>{"--num-layers", "2", "--fp8-format", "hybrid", "--a", "1",
                                        "--b", "--wandb-project", "x", "--save"});
  for (const ShellWord& word : shell_words(script, "a.sh"))
    CHECK(word.branch == (word.text == "--wandb-project" || word.text == "x"));
}

TEST_CASE("shell words: text that cannot be split is an error with its line") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(words("a\n'b"), Contains("args.sh:2: a quote is not closed"));
  CHECK_THROWS_WITH(words("--tp ${TP"), Contains("is not closed"));
  CHECK_THROWS_WITH(words(std::string(20'000, 'x')), Contains("a word is too long"));
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "x ";
  CHECK(words(many).size() == 100'000);
  many += "x";
  CHECK_THROWS_WITH(words(many), Contains("too many words"));
}

}  // namespace
}  // namespace lambcast::megatron
