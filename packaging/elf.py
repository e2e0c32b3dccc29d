"""Reads from the headers of a program for which machine and C library it was built, and which version of glibc it needs.

`readelf` prints them. It is a part of binutils, without which no program is linked.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
HEADERS = ("--file-header", "--program-headers", "--dynamic", "--version-info", "--wide")


@dataclass(frozen=True)
class Program:
    # `x86_64` or `aarch64`.
    machine: str
    # `gnu` for glibc, `musl` for a static program.
    libc: str
    # The newest version of glibc that a symbol requires, such as (2, 35). None for a static program.
    glibc: tuple[int, int] | None
    # The shared libraries that it loads.
    libraries: tuple[str, ...]


def inspect(path: Path) -> Program:
    """Fails for a file that is no program of 64-bit Linux."""
    environment = os.environ | {"LC_ALL": "C"}
    headers = subprocess.run(["readelf", *HEADERS, str(path)], env=environment, capture_output=True, text=True, errors="replace").stdout
    if not re.search(r"^ +Class: +ELF64$", headers, re.MULTILINE):
        raise SystemExit(f"{path} is not a program for 64-bit Linux")
    machine = re.search(r"^ +Machine: +(.+)$", headers, re.MULTILINE)[1]
    if machine not in MACHINES:
        raise SystemExit(f"{path} is for a machine without packages ({machine})")
    if not re.search(r"^ +INTERP ", headers, re.MULTILINE):
        return Program(MACHINES[machine], "musl", None, ())
    libraries = tuple(re.findall(r"\(NEEDED\) +Shared library: \[(.+)\]", headers))
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", headers)]
    if not versions:
        raise SystemExit(f"{path} requires no version of glibc; musl programs must be linked statically")
    return Program(MACHINES[machine], "gnu", max(versions), libraries)
