import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import ctest_report

JUNIT = """<testsuite><testcase name="Gpu.Runs" status="notrun"><skipped message="SKIP"/>
<system-out>[ RUN      ] Gpu.Runs
/src/gpu_test.cpp:12: Skipped
no GPU: libcuda.so.1 is not installed

[  SKIPPED ] Gpu.Runs (0 ms)</system-out></testcase>
<testcase name="scripts.page" status="notrun"><skipped message="SKIP"/><system-out>skipped: no Chromium</system-out></testcase>
<testcase name="A.B" status="run"><system-out>fine</system-out></testcase></testsuite>"""
OUTPUT = """    Start 1: A.B
1/3 Test #1: A.B .....   Passed    0.00 sec
{percent}% tests passed, {failed} tests failed out of 3

Total Test time (real) =   0.02 sec

The following tests did not run:
\t  2 - Gpu.Runs (Skipped)
\t  3 - scripts.page (Skipped)
"""


class CtestReport(unittest.TestCase):
    def report(self, text, sanitizer_reports=()):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            junit, reports = Path(folder, "ctest.xml"), Path(folder, "reports")
            junit.write_text(JUNIT)
            reports.mkdir()
            for i, report in enumerate(sanitizer_reports):
                (reports / f"report.{i}").write_text(report)
            with mock.patch("sys.stdin", io.StringIO(text)):
                status = ctest_report.main(junit, reports)
        return status, out.getvalue()

    def test_reasons_stand_before_the_closing_summary(self):
        status, out = self.report(OUTPUT.format(percent=100, failed=0))
        self.assertEqual(status, 0)
        self.assertIn("skipped: 2 of 3 tests", out)
        self.assertIn("no GPU: libcuda.so.1 is not installed  (Gpu.Runs)", out)
        self.assertIn("no Chromium  (scripts.page)", out)
        self.assertGreater(out.index("100% tests passed"), out.index("no Chromium"))
        self.assertEqual(out.count("Gpu.Runs"), 1)
        self.assertTrue(out.rstrip().endswith("0.02 sec"))

    def test_a_failure_or_a_missing_summary_is_a_failure(self):
        self.assertEqual(self.report(OUTPUT.format(percent=66, failed=1))[0], 1)
        status, out = self.report("No tests were found!!!\n")
        self.assertEqual(status, 1)
        self.assertIn("no summary", out)

    def test_what_a_sanitizer_reports_of_a_worker_is_a_failure(self):
        passed = OUTPUT.format(percent=100, failed=0)
        status, out = self.report(passed, ["ERROR: a heap of trouble\n" + "a frame\n" * 100, "another"])
        self.assertEqual(status, 1)
        self.assertIn("a heap of trouble", out)
        self.assertIn("41 more lines", out)
        self.assertIn("of 2 processes", out)
        self.assertGreater(out.index("100% tests passed"), out.index("another"))


if __name__ == "__main__":
    unittest.main()
