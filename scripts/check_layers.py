#!/usr/bin/python3
"""Reads every #include of the tree and fails on an upward one, on a heavy library outside its owner, and on a header
that is not in the tables below. The tables are the architecture: change them only together with docs/concepts."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# folder: folders it may include besides itself; "x.cpp" behind a folder name means: only from .cpp files.
MAY_INCLUDE = {
    "support": "",
    "ir": "support",
    "proto": "",
    "schedule": "ir support",
    "workloads": "ir support",
    "lowering": "schedule ir support",
    "codegen": "lowering schedule ir support",
    "costmodel": "lowering schedule ir support",
    "measure": "codegen lowering schedule ir support proto.cpp",
    "database": "schedule ir support proto.cpp",
    "search": "costmodel measure database workloads schedule ir support",
    "export": "codegen measure database lowering workloads schedule ir support",
}
OUTSIDE = ("examples/", "tests/package/", "export/runtime/")  # what users compile: against the installed package, or exported
EVERYTHING = ("tools", "python", "bench", "examples", "tests")

# library: (pattern of its headers, owners). An owner is a folder or one file's stem ("support/json" = json.h and json.cpp).
OWNERS = {
    "fmt": (r"fmt/", "*"),
    "tl::expected": (r"tl/expected\.hpp", "support/result"),
    "xxhash": (r"xxhash\.h", "support/hash"),
    "Random123": (r"Random123/", "support/rng"),
    "nlohmann-json, forward declarations": (r"nlohmann/json_fwd\.hpp", "*"),
    "nlohmann-json": (r"nlohmann/", "support/json"),
    "zstd": (r"(zstd|zdict)\.h", "support"),
    "LLVM": (r"(llvm|llvm-c|clang)/", "codegen"),
    "XGBoost": (r"xgboost/", "costmodel/gbdt"),
    "CUDA": (r"(cuda|cuda_runtime\w*|cuda\w+|cupti\w*|nvml|nvPTXCompiler|nvJitLink|generated_\w+)\.h|nvperf\w*\.h", "measure"),
    "gRPC": (r"(grpcpp|grpc)/|.*\.grpc\.pb\.h", "measure"),
    "protobuf": (r"google/protobuf/|.*\.pb\.h", "proto measure database"),
    "SQLite": (r"sqlite3\.h|SQLiteCpp/", "database"),
    "libpq": (r"libpq-fe\.h|libpq/", "database"),
    "oneTBB": (r"(tbb|oneapi)/", "search export"),
    "sanitizers": (r"sanitizer/", "support/sanitizer"),
    "CLI11": (r"CLI/", "tools"),
    "toml++": (r"toml\+\+/|toml\.hpp", "tools tests/workloads"),
    "spdlog": (r"spdlog/", "tools measure"),
    "OpenSSL": (r"openssl/", "measure"),
    "libseccomp": (r"seccomp\.h", "measure"),
    "Python": (r"pybind11/|Python\.h|numpy/|dlpack/", "python"),
    "test libraries": (r"(gtest|gmock|rapidcheck)[/.]", "tests"),
    "Google Benchmark": (r"benchmark/", "bench"),
    "peer libraries": (r"cblas\.h|openblas/|dnnl|oneapi/dnnl/", "bench"),
}
STANDARD = re.compile(
    r"[a-z_0-9]+|(sys|linux|netinet|arpa|net)/[a-z_0-9-]+\.h|\w+intrin\.h|"
    r"(cpuid|cxxabi|dlfcn|elf|errno|execinfo|fcntl|glob|grp|link|netdb|poll|pthread|pwd|sched|signal|spawn|termios|time|ucontext|unistd)\.h|"
    r"(math|stdbool|stddef|stdint|stdio|stdlib|string)\.h"  # in headers that C programs include as well
)
# Results must be the same with every standard library, so no std::*_distribution and no std engines.
FORBIDDEN = {"random": "use support/rng.h: the standard distributions differ between libraries"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def sources():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", "*.h", "*.cpp", "*.c"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split("\n") if path and (ROOT / path).exists()]


def owns(owners, path):
    mirrored = path.removeprefix("tests/")  # tests/codegen may look at LLVM, as codegen may
    return any(owner == "*" or p.startswith(owner + "/") or p.rsplit(".", 1)[0] == owner for owner in owners.split() for p in (path, mirrored))


def check_library(path, header):
    """A header of somebody else's: returns what is wrong, or None."""
    matched = [(name, owners) for name, (pattern, owners) in OWNERS.items() if re.match(pattern, header)]
    if matched:
        if any(owns(owners, path) for _, owners in matched):
            return None
        return f"{matched[0][0]} header <{header}> belongs to {matched[0][1]} alone"
    if header in FORBIDDEN:
        return f"<{header}>: {FORBIDDEN[header]}"
    if not STANDARD.fullmatch(header):
        return f"<{header}> is in no table of scripts/check_layers.py"
    return None


def check_own(path, header):
    """A header of ours, written from the root: returns what is wrong, or None."""
    folder, target = path.split("/")[0], header.split("/")[0]
    if header.endswith(".pb.h"):  # generated into the build folder
        return check_library(path, header)
    if (ROOT / "export/runtime" / header).exists():  # in the text of exported sources, which lie beside it
        return None
    if not (ROOT / header).exists():
        return f'"{header}" does not exist; includes are written from the root of the tree'
    if folder == target or folder in EVERYTHING:
        return None
    if folder not in MAY_INCLUDE:
        return f"folder {folder} has no row in the table of layers"
    allowed = MAY_INCLUDE[folder].split()
    if target in allowed or (path.endswith(".cpp") and target + ".cpp" in allowed):
        return None
    return f'{folder} may not include "{header}"; it may include: {MAY_INCLUDE[folder] or "nothing"}'


def check_file(path):
    text = (ROOT / path).read_text()
    if path.endswith(".h") and "#pragma once" not in text and "#ifdef __cplusplus" not in text:
        yield 1, "a header needs #pragma once"
    for found in INCLUDE.finditer(text):
        own, library = found.groups()
        problem = check_own(path, own) if own else check_library(path, library)
        if problem:
            yield text.count("\n", 0, found.start()) + 1, problem


def main():
    paths = [path for path in sources() if not path.startswith(OUTSIDE)]
    problems = [f"{path}:{line}: error: {text}" for path in paths for line, text in check_file(path)]
    print("\n".join(problems) if problems else f"layers: {len(paths)} files, no violation")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
