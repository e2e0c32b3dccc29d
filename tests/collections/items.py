"""The files of a collection that the node reads, each under a name of its own.

A file becomes `f0001.parquet` and so on, so that no name decides what is one table. A folder with a Delta log is one item.
"""

import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

KINDS = {
    "csv": "csv",
    "tsv": "csv",
    "tab": "csv",
    "json": "json",
    "ndjson": "json",
    "jsonl": "json",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
    "arrow_file": "arrow",
    "stream": "arrow",
    "log": "log",
    "xlsx": "workbook",
    "xlsm": "workbook",
    "ods": "workbook",
}
# The ending that the node knows, where the collection has another.
ENDINGS = {"arrow_file": "arrow", "stream": "arrow"}
COMPRESSIONS = ("gz", "zst", "bz2", "xz")
# Files of fuzzers have no ending: the first of these folders on their path names their kind.
KIND_OF_FOLDER = {"arrow-ipc-file": "arrow", "arrow-ipc-stream": "arrow", "parquet": "parquet", "csv": "csv"}
DELTA_LOG = "_delta_log"
ARCHIVE = ".tar.zst"


@dataclass(frozen=True)
class Item:
    # Relative to the collection.
    path: str
    kind: str
    source: Path
    # Its table in the node.
    table: str
    # With the dot, as in the node's folder; empty for a folder.
    ending: str

    def place(self, folder: Path):
        """Copies the item into the folder of a node."""
        if self.source.is_dir():
            shutil.copytree(self.source, folder / self.table)
        else:
            shutil.copyfile(self.source, folder / f"{self.table}{self.ending}")


def kind_and_ending(path: Path) -> tuple[str, str] | None:
    name, compression = path.name.lower(), ""
    for one in COMPRESSIONS:
        if name.endswith(f".{one}"):
            name, compression = name.removesuffix(f".{one}"), f".{one}"
    stem, dot, ending = name.rpartition(".")
    if dot and stem and ending in KINDS:
        return KINDS[ending], f".{ENDINGS.get(ending, ending)}{compression}"
    if dot and ending != "fuzz":
        return None
    kinds = [KIND_OF_FOLDER[part] for part in path.parts[:-1] if part in KIND_OF_FOLDER]
    return (kinds[0], f".{kinds[0]}") if kinds else None


def unpacked(archive: Path, folder: Path) -> Path:
    """The content of an archive, in a new folder below `folder`."""
    target = folder / archive.name.removesuffix(ARCHIVE)
    with pa.CompressedInputStream(pa.OSFile(str(archive)), "zstd") as stream, tarfile.open(fileobj=stream, mode="r|") as packed:
        packed.extractall(target, filter="data")
    return target


def items_of(collection: Path, scratch: Path) -> list[Item]:
    """The items of a collection, in the order of their paths. Archives are unpacked below `scratch`."""
    found: list[tuple[str, str, Path, str]] = []

    def walk(folder: Path, name: str):
        if (folder / DELTA_LOG).is_dir():
            found.append((name, "delta", folder, ""))
            return
        for path in sorted(folder.iterdir()):
            inner = f"{name}/{path.name}" if name else path.name
            if path.is_symlink():
                continue
            if path.is_dir():
                walk(path, inner)
            elif path.name.endswith(ARCHIVE):
                walk(unpacked(path, scratch / str(len(found))), inner)
            elif kind := kind_and_ending(Path(inner)):
                found.append((inner, kind[0], path, kind[1]))

    walk(collection, "")
    return [Item(path, kind, source, f"f{number:04}", ending) for number, (path, kind, source, ending) in enumerate(found, 1)]
