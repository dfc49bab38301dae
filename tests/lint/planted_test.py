#!/usr/bin/env python3
"""Plants offences and expects the lints to name them: a lint that finds nothing proves nothing by itself."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/gen"))
import quartet_header  # noqa: E402

GOOD = """/* Frees a thing. NULL is ignored.
 * since: 1.0
 * thread: exclusive:thing
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_thing_destroy(quartet_thing* thing);

/* Makes a thing.
 * since: 1.1
 * thread: any
 * blocks: io
 * calls-back: logger, free
 * owns: new out quartet_thing_destroy, keep user
 * errors: invalid_argument */
QUARTET_API int32_t QUARTET_CALL quartet_thing_create(void* user, quartet_thing** out,
                                                      quartet_error** error);
enum { QUARTET_E_INVALID_ARGUMENT = 1 };
"""


class HeaderLint(unittest.TestCase):
    def offences(self, old="", new=""):
        self.assertIn(old, GOOD)
        text = GOOD.replace(old, new)
        return list(quartet_header.lint(quartet_header.parse(text), text))

    def expect(self, old, new, words):
        self.assertEqual(self.offences(), [])
        found = self.offences(old, new)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_missing_tag(self):
        self.expect(" * blocks: io\n", "", "must have")

    def test_tags_joined_in_one_line(self):
        self.expect("thread: any\n * blocks", "thread: any blocks", "must have")

    def test_unknown_thread_rule(self):
        self.expect("exclusive:thing", "exclusive:other", "thread:")

    def test_unknown_blocking(self):
        self.expect("blocks: io", "blocks: maybe", "blocks:")

    def test_unknown_callback(self):
        self.expect("logger, free", "logger, friend", "friend")

    def test_releasing_function_that_does_not_exist(self):
        self.expect("out quartet_thing_destroy", "out quartet_thing_release", "owns:")

    def test_fallible_function_without_errors(self):
        self.expect("errors: invalid_argument", "errors: none", "errors:")

    def test_unknown_status(self):
        self.expect("errors: invalid_argument", "errors: bad_luck", "bad_luck")

    def test_type_that_may_not_cross(self):
        self.expect("void* user", "bool user", "may not cross")

    def test_no_description(self):
        self.expect("/* Makes a thing.\n", "/*\n", "no description")

    def test_versions_become_nodes(self):
        script = quartet_header.version_script(quartet_header.parse(GOOD))
        self.assertIn("QUARTET_1.0 {\n  global:\n    quartet_thing_destroy;\n  local:\n    *;\n};", script)
        self.assertIn("QUARTET_1.1 {\n  global:\n    quartet_thing_create;\n} QUARTET_1.0;", script)


class TreeLints(unittest.TestCase):
    """Lints that read the tree, run in a small tree of their own."""

    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp())
        shutil.copytree(ROOT / "scripts/lint", self.tree / "scripts/lint")
        self.write("CMakeLists.txt", "quartet_folder(base)\nquartet_folder(graph base)\nquartet_folder(codegen base)\n"
                   "quartet_folder(codegen/cpu base codegen)\nquartet_folder(cache base)\n")
        for name in ("src/base/a.h", "src/graph/g.h", "src/codegen/r.h", "cache/c.h", "include/quartet_c.h"):
            self.write(name, "#pragma once\n")
        subprocess.run(["git", "init", "-q", str(self.tree)], check=True)

    def tearDown(self):
        shutil.rmtree(self.tree)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_lint(self, *command):
        return subprocess.run([str(self.tree / command[0]), *command[1:]], capture_output=True, text=True, check=False)

    def edges(self, name, include):
        self.write(name, f"#include {include}\n")
        result = self.run_lint("scripts/lint/include_edges.py")
        (self.tree / name).unlink()
        return result

    def test_edges_that_are_listed(self):
        for name, include in (
            ("src/graph/x.cpp", '"base/a.h"'),
            ("src/graph/x.cpp", "<vector>"),
            ("src/codegen/cpu/x.cpp", '"codegen/r.h"'),
            ("src/codegen/cpu/x.cpp", "<llvm/IR/Module.h>"),
            ("src/cli/x.cpp", '"quartet_c.h"'),
        ):
            result = self.edges(name, include)
            self.assertEqual(result.returncode, 0, f"{name} {include}: {result.stdout}{result.stderr}")

    def test_edges_that_are_not(self):
        for name, include, words in (
            ("src/base/x.cpp", '"graph/g.h"', "base may not include graph"),
            ("src/base/x.cpp", "<graph/g.h>", "base may not include graph"),
            ("src/graph/x.cpp", '"cache/c.h"', "graph may not include cache"),
            ("src/graph/x.cpp", "<llvm/IR/Module.h>", "may not include <llvm"),
            ("src/codegen/x.cpp", '"llvm/IR/Module.h"', "may not include <llvm"),
            ("src/graph/x.cpp", "<sqlite3.h>", "may not include <sqlite3.h>"),
            ("src/graph/x.cpp", '"quartet_c.h"', "public header"),
            ("src/cli/x.cpp", '"base/a.h"', "cli may not include base"),
            ("src/graph/x.cpp", '"tests/reference/r.h"', "may not include tests"),
            ("src/graph/x.cpp", '"nowhere/n.h"', "leads to no folder"),
            ("src/other/x.cpp", "<vector>", "not listed"),
        ):
            result = self.edges(name, include)
            self.assertEqual(result.returncode, 1, f"{name} {include}")
            self.assertIn(words, result.stdout)

    def test_upward_list(self):
        self.write("CMakeLists.txt", "quartet_folder(base graph)\nquartet_folder(graph)\n")
        self.assertNotEqual(self.run_lint("scripts/lint/include_edges.py").returncode, 0)

    def test_words(self):
        self.assertEqual(self.run_lint("scripts/lint/words.sh").returncode, 0)
        for name, text in (
            ("src/base/x.cpp", "// TO" + "DO: later"),
            ("src/base/x.cpp", "// good enough for" + " now"),
            ("scripts/x.sh", "cd /ro" + "ot/x"),
            ("scripts/x.py", "pip install --index" + "-url x"),
            ("src/base/x.h", "int x;\n" * 701),
            ("tests/unit/x/x.cpp", "EXPECT_TRUE(tr" + "ue);"),
            ("tests/unit/x/x.cpp", "TEST(A, DISABLED" + "_B) { run(); }"),
        ):
            path = self.write(name, text + "\n")
            result = self.run_lint("scripts/lint/words.sh")
            self.assertEqual(result.returncode, 1, f"{name}: {text[:40]}")
            path.unlink()
        self.write("tests/unit/x/x.cpp", "TEST(A, DISABLED" + "_B) { run(); }\n")
        self.write("tests/unit/x/folder.cmake", "add_test(NAME x.long COMMAND x --gtest_also_run_disabled_tests)\n")
        self.assertEqual(self.run_lint("scripts/lint/words.sh").returncode, 0)

    def test_shell(self):
        self.assertEqual(self.run_lint("scripts/lint/shell.sh").returncode, 0)
        good = "#!/usr/bin/env bash\nset -euo pipefail\n"
        for text, mode in ((good + "if true; then\n", 0o755), ("#!/usr/bin/env bash\n", 0o755), (good, 0o644)):
            path = self.write("scripts/x.sh", text)
            path.chmod(mode)
            self.assertEqual(self.run_lint("scripts/lint/shell.sh").returncode, 1, text)

    @unittest.skipUnless(shutil.which("clang-format-19"), "clang-format-19 is not installed")
    def test_format(self):
        shutil.copy(ROOT / ".clang-format", self.tree)
        self.write("src/base/x.h", "#pragma once\nint  x  ;\n")
        self.assertEqual(self.run_lint("scripts/lint/format.sh").returncode, 1)
        self.assertEqual(self.run_lint("scripts/lint/format.sh", "--fix").returncode, 0)
        self.assertEqual(self.run_lint("scripts/lint/format.sh").returncode, 0)


@unittest.skipUnless(shutil.which("clang-19") and shutil.which("readelf"), "clang-19 or binutils are not installed")
class ExportCheck(unittest.TestCase):
    """tests/abi/check_exports.sh on small libraries."""

    FLAGS = ["-fuse-ld=lld-19", "-Wl,-z,nodelete", "-Wl,-Bsymbolic", "-Wl,--build-id=sha1"]

    def check(self, source, flags=None, foreign=None):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "a.c").write_text(source, encoding="utf-8")
            (folder / "names").write_text("quartet_a\n", encoding="utf-8")
            library = folder / "liba.so"
            flags = self.FLAGS if flags is None else flags
            subprocess.run(["clang-19", "-shared", "-fPIC", "-o", library, folder / "a.c", *flags], check=True)
            command = [ROOT / "tests/abi/check_exports.sh", library, folder / "names"]
            if foreign:
                (folder / "f.c").write_text(foreign, encoding="utf-8")
                subprocess.run(["clang-19", "-c", "-o", folder / "f.o", folder / "f.c"], check=True)
                command += ["--foreign", folder / "f.o"]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def expect(self, words, *arguments, **named):
        result = self.check(*arguments, **named)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(words, result.stdout)

    GOOD = "int quartet_a(void);\nint quartet_a(void) { return 1; }\n"

    def test_good(self):
        result = self.check(self.GOOD, foreign="int other_thing(void) { return 1; }\n")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_bad(self):
        self.expect("exports differ", self.GOOD + "int sqlite3_open(void) { return 2; }\n")
        self.expect("leaks names", self.GOOD + "int sqlite3_open(void) { return 2; }\n")
        self.expect("exports differ", "int quartet_b(void) { return 2; }\n")
        self.expect("nodelete", self.GOOD, flags=[f for f in self.FLAGS if "nodelete" not in f])
        self.expect("Bsymbolic", self.GOOD, flags=[f for f in self.FLAGS if "symbolic" not in f])
        self.expect("needs libz", self.GOOD, flags=[*self.FLAGS, "-Wl,--no-as-needed", "-lz"])
        self.expect("run path", self.GOOD, flags=[*self.FLAGS, "-Wl,-rpath,/opt"])
        self.expect("imports what glibc does not give",
                    "int elsewhere(void);\nint quartet_a(void);\nint quartet_a(void) { return elsewhere(); }\n")
        self.expect("contains code of", self.GOOD + "static int hidden_part(int n) { return n + 1; }\n"
                    "static int (*volatile keep)(int) = hidden_part;\nstatic int use(void) { return keep(1); }\n"
                    "static int (*volatile kept)(void) = use;\n__attribute__((constructor)) static void run(void) { kept(); }\n",
                    foreign="int hidden_part(int n) { return n; }\n")


if __name__ == "__main__":
    unittest.main()
