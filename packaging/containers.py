"""Zip and tar files whose bytes depend on their content only: sorted names, one time, one owner."""

import gzip
import io
import stat
import tarfile
import time
import zipfile
from dataclasses import dataclass

COMPRESSION_LEVEL = 9
# The first time that a zip file can contain: 1980-01-01.
ZIP_EPOCH_MIN = 315_532_800


@dataclass(frozen=True)
class Entry:
    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


Files = dict[str, Entry]


def text(content: str) -> Entry:
    return Entry(content.encode())


def zip_file(files: Files, epoch: int, in_order: bool = False) -> bytes:
    """`in_order` keeps the order of `files`; a wheel has its list of files last."""
    buffer = io.BytesIO()
    date = time.gmtime(max(epoch, ZIP_EPOCH_MIN))[:6]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL) as archive:
        for name in files if in_order else sorted(files):
            info = zipfile.ZipInfo(name, date)
            # The upper half has the mode as in Unix, of a regular file.
            info.external_attr = (stat.S_IFREG | files[name].mode) << 16
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name].content, compresslevel=COMPRESSION_LEVEL)
    return buffer.getvalue()


def tar_file(files: Files, epoch: int, folders: dict[str, int] | None = None) -> bytes:
    """An uncompressed tar file. `folders` are entries of their own, with their mode; others exist by their files only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted([*files, *(folders or {})]):
            info = tarfile.TarInfo(name)
            info.mtime = epoch
            if name in files:
                info.mode, info.size = files[name].mode, len(files[name].content)
                archive.addfile(info, io.BytesIO(files[name].content))
            else:
                info.type, info.mode = tarfile.DIRTYPE, (folders or {})[name]
                archive.addfile(info)
    return buffer.getvalue()


def gzip_bytes(content: bytes) -> bytes:
    return gzip.compress(content, COMPRESSION_LEVEL, mtime=0)


def tar_gz(files: Files, epoch: int) -> bytes:
    return gzip_bytes(tar_file(files, epoch))
