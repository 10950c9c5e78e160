#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The project's taste as a test: what clang-format and clang-tidy cannot know. Each finding is one
# line, `file:line: [rule] what is wrong; what to use instead`, and any finding fails the test.
# A line, or the comment above it, may say why a rule does not hold: `// tidy: RULE: reason`.
# usage: tools/tidy.py [--root DIR] [--compile-commands FILE]

import argparse
import json
import os
import re
import sys

LINE_COLUMNS_MAX = 100
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 120

# Which folders of src/ may include which. The link graph in src/CMakeLists.txt says the same.
MAY_INCLUDE = {
    "base": {"base"},
    "core": {"base", "core"},
    "scale": {"base", "core", "scale"},
    "yaml": {"base", "yaml"},
    "sim": {"base", "core", "scale", "yaml", "sim"},
    "kube": {"base", "net", "kube"},
    "import": {"base", "core", "kube", "import"},
    "net": {"base", "net"},
    "apiserver": {"base", "net", "apiserver"},
    "live": {"base", "core", "scale", "yaml", "net", "kube", "import", "live"},
    "ops": {"base", "core", "yaml", "net", "kube", "import", "live", "ops"},
    "nvml": {"base", "yaml", "nvml"},
    "agent": {"base", "yaml", "net", "kube", "nvml", "agent"},
    "cli": {"base", "core", "scale", "sim", "kube", "import", "net", "apiserver", "live", "ops",
            "playground", "nvml", "agent", "cli"},
    "playground": {"base", "sim", "net", "apiserver", "live", "nvml", "agent", "playground"},
}

# Libraries that cost seconds to include: these folders, and .cc files alone.
HEAVY = {
    "simdjson.h": {"kube", "sim", "import", "apiserver"},
    "nlohmann": {"kube", "import", "agent"},
    "yaml-cpp": {"yaml", "kube", "sim", "import", "apiserver", "nvml", "agent", "cli"},
    "zlib.h": {"base", "agent"},
    "openssl": {"net"},
    "curl": {"net"},
    "http_parser.h": {"net"},
    "sqlite3.h": {"apiserver"},
    "grpcpp": {"agent"},
    "grpc": {"agent"},
    "google": {"agent"},
    "api": {"agent"},
}

def any_of(*patterns):
    return "|".join(patterns)


# src/core and src/scale are pure: (rule, pattern, what to use instead).
PURE_FOLDERS = ("src/core/", "src/scale/")
PURE = [
    ("clock",
     any_of(r"std::chrono::\w+_clock", r"\b(clock_gettime|gettimeofday|mono_now_ns)\b",
            r"\btime\s*\(\s*(NULL|nullptr|0)\s*\)",
            r"#\s*include\s*(<ctime>|<sys/time\.h>|\"base/mono_clock\.h\")"),
     "take the time as an argument; only the driver reads a clock"),
    ("random",
     any_of(r"\b(std::)?s?rand\s*\(", r"random_device", r"mt19937", r"std::\w+_distribution",
            r"std::(shuffle|sample)\b", r"#\s*include\s*<random>"),
     "draw from a named stream of base/rng.h: the standard's differ between libraries"),
    ("thread",
     any_of(r"std::(thread|jthread|async|condition_variable)\b", r"\bthread_local\b",
            r"std::(shared_|recursive_)?mutex\b", r"std::(lock_guard|unique_lock|scoped_lock)\b"),
     "keep to one owner without locks; base/parallel.h splits work by index range"),
    ("io",
     any_of(r"#\s*include\s*<(iostream|fstream|cstdio|stdio\.h|filesystem)>",
            r"#\s*include\s*<(unistd\.h|fcntl\.h|syslog\.h)>",
            r"#\s*include\s*\"base/(file|log)\.h\"", r"std::(cout|cerr|clog|[io]?fstream)\b",
            r"\b[fv]?printf\s*\(", r"\bfopen\s*\(", r"\bfmt::print\s*\(", r"\bgetenv\s*\("),
     "return values, and let the edge read, write and log"),
    ("kube-float",
     any_of(r"\b(float|double)\b", r"(?<![\w.])\d[\d']*\.\d"),
     "decide with integers (base/checked.h has mul_div); floating point is for report* files"),
]

