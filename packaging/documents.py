"""Completions and manual pages, which the program prints itself."""

import subprocess
import tempfile
from pathlib import Path

from containers import Entry, Files, gzip_bytes
from project import Project

# The name of the script for each shell, as its folder of completions expects it.
COMPLETIONS = {"bash": "tidegate.bash", "zsh": "_tidegate", "fish": "tidegate.fish"}


def run(project: Project, *arguments: str) -> bytes:
    done = subprocess.run([project.runnable, *arguments], capture_output=True)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        raise SystemExit(f"{project.runnable} {' '.join(arguments)} failed: {message}")
    return done.stdout


def completions(project: Project) -> Files:
    return {name: Entry(run(project, "completions", shell)) for shell, name in COMPLETIONS.items()}


def manual_pages(project: Project, compressed: bool = False) -> Files:
    """One page for each command, in section 1."""
    with tempfile.TemporaryDirectory(prefix="tidegate-man-") as folder:
        run(project, "man", folder)
        pages = {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.1"))}
    if not pages:
        raise SystemExit(f"{project.runnable} man wrote no pages")
    if compressed:
        return {f"{name}.gz": Entry(gzip_bytes(content)) for name, content in pages.items()}
    return {name: Entry(content) for name, content in pages.items()}
