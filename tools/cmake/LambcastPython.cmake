# Python's folder of packages below a prefix, in LAMBCAST_PYTHON_PACKAGES: the one that Debian's
# python3 looks into below /usr and below /usr/local. Whether there is what a compiled module takes
# is for tools/python/ to ask.

# Debian's python3-pandas, python3-torch and pybind11-dev belong to Debian's Python, which need not be
# the first in the path.
find_program(LAMBCAST_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(LAMBCAST_PYTHON python3)
set(LAMBCAST_PYTHON_PACKAGES lib/python3/dist-packages)
if(LAMBCAST_PYTHON)
  set(Python_EXECUTABLE ${LAMBCAST_PYTHON})
  find_package(Python 3.8 COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
  if(Python_FOUND)
    set(LAMBCAST_PYTHON_PACKAGES
      lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/dist-packages)
  endif()
endif()