# Everywhere in C++: (rule, files, pattern, what to use instead), on code without comments and
# without what is in quotes.
EVERYWHERE = [
    ("using-namespace", r"\.h$", r"\busing\s+namespace\b",
     "name what is used, or put the code in the namespace"),
    ("regex", r"", r"\bstd::regex\b|#\s*include\s*<regex>",
     "parse by hand: std::regex costs seconds to compile and is slow"),
    ("sleep", r"_test\.cc$|/testing|^test/",
     r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(",
     "advance a clock of the test, and settle"),
]

# Words split so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.])(/(?:home|root|Users|wor" r"k)/|[A-Z]:\\\\)")
TEMPORARY_PATH = re.compile(r"(?<![\w.])/(?:var/)?tm" r"p/")
BROKEN = re.compile(r"\b(FIX" r"ME|XX" r"X)\b")
LATER = re.compile(r"\bTO" r"DO\b(?!: (when|once|if|until|after) )")

CODE_ROOTS = ("src", "test", "bench", "tools", "cmake")
CODE_NAMES = (".cc", ".h", ".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile")
TEXT_NAMES = CODE_NAMES + (".md", ".yaml", ".yml", ".json")

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r"|R\"(?P<raw>[^ ()\\\t\n]*)\(.*?\)(?P=raw)\""
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'",
    re.S,
)
INCLUDE = re.compile(r"(?m)^[ \t]*#\s*include\s*([<\"])([^>\"]+)[>\"]")
DIRECTIVE = re.compile(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*")
UNORDERED = re.compile(
    r"\bunordered_(?:multi)?(?:map|set)\s*<[^;{}()]*>\s*&?\s*(\w+)\s*[;,)={]")
WAIVER = re.compile(r"//\s*tidy:\s*(?P<rule>[\w-]+)\s*[:(]\s*\S")


def spaces_for(text):
    return re.sub(r"[^\n]", " ", text)


def blank(text, strings):
    """The text with comments (and, if asked, what is in quotes) as spaces; lines stay in place."""

    def spaces(match):
        token = match.group()
        if token.startswith("/") or (strings and not is_include(match)):
            return spaces_for(token)
        return token

    def is_include(match):
        start = text.rfind("\n", 0, match.start()) + 1
        return re.match(r"\s*#\s*include\s*$", text[start:match.start()]) is not None

    return TOKEN.sub(spaces, text)


class Source:
    """One file: its text, and views of C++ without comments and quoted text."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            self.text = file.read()
        self.lines = self.text.splitlines()
        self.is_cpp = path.endswith((".cc", ".h"))
        self.is_test = path.startswith("test/") or "_test." in path or "/testing" in path
        self.no_comments = blank(self.text, strings=False) if self.is_cpp else self.text
        self.code = blank(self.text, strings=True) if self.is_cpp else self.text
        parts = path.split("/")
        self.folder = parts[1] if parts[0] == "src" and len(parts) > 2 else ""

    def is_waived(self, line, rule):
        """By a waiver on the line, or on a comment line just above it."""
        for number in (line, line - 1):
            if not 1 <= number <= len(self.lines):
                continue
            text = self.lines[number - 1]
            waiver = WAIVER.search(text)
            is_here = number == line or text.lstrip().startswith("//")
            if waiver and is_here and waiver.group("rule") == rule:
                return True
        return False


class Tidy:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.sources = [Source(root, path) for path in self.walk()]
        self.by_path = {source.path: source for source in self.sources}

    def walk(self):
        """Text files of the project, in order; build trees and hidden folders are not."""
        for base, folders, names in os.walk(self.root):
            folders[:] = sorted(
                f for f in folders if not f.startswith(".") and f not in ("build", "__pycache__"))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(base, name), self.root)
                if name.endswith(TEXT_NAMES):
                    yield path

    def add(self, source, line, rule, what):
        if not source.is_waived(line, rule):
            self.findings.append(f"{source.path}:{line}: [{rule}] {what}")

    def add_matches(self, source, text, rule, pattern, what):
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            found = " ".join(match.group().split())
            self.add(source, line, rule, f"{found}: {what}")

    def run(self):
        for source in self.sources:
            self.check_words(source)
            if source.path.split("/")[0] in CODE_ROOTS and source.path.endswith(CODE_NAMES):
                self.check_form(source)
            if source.is_cpp:
                self.check_includes(source)
                self.check_banned(source)
                self.check_function_lengths(source)
        self.check_golden_files()
        self.check_corpus_folders()
        return self.findings

    def check_words(self, source):
        """Machine paths and marks of unfinished work, in comments too; not in data of tests."""
        if source.path.startswith("test/") and not source.path.endswith(CODE_NAMES):
            return
        for number, line in enumerate(source.lines, 1):
            if MACHINE_PATH.search(line):
                self.add(source, number, "absolute-path",
                         "a path of one machine; make it relative, or an argument")
            if source.is_cpp and TEMPORARY_PATH.search(line):
                self.add(source, number, "absolute-path",
                         "a fixed temporary path; ask std::filesystem::temp_directory_path()")
            if BROKEN.search(line):
                self.add(source, number, "unfinished", "mend it before it is committed")
            if source.path.endswith(CODE_NAMES) and LATER.search(line):
                self.add(source, number, "unfinished",
                         "name the condition, as in `: when X, do Y`")

    def check_form(self, source):
        """Opening lines, widths, length of the file."""
        for number, line in enumerate(source.lines, 1):
            if len(line) > LINE_COLUMNS_MAX:
                self.add(source, number, "line-width",
                         f"{len(line)} columns; break the line at {LINE_COLUMNS_MAX}")
        if len(source.lines) > FILE_LINES_MAX:
            self.add(source, 1, "file-length",
                     f"{len(source.lines)} lines; two ideas are in here, give each a file")
        head = [line for line in source.lines[:12] if not line.startswith("#!")]
        mark = r"^(//|#) "
        if not head or not re.match(mark + r"SPDX-License-Identifier: Apache-2\.0$", head[0]):
            self.add(source, 1, "opening", "start with `SPDX-License-Identifier: Apache-2.0`")
        elif not any(re.match(mark + r"\S", line) for line in head[1:4]):
            self.add(source, 1, "opening", "say in two to six lines what the file is for")
        if source.path.endswith(".h") and "#pragma once" not in source.text:
            self.add(source, 1, "opening", "a header without its guard; add `#pragma once`")

    def check_includes(self, source):
        allowed = MAY_INCLUDE.get(source.folder)
        if source.path.startswith("src/") and allowed is None and source.folder:
            self.add(source, 1, "layering",
                     f"src/{source.folder} is not in the table of tools/tidy.py; add it there and "
                     "in src/CMakeLists.txt")
        for match in INCLUDE.finditer(source.no_comments):
            line = source.text.count("\n", 0, match.start()) + 1
            quote, name = match.groups()
            top = name.split("/")[0]
            if source.folder and allowed is not None and quote == '"':
                is_reference = top == "test" and source.is_test
                if top not in allowed and not is_reference:
                    self.add(source, line, "layering",
                             f"src/{source.folder} may not include {name}; it may use "
                             f"{', '.join(sorted(allowed))}")
            if source.folder and top in HEAVY and not source.is_test:
                if source.folder not in HEAVY[top]:
                    self.add(source, line, "layering",
                             f"src/{source.folder} may not include {name}; only "
                             f"{', '.join(sorted(HEAVY[top]))} may")
                elif source.path.endswith(".h"):
                    self.add(source, line, "layering",
                             f"{name} in a header costs every file that includes it; keep it in "
                             "the .cc")

    def check_banned(self, source):
        is_pure = source.path.startswith(PURE_FOLDERS) and not source.is_test
        if is_pure:
            is_report = os.path.basename(source.path).startswith("report")
            for rule, pattern, instead in PURE:
                if not (rule == "kube-float" and is_report):
                    self.add_matches(source, source.code, rule, pattern, instead)
            self.check_unordered_loops(source)
        for rule, files, pattern, instead in EVERYWHERE:
            if re.search(files, source.path):
                self.add_matches(source, source.code, rule, pattern, instead)

    def check_unordered_loops(self, source):
        """Range-for over, or begin() of, anything declared here or in its headers as unordered."""
        names = set(UNORDERED.findall(source.code))
        for include in re.findall(r'#\s*include\s*"([^"]+)"', source.code):
            header = self.by_path.get("src/" + include)
            if header is not None:
                names |= set(UNORDERED.findall(header.code))
        if not names:
            return
        word = "(?:" + "|".join(map(re.escape, sorted(names))) + ")"
        self.add_matches(
            source, source.code, "unordered-loop",
            rf"\bfor\s*\([^;()]*:\s*[^;()]*?\b{word}\s*\)|\b{word}\s*(?:\.|->)\s*c?begin\s*\(",
            "its order is the hash's; keep a sorted vector, or std::map, to walk")

    def check_function_lengths(self, source):
        for start, end in function_spans(source.code):
            length = end - start + 1
            if length > FUNCTION_LINES_MAX:
                self.add(source, start, "function-length",
                         f"{length} lines; keep the branching here and move straight-line work out")

    def check_golden_files(self):
        """All data under test/golden is named by a test, itself or by a folder it is in."""
        tests = "\n".join(s.no_comments for s in self.sources if s.is_cpp and s.is_test)
        for path in self.files_under("test/golden"):
            if path.endswith((".cc", ".h", ".md", ".py")):
                continue
            parts = path.split("/")[2:]
            names = parts[:-1] + [parts[-1], parts[-1].split(".")[0]]
            if not any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", tests)
                       for name in names):
                self.findings.append(f"{path}:1: [golden] no test names it; use it or delete it")

    def check_corpus_folders(self):
        for path in self.files_under("test/fuzz/corpus"):
            name = path.split("/")[3]
            if f"test/fuzz/{name}_fuzz.cc" not in self.by_path:
                self.findings.append(
                    f"{path}:1: [corpus] no test/fuzz/{name}_fuzz.cc reads it; rename or delete it")

    def files_under(self, folder):
        for base, folders, names in os.walk(os.path.join(self.root, folder)):
            folders.sort()
            for name in sorted(names):
                yield os.path.relpath(os.path.join(base, name), self.root)

    def check_targets(self, compile_commands):
        """Every .cc of src and test is compiled; bench/ only where its option is on."""
        with open(compile_commands, encoding="utf-8") as file:
            built = {os.path.realpath(os.path.join(entry["directory"], entry["file"]))
                     for entry in json.load(file)}
        for source in self.sources:
            if not source.path.endswith(".cc") or not source.path.startswith(("src/", "test/")):
                continue
            if os.path.realpath(os.path.join(self.root, source.path)) not in built:
                self.add(source, 1, "not-built",
                         "no target compiles it; see src/CMakeLists.txt and test/CMakeLists.txt "
                         "for the folders and names they look for")


def function_spans(code):
    """(first line, last line) of every function body outside functions, by matching braces."""
    code = DIRECTIVE.sub(lambda match: spaces_for(match.group()), code)
    stack = []  # (kind, line) of open braces
    head = ""
    line = 1
    for char in code:
        if char == "\n":
            line += 1
        if char == "{":
            outer = all(kind == "scope" for kind, _ in stack)
            stack.append((brace_kind(head) if outer else "inner", line))
            head = ""
        elif char == "}":
            if stack:
                kind, start = stack.pop()
                if kind == "function":
                    yield start, line
            head = ""
        elif char == ";":
            head = ""
        else:
            head += char


def brace_kind(head):
    """What a brace opens, from the text in front of it, outside of functions."""
    if re.match(r"\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|extern|class|struct|union|enum)\b",
                head, re.S) and not re.search(r"\)\s*(const|noexcept|override)?\s*$", head):
        return "scope"
    return "function" if ")" in head and not head.rstrip().endswith("=") else "inner"


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description="checks the project's own rules")
    parser.add_argument("--root", default=here)
    parser.add_argument("--compile-commands", help="compile_commands.json of a build with tests")
    args = parser.parse_args()

    tidy = Tidy(args.root)
    findings = tidy.run()
    if args.compile_commands:
        tidy.check_targets(args.compile_commands)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(tidy.sources)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
