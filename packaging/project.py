"""What all packages have in common: names, version and texts from Cargo.toml, the time of the files, and the folder of the packages."""

import os
import re
import subprocess
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from elf import Program, inspect

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Project:
    """The program and its texts."""

    name: str
    version: str
    description: str
    licence: str
    repository: str
    # The program that is packaged, and what its headers say about it.
    binary: Path
    program: Program
    # A program of the same version that runs on this machine. It prints completions and manual pages.
    runnable: Path
    output: Path
    # The time of all files in all packages, in seconds since 1970. Packages of one commit have the same bytes.
    epoch: int

    @property
    def target(self) -> str:
        """The system of the program, as in the names of archives: `x86_64-linux-gnu`."""
        return f"{self.program.machine}-linux-{self.program.libc}"

    @property
    def readme(self) -> str:
        """The short text that registries show."""
        return (ROOT / "packaging" / "description.md").read_text().replace("{repository}", self.repository)

    def write(self, name: str, content: bytes) -> Path:
        path = self.output / name
        path.write_bytes(content)
        return path


def read_project(binary: Path, runnable: Path | None, output: Path) -> Project:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    package = tomllib.loads((ROOT / "crates" / "tidegate" / "Cargo.toml").read_text())["package"]
    project = Project(
        name=package["name"],
        version=workspace["version"],
        description=package["description"],
        licence=workspace["license"],
        repository=workspace["repository"],
        binary=binary.resolve(),
        program=inspect(binary),
        runnable=(runnable or binary).resolve(),
        output=output,
        epoch=read_epoch(),
    )
    check_version(project)
    output.mkdir(parents=True, exist_ok=True)
    return project


def read_epoch() -> int:
    """SOURCE_DATE_EPOCH, else the time of the commit."""
    named = os.environ.get("SOURCE_DATE_EPOCH")
    if named:
        return int(named)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("the time of the commit is unknown outside of a git repository; set SOURCE_DATE_EPOCH")
    return int(done.stdout)


def check_version(project: Project) -> None:
    """The program that prints the texts, which usually is the packaged one, must be of the version of Cargo.toml."""
    done = subprocess.run([project.runnable, "--version"], capture_output=True, text=True)
    expected = f"{project.name} {project.version}"
    if done.stdout.strip() != expected:
        found = done.stdout.strip() or done.stderr.strip()
        raise SystemExit(f"{project.runnable} --version prints {found!r}; Cargo.toml says {expected!r}")


# A semantic version: numbers, and a pre-release such as `rc.1`.
SEMANTIC_VERSION = re.compile(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?")


def version_parts(version: str) -> tuple[str, str, str]:
    """`1.2.3-rc.1` as (`1.2.3`, `rc`, `1`). The last two are empty for a release."""
    match = SEMANTIC_VERSION.fullmatch(version)
    if not match:
        raise SystemExit(f"the version {version!r} is neither MAJOR.MINOR.PATCH nor one with -alpha.N, -beta.N or -rc.N")
    return match[1], match[2] or "", match[3] or ""


def python_version(version: str) -> str:
    numbers, stage, count = version_parts(version)
    return numbers + {"": "", "alpha": "a", "beta": "b", "rc": "rc"}[stage] + count


def debian_version(version: str) -> str:
    numbers, stage, count = version_parts(version)
    return f"{numbers}~{stage}{count}-1" if stage else f"{numbers}-1"


def with_binary(project: Project, binary: Path) -> Project:
    """The same project with another program, such as the other one of two builds."""
    return replace(project, binary=binary.resolve(), program=inspect(binary))
