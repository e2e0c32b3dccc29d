"""Runs the official conformance suite once against a server that listens.

    run.py REVISION URL

REVISION decides the way: the suite has frozen requirements for the two newest revisions, and for the older ones all
scenarios that apply. TIDEGATE_NODE and TIDEGATE_NODE_PACKAGES say where Node.js and the suite are.
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
WAYS = {
    "2026-07-28": ["--requirements", "2026-07-28"],
    "2025-11-25": ["--requirements", "2025-11-25"],
    "2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
    "2025-03-26": ["--suite", "all", "--spec-version", "2025-03-26"],
}
# The suite runs extensions and leaves them out of its verdict; of these we serve tasks. Skills are an extension that names
# files for models to work by; what is served here is data.
NOT_SERVED = ("sep-2640-skills-",)


def scenario_of(result: Path) -> str:
    """The suite names a result's folder `server-SCENARIO-TIME`."""
    return re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", result.parent.name)


def unexpected_failures(results: Path) -> list[str]:
    """Failures of scenarios without an entry, those included that the suite leaves out of its verdict."""
    expected = set(re.findall(r"^  - ([a-z0-9-]+)", EXPECTED.read_text(encoding="utf-8"), re.MULTILINE))
    failures = []
    for result in sorted(results.rglob("checks.json")):
        scenario = scenario_of(result)
        if scenario in expected or scenario.startswith(NOT_SERVED):
            continue
        checks = json.loads(result.read_text(encoding="utf-8"))
        failures += [
            f"{scenario}: {check['id']}: {check.get('errorMessage', '')[:300]}"
            for check in checks
            if check["status"] == "FAILURE"
        ]
    return failures


def succeeded(results: Path) -> int:
    checks = (json.loads(path.read_text(encoding="utf-8")) for path in results.rglob("checks.json"))
    return sum(1 for result in checks for check in result if check["status"] == "SUCCESS")


def main() -> int:
    revision, url = sys.argv[1:]
    packages = Path(os.environ["TIDEGATE_NODE_PACKAGES"])
    with tempfile.TemporaryDirectory(prefix="tidegate-conformance-") as folder:
        results = Path(folder)
        command = [os.environ["TIDEGATE_NODE"], str(packages / SUITE), "server", "--url", url, *WAYS[revision]]
        command += ["--expected-failures", str(EXPECTED), "--output-dir", str(results)]
        suite = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        # Above the summary the suite shows every check of every scenario, and its long description when one fails.
        print(suite.stdout[suite.stdout.find("=== SUMMARY ===") :])
        failures = unexpected_failures(results)
        for failure in failures:
            print(f"FAIL {failure}")
        failed = len(failures)
        if suite.returncode and not failures:
            # A warning, a stale entry or a check beside those expected: the suite's own lines above say which.
            failed = 1
        passed = succeeded(results)
        print(f"{passed} passed, {failed} failed")
        return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
