"""Files that describe the packages to other systems: `server.json` of the MCP registry, and a Homebrew formula.

Both name packages by version and hash. They are written for a release, and say nothing about whether the packages are published.
"""

import hashlib
import json
from pathlib import Path

import archive
from project import ROOT, Project, python_version

# https://github.com/modelcontextprotocol/registry/blob/main/docs/reference/server-json/server-json-schema
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json"
DESCRIPTION_LENGTH_MAX = 100


def registry_name(project: Project) -> str:
    """The namespace of the owner of the repository."""
    owner = project.repository.removeprefix("https://github.com/").split("/")[0]
    return f"io.github.{owner}/{project.name}"


def package(kind: str, registry: str, name: str, version: str, runtime: str) -> dict[str, object]:
    folder = {
        "type": "positional",
        "valueHint": "folder",
        "description": "Folder, file, SQLite file or postgres:// address to serve",
        "isRequired": True,
        "format": "filepath",
    }
    return {
        "registryType": kind,
        "registryBaseUrl": registry,
        "identifier": name,
        "version": version,
        "runtimeHint": runtime,
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "stdio"}, folder],
    }


def server_json(project: Project) -> str:
    description = "Files, PostgreSQL and SQLite as tables for AI agents: read-only, streamed answers."
    assert len(description) <= DESCRIPTION_LENGTH_MAX
    content = {
        "$schema": SCHEMA,
        "name": registry_name(project),
        "description": description,
        "repository": {"url": project.repository, "source": "github"},
        "version": project.version,
        "packages": [
            package("pypi", "https://pypi.org", project.name, python_version(project.version), "uvx"),
            package("npm", "https://registry.npmjs.org", project.name, project.version, "npx"),
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def formula(project: Project) -> str:
    path = project.output / f"{archive.name(project)}.tar.gz"
    if not path.exists():
        raise SystemExit(f"the formula contains the hash of {path.name}; make the archive first")
    template = (ROOT / "packaging" / "homebrew" / "tidegate.rb").read_text()
    values = {
        "@DESCRIPTION@": project.description.rstrip("."),
        "@REPOSITORY@": project.repository,
        "@VERSION@": project.version,
        "@LICENCE@": project.licence,
        "@ARCHIVE@": path.name,
        "@SHA256@": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def build(project: Project) -> list[Path]:
    return [
        project.write("server.json", server_json(project).encode()),
        project.write("tidegate.rb", formula(project).encode()),
    ]
