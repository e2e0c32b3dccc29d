"""The npm packages: `tidegate`, which `npx tidegate` runs, and one package with the program for each platform.

npm installs the platform package that fits, because it is an optional dependency with `os`, `cpu` and `libc`. No script runs during the installation, and
nothing is downloaded except the packages.
"""

import json
from pathlib import Path

from containers import Entry, Files, tar_gz, text
from elf import Program
from project import ROOT, Project

CPUS = {"x86_64": "x64", "aarch64": "arm64"}
NODE_VERSION_MIN = ">=18"


def platform(program: Program) -> str:
    suffix = "-musl" if program.libc == "musl" else ""
    return f"linux-{CPUS[program.machine]}{suffix}"


def manifest(project: Project, name: str, **further: object) -> str:
    content = {
        "name": name,
        "version": project.version,
        "description": project.description,
        "license": project.licence,
        "repository": {"type": "git", "url": f"git+{project.repository}.git"},
        "engines": {"node": NODE_VERSION_MIN},
        **further,
    }
    return json.dumps(content, indent=2) + "\n"


def package(project: Project, name: str, files: Files) -> Path:
    """npm expects all files of a package in the folder `package`. The name of the file is that of `npm pack`."""
    name_in_file = name.removeprefix("@").replace("/", "-")
    content = {f"package/{path}": entry for path, entry in files.items()}
    return project.write(f"{name_in_file}-{project.version}.tgz", tar_gz(content, project.epoch))


def build(project: Project, licences: str, platforms: list[str]) -> list[Path]:
    """`platforms` are those that are published with this version; this build makes the package of its own platform."""
    scope = f"@{project.name}"
    own = platform(project.program)
    platforms = sorted({own, *platforms})
    licence = Entry((ROOT / "LICENSE").read_bytes())
    libc = "musl" if project.program.libc == "musl" else "glibc"
    binary = package(
        project,
        f"{scope}/{own}",
        {
            "package.json": text(
                manifest(
                    project,
                    f"{scope}/{own}",
                    os=["linux"],
                    cpu=[CPUS[project.program.machine]],
                    libc=[libc],
                    preferUnplugged=True,
                )
            ),
            "README.md": text(f"The program of the npm package `{project.name}` for {own}.\n"),
            "LICENSE": licence,
            "THIRD-PARTY-LICENCES.txt": text(licences),
            f"bin/{project.name}": Entry(project.binary.read_bytes(), executable=True),
        },
    )
    start = (ROOT / "packaging" / "npm" / "start.js").read_bytes()
    main = package(
        project,
        project.name,
        {
            "package.json": text(
                manifest(
                    project,
                    project.name,
                    bin={project.name: "bin/start.js"},
                    optionalDependencies={f"{scope}/{name}": project.version for name in platforms},
                )
            ),
            "README.md": text(project.readme),
            "LICENSE": licence,
            "bin/start.js": Entry(start, executable=True),
        },
    )
    return [main, binary]
