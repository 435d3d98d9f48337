import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_layers


class CheckLayers(unittest.TestCase):
    def test_downward_includes_are_fine_and_upward_ones_are_not(self):
        self.assertIsNone(check_layers.check_own("ir/expr.h", "support/result.h"))
        self.assertIn("may not include", check_layers.check_own("support/result.h", "ir/CMakeLists.txt"))

    def test_the_path_is_written_from_the_root(self):
        self.assertIn("does not exist", check_layers.check_own("support/refusal.cpp", "refusal.h"))

    def test_generated_messages_stay_with_their_owners(self):
        self.assertIsNone(check_layers.check_own("database/record.cpp", "record.pb.h"))
        self.assertIn("belongs to", check_layers.check_own("search/tuner.cpp", "record.pb.h"))

    def test_a_heavy_library_has_one_owner(self):
        self.assertIsNone(check_layers.check_library("codegen/x86/emit.cpp", "llvm/IR/IRBuilder.h"))
        self.assertIsNone(check_layers.check_library("tests/codegen/emit_test.cpp", "llvm/IR/Module.h"))
        self.assertIn("belongs to codegen", check_layers.check_library("lowering/pipeline.cpp", "llvm/IR/IRBuilder.h"))
        self.assertIn("belongs to costmodel/gbdt", check_layers.check_library("costmodel/model.cpp", "xgboost/c_api.h"))
        self.assertIn("belongs to support/json", check_layers.check_library("search/tuner.h", "nlohmann/json.hpp"))

    def test_unknown_and_forbidden_headers(self):
        self.assertIn("no table", check_layers.check_library("ir/expr.h", "boost/any.hpp"))
        self.assertIn("rng.h", check_layers.check_library("search/tuner.cpp", "random"))
        for header in ("vector", "cstdint", "unistd.h", "sys/mman.h", "immintrin.h"):
            self.assertIsNone(check_layers.check_library("ir/expr.cpp", header))


if __name__ == "__main__":
    unittest.main()
