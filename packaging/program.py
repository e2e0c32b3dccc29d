"""The program of the packages, built for systems that are older than this one.

A program that is linked on a system needs its glibc or a newer one. Zig links for the version that is asked for, and brings the compiler for the C parts. It comes from
PyPI, as does the cargo command that uses it.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

from dependencies import CARGO
from project import ROOT

# Of RHEL 8, Debian 10 and Ubuntu 20.04; the newest wheels of most projects need it, too.
GLIBC = "2.28"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
FEATURES = ["--features", "full"]


def build_program(folder: Path) -> Path:
    """Builds in the target folder `folder`. On systems without glibc, for that system."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        run([CARGO, "build", "--profile", "dist", "--locked", *FEATURES, "--target-dir", folder])
        return folder / "dist" / "tidegate"
    tools = install_zig(folder / "zig")
    target = f"{platform.machine()}-unknown-linux-gnu"
    # With `python3` of this environment, cargo-zigbuild finds zig.
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = [CARGO, "zigbuild", "--profile", "dist", "--locked", *FEATURES, "--target", f"{target}.{GLIBC}", "--target-dir", folder]
    run(command, environment)
    return folder / target / "dist" / "tidegate"


def run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
    if subprocess.run(command, cwd=ROOT, env=environment).returncode != 0:
        raise SystemExit(f"{' '.join(str(word) for word in command)} failed")


def install_zig(environment: Path) -> Path:
    """The folder of the commands of a Python environment with zig."""
    commands, installed = environment / "bin", environment / "requirements.txt"
    if not installed.exists() or installed.read_text() != REQUIREMENTS.read_text():
        run([sys.executable, "-m", "venv", "--clear", environment])
        pip = [commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--requirement", REQUIREMENTS])
        installed.write_text(REQUIREMENTS.read_text())
    return commands
