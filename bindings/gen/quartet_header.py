#!/usr/bin/env python3
"""Reads include/quartet_c.h, the specification of the C ABI, and writes what is derived from it.

The header states its grammar itself: a function is one statement, `QUARTET_API <type> QUARTET_CALL quartet_<name>(<parameters>);`,
right after one comment whose last lines are the tags `since`, `thread`, `blocks`, `calls-back`, `owns` and `errors`, in that order,
each at the start of a line of its own; a long list goes on in the next line.

    quartet_header.py map        src/lib/quartet_c.map, the version script
    quartet_header.py symbols    the exported names, sorted, one a line
    quartet_header.py lint       functions whose comment or types break the rules
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
    r"^[ \t]*QUARTET_API\s+(?P<type>[\w\s*]+?)\s*\bQUARTET_CALL\s+(?P<name>quartet_\w+)\s*\((?P<parameters>[^;]*)\)\s*;",
    re.MULTILINE | re.DOTALL,
)
BLOCKS = {"no", "io", "compile", "run", "wait"}
CALLS_BACK = {"logger", "executor", "done", "free"}
FORBIDDEN_TYPES = {"bool", "_Bool", "long", "wchar_t", "enum", "short"}


@dataclass
class Function:
    name: str
    type: str
    parameters: list
    comment: str
    line: int

    def tags(self):
        """[(tag, text)] in the order they stand."""
        starts = list(re.finditer(rf"^({'|'.join(TAGS)}):", self.comment, re.MULTILINE))
        ends = [m.start() for m in starts[1:]] + [len(self.comment)]
        return [(m[1], " ".join(self.comment[m.end() : end].split())) for m, end in zip(starts, ends)]

    def tag(self, name):
        return dict(self.tags()).get(name, "")

    def parameter_names(self):
        return [re.search(r"(\w+)$", p)[1] for p in self.parameters if re.search(r"(\w+)$", p)]


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
    match = re.fullmatch(r"(\d+)\.(\d+)", function.tag("since"))
    return (int(match[1]), int(match[2])) if match else (1, 0)


def status_names(text):
    """Lower-case names of the statuses in the header, as quartet_status_name gives them."""
    return {name.lower() for name in re.findall(r"\bQUARTET_E_(\w+) =", text)}


def tag_offences(f, functions, statuses):
    """What is wrong with the tags of one function (rule R11)."""
    tags = f.tags()
    if [name for name, _ in tags] != list(TAGS):
        yield f"has the tags {[name for name, _ in tags]}, must have {list(TAGS)}, each on a line of its own"
        return
    tag = dict(tags)
    names = f.parameter_names()
    if not re.fullmatch(r"\d+\.\d+", tag["since"]):
        yield f"since: '{tag['since']}' is no version"
    exclusive = re.fullmatch(r"exclusive:(\w+)", tag["thread"])
    if tag["thread"] != "any" and not (exclusive and exclusive[1] in names):
        yield f"thread: '{tag['thread']}' is neither any nor exclusive:<parameter>"
    if tag["blocks"] not in BLOCKS:
        yield f"blocks: '{tag['blocks']}' is not one of {sorted(BLOCKS)}"
    for item in tag["calls-back"].split(", "):
        if item not in CALLS_BACK and tag["calls-back"] != "none":
            yield f"calls-back: '{item}' is not one of {sorted(CALLS_BACK)}"
    for item in tag["owns"].split(", ") if tag["owns"] != "none" else []:
        word, *rest = item.split()
        good = (
            (word == "new" and len(rest) == 2 and rest[0] in [*names, "return"] and any(g.name == rest[1] for g in functions))
            or (word == "borrow" and len(rest) == 2 and rest[0] in [*names, "return"] and rest[1] in [*names, "library"])
            or (word == "keep" and len(rest) == 1 and rest[0] in names)
        )
        if not good:
            yield f"owns: '{item}' is not 'new <parameter or return> <function>', 'borrow <parameter> <parameter>' or 'keep <parameter>'"
    errors = tag["errors"].split(", ")
    fallible = f.parameters[-1:] == ["quartet_error** error"]
    if (tag["errors"] == "none") == fallible:
        yield f"errors: '{tag['errors']}' does not fit a function that {'takes' if fallible else 'takes no'} error"
    for item in errors if tag["errors"] != "none" else []:
        if item not in statuses:
            yield f"errors: '{item}' is no status"


def type_offences(f):
    """Types that may not cross the ABI (rule R3)."""
    for part in [f.type, *f.parameters]:
        if set(re.findall(r"\w+", part)) & FORBIDDEN_TYPES or "..." in part:
            yield f"'{part}' uses a type that may not cross"
    if len(f.parameter_names()) != len(f.parameters):
        yield "has a parameter without a name"


def lint(functions, text):
    """One line an offence."""
    statuses, seen = status_names(text), set()
    for f in functions:
        found = [*tag_offences(f, functions, statuses), *type_offences(f)]
        if f.name in seen:
            found.append("is declared twice")
        seen.add(f.name)
        if not re.split(r"^since:", f.comment, flags=re.MULTILINE)[0].strip():
            found.append("has no description")
        yield from (f"{HEADER.relative_to(ROOT)}:{f.line}: {f.name}: {what}" for what in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("map", "symbols", "lint", "check"))
    what = parser.parse_args().what
    text = HEADER.read_text(encoding="utf-8")
    functions = parse(text)
    if what == "symbols":
        print("\n".join(sorted(f.name for f in functions)))
        return 0
    if what == "map":
        MAP.write_text(version_script(functions), encoding="utf-8")
        return 0
    found = list(lint(functions, text))
    if what == "check" and (not MAP.exists() or MAP.read_text(encoding="utf-8") != version_script(functions)):
        found.append(f"{MAP.relative_to(ROOT)} is out of date: run bindings/gen/quartet_header.py map")
    print("\n".join(found) if found else f"{HEADER.name}: {len(functions)} functions, no offence")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
