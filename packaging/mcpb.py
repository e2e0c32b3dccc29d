"""The MCP bundle: one file that desktop clients install, with the program and a form for the folder to serve.

Its [manifest](https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md) starts the program over stdio.
"""

import json
from pathlib import Path

from containers import Entry, text, zip_file
from project import ROOT, Project

MANIFEST_VERSION = "0.3"


def manifest(project: Project) -> dict[str, object]:
    return {
        "manifest_version": MANIFEST_VERSION,
        "name": project.name,
        "display_name": "Tidegate",
        "version": project.version,
        "description": project.description,
        "author": {"name": "The maintainers of Tidegate", "url": project.repository},
        "repository": {"type": "git", "url": project.repository},
        "license": project.licence,
        "server": {
            "type": "binary",
            "entry_point": f"server/{project.name}",
            "mcp_config": {
                "command": f"${{__dirname}}/server/{project.name}",
                "args": ["stdio", "${user_config.folder}"],
                "env": {},
            },
        },
        # The tools depend on the configuration, so the client asks the running server.
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"platforms": ["linux"]},
        "user_config": {
            "folder": {
                "type": "directory",
                "title": "Folder",
                "description": "The folder whose files are served as tables. The server only reads it.",
                "required": True,
            }
        },
    }


def build(project: Project, licences: str) -> Path:
    files = {
        "manifest.json": text(json.dumps(manifest(project), indent=2) + "\n"),
        f"server/{project.name}": Entry(project.binary.read_bytes(), executable=True),
        "LICENSE": Entry((ROOT / "LICENSE").read_bytes()),
        "THIRD-PARTY-LICENCES.txt": text(licences),
    }
    return project.write(f"{project.name}-{project.version}-{project.target}.mcpb", zip_file(files, project.epoch))
