"""The archive for people: the program, completions, manual pages and licences in one folder."""

from pathlib import Path

import documents
from containers import Entry, tar_gz, text
from project import ROOT, Project


def name(project: Project) -> str:
    return f"{project.name}-{project.version}-{project.target}"


def build(project: Project, licences: str, bill_of_materials: str) -> Path:
    files = {
        project.name: Entry(project.binary.read_bytes(), executable=True),
        "LICENSE": Entry((ROOT / "LICENSE").read_bytes()),
        "THIRD-PARTY-LICENCES.txt": text(licences),
        "README.md": text(project.readme),
        "sbom.cdx.json": text(bill_of_materials),
    }
    files |= {f"completions/{file}": entry for file, entry in documents.completions(project).items()}
    files |= {f"man/{file}": entry for file, entry in documents.manual_pages(project).items()}
    folder = name(project)
    return project.write(f"{folder}.tar.gz", tar_gz({f"{folder}/{path}": entry for path, entry in files.items()}, project.epoch))
