import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_text


class CheckText(unittest.TestCase):
    def problems(self, name, data):
        return list(check_text.check(name, data))

    def test_a_clean_file_and_a_binary_one_pass(self):
        self.assertEqual(self.problems("ir/expr.h", "// naïve\n".encode()), [])
        self.assertEqual(self.problems("docs/picture.png", b"\x89PNG\0\xff"), [])

    def test_each_fault_is_named_with_its_place(self):
        self.assertEqual(self.problems("a.cpp", b"int x; \nint y;\n"), ["a.cpp:1: error: trailing blanks"])
        self.assertIn("no newline", self.problems("a.cpp", b"int x;")[0])
        self.assertIn("carriage return", self.problems("a.md", b"x\r\n")[0])
        self.assertIn("at byte 1", self.problems("a.md", b"x\xff\n")[0])

    def test_long_sources_are_refused_and_long_tables_are_not(self):
        long_text = b"x\n" * 801
        self.assertIn("801 lines", self.problems("ir/expr.cpp", long_text)[0])
        self.assertEqual(self.problems("tests/golden/split.txt", long_text), [])
        self.assertEqual(self.problems("README.md", long_text), [])


if __name__ == "__main__":
    unittest.main()
