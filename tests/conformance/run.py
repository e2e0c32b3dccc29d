"""Runs the official conformance suite once against a running server.

    run.py REVISION URL [EXPECTED…]

EXPECTED are files of expected failures in addition to `expected-failures.yaml`. For the two newest revisions, the suite has
frozen requirements; for the older ones, all applicable scenarios run. TIDEGATE_NODE and TIDEGATE_NODE_PACKAGES are the
paths of Node.js and the suite.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
EXPECTED = Path(__file__).with_name("expected-failures.yaml")
SUITE_OPTIONS = {
    "2026-07-28": ["--requirements", "2026-07-28"],
    "2025-11-25": ["--requirements", "2025-11-25"],
    "2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
    "2025-03-26": ["--suite", "all", "--spec-version", "2025-03-26"],
}
# The suite runs extensions and excludes them from its verdict; Tidegate implements tasks. It does not implement skills, an
# extension for instruction files of models.
NOT_SERVED = ("sep-2640-skills-",)


def scenario_of(result: Path) -> str:
    """The suite names a result's folder `server-SCENARIO-TIME`."""
    return re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", result.parent.name)


def entries_of(files: list[Path]) -> set[str]:
    """The expected failures: scenarios, or single checks as SCENARIO:CHECK."""
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {entry for text in texts for entry in re.findall(r"^  - ([\w:-]+)", text, re.MULTILINE)}


def checks_of(results: Path) -> dict[str, list[dict[str, str]]]:
    """The checks of each scenario that ran."""
    checks_by_scenario: dict[str, list[dict[str, str]]] = {}
    for result in sorted(results.rglob("checks.json")):
        checks_by_scenario.setdefault(scenario_of(result), []).extend(json.loads(result.read_text(encoding="utf-8")))
    return checks_by_scenario


def unexpected_failures(results: Path, expected: set[str]) -> list[str]:
    """Failures without an entry, including those that the suite excludes from its verdict."""
    return [
        f"{scenario}: {check['id']}: {check.get('errorMessage', '')[:300]}"
        for scenario, checks in checks_of(results).items()
        if scenario not in expected and not scenario.startswith(NOT_SERVED)
        for check in checks
        if check["status"] == "FAILURE" and f"{scenario}:{check['id']}" not in expected
    ]


def unexpected_successes(results: Path, expected: set[str]) -> list[str]:
    """Entries that ran and did not fail, including those that the suite excludes from its verdict."""
    checks_by_scenario = checks_of(results)
    passing = []
    for entry in sorted(expected):
        scenario, _, check_id = entry.partition(":")
        checks = [check for check in checks_by_scenario.get(scenario, []) if check_id in ("", check["id"])]
        if checks and not any(check["status"] in ("FAILURE", "WARNING") for check in checks):
            passing.append(f"{entry}: it passes, and is expected to fail")
    return passing


def success_count(results: Path) -> int:
    return sum(check["status"] == "SUCCESS" for checks in checks_of(results).values() for check in checks)


def main() -> int:
    revision, url, *more = sys.argv[1:]
    expected = entries_of([EXPECTED, *map(Path, more)])
    packages = Path(os.environ["TIDEGATE_NODE_PACKAGES"])
    with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
        # The suite takes one list.
        entries = Path(folder) / "expected-failures.yaml"
        entries.write_text(json.dumps({"server": sorted(expected)}), encoding="utf-8")
        results = Path(folder) / "results"
        command = [os.environ["TIDEGATE_NODE"], str(packages / SUITE), "server", "--url", url, *SUITE_OPTIONS[revision]]
        command += ["--expected-failures", str(entries), "--output-dir", str(results)]
        suite = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        # Omits the part above the summary, which has every check of every scenario.
        print(suite.stdout[suite.stdout.find("=== SUMMARY ===") :])
        failures = unexpected_failures(results, expected) + unexpected_successes(results, expected)
        for failure in failures:
            print(f"FAIL {failure}")
        failed = len(failures)
        if suite.returncode and not failures:
            # A warning, a stale entry or a check beside those expected: the output of the suite above has the details.
            failed = 1
        passed = success_count(results)
        print(f"{passed} passed, {failed} failed")
        return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
