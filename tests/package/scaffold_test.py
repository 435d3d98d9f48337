"""scaffold_test.py PREFIX TILEWRIGHT FOLDER COMPILER FLAGS: `plugin new` of every kind builds and opens as it stands."""
import shutil
import subprocess
import sys
from pathlib import Path

prefix, tool, folder, compiler, flags = sys.argv[1:6]
folder = Path(folder)
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)


def run(*command, cwd=folder):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


for kind, registered in {"rule": "split_outer", "mutator": "swap", "space": "space", "target": "-cpu"}.items():
    name = f"my_{kind}"
    run(tool, "plugin", "new", name, "--kind", kind)
    run("cmake", "-G", "Ninja", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_CXX_FLAGS={flags}", cwd=folder / name)
    run("cmake", "--build", "build", cwd=folder / name)
    said = run(tool, "plugin", "check", f"{name}/build/lib{name}.so")
    assert name in said and registered in said, said
