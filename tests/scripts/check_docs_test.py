import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_docs


class CheckDocs(unittest.TestCase):
    def run_block(self, text, code=0):
        with tempfile.TemporaryDirectory() as scratch:
            return list(check_docs.run_block(text, code, scratch, dict(os.environ)))

    def test_figures_may_differ_and_words_may_not(self):
        self.assertEqual(self.run_block("$ echo 'best 31.2 us (-2.8 %)'\nbest 30.8 us (+1 %)\n"), [])
        self.assertIn("did not print", self.run_block("$ echo 'best 31.2 us'\nbest 31.2 ms\n")[0])

    def test_lines_are_looked_for_in_order(self):
        self.assertEqual(self.run_block("$ printf 'a\\nb\\nc\\n'\na\n…\nc\n"), [])
        self.assertIn("did not print", self.run_block("$ printf 'a\\nb\\n'\nb\na\n")[0])

    def test_an_ellipsis_stands_for_any_text_of_its_line(self):
        self.assertEqual(self.run_block("$ printf 'saved: runs/a (3 known)\\nend\\n'\nsaved: … known)\nend\n"), [])
        self.assertIn("did not print", self.run_block("$ printf 'saved:\\nknown)\\n'\nsaved: … known)\n")[0])

    def test_exit_codes_and_continued_commands(self):
        self.assertEqual(self.run_block("$ exit 3\n", 3), [])
        self.assertIn("exit code 3, expected 0", self.run_block("$ exit 3\n")[0])
        self.assertEqual(self.run_block("$ echo one \\\n  two\none two\n"), [])

    def test_blocks_and_links_are_found(self):
        text = "<!-- file: a.toml -->\n```toml\nx = 1\n```\n\n<!-- run exit=1 -->\n```sh\n$ false\n```\n[gone](no/such.md)\n"
        self.assertEqual([b.groups()[:2] for b in check_docs.BLOCK.finditer(text)], [("file", "a.toml"), ("run", "exit=1")])
        self.assertEqual(list(check_docs.check_links(check_docs.ROOT / "x.md", text)), [(10, "link to no/such.md, which does not exist")])


if __name__ == "__main__":
    unittest.main()
