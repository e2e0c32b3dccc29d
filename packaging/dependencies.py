"""The crates that are in the program, from `cargo tree` and `cargo metadata`: names, versions, licences, sources and relations."""

import json
import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from project import ROOT, Project

# Cargo sets the variable for its subcommands.
CARGO = os.environ.get("CARGO", "cargo")


@dataclass(frozen=True)
class Crate:
    name: str
    version: str
    # An SPDX expression.
    licence: str
    repository: str
    folder: Path
    # SHA-256 of the package in the registry; empty for our own crates.
    checksum: str
    dependencies: tuple[tuple[str, str], ...]

    @property
    def is_own(self) -> bool:
        return not self.checksum


def cargo(*arguments: str) -> str:
    done = subprocess.run([CARGO, *arguments, "--locked"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"cargo {arguments[0]} failed:\n{done.stderr.strip()}")
    return done.stdout


def target_triple(project: Project) -> str:
    return f"{project.program.machine}-unknown-linux-{project.program.libc}"


def linked_crates(project: Project) -> list[Crate]:
    """All crates of the program for its target, sorted, without crates that only build or test it."""
    triple = target_triple(project)
    tree = cargo("tree", "--package", project.name, "--features", "full", "--edges", "normal", "--target", triple, "--prefix", "none", "--format", "{p}")
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", triple))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum", "") for package in lock}
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

    def key(identifier: str) -> tuple[str, str]:
        return packages[identifier]["name"], packages[identifier]["version"]

    def is_linked(identifier: str) -> bool:
        name, version = key(identifier)
        return (name, f"v{version}") in linked

    crates = []
    for identifier, package in packages.items():
        if not is_linked(identifier) or identifier not in nodes:
            continue
        normal = [
            dependency["pkg"]
            for dependency in nodes[identifier]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]) and is_linked(dependency["pkg"])
        ]
        crates.append(
            Crate(
                name=package["name"],
                version=package["version"],
                licence=(package["license"] or "").replace("/", " OR "),
                repository=package["repository"] or "",
                folder=Path(package["manifest_path"]).parent,
                checksum=checksums.get(key(identifier), ""),
                dependencies=tuple(sorted({key(dependency) for dependency in normal})),
            )
        )
    return sorted(crates, key=lambda crate: (crate.name, crate.version))
