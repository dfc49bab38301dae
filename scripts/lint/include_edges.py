#!/usr/bin/env python3
"""Holds the source to the house's list of who may include whom.

The list is the quartet_folder(...) lines of CMakeLists.txt, nothing else. Beyond it:
  - only src/codegen/cpu may include LLVM's headers;
  - only cache/ may include SQLite's, only src/import protozero's;
  - src/cli and bindings/cpp see the public header, bindings/cpp and themselves, nothing of src/;
  - nothing in src/ or cache/ sees tests/.
Prints one line an offence; exit status 1 if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PRIVATE_HEADERS = {  # prefix of an outside header -> the folders that may include it
    "llvm/": {"codegen/cpu"},
    "llvm-c/": set(),
    "sqlite3.h": {"cache"},
    "protozero/": {"import"},
    "nlohmann/": {"cli", "capi"},
    "CLI/": {"cli"},
}
GUESTS = {"cli": {"cli", "bindings/cpp", "include"}, "bindings/cpp": {"bindings/cpp", "include"}}


def allowed_edges(cmake_text):
    """{folder: set of folders it may include, itself among them} from the quartet_folder lines."""
    edges = {}
    for match in re.finditer(r"^quartet_folder\(([^)]*)\)", cmake_text, re.MULTILINE):
        name, *dependencies = match.group(1).split()
        unknown = [d for d in dependencies if d not in edges]
        if unknown:
            sys.exit(f"CMakeLists.txt: {name} names {unknown} before they are listed: calls never go upward")
        edges[name] = {name, *dependencies}
    return edges


def folder_of(path, folders):
    """The listed folder that a path relative to src/ (or cache/...) belongs to, or None."""
    parts = path.split("/")
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if len(parts) > depth and name in folders:
            return name
    return None


def sources():
    """Pairs (folder name, file) of everything the lint looks at."""
    for base, prefix in ((ROOT / "src", ""), (ROOT / "cache", "cache/"), (ROOT / "bindings/cpp", "bindings/cpp/")):
        if not base.is_dir():
            continue
        for path in sorted(base.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield prefix + path.relative_to(base).as_posix(), path


def target_of(name, including, folders):
    """The folder a quoted include leads to: a listed folder, 'include', 'bindings/cpp', 'cli', 'tests' or None if outside."""
    if name == "quartet_c.h" or (ROOT / "include" / name).is_file():
        return "include"
    if (including.parent / name).is_file() and "/" not in name:
        return "same"
    if name.startswith("tests/"):
        return "tests"
    if (ROOT / "bindings/cpp" / name).is_file():
        return "bindings/cpp"
    if name.startswith("cli/"):
        return "cli"
    return folder_of(name, folders)


def offences(edges):
    for relative, path in sources():
        if relative.startswith("bindings/cpp/"):
            folder = "bindings/cpp"
        elif relative.startswith("cli/"):
            folder = "cli"
        elif relative.startswith("lib/"):
            folder = "base"  # src/lib carries the compiler id alone
        else:
            folder = folder_of(relative, edges)
        if folder is None:
            yield f"{path.relative_to(ROOT)}: its folder is not listed in CMakeLists.txt"
            continue
        may = GUESTS.get(folder) or edges[folder]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            where = f"{path.relative_to(ROOT)}:{number}"
            for prefix, owners in PRIVATE_HEADERS.items():
                if name.startswith(prefix) and folder not in owners:
                    yield f"{where}: {folder} may not include <{name}>"
            target = target_of(name, path, edges)
            if quote == "<" and (target is None or not (ROOT / "src" / name).is_file()):
                continue
            if target is None and quote == '"' and not name.startswith(tuple(PRIVATE_HEADERS)):
                if not name.endswith("compiler_id_value.h"):
                    yield f'{where}: "{name}" leads to no folder of the house'
            elif target == "include" and folder not in GUESTS and folder != "capi":
                yield f"{where}: {folder} may not include the public header; only capi, cli and bindings do"
            elif target not in (None, "same", "include") and target not in may:
                yield f"{where}: {folder} may not include {target} ({name})"


def main():
    edges = allowed_edges((ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    found = list(offences(edges))
    print("\n".join(found) if found else f"include edges: {len(edges)} folders, no offence")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
