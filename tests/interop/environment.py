"""The virtual environment with TVM. Versions are pinned: a newer ffi crashes this TVM, and results are compared with what
this one does."""
import shutil
import subprocess

PACKAGES = ["apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1", "numpy", "scipy"]


class Unavailable(Exception):
    pass


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Unavailable(f"TVM cannot be had here: {last}")


def ensure(folder):
    """Path of the environment's python; raises Unavailable. A stamp names what a finished environment holds."""
    stamp, python = folder / "packages.txt", folder / "bin" / "python"
    wanted = "\n".join(PACKAGES) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    call("/usr/bin/python3", "-m", "venv", str(folder))
    # One retry: without a network the answer should come soon.
    call(str(python), "-m", "pip", "install", "--quiet", "--retries", "1", *PACKAGES)
    stamp.write_text(wanted)
    return python
