#!/usr/bin/env bash
# Checks tools/mutate on a toy program whose mutants must die, survive and hang, and that it
# continues after an interruption.
#
#   mutate_test.sh
set -euo pipefail
mutate=$(readlink -f "$(dirname "$0")/mutate")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $*"
  cat out build-mutate/1.csv 2>/dev/null
  exit 1
}
ask() { "$mutate" --root "$folder" --tests src=toy_test "$@" >out 2>&1; }

mkdir src
cat >src/toy.cc <<'SOURCE'
// 1 + 1 in a comment is nobody's formula, nor is "a < b" in a string.
const char* name() { return "a < b"; }
int larger(int a, int b) { return a < b ? b : a; }
long until(long n) {
  while (n != 64) n += 1;
  return n;
}
SOURCE
cat >src/toy_test.cc <<'SOURCE'
int larger(int a, int b);
long until(long n);
int main() { return larger(2, 1) == 2 && larger(1, 2) == 2 && until(62) == 64 ? 0 : 1; }
SOURCE
# Programs not named after the folder: one is linked from the toy, one is not, one fails without a
# mutation.
echo 'long until(long n); int main() { return until(63) == 64 ? 0 : 1; }' >src/distant_test.cc
echo 'int main() { return 0; }' >src/other_test.cc
echo 'long until(long n); int main() { return until(63) == 63 ? 0 : 1; }' >src/broken_test.cc
cat >CMakeLists.txt <<'SOURCE'
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES CXX)
add_library(toy STATIC src/toy.cc)
foreach(name toy distant other broken)
  add_executable(${name}_test src/${name}_test.cc)
endforeach()
foreach(name toy distant broken)
  target_link_libraries(${name}_test toy)
endforeach()
SOURCE
git init -q . && printf 'build*/\nout\n' >.gitignore
cp src/toy.cc before

ask --list || fail "--list"
[ "$(wc -l <out)" = 5 ] || fail "not the five mutants of the toy"
ask --list nowhere.cc && fail "a file that is none of its sources"
grep -q 'nowhere.cc: not a source file of src' out || fail "does not say which file"

ask --seed 1 || fail "exit code $?"
for line in 'toy.cc,3,37,<,<=,survived,,' 'toy.cc,5,12,!=,==,killed,toy_test,' 'toy.cc,5,15,64,65,killed,toy_test,' \
  'toy.cc,5,21,+=,-=,timed out,toy_test,' 'toy.cc,5,24,1,2,timed out,distant_test,'; do
  grep -qF "src/$line" build-mutate/1.csv || fail "no line $line"
done
grep -q '^2 killed, 1 survived, 2 timed out$' out || fail "not the counts"
grep -q '^broken_test: fails without a mutant; it is not asked$' out || fail "says nothing of a program that fails"
cmp -s src/toy.cc before || fail "the tree itself was changed"

# The state after kill -9: half a row, and a mutant in the copy.
head -c -3 build-mutate/1.csv >half && mv half build-mutate/1.csv
sed -i 's/!=/==/' build-mutate/tree/src/toy.cc
ask --seed 1 || fail "does not go on: exit code $?"
[ "$(grep -c '^src/toy.cc:' out)" = 1 ] || fail "asks again about more than the row that was cut"
grep -q '^2 killed, 1 survived, 2 timed out$' out || fail "other verdicts after an interruption"

# A test that detects the mutant.
sed -i 's/until(62) == 64/& \&\& until(63) == 64/' src/toy_test.cc
ask --seed 1 --again || fail "--again: exit code $?"
grep -q '^2 killed, 1 survived, 2 timed out$' out || fail "does not ask anew about those that survived"

# There is no result if the tests fail without a mutation.
sed -i 's/until(62) == 64/until(62) == 65/' src/toy_test.cc
ask --seed 2 && fail "asks tests that fail without a mutant"
grep -q 'toy_test: fails without a mutant' out || fail "does not say that they fail"
echo passed
