"""What each cargo feature of the crate tidegate costs: build time, processor time, size of the program.

Each selection is built from nothing with the profile of the packages, in a target folder of its own that is removed afterwards. With two cores, a selection takes some 20
minutes. All downloads have to be done (`cargo fetch`). Use an idle machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import report

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tidegate"
MANIFEST = ROOT / "crates" / PACKAGE / "Cargo.toml"
# Not a feature by itself: the selection without any.
NONE = "none"
OTHERS = ["default", "full"]
COPIED_BYTES = 1 << 20


@dataclass(frozen=True)
class Cost:
    """One selection of features, built from nothing."""

    features: str
    adds: str
    crates: int
    wall_seconds: float
    processor_seconds: float
    program_bytes: int
    compressed_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    features = features_of_manifest()
    parser.add_argument("--only", nargs="*", choices=[NONE, *features], help="only these selections")
    parser.add_argument("--profile", default="dist", help="profile of cargo")
    parser.add_argument("--list", action="store_true", help="prints the selections without building them")
    arguments = parser.parse_args()
    selections = {NONE: "", **features}
    selected = {name: adds for name, adds in selections.items() if not arguments.only or name in arguments.only}
    if arguments.list:
        for name, adds in selected.items():
            print(f"{name}: {crates_of(name)} crates; {adds}")
        return
    costs = [measure(name, adds, arguments.profile) for name, adds in selected.items()]
    report.keep("feature-costs", [asdict(cost) for cost in costs])
    show(costs)


def features_of_manifest() -> dict[str, str]:
    """The features, each with the first sentence of the comment above it, without those that only name others."""
    section = MANIFEST.read_text().split("[features]\n", 1)[1].split("\n[", 1)[0]
    features, comment = {}, ""
    for line in section.splitlines():
        if line.startswith("#"):
            comment = f"{comment} {line.removeprefix('#').strip()}".strip()
        elif found := re.match(r"([\w-]+)\s*=", line):
            if found[1] not in OTHERS:
                features[found[1]] = comment.split(". ", 1)[0].rstrip(".")
            comment = ""
    return features


def selection(features: str) -> list[str]:
    # Features that `default` names are a part of every selection, as in the packages.
    return ["--locked", "--package", PACKAGE, *([] if features == NONE else ["--features", features])]


def crates_of(features: str) -> int:
    """The number of packages in the program."""
    command = ["cargo", "tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", *selection(features)]
    tree = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return len({tuple(line.split()[:2]) for line in tree.splitlines() if line})


def measure(features: str, adds: str, profile: str) -> Cost:
    base = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    base.mkdir(parents=True, exist_ok=True)
    target = Path(tempfile.mkdtemp(prefix="feature-costs-", dir=base))
    try:
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "0"}
        before, started = processor_seconds(), time.monotonic()
        command = ["cargo", "build", "--offline", "--profile", profile, "--bin", PACKAGE, *selection(features)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        wall, processor = time.monotonic() - started, processor_seconds() - before
        program = target / ("debug" if profile == "dev" else profile) / PACKAGE
        return Cost(features, adds, crates_of(features), wall, processor, program.stat().st_size, compressed_size(program))
    finally:
        shutil.rmtree(target)


def processor_seconds() -> float:
    """Of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compressed_size(program: Path) -> int:
    """As in the archive, the wheel and the npm package."""
    with tempfile.TemporaryFile() as compressed:
        with gzip.GzipFile(fileobj=compressed, mode="wb", compresslevel=9) as stream, program.open("rb") as source:
            shutil.copyfileobj(source, stream, COPIED_BYTES)
        return compressed.tell()


def show(costs: list[Cost]) -> None:
    """The differences from the selection without features, if it was built."""
    base = next((cost for cost in costs if cost.features == NONE), None)
    rows = []
    for cost in costs:
        own = base is None or cost is base
        minutes, processor, program, compressed = (
            value if own else value - compared
            for value, compared in zip(numbers(cost), numbers(base or cost), strict=True)
        )
        sign = "" if own else "+"
        rows.append(
            (
                f"`{cost.features}`" if cost is not base else "without features",
                cost.adds or "–",
                str(cost.crates) if own else f"+{cost.crates - base.crates}",
                f"{minutes:{sign}.1f} min",
                f"{processor:{sign},.0f} s",
                f"{program:{sign},.1f} MB",
                f"{compressed:{sign},.1f} MB",
            )
        )
    header = ("feature", "adds", "packages", "build time", "processor time", "program", "program, gzip")
    report.show("Cost of each feature", header, rows)


def numbers(cost: Cost) -> tuple[float, float, float, float]:
    return cost.wall_seconds / 60, cost.processor_seconds, cost.program_bytes / 1e6, cost.compressed_bytes / 1e6


if __name__ == "__main__":
    main()
