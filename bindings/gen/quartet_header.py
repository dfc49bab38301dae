#!/usr/bin/env python3
"""Reads include/quartet_c.h, the specification of the C ABI, and writes what is derived from it.

The header keeps to a small grammar: a function is one statement, `QUARTET_API <type> quartet_<name>(<parameters>);`, right after
its comment. The comment's last lines are tags, `since:`, `thread:`, `blocks:`, `calls-back:`, `owns:` and `errors:`, several on a
line if they fit; commas or semicolons may part them.

    quartet_header.py map        src/lib/quartet_c.map, the version script
    quartet_header.py symbols    the exported names, sorted, one a line
    quartet_header.py lint       the functions whose comment lacks a tag
    quartet_header.py check      fails if the committed version script differs from what `map` gives, or lint finds something

A name's version node is its `since`: `since: 1.0` puts it into QUARTET_1.0.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/quartet_c.h"
MAP = ROOT / "src/lib/quartet_c.map"
TAGS = ("since", "thread", "blocks", "calls-back", "owns", "errors")

FUNCTION = re.compile(
    r"(?P<comment>/\*(?:(?!\*/).)*\*/|(?:^[ \t]*//[^\n]*\n)+)?\s*"
    r"^[ \t]*QUARTET_API\s+(?P<type>[\w\s*]+?)\s*\b(?P<name>quartet_\w+)\s*\((?P<parameters>[^;]*)\)\s*;",
    re.MULTILINE | re.DOTALL,
)
TYPE_WORDS = {"int8_t", "uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double", "size_t", "void", "char"}
FORBIDDEN_TYPES = {"bool", "_Bool", "long", "wchar_t", "enum", "short"}


@dataclass
class Function:
    name: str
    type: str
    parameters: list
    comment: str
    line: int

    def tag(self, name):
        """The text after a tag, up to the next tag, or None."""
        others = "|".join(re.escape(t) for t in TAGS)
        match = re.search(rf"(?:^|[\s,;@]){re.escape(name)}:\s*(.*?)(?=(?:[\s,;@]+(?:{others}):)|\Z)", self.comment, re.DOTALL)
        return match.group(1).strip() if match else None


def strip_comment(text):
    lines = [re.sub(r"^\s*(?:///?|/\*+|\*+/|\*)\s?", "", line) for line in text.splitlines()]
    return re.sub(r"\*+/\s*$", "", "\n".join(lines)).strip()


def parse(text):
    functions = []
    for match in FUNCTION.finditer(text):
        parameters = re.sub(r"/\*.*?\*/|//[^\n]*", "", match["parameters"], flags=re.DOTALL)
        parameters = [" ".join(p.split()) for p in parameters.split(",")]
        functions.append(
            Function(
                name=match["name"],
                type=" ".join(match["type"].split()),
                parameters=[p for p in parameters if p not in ("", "void")],
                comment=strip_comment(match["comment"] or ""),
                line=text.count("\n", 0, match.start("name")) + 1,
            )
        )
    declared = len(re.findall(r"^[ \t]*QUARTET_API\b", text, re.MULTILINE))
    if declared != len(functions):
        sys.exit(f"{HEADER.name}: {declared} lines start with QUARTET_API but {len(functions)} functions were understood")
    return functions


def version_script(functions):
    nodes = {}
    for function in functions:
        nodes.setdefault(since(function), []).append(function.name)
    parts, previous = [], ""
    for version in sorted(nodes):
        names = "".join(f"    {name};\n" for name in sorted(nodes[version]))
        end = "  local:\n    *;\n" if not previous else ""
        parts.append(f"QUARTET_{version[0]}.{version[1]} {{\n  global:\n{names}{end}}}{previous};\n")
        previous = f" QUARTET_{version[0]}.{version[1]}"
    return "# Written by bindings/gen/quartet_header.py from include/quartet_c.h.\n" + "\n".join(parts)


def since(function):
    match = re.match(r"(\d+)\.(\d+)", function.tag("since") or "")
    return (int(match[1]), int(match[2])) if match else (1, 0)


def lint(functions):
    """One line an offence against rules R3 (types that may cross) and R11 (tags)."""
    seen = set()
    for f in functions:
        where = f"{HEADER.relative_to(ROOT)}:{f.line}: {f.name}"
        if f.name in seen:
            yield f"{where} is declared twice"
        seen.add(f.name)
        missing = [tag for tag in TAGS if not f.tag(tag)]
        if missing:
            yield f"{where} lacks the tags {', '.join(missing)}"
        if not strip_comment(f.comment).split("since:")[0].strip():
            yield f"{where} has no description"
        for part in [f.type, *f.parameters]:
            words = set(re.findall(r"\w+", part))
            if words & FORBIDDEN_TYPES or "..." in part:
                yield f"{where}: '{part}' uses a type that may not cross the ABI"
        if f.parameters and any(re.fullmatch(r"(?:const )?[\w ]+\*?", p) and not re.search(r"\w[ *]+\w+$", p) for p in f.parameters):
            yield f"{where} has a parameter without a name"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("map", "symbols", "lint", "check"))
    what = parser.parse_args().what
    functions = parse(HEADER.read_text(encoding="utf-8"))
    if what == "symbols":
        print("\n".join(sorted(f.name for f in functions)))
        return 0
    if what == "map":
        MAP.write_text(version_script(functions), encoding="utf-8")
        return 0
    found = list(lint(functions))
    if what == "check" and (not MAP.exists() or MAP.read_text(encoding="utf-8") != version_script(functions)):
        found.append(f"{MAP.relative_to(ROOT)} is out of date: run bindings/gen/quartet_header.py map")
    print("\n".join(found) if found else f"{HEADER.name}: {len(functions)} functions, no offence")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
