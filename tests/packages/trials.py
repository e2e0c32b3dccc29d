"""Installs the packages of a folder as users do, and asks each installed program a question with a stock client.

    trials.py FOLDER [KIND…]    the kinds are: archive wheel npm debian container mcpb descriptions chroots

Runs with the Python of `scripts/test` (PyPI `mcp`). TIDEGATE_NODE names Node.js, TIDEGATE_UVX uvx. Nothing but the packages of FOLDER is installed: the
registries are on the loopback address and contain nothing else.
"""

import sys
import tempfile
from pathlib import Path

from archive_trials import check_archive, check_bundle, check_container, check_descriptions
from chroot_trials import check_chroots
from debian_trials import check_debian
from npm_trials import check_npm
from package_index import PackageIndex, serve_packages
from report import Report
from wheel_trials import check_wheel

KINDS = ("archive", "wheel", "npm", "debian", "container", "mcpb", "descriptions", "chroots")


def only_file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{folder} should contain one file {pattern}; it contains {len(found)}"
    return found[0]


def check(kind: str, folder: Path, temporary: Path, index: PackageIndex, report: Report) -> None:
    match kind:
        case "archive":
            check_archive(only_file(folder, "*.tar.gz"), temporary, report)
        case "wheel":
            check_wheel(only_file(folder, "*.whl"), index, temporary, report)
        case "npm":
            check_npm(index, temporary, report)
        case "debian":
            check_debian(only_file(folder, "*.deb"), temporary, report)
        case "container":
            check_container(only_file(folder, "*.oci.tar"), temporary, report)
        case "mcpb":
            check_bundle(only_file(folder, "*.mcpb"), temporary, report)
        case "descriptions":
            check_descriptions(folder, report)
        case "chroots":
            check_chroots(index, report)


def main() -> int:
    folder, *kinds = Path(sys.argv[1]), *sys.argv[2:]
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise SystemExit(f"unknown kind {unknown.pop()}; the kinds are: {' '.join(KINDS)}")
    report = Report()
    with tempfile.TemporaryDirectory(prefix="tidegate-packages-") as temporary, serve_packages([folder]) as index:
        for kind in kinds or KINDS:
            check(kind, folder, Path(temporary) / kind, index, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
