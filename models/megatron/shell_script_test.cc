#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "models/megatron/launch.h"
#include "models/megatron/shell_script.h"
#include "sim/base/error.h"
#include "sim/base/fuzz_target.h"

namespace lambcast::megatron {
namespace {

// In the scripts, GO stands for a launch.
struct Example {
  const char *script, *arguments;
};

// The expected arguments are those that bash 5.2 passes.
constexpr Example examples[] = {
    {"TP=2\n(TP=4)\nGO --tp $TP", "--tp 2"},
    {"TP=2\n(TP=4; GO --tp $TP)", "--tp 4"},
    {"f(){ local TP=8; echo $TP; }\nTP=2\nf\nGO --tp $TP", "--tp 2"},
    {"f(){ local TP=$TP; TP=$((TP*2)); GO --tp $TP; }\nTP=2\nf", "--tp 4"},
    {"f(){ local TP; TP=4; }\nTP=2; f\nGO --tp $TP", "--tp 2"},
    {"f(){ declare TP=4; }\nTP=2; f\nGO --tp $TP", "--tp 2"},
    {"f(){ declare -g TP=4; }\nTP=2; f\nGO --tp $TP", "--tp 4"},
    {"TP=2\necho x | TP=4\nGO --tp $TP", "--tp 2"},
    {"TP=2\nTP=4 | cat\nGO --tp $TP", "--tp 2"},
    {"TP=2\nseq 3 | while read x; do TP=$x; done\nGO --tp $TP", "--tp 2"},
    {"TP=2\nTP=4 &\nGO --tp $TP", "--tp 2"},
    {"TP=2\nTP=4 echo x\nGO --tp $TP", "--tp 2"},
    {"f(){ GO --tp $TP; }\nTP=2\nTP=4 f", "--tp 4"},
    {"f(){ X=3; }\nTP=2\nTP=4 f\nGO --tp $TP --x $X", "--tp 2 --x 3"},
    {"C=(1 2 3); C[0]=4\nGO --tp ${C[0]}", "--tp 4"},
    {"C=(1 2); C[2]=4; C[1]+=0\nGO --tp ${C[@]}", "--tp 1 20 4"},
    {"C=(1 2 3); C=4\nGO --tp ${C[@]}", "--tp 4 2 3"},
    {"TP=1\n((TP*=2)); ((TP++)); (( TP += 1 ))\nGO --tp $TP", "--tp 4"},
    {"TP=1; let TP=TP*4 M=2\nlet \"M += 1\"\nGO --tp $TP --m $M", "--tp 4 --m 3"},
    {"TP=1\nprintf -v TP \"%d\" 4\nGO --tp $TP", "--tp 4"},
    {"export TP=2\nexport -n TP=4\nGO --tp $TP", "--tp 4"},
    {"export TP=2\nexport -n TP\nbash -c \"GO --tp \\$TP\"", "--tp"},
    {"TP=28 true; TP=4\nbash -c 'GO --tp \"$TP\" --q'", "--tp '' --q"},
    {"export TP=2\nbash -c 'GO --tp $TP'", "--tp 2"},
    {"TP=2\nbash -c 'GO --tp $TP'", "--tp"},
    {"TP=2; unset TP\nGO --tp ${TP:-8}", "--tp 8"},
    {"TP=2; unset TP\nGO --tp ${TP-8} ${TP+x}", "--tp 8"},
    {"N=TP; eval \"$N=4\"\nGO --tp $TP", "--tp 4"},
    {"CMD=\"TP=4\"; TP=2; eval $CMD\nGO --tp $TP", "--tp 4"},
    {"N=TP; TP=2; export \"$N=4\"\nGO --tp $TP", "--tp 4"},
    {"set -- 4 2\nGO --tp $1 --m $2", "--tp 4 --m 2"},
    {"set -e\nTP=2\nGO --tp $TP", "--tp 2"},
    {"set -- 4 2 8\nshift 2\nGO --tp $1", "--tp 8"},
    {"for TP in 1 2 4; do [ $TP = 2 ] && break; done\nGO --tp $TP", "--tp 2"},
    {"for x in 1 2 4; do if [ $x = 4 ]; then continue; fi; TP=$x; done\nGO --tp $TP", "--tp 2"},
    {"TP=1\nwhile [ $TP -lt 4 ]; do TP=$((TP*2)); done\nGO --tp $TP", "--tp 4"},
    {"i=0\nwhile [ $i -lt 4 ]; do i=$((i+1)); [ $i = 3 ] && continue; TP=$i; done\nGO --tp $TP",
     "--tp 4"},
    {"TP=1\nfor ((i=0;i<3;i++)); do TP=$((TP*2)); done\nGO --tp $TP", "--tp 8"},
    {"TP=1\nfor ((i=0;i<9;i++)); do TP=$((TP*2)); if ((TP>5)); then break; fi; done\nGO --tp $TP",
     "--tp 8"},
    {"case b in a|b) TP=4 ;; *) TP=8 ;; esac\nGO --tp $TP", "--tp 4"},
    {"TP=$((2**2))\nGO --tp $TP", "--tp 4"},
    {"TP=$((1<<2)); M=$(( TP > 1 ? 2 : 4 ))\nGO --tp $TP --m $M", "--tp 4 --m 2"},
    {"TP=$((a=2, a*2))\nGO --tp $TP --a $a", "--tp 4 --a 2"},
    {"unset Q; TP=$((Q+4))\nGO --tp $TP", "--tp 4"},
    {"A_TP=4; N=A_TP\nGO --tp ${!N}", "--tp 4"},
    {"S=tp4x; TP=${S:2:1}\nGO --tp $TP", "--tp 4"},
    {"S=tp4; TP=${S: -1}\nGO --tp $TP", "--tp 4"},
    {"A=(1 2 4 8)\nGO --tp ${A[@]:1:2} --m ${A[-1]}", "--tp 2 4 --m 8"},
    {"S=a1b1; TP=${S//1/2}; U=${S/1/2}\nGO --tp $TP --u $U", "--tp a2b2 --u a2b1"},
    {"E=()\nGO --bf16 \"${E[@]}\" \"$@\" --tp 2", "--bf16 --tp 2"},
    {"A=abc; TP=${#A}\nGO --tp $TP", "--tp 3"},
    {"TP=$'4'\nGO --tp $TP", "--tp 4"},
    {"TP=4\nGO --tp $TP > >(cat) 2>&1", "--tp 4"},
    {"TP=4\n(exit 1)\nGO --tp $TP", "--tp 4"},
    {"TP=4\nexit 1 | cat\nGO --tp $TP", "--tp 4"},
    {"TP=2\ncat <<EOF > x.json\n{\"a\": $TP}\nEOF\nGO --tp $TP", "--tp 2"},
    {"S=/a/b.c; GO --a ${S##*/} --b ${S%.*} --c ${S#/} --d ${S%%/*}x",
     "--a b.c --b /a/b --c a/b.c --d x"},
    {"unset A; B=3; TP=${A:-${B:-1}}\nGO --tp $TP", "--tp 3"},
    {"unset TP; : ${TP:=4}\nGO --tp $TP", "--tp 4"},
    {"A=x; GO ${A:+--tp 4} ${B:+--q}", "--tp 4"},
    {"X=\"a b\"; GO --n \"$X\" --m $X --o '$X' --p a\\ b", "--n 'a b' --m a b --o $X --p 'a b'"},
    {"TP=2\n{ TP=4; }\nGO --tp $TP", "--tp 4"},
    {"TP=2; true && TP=4; false || TP=8; true || TP=9\nGO --tp $TP", "--tp 8"},
    {"f(){ TP=$1; shift; M=\"$*\"; N=$#; }\nf 4 a b\nGO --tp $TP --m $M --n $N",
     "--tp 4 --m a b --n 2"},
    {"f(){ set -- 9; }\nset -- 4\nf 1\nGO --tp $1", "--tp 4"},
    {"g(){ TP=8; }\nf(){ local TP=1; g; }\nTP=2; f\nGO --tp $TP", "--tp 2"},
    {"A=(--a 1)\nA+=(--b 2)\nif true; then A+=(--c 3); fi\nGO \"${A[@]}\"", "--a 1 --b 2 --c 3"},
    {"A=\"\n --a 1 \\\n --b 2\n\"\nGO $A", "--a 1 --b 2"},
    {"A=1; B=2; TP=1; if [ $A = 1 -a $B = 2 ]; then TP=4; fi\nGO --tp $TP", "--tp 4"},
    {"TP=1\nuntil ((TP>=4)); do ((TP*=2)); done\nGO --tp $TP", "--tp 4"},
    {"for TP in {1..4}; do :; done\nGO --tp $TP", "--tp 4"},
    {"A=3; TP=$((A>2?A==3?8:4:1))\nGO --tp $TP", "--tp 8"},
    {"A=0; TP=$((A && (A=5) ? 1 : 2))\nGO --tp $TP --a $A", "--tp 2 --a 0"},
    {"A=1; TP=$((A++ + ++A))\nGO --tp $TP --a $A", "--tp 4 --a 3"},
    {"TP=$((-2**2)) M=$((~1 & 7)) Q=$((7%3|8^1))\nGO --tp $TP --m $M --q $Q", "--tp 4 --m 6 --q 9"},
    {"TP=2 # TP=4\n# TP=8\nGO --tp $TP # --x 1", "--tp 2"},
    {"GO --tp 4 \\\n # --x 1 \\\n --y 2", "--tp 4"},
    {"X=\"--tp 4 --n \\\"a b\\\"\"\nGO $X", "--tp 4 --n \"a b\""},
    {"A=(1 2 4); i=1; TP=${A[i+1]} M=${A[$i]}\nGO --tp $TP --m $M", "--tp 4 --m 2"},
    {"A=(1 \"2 3\"); B=(\"${A[@]}\"); TP=${#B[@]}; C=(${A[@]}); M=${#C[@]}\nGO --tp $TP --m $M",
     "--tp 2 --m 3"},
    {"A=(1 2); X=\"${A[*]}\"; GO --tp \"$X\" --m ${A[*]}", "--tp '1 2' --m 1 2"},
    {"TP=1; TP+=2\nGO --tp $TP", "--tp 12"},
    {"unset A; TP=1; if [ -z \"$A\" ]; then TP=4; fi; if [ -n $A ]; then M=2; fi\nGO --tp $TP --m "
     "$M",
     "--tp 4 --m 2"},
    {"MODEL=7b; case $MODEL in 7*) TP=1;; 13b) TP=2;; esac\nGO --tp $TP", "--tp 1"},
    {"N=3; if [ $N -eq 1 ]; then TP=1; elif [ $N -eq 3 ]; then TP=3; else TP=9; fi\nGO --tp $TP",
     "--tp 3"},
    {"TP=2\n{ TP=4; echo; } | cat\nGO --tp $TP", "--tp 2"},
    {"TP=2; (exit 1) || TP=4\nGO --tp $TP", "--tp 4"},
    {"TP=1\nfor i in {1..3}; do TP=$((TP*2)); done\nGO --tp $TP", "--tp 8"},
    {"GO --p x{a,b,\"c d\"}y{1..2} {q} \"{a,b}\" ${U:-{a,b}} {3..1}",
     "--p xay1 xay2 xby1 xby2 'xc dy1' 'xc dy2' {q} {a,b} {a,b} 3 2 1"},
    {"GO --a $'x y' --b \"$'z'\" --c $\"w\"", "--a 'x y' --b $'z' --c w"},
    {"TP=2; command export TP=4; builtin let TP=TP+1\nGO --tp $TP", "--tp 5"},
    {"TP=2; trap 'TP=3' EXIT\nGO --tp $TP", "--tp 2"},
    {"f(){ if [ $1 = a ]; then return 0; fi; TP=8; }\nTP=2; f a\nGO --tp $TP", "--tp 2"},
    {"export TP=4 M=2\nGO --tp $TP --m $M", "--tp 4 --m 2"},
    {"if [ 1 = 1 ]; then TP=4; else TP=2; fi; GO --tp $TP", "--tp 4"},
    {"X=0; if ((X)); then TP=1; else TP=2; fi; ((X)) || TP=$((TP+1))\nGO --tp $TP", "--tp 3"},
    {"A=1 B=$A C=$B\nGO --tp $C", "--tp 1"},
    {"if true; then cat > /dev/null <<EOF\nTP=9\nfi\nEOF\nTP=4; fi\nGO --tp $TP", "--tp 4"},
    {"X=b\ncase $X in\n  a)\n    TP=1\n    ;;\n  b)\n    TP=2\n    ;;\n  *) TP=3\nesac\nGO --tp "
     "$TP",
     "--tp 2"},
    {"TP=1; while true; do TP=$((TP+1)); if [ $TP -ge 4 ]; then break; fi; done\nGO --tp $TP",
     "--tp 4"},
    {"f(){ local -a A=(1 2); local B=3 C; C=$B; GO --tp ${A[1]} --b $C; }\nf", "--tp 2 --b 3"},
    {"A=\"x\"; B=\"${A:-\"y z\"}\"; GO --b \"$B\" --c \"${U:-\"y z\"}\"", "--b x --c 'y z'"},
    {"f(){ TP=4; }\nTP=2; unset -f f; f\nGO --tp $TP", "--tp 2"},
    {"f(){ TP=4; }\n(f(){ TP=8; })\nTP=2; f\nGO --tp $TP", "--tp 4"},
    {"A=(); for i in 1 2 3; do A[${#A[@]}]=$i; done\nGO --tp \"${A[@]}\"", "--tp 1 2 3"},
    {"set -a; TP=4; set +a\nbash -c 'GO --tp $TP'", "--tp 4"},
    {"TP=2 bash -c 'GO --tp $TP'", "--tp 2"},
    {"A=1 && B=2 && TP=$((A+B))\nGO --tp $TP", "--tp 3"},
    {"A=(--x 1 --y \"2 3\"); S=\"${A[@]}\"; GO $S", "--x 1 --y 2 3"},
    {"A=(\n --x 1 # c\n # --y 2\n --z 3\n)\nGO ${A[@]}", "--x 1 --z 3"},
    {"declare -A C=([tp]=2 [m]=4)\nC[tp]=4\nGO --tp ${C[tp]} --m ${C[m]}", "--tp 4 --m 4"},
    {"declare -A C\nK=7b; C[$K]=2; C[\"a b\"]=3\nGO --tp ${C[7b]} --m ${C[a b]}", "--tp 2 --m 3"},
    {"set -a; A=1; set +a; TP=4\nbash -c 'GO --tp \"$TP\" --q'", "--tp '' --q"},
};

// Values that the evaluator cannot determine. The words that use them must be marked unset
// (ShellWord::unset).
constexpr const char* refused[] = {
    "C[5]=4\nGO --tp ${C[@]}",
    "declare -i TP; TP=1+1\nGO --tp $TP",
    "TP=1\nprintf -v TP \"%02d\" 4\nGO --tp $TP",
    "TP=1\nread TP <<< \"4\"\nGO --tp $TP",
    "srun bash -c 'torchrun pretrain_gpt.py --num-layers $1 --tp $0' 4 8",
    "C=(1 2); unset C[0]\nGO --tp ${C[@]}",
    "TP=2; eval $(echo TP=4)\nGO --tp $TP",
    "TP=2; export $(echo TP=4)\nGO --tp $TP",
    "for TP in 1 2 4; do if [ -f /nonexist ]; then break; fi; done\nGO --tp $TP",
    "f(){ TP=1; [ -f /tmp ] || return; TP=4; }\nf\nGO --tp $TP",
    "case 4 in [0-9]) TP=4 ;; *) TP=8 ;; esac\nGO --tp $TP",
    "case \"x*\" in \"x*\") TP=4 ;; *) TP=8 ;; esac\nGO --tp $TP",
    "TP=$((010))\nGO --tp $TP",
    "X=08; TP=$((10#$X))\nGO --tp $TP",
    "TP=$((0x10))\nGO --tp $TP",
    "S=abc; TP=${S/b*/4}\nGO --tp $TP",
    "S=aba; TP=${S/#a/4}\nGO --tp $TP",
    "A=($(echo 1 2 3)); TP=${#A[@]}\nGO --tp $TP",
    "A=$(echo abc); TP=${#A}\nGO --tp $TP",
    "IFS=,; X=4,2; A=($X); unset IFS; TP=${A[0]}\nGO --tp $TP",
    "X=4,2; IFS=,\nfor TP in $X; do :; done\nGO --tp $TP",
    "declare -A C=([tp]=2)\nGO --tp ${C[pp]}",
    "declare -A C=([tp]=2 [m]=4)\nGO --tp ${C[@]}",
    "declare -A C=([tp]=2)\nunset C[tp]\nGO --tp ${C[tp]}",
    "declare -A C=([tp]=2)\nif [ -f /nonexist ]; then C[tp]=4; fi\nGO --tp ${C[tp]}",
    "TP=2; declare -n R=TP; R=4\nGO --tp $TP",
    "S=a4b; TP=${S%[a-z]}; TP=${TP#[a-z]}\nGO --tp $TP",
    "A=b; TP=1; if [[ $A == [a-c] ]]; then TP=4; fi\nGO --tp $TP",
    "A=xy; TP=1; if [[ $A == \"x*\" ]]; then TP=4; fi\nGO --tp $TP",
    "TP=2\nsource more.sh\nGO --tp $TP",
    "TP=$(echo 4)\nGO --tp $TP",
    "TP=1\nfor i in $(seq 2); do TP=$((TP*2)); done\nGO --tp $TP",
    "TP=1\nfor i in $LISTX; do TP=4; done\nGO --tp $TP",
    "TP=2; ([ -f /etc/passwd ] && exit 1; true) || TP=4\nGO --tp $TP",
    "f(){ return 1; }\nTP=2; f && TP=4\nGO --tp $TP",
    "f(){ for x in 1 2; do TP=$x; [ -d /tmp ] && return; done; TP=9; }\nTP=5; f\nGO --tp $TP",
    "TP=2; if echo x | grep -q x; then TP=4; fi\nGO --tp $TP",
    "TP=`echo 4`\nGO --tp $TP",
};

std::vector<ShellWord> launched(std::string text) {
  const std::string launch = "torchrun pretrain_gpt.py --num-layers 2";
  for (std::size_t at = text.find("GO "); at != text.npos; at = text.find("GO ", at))
    text.replace(at, 2, launch);
  const Script script = run_script("#!/bin/bash\n" + text + "\n", "t.sh");
  REQUIRE_FALSE(script.launches.empty());
  const auto& words = script.launches.front().words;
  return {words.begin() + 4, words.end()};
}

TEST_CASE("shell: scripts pass the same arguments as bash") {
  for (const Example& example : examples) {
    INFO(example.script);
    std::vector<std::string> texts;
    for (const ShellWord& word : launched(example.script)) {
      CHECK(word.unset.empty());
      const bool plain = !word.text.empty() && word.text.find(' ') == std::string::npos;
      texts.push_back(plain ? word.text : "'" + word.text + "'");
    }
    CHECK(fmt::format("{}", fmt::join(texts, " ")) == example.arguments);
  }
}

TEST_CASE("shell: values that are not evaluated are missing, never outdated") {
  for (const char* script : refused) {
    INFO(script);
    bool missing = false;
    for (const ShellWord& word : launched(script)) missing = missing || !word.unset.empty();
    CHECK(missing);
  }
}

TEST_CASE("shell: unsupported syntax is refused with its line") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(launched("case 4 in 4) A=4 ;& 8) A=8 ;; esac\nGO"),
                    Contains("t.sh:2: ';&' is not supported in scripts"));
  CHECK_THROWS_WITH(launched("A=1\nselect A in 1 2; do B=$A; done\nGO"),
                    Contains("t.sh:3: 'select' is not supported in scripts"));
  CHECK_THROWS_WITH(launched("readonly TP=2\nTP=4\nGO --tp $TP"),
                    Contains("t.sh:3: 'TP' is readonly"));
  CHECK_THROWS_WITH(launched("for A in 1 2; do break 2; done\nGO"),
                    Contains("t.sh:2: 'break 2' is not supported in scripts"));
}

// The evaluation of loops and recursions must end, and no text may be read beyond its end.
TEST_CASE("shell: modified scripts are evaluated or refused") {
  std::mt19937 random(1);
  const std::string_view pieces = "(){}[]<>|&;$`'\"\\#=!*?~-+%/,:@01 \n";
  for (int round = 0; round < 15; ++round)
    for (const Example& example : examples) {
      std::string text = example.script;
      for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
        const std::size_t at = random() % text.size();
        const std::size_t from = random() % text.size();
        if (random() % 3 == 0)
          text.insert(at, text.substr(from, random() % 12));
        else if (random() % 2 == 0)
          text.erase(at, 1);
        else
          text.insert(at, 1, pieces[random() % pieces.size()]);
        if (text.empty()) text = "A";
      }
      INFO(text);
      may_refuse([&] { run_script(text, "t.sh"); });
    }
}

