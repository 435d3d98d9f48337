"""scripts/setup --check against stand-ins for dpkg-query and ptxas; nothing is installed or built here."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(__file__).resolve().parents[2] / "scripts" / "setup"
DEBIAN_12 = "VERSION_ID=\"12\"" in Path("/etc/os-release").read_text() and "ID=debian" in Path("/etc/os-release").read_text()


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def stand_in(self, name, script):
        path = Path(self.folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def check(self, *arguments, **environment):
        variables = dict(os.environ, PATH=f"{self.folder.name}:{os.environ['PATH']}", **environment)
        return subprocess.run([SETUP, *arguments], env=variables, capture_output=True, text=True, check=False)

    def test_an_unknown_option_is_a_usage_error(self):
        done = self.check("--chekc")
        self.assertEqual(done.returncode, 2)
        self.assertIn('unknown option "--chekc"', done.stderr)

    @unittest.skipUnless(DEBIAN_12, "not Debian 12")
    def test_a_missing_package_is_named(self):
        self.stand_in("dpkg-query", 'shift 2; for p in "$@"; do [ "$p" = libxgboost-dev ] || echo "installed $p"; done')
        done = self.check("--check")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout, r"packages: 1 of \d+ missing: libxgboost-dev\n")

    def test_a_toolkit_that_cannot_assemble_hopper_code_is_refused_by_name(self):
        ptxas = self.stand_in("cuda/bin/ptxas", "echo 'Cuda compilation tools, release 11.8, V11.8.89'")
        done = self.check("--check", CUDAToolkit_ROOT=str(ptxas.parents[1]))
        if "CUDA toolkit: /" in done.stdout and "11.8" not in done.stdout:
            self.assertNotIn(self.folder.name, done.stdout)  # this machine has a newer one, which is taken instead
        else:
            self.assertIn(f"{ptxas.parents[1]} is 11.8, which cannot assemble sm_90a code", done.stdout)

    def test_the_first_fit_toolkit_is_used(self):
        ptxas = self.stand_in("cuda/bin/ptxas", "echo 'Cuda compilation tools, release 12.4, V12.4.1'")
        done = self.check("--check", CUDAToolkit_ROOT=str(ptxas.parents[1]))
        self.assertIn(f"CUDA toolkit: {ptxas.parents[1]} (12.4)", done.stdout)


if __name__ == "__main__":
    unittest.main()
