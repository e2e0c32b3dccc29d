"""Installs the packages of a folder as users do, and asks each installed program a question with a stock client.

    trials.py FOLDER [KIND…]    the kinds are: wheel npm

Runs with the Python of `scripts/test` (PyPI `mcp`). TIDEGATE_NODE names Node.js, TIDEGATE_UVX uvx. Nothing but the packages of FOLDER is installed: the
registries are on the loopback address and contain nothing else.
"""

import sys
import tempfile
from pathlib import Path

from npm_trials import check_npm
from package_index import serve_packages
from report import Report
from wheel_trials import check_wheel

KINDS = ("wheel", "npm")


def only_file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{folder} should contain one file {pattern}; it contains {len(found)}"
    return found[0]


def main() -> int:
    folder, *kinds = Path(sys.argv[1]), *sys.argv[2:]
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise SystemExit(f"unknown kind {unknown.pop()}; the kinds are: {' '.join(KINDS)}")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="tidegate-packages-") as temporary, serve_packages([folder]) as index:
        if not kinds or "wheel" in kinds:
            check_wheel(only_file(folder, "*.whl"), index, Path(temporary) / "wheel", report)
        if not kinds or "npm" in kinds:
            check_npm(index, Path(temporary) / "npm", report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