TEST_CASE("shell: a small script takes little time, for any number of repetitions") {
  const std::string grow = "A=aaaaaaaaaaaaaaaa\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12; do ";
  const std::pair<std::string, const char*> greedy[] = {
      {"while true; do python pretrain_gpt.py --num-layers 2; done", "repeats too often"},
      {"f() { g; g; }\ng() { h; h; }\nh() { while true; do f; done; }\nf", "is nested too deeply"},
      {"A=(1 2 3 4)\nwhile true; do A+=(\"${A[@]}\"); done", "writes too much text"},
      {grow + "A=$A$A; done\nwhile true; do echo $A; done", "writes too much text"}};
  const std::string slow[] = {grow + "A=$A$A; done\nB=${A%*b*}",
                              grow + "A=$A$A; done\nB=${A//a/bb}",
                              grow + "A=$A$A; done\n[[ $A == *$A$A$A ]] && B=1",
                              grow + "A=$A$A; done\ncase $A in *$A*) B=1;; esac"};
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [script, refusal] : greedy)
    CHECK_THROWS_WITH(run_script(script, "t.sh"), Catch::Matchers::Contains(refusal));
  for (const std::string& script : slow) CHECK_NOTHROW(run_script(script, "t.sh"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8));  // 0.1 s when measured
}

TEST_CASE("shell: an error names the command that removed the value") {
  const std::string script =
      "#!/bin/bash\nTP=2\nsource ./more.sh\npython pretrain_gpt.py --num-layers 2 --tp $TP\n";
  std::vector<Finding> findings;
  const LaunchArguments launch = launch_arguments(script, "t.sh", {}, findings);
  CHECK(launch.words.back().unset == "TP");
  CHECK(launch.reasons.at("TP") == "line 3: 'source' is not supported in scripts");
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().code == "script-not-read");
  findings.clear();
  CHECK(launch_arguments(script, "t.sh", {{"TP", "4"}}, findings).words.back().text == "4");
}

}  // namespace
}  // namespace lambcast::megatron
