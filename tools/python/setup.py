"""Builds the Python package with the program inside, by CMake and the libraries that tools/setup.sh installs.

CMAKE_ARGS adds options for CMake. LAMBCAST_BUILD=FOLDER takes what a build folder already holds. Nothing is written next to the
sources.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["lambcast", "lambcast-measure", "lambcast-mpi.so"]  # the first is needed
# Libraries that another machine may lack; they are installed next to the programs.
BUNDLED = re.compile(r"=> (/\S*/lib(?:fmt|tomlplusplus|yaml-cpp)\.so\S*)")


class BuiltByCMake(Distribution):
    def has_ext_modules(self):
        return True


class Package(build_py):
    def run(self):
        build = pathlib.Path(os.environ.get("LAMBCAST_BUILD") or pathlib.Path(self.get_finalized_command("build").build_temp))
        if "LAMBCAST_BUILD" not in os.environ:
            subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLAMBCAST_TESTS=OFF",
                            f"-DLAMBCAST_PYTHON={sys.executable}", *shlex.split(os.environ.get("CMAKE_ARGS", ""))], check=True)
            subprocess.run(["cmake", "--build", build, "--target", "lambcast", "lambcast_measure_program",
                            "lambcast_python", "lambcast_stubs"], check=True)
        module = build / "python/lambcast" / ("_lambcast" + sysconfig.get_config_var("EXT_SUFFIX"))
        for needed in (module, module.parent / "__init__.pyi", build / PROGRAMS[0]):
            if not needed.is_file():
                sys.exit(f"setup.py: {needed}: not built (needed: pybind11-dev, and headers of this Python; "
                         "try: cmake --build BUILD --target lambcast_installed)")
        package = pathlib.Path(self.build_lib) / "lambcast"
        shutil.copytree(module.parent, package, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        (package / "bin").mkdir(exist_ok=True)
        for program in PROGRAMS:
            if (build / program).is_file():
                shutil.copy(build / program, package / "bin")
        linked = subprocess.run(["ldd", module, build / PROGRAMS[0]], stdout=subprocess.PIPE, check=True, text=True).stdout
        for library in set(BUNDLED.findall(linked)):
            shutil.copy(library, package / "bin")


with tempfile.TemporaryDirectory() as scratch:
    setup(version=re.search(r"^project\(lambcast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1],
          distclass=BuiltByCMake, cmdclass={"build_py": Package}, packages=["lambcast"], package_dir={"lambcast": "."},
          options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}})
