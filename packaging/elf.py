"""Reads from the headers of a program for which machine and C library it was built, and which version of glibc it needs.

The names of symbol versions are in the section that [the Linux Standard Base](https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html)
calls version requirements.
"""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

MACHINES = {62: "x86_64", 183: "aarch64"}
LOAD, DYNAMIC, INTERPRETER = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


@dataclass(frozen=True)
class Program:
    # `x86_64` or `aarch64`.
    machine: str
    # `gnu` for glibc, `musl` for a static program.
    libc: str
    # The newest version of glibc that a symbol requires, such as (2, 35). None for a static program.
    glibc: tuple[int, int] | None
    # The shared libraries that it loads.
    libraries: tuple[str, ...]


def inspect(path: Path) -> Program:
    """Fails for a file that is no program of 64-bit Linux."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise SystemExit(f"{path} is not a program for 64-bit Linux")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine not in MACHINES:
        raise SystemExit(f"{path} is for a machine without packages (ELF number {machine})")
    headers = program_headers(data)
    dynamic = dynamic_section(data, headers)
    if not any(kind == INTERPRETER for kind, *_ in headers):
        return Program(MACHINES[machine], "musl", None, ())
    names = address_to_offset(headers, dynamic[DT_STRTAB][0])
    libraries = tuple(text_at(data, names + offset) for offset in dynamic.get(DT_NEEDED, []))
    versions = [GLIBC.fullmatch(name) for name in required_versions(data, headers, dynamic, names)]
    found = [(int(version[1]), int(version[2])) for version in versions if version]
    if not found:
        raise SystemExit(f"{path} requires no version of glibc; musl programs must be linked statically")
    return Program(MACHINES[machine], "gnu", max(found), libraries)


def program_headers(data: bytes) -> list[tuple[int, int, int, int]]:
    """Kind, offset in the file, address, and size of each segment."""
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = (struct.unpack_from("<IIQQQQ", data, table + size * index) for index in range(count))
    return [(kind, offset, address, length) for kind, _flags, offset, address, _physical, length in segments]


def dynamic_section(data: bytes, headers: list[tuple[int, int, int, int]]) -> dict[int, list[int]]:
    values: dict[int, list[int]] = {}
    for kind, offset, _address, size in headers:
        if kind == DYNAMIC:
            for tag, value in struct.iter_unpack("<QQ", data[offset : offset + size]):
                if tag == 0:
                    break
                values.setdefault(tag, []).append(value)
    return values


def address_to_offset(headers: list[tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, size in headers:
        if kind == LOAD and start <= address < start + size:
            return offset + address - start
    raise SystemExit(f"no segment of the program has the address {address:#x}")


def text_at(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def required_versions(data: bytes, headers: list, dynamic: dict[int, list[int]], names: int) -> list[str]:
    if DT_VERNEED not in dynamic:
        return []
    versions = []
    at = address_to_offset(headers, dynamic[DT_VERNEED][0])
    for _ in range(dynamic[DT_VERNEEDNUM][0]):
        _version, count, _file, first, following = struct.unpack_from("<HHIII", data, at)
        entry = at + first
        for _ in range(count):
            _hash, _flags, _index, name, next_entry = struct.unpack_from("<IHHII", data, entry)
            versions.append(text_at(data, names + name))
            entry += next_entry
        at += following
    return versions
