#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Proves that tidy.py sees: a small bad project for each rule, which must be caught by that rule's
# name, and its good twin, which must not. Words that tidy.py would find in here are put together.

import json
import os
import sys
import tempfile
import unittest

import tidy

HEAD = "// SPDX-License-Identifier: Apache-2.0\n//\n// What this file is for.\n"
GUARD = "#pragma once\n"
LATER = "TO" "DO"
BROKEN = "FIX" "ME"


class TidyTest(unittest.TestCase):
    def findings(self, files, built=None):
        """Findings for a project of {path: text}; `built` lists what compile commands name."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            checker = tidy.Tidy(root)
            checker.run()
            if built is not None:
                commands = os.path.join(root, "compile_commands.json")
                with open(commands, "w", encoding="utf-8") as file:
                    json.dump([{"directory": root, "file": path} for path in built], file)
                checker.check_targets(commands)
            return checker.findings

    def bad(self, rule, path, body, line=None, head=HEAD):
        """The file gets a finding of this rule, at this line of the body if given."""
        found = [f for f in self.findings({path: head + body}) if f"[{rule}]" in f]
        self.assertTrue(found, f"{rule} did not see {body!r}")
        if line is not None:
            place = f"{path}:{line + head.count(chr(10))}:"
            self.assertTrue(any(f.startswith(place) for f in found), f"{place} is not in {found}")

    def good(self, path, body, head=HEAD):
        self.assertEqual(self.findings({path: head + body}), [])

    def test_layering(self):
        self.bad("layering", "src/core/a.cc", '\n#include "kube/objects.h"\n', line=2)
        self.bad("layering", "src/sim/a.cc", '#include "kube/objects.h"\n')
        self.bad("layering", "src/kube/a.cc", '#include "core/model/pod.h"\n')
        self.bad("layering", "src/base/a.cc", '#include "core/model/pod.h"\n')
        self.bad("layering", "src/core/a.cc", '#include "cli/command.h"\n')
        self.bad("layering", "src/core/a.cc", '#include "test/reference/slow.h"\n')
        self.bad("layering", "src/core/a.cc", "#include <simdjson.h>\n")
        self.bad("layering", "src/kube/a.h", GUARD + "#include <simdjson.h>\n")
        self.bad("layering", "src/newcomer/a.cc", "int x;\n")
        self.good("src/import/a.cc", '#include "core/model/pod.h"\n#include "kube/objects.h"\n')
        self.good("src/core/a_test.cc", '#include "test/reference/slow.h"\n')
        self.good("src/kube/a.cc", "#include <simdjson.h>\n")
        self.good("src/core/a.cc", '// #include "kube/objects.h" would be wrong\n')

    def test_purity(self):
        for rule, body in [
            ("clock", "auto t = std::chrono::steady_clock::now();\n"),
            ("clock", '#include "base/mono_clock.h"\n'),
            ("clock", "auto t = time(nullptr);\n"),
            ("random", "int x = rand();\n"),
            ("random", "std::mt19937 g;\n"),
            ("random", "std::uniform_int_distribution<int> d;\n"),
            ("random", "void f() { std::shuffle(a, b, g); }\n"),
            ("thread", "std::mutex m;\n"),
            ("thread", "std::jthread t;\n"),
            ("io", "#include <iostream>\n"),
            ("io", "#include <cstdio>\n"),
            ("io", '#include "base/file.h"\n'),
            ("io", 'void f() { fmt::print("x"); }\n'),
            ("kube-float", "double x = 1;\n"),
            ("kube-float", "auto x = 0.5;\n"),
        ]:
            self.bad(rule, "src/core/a.cc", body)
            self.bad(rule, "src/scale/a.cc", body)
            self.good("src/core/a_test.cc", body)
        self.good("src/sim/a.cc", "double x = 0.5;\n")
        self.good("src/core/report_use.cc", "double x = 0.5;\n")
        self.good("src/core/a.cc", '// a double, by std::mutex\nauto s = "double rand()";\n')
        self.good("src/core/a.cc", "int double_name = operand(3) + runtime(0);\n")

    def test_unordered_loop(self):
        loop = "void f() {\n  for (const auto& [k, v] : {0}) use(k);\n}\n"
        member = "class A { std::unordered_map<int, std::vector<int>> by_name_; };\n"
        self.bad("unordered-loop", "src/core/a.cc", member + loop.replace("{0}", "by_name_"), 3)
        self.bad("unordered-loop", "src/core/a.cc", member + loop.replace("{0}", "this->by_name_"))
        self.bad("unordered-loop", "src/core/a.cc",
                 "std::unordered_set<int> s;\nauto first = s.begin();\n", line=2)
        both = {"src/core/a.h": HEAD + GUARD + member,
                "src/core/a.cc": HEAD + '#include "core/a.h"\n' + loop.replace("{0}", "by_name_")}
        self.assertIn("[unordered-loop]", "\n".join(self.findings(both)))
        self.good("src/core/a.cc", member + "std::map<int, int> m;\n" + loop.replace("{0}", "m"))
        self.good("src/core/a.cc", member + "auto x = by_name_.find(3) != by_name_.end();\n")

    def test_waiver_names_the_rule_and_a_reason(self):
        self.good("src/core/a.cc", "using Real = double;  // tidy: kube-float: as the original\n")
        self.good("src/core/a.cc", "// tidy: kube-float: as the original\nusing Real = double;\n")
        self.bad("kube-float", "src/core/a.cc", "using Real = double;  // tidy: kube-float\n")
        self.bad("kube-float", "src/core/a.cc", "using Real = double;  // tidy: clock: why\n")

    def test_everywhere(self):
        self.bad("using-namespace", "src/sim/a.h", GUARD + "using namespace std;\n", line=2)
        self.good("src/sim/a.cc", "using namespace std::literals;\n")
        self.bad("regex", "src/sim/a.cc", "std::regex r;\n")
        self.bad("sleep", "src/sim/a_test.cc", "std::this_thread::sleep_for(x);\n")
        self.bad("sleep", "test/e2e/a_test.cc", "usleep(5);\n")
        self.good("src/sim/a_test.cc", "asleep(5);\n")
        self.good("src/sim/a.cc", "auto r = R\"(std::regex '\" \" { )\"; int n = 1'000;\n")

    def test_words(self):
        self.bad("absolute-path", "src/sim/a.cc", 'auto p = "/ho' 'me/me/x";\n')
        self.bad("absolute-path", "docs/a.md", "see /wor" "k/notes\n")
        self.bad("absolute-path", "src/sim/a_test.cc", 'auto p = "/tm' 'p/x";\n')
        self.good("docs/a.md", "see https://example.com/wor" "k/notes and docs/home/x\n")
        self.good("src/sim/a.cc", 'auto p = "/dev/null";\n')
        self.bad("unfinished", "src/sim/a.cc", f"// {BROKEN}: later\n")
        self.bad("unfinished", "src/sim/a.cc", f"// {LATER}: nicer\n")
        self.bad("unfinished", "src/sim/a.cc", f"// {LATER}(someone): nicer\n")
        self.good("src/sim/a.cc", f"// {LATER}: when there are two drivers, share this\n")

    def test_form(self):
        self.bad("line-width", "src/sim/a.cc", "//" + "x" * 99 + "\n", line=1)
        self.good("src/sim/a.cc", "// " + "é" * 97 + "\n")
        self.bad("file-length", "src/sim/a.cc", "\n" * 800)
        self.bad("opening", "src/sim/a.cc", "int x;\n", head="")
        self.bad("opening", "src/sim/a.cc", "int x;\n", head=HEAD.splitlines()[0] + "\n")
        self.bad("opening", "src/sim/a.h", "int x;\n")
        self.good("src/sim/a.h", GUARD)
        self.good("tools/a.sh", "", head="#!/bin/sh\n" + HEAD.replace("//", "#"))

    def test_function_length(self):
        rows = "  {1},\n" * 150
        steps = "  step();\n" * 118
        self.bad("function-length", "src/sim/a.cc", "void f() {\n" + steps + "\n}\n", line=1)
        self.good("src/sim/a.cc", "void f() {\n" + steps + "}\n")
        self.good("src/sim/a.cc", "constexpr Row kRows[] = {\n" + rows + "};\n")
        self.bad("function-length", "src/sim/a.cc",
                 "namespace a {\nclass B : C<int> {\n  A() : x_(1) {\n#define X {\n" + steps +
                 "\n  }\n};\n}\n", line=3)
        self.good("src/sim/a.cc", "namespace a {\n" + "void f() {}\n" * 150 + "}\n")

    def test_not_built(self):
        files = {"src/sim/a.cc": HEAD, "src/sim/b.cc": HEAD, "bench/c.cc": HEAD}
        found = self.findings(files, built=["src/sim/a.cc"])
        self.assertEqual([f.split(":")[0] for f in found], ["src/sim/b.cc"])
        self.assertIn("[not-built]", found[0])

    def test_data_is_used(self):
        test = HEAD + 'auto a = read("test/golden/demo.txt"); auto b = cases("placements");\n'
        files = {"test/golden/a_test.cc": test, "test/golden/demo.txt": "",
                 "test/golden/placements/one.in": ""}
        self.assertEqual(self.findings(files), [])
        files["test/golden/stale.txt"] = ""
        self.assertEqual([f.split(":")[0] for f in self.findings(files)],
                         ["test/golden/stale.txt"])
        corpus = {"test/fuzz/a_fuzz.cc": HEAD, "test/fuzz/corpus/a/one": "",
                  "test/fuzz/corpus/b/one": ""}
        self.assertEqual([f.split(":")[0] for f in self.findings(corpus)],
                         ["test/fuzz/corpus/b/one"])


if __name__ == "__main__":
    sys.exit(unittest.main())
