"""The PyPI wheel: the program as a script, for `pip install`, `pipx run` and `uvx`.

The [format](https://packaging.python.org/en/latest/specifications/binary-distribution-format/) needs no build tool. The tag names the oldest glibc that has all
symbols of the program, as [PEP 600](https://peps.python.org/pep-0600/) requires.
"""

import base64
import hashlib
from pathlib import Path

from containers import Entry, Files, text, zip_file
from elf import Program
from project import ROOT, Project, python_version

# The libraries that every glibc system has, of those that PEP 600 lets a wheel load.
SYSTEM_LIBRARIES = {
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}


def platform_tag(program: Program) -> str:
    """`manylinux_2_28_x86_64` for a program that needs glibc 2.28. A static program runs with any C library."""
    machine = program.machine
    if program.glibc is None:
        return f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    foreign = set(program.libraries) - SYSTEM_LIBRARIES
    if foreign:
        raise SystemExit(f"a wheel may not load {', '.join(sorted(foreign))}, which many systems lack; link statically")
    major, minor = program.glibc
    return f"manylinux_{major}_{minor}_{machine}"


def metadata(project: Project, version: str) -> str:
    header = f"""\
Metadata-Version: 2.4
Name: {project.name}
Version: {version}
Summary: {project.description}
License-Expression: {project.licence}
License-File: LICENSE
License-File: THIRD-PARTY-LICENCES.txt
Requires-Python: >=3.8
Project-URL: Repository, {project.repository}
Description-Content-Type: text/markdown
"""
    return f"{header}\n{project.readme}"


def record(files: Files, name: str) -> str:
    """The list of all files with their hashes; the line of the list itself has none."""
    lines = []
    for path, entry in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(entry.content)}")
    return "\n".join([*lines, f"{name},,", ""])


def build(project: Project, licences: str) -> Path:
    version, tag = python_version(project.version), platform_tag(project.program)
    stem = f"{project.name}-{version}"
    tags = "".join(f"Tag: py3-none-{part}\n" for part in tag.split("."))
    information = f"{stem}.dist-info"
    files = {
        f"{stem}.data/scripts/{project.name}": Entry(project.binary.read_bytes(), executable=True),
        f"{information}/licenses/LICENSE": Entry((ROOT / "LICENSE").read_bytes()),
        f"{information}/licenses/THIRD-PARTY-LICENCES.txt": text(licences),
        f"{information}/METADATA": text(metadata(project, version)),
        f"{information}/WHEEL": text(f"Wheel-Version: 1.0\nGenerator: scripts/package\nRoot-Is-Purelib: false\n{tags}"),
    }
    files[f"{information}/RECORD"] = text(record(files, f"{information}/RECORD"))
    return project.write(f"{stem}-py3-none-{tag}.whl", zip_file(files, project.epoch, in_order=True))
