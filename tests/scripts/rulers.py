"""Tests of scripts/lines, scripts/call-path and bench/ab on small inputs, without a build."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

from harness.pairs import Comparison, Figure, Scenario, in_turn
from rust_symbols import parse_symbol

SOURCES = {
    "crates/query/src/lib.rs": '''\
//! A crate.

use std::{
    fmt,
    io, // a comment
};
mod inner;
#[cfg(test)]
mod cases;

/// A struct.
pub struct Options {
    pub depth: usize, // of a tree
}

/* a block /* in
   a block */ */
pub fn text(options: &Options) -> String {
    let quote = '"';
    let text = "use x; // no comment
#[cfg(test)] {";
    let raw = r#"// "no" comment "#;
    format!("{}{quote}{text}{raw}", options.depth)
}

/// Documentation of tests.
#[cfg(all(test, unix))]
#[allow(dead_code)]
mod tests {
    use super::*;
    const BRACE: char = '}';
    fn depth() {}
}
''',
    "crates/query/src/inner.rs": '''\
pub(crate) use super::Options;
#[cfg(test)]
pub(crate) use super::text;
#[cfg(not(test))]
const LIMITS: [u8; 2] = [1, 2];
impl<'a, T: 'a> From<&'a T> for Options where T: Copy {
    fn from(_: &'a T) -> Self {
        Self { depth: 1 }
    }
}
''',
    "crates/query/src/cases.rs": "fn tested() {}\n",
    "crates/query/src/cases/more.rs": "fn tested() {}\n",
    "crates/query/tests/it/main.rs": "fn tested() {}\n",
    "crates/testkit/src/lib.rs": "pub fn for_tests() {}\n",
    "crates/ingest-formats/src/lib.rs": "fn read(options: Options) { options.depth; }\n",
}
LINES = """\
crate               code  comments   imports     blank     total
ingest-formats         1         0         0         0         1
query                 17         4         6         4        31
all                   18         4         6         4        32
"""
DIFFERENCE = """\
crate      code  comments   imports     blank     total
query        -7        +0        -1        +0        -8
all          -7        +0        -1        +0        -8

code: 18 lines in HEAD, 11 here
"""
KEY_PATH = """\
call                     functions     types    crates
server.depth                     3         2         2

server.depth: query 2/2, ingest-formats 1/0
  ingest-formats::lib::read
  query::inner::Options::from
  query::lib::Options
  query::lib::text
"""


class Scripts(unittest.TestCase):
    """The scripts, in a small repository."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in SOURCES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copytree(ROOT / "bench/harness", self.root / "bench/harness", ignore=shutil.ignore_patterns("__pycache__"))

    def git(self, *arguments: str) -> None:
        names = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
        subprocess.run(["git", "-C", self.root, *names, *arguments], check=True, capture_output=True)

    def run_script(self, *command: str) -> str:
        ran = subprocess.run([self.root / "scripts" / command[0], *command[1:]], capture_output=True, text=True, check=False)
        return ran.stdout + ran.stderr

    def test_lines_are_counted_by_kind_without_tests(self) -> None:
        self.assertEqual(self.run_script("lines"), LINES)
        self.assertIn("the crates are: ingest-formats query", self.run_script("lines", "testkit"))

    def test_lines_differ_from_a_revision(self) -> None:
        self.git("init")
        self.git("add", "crates")
        self.git("commit", "--message", "first")
        (self.root / "crates/query/src/inner.rs").write_text("")
        self.assertEqual(self.run_script("lines", "--against", "HEAD"), DIFFERENCE)
        self.assertIn("there is no crate in revision 'HEAD~1'", self.run_script("lines", "--against", "HEAD~1"))

    def test_a_condition_of_tests_that_cannot_be_read_is_an_error(self) -> None:
        (self.root / "crates/query/src/inner.rs").write_text("struct S {\n    #[cfg(test)]\n    x: u8,\n}\n")
        self.assertIn("crates/query/src/inner.rs:3: cfg(test) is before something that is not an item", self.run_script("lines"))

    def test_a_key_is_followed_by_its_name(self) -> None:
        self.assertEqual(self.run_script("call-path", "--list", "server.depth"), KEY_PATH)
        self.assertIn("no function or field has the name height", self.run_script("call-path", "server.height"))
        self.assertIn("unknown call depth", self.run_script("call-path", "depth"))


