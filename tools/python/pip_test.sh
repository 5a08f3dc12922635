#!/usr/bin/env bash
# `pip install` of the package in a clean virtual environment, from a build folder: the module
# answers, the program runs, stubs name each key, and every cell of the notebook runs.
#
#   pip_test.sh BUILD_FOLDER PYTHON
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1") python=$2
"$python" -c 'import setuptools, wheel, pip, venv' 2>/dev/null ||
  { echo "skipped: $python lacks pip, setuptools or wheel (apt install python3-pip python3-setuptools python3-wheel)"; exit 77; }
[ -e "$build/python/lambcast/__init__.pyi" ] || { echo "skipped: the stubs are not built (target lambcast_stubs)"; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
"$python" -m venv --system-site-packages --without-pip "$root/venv"
LAMBCAST_BUILD=$build "$root/venv/bin/python" -m pip --disable-pip-version-check install --no-index --no-build-isolation --no-deps \
  --no-compile "$here" >"$root/log" 2>&1 || fail "pip install: $(tail -5 "$root/log")"
[ ! -e "$here/build" ] && [ ! -e "$here/lambcast.egg-info" ] || fail "pip writes next to the sources"
cd "$root"
alone() { env -i PATH="$root/venv/bin:/usr/bin:/bin" HOME="$root" "$@"; }
# grep is used without -q, so that it reads all input: a program whose reader ends early gets
# SIGPIPE.
packages=$(alone python -c 'import lambcast; print(lambcast.__path__[0])')
for file in "$packages/bin/lambcast" "$packages"/_lambcast*.so; do
  ldd "$file" | grep "libfmt.* => $packages/" >/dev/null || fail "$file takes libraries from elsewhere: $(ldd "$file")"
  readelf -d "$file" | grep -E 'runpath.*(::|:\])' >/dev/null && fail "$file looks for libraries in the current folder"
done
alone lambcast --version | grep '^lambcast [0-9.]* (' >/dev/null || fail "no program inside"
[ "$(alone lambcast --version)" = "$(alone python -m lambcast --version)" ] || fail "python -m lambcast is another program"
code=0
alone lambcast simulate --modle x 2>/dev/null || code=$?
[ "$code" -eq 2 ] || fail "the program's exit code is lost: $code"
alone python - "$here/first_questions.ipynb" <<'END' || fail "the installed package"
import ast, inspect, json, os, pathlib, subprocess, sys
import lambcast
folder = pathlib.Path(lambcast.__file__).parent
assert os.path.realpath(folder).startswith(os.path.realpath(sys.prefix)), f"imported from {folder}"
assert (folder / "py.typed").exists()

# The stub contains the arguments of each function, and the keys of questions.
stubs = {of.name: of.args for of in ast.parse((folder / "__init__.pyi").read_text()).body if isinstance(of, ast.FunctionDef)}
for name in lambcast.__all__:
    function = getattr(lambcast, name)
    if inspect.isfunction(function):
        own = [argument.name for argument in inspect.signature(function).parameters.values()]
        of = stubs[name]
        written = of.args + [argument for argument in (of.vararg, of.kwarg) if argument] + of.kwonlyargs
        assert set(own) <= {argument.arg for argument in written}, f"{name}: {own}"
keys = {argument.arg for argument in stubs["simulate"].kwonlyargs}
known = json.loads(subprocess.run(["lambcast", "help", "json"], stdout=subprocess.PIPE, check=True).stdout)["keys"]
assert keys == {entry["name"] for section in known for entry in section["entries"]} and len(keys) > 50, keys

# The notebook: all cells share one namespace; an expression at the end of a cell is displayed.
cells = [cell for cell in json.load(open(sys.argv[1]))["cells"] if cell["cell_type"] == "code"]
space, shown = {}, []
for cell in cells:
    assert not cell["outputs"], "a cell is kept with its output"
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), space)
    if last:
        shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), space))
pages = [each._repr_html_() for each in shown if isinstance(each, lambcast.Answer)]
assert len(pages) == 3 and len(shown) == 5, shown
assert pages[0].startswith("<p>Pays: onebit_lamb makes") and "<td>nccl</td>" in pages[0], pages[0]
assert all("<table>" in page for page in pages) and "<td>hgx-h100-ndr</td>" in pages[1], pages
assert lambcast.Answer(answer="is <b> & c")._repr_html_() == "<p>is &lt;b&gt; &amp; c</p>"
print(f"{len(keys)} keys in the stub, {len(cells)} cells")
END
