"""`python -m lambcast`: the program of the command line, which an installation by pip holds inside."""
import os
import shutil
import sys


def main():
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "lambcast")
    # Skips the script that pip makes, which has the program's name too.
    folders = [folder for folder in os.get_exec_path() if folder != os.path.dirname(os.path.abspath(sys.argv[0]))]
    program = inside if os.path.exists(inside) else shutil.which("lambcast", path=os.pathsep.join(folders))
    if program is None:
        sys.exit("lambcast: the program is not installed (try: pip install ./tools/python)")
    os.execv(program, ["lambcast", *sys.argv[1:]])


if __name__ == "__main__":
    main()
