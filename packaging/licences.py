"""The file with the licences of all dependencies. Equal texts are there once, with the crates that they apply to."""

import os
import re
from collections import defaultdict
from pathlib import Path

from dependencies import Crate
from project import ROOT

# Names of files with a licence, a copyright or a notice, also in folders with code of others, such as SQLite in libsqlite3-sys.
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-._].*)?", re.IGNORECASE)
# Sources that mention a licence in their name.
NO_TEXT_SUFFIXES = {".rs", ".c", ".h", ".toml", ".py", ".sh", ".html", ".json"}
FILE_BYTES_MAX = 200_000
RULE = "=" * 100


def licence_files(folder: Path) -> list[Path]:
    found = []
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = Path(path) / name
            if LICENCE_FILE.fullmatch(name) and file.suffix not in NO_TEXT_SUFFIXES and file.stat().st_size <= FILE_BYTES_MAX:
                found.append(file)
    return found


def normalized(content: str) -> str:
    return "\n".join(line.rstrip() for line in content.strip().splitlines())


def licence_texts(crates: list[Crate]) -> str:
    """Fails for a crate that names no licence."""
    users: dict[str, list[str]] = defaultdict(list)
    without_text, overview = [], []
    for crate in crates:
        if crate.is_own:
            continue
        if not crate.licence:
            raise SystemExit(f"the crate {crate.name} {crate.version} names no licence")
        overview.append(f"{crate.name} {crate.version}: {crate.licence}")
        files = licence_files(crate.folder)
        if not files:
            without_text.append(f"{crate.name} {crate.version}: {crate.licence}; {crate.repository}")
        for file in files:
            text = normalized(file.read_text(errors="replace"))
            users[text].append(f"{crate.name} {crate.version} ({file.relative_to(crate.folder)})")
    demo = normalized((ROOT / "data" / "demo" / "README.md").read_text().split("\n\n| ")[0])
    parts = [
        "Licences of the software in this program.",
        f"{len(overview)} packages of crates.io:\n\n" + "\n".join(overview),
        "These packages contain no text of their licence:\n\n" + "\n".join(without_text),
        f"The data of `tidegate demo`:\n\n{demo}",
    ]
    parts.extend("\n".join(names) + f"\n\n{text}" for text, names in sorted(users.items(), key=lambda item: item[1]))
    return f"\n\n{RULE}\n\n".join(parts) + "\n"