class Symbols(unittest.TestCase):
    def check(self, symbol: str, name: str | None, type_name: str | None = None) -> None:
        function = parse_symbol(symbol)
        self.assertEqual((function and function.name, function and function.type_name), (name, type_name), symbol)

    def test_functions_of_our_crates(self) -> None:
        self.check("tidegate::main", "tidegate::main")
        self.check("tidegate_log_formats::parse::entry", "log-formats::parse::entry")
        self.check("tidegate_x::m::Type<T>::f::{{closure}}::{{closure}}", "x::m::Type::f", "x::m::Type")
        self.check("<tidegate_x::Type>::f::<u8>::{closure#0}", "x::Type::f", "x::Type")
        self.check("<&mut tidegate_x::Type<fn(u8) -> u8> as a::B<(C, D)>>::c", "x::Type as B::c", "x::Type")
        self.check("tidegate_x::m::<impl tidegate_y::Trait for tidegate_x::Type>::f", "x::Type as Trait::f", "x::Type")
        self.check("tidegate_x::m::<impl tidegate_x::n::Type>::f", "x::n::Type::f", "x::n::Type")
        self.check("<alloc::sync::Arc<T> as tidegate_core::Trait>::f", "core::Trait::alloc::sync::Arc as Trait::f")

    def test_functions_of_others_and_of_the_compiler(self) -> None:
        self.check("<core::iter::Map<I,tidegate_x::f::{{closure}}> as core::iter::Iterator>::next", None)
        self.check("core::ptr::drop_in_place<tidegate_x::Type>", None)
        self.check("tidegated::main", None)
        self.check("tidegate_x::Enum::Variant", None)
        self.check("<tidegate_x::Type as core::clone::Clone>::clone", None)
        self.check("tidegate_x::_::<impl serde::Deserialize for tidegate_x::Type>::deserialize", None)


class Pairs(unittest.TestCase):
    def test_what_differs_by_more_than_five_percent_is_marked(self) -> None:
        seconds, requests = Figure("time", "{:.1f} s"), Figure("requests/s", "{:.0f}", more_is_better=True)
        mark = lambda figure, *pairs: Comparison("a", figure, pairs).mark
        self.assertEqual(mark(seconds, (1.0, 1.04), (1.0, 1.04)), "")
        self.assertEqual(mark(seconds, (1.0, 1.06), (2.0, 2.2), (1.0, 1.1)), "**worse**")
        self.assertEqual(mark(requests, (1.0, 1.06), (2.0, 2.2), (1.0, 1.1)), "better")
        self.assertEqual(mark(requests, (100, 80), (100, 90), (100, 101)), "**worse**, not in each pair")

    def test_the_ratio_is_that_of_pairs(self) -> None:
        # The machine became slower in the middle; in each pair, both programs took the same time.
        comparison = Comparison("a", Figure("time", "{:.1f} s"), [(1.0, 1.0), (1.0, 1.0), (3.0, 3.0), (3.0, 3.0)])
        self.assertEqual(comparison.row(), ["a: time", "2.0 s", "2.0 s", "1.000", "1.00 – 1.00", ""])

    def test_the_programs_take_turns(self) -> None:
        runs: list[str] = []
        figure = Figure("runs", "{}")
        measure = lambda name: lambda: runs.append(name) or {figure: float(len(runs))}
        [comparison] = in_turn([Scenario("a", measure("old"), measure("new"))], 3)
        self.assertEqual(runs, ["old", "new", "new", "old", "old", "new"])
        self.assertEqual(comparison.pairs, [(1.0, 2.0), (4.0, 3.0), (5.0, 6.0)])


if __name__ == "__main__":
    unittest.main()
