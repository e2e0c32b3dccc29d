"""The Debian package: the program, manual pages, completions, and a systemd service that is not started by the installation.

The [format](https://manpages.debian.org/deb.5) is an ar archive of two tar files, which is written here, so that its bytes depend on the content only.
"""

import hashlib
import lzma
from pathlib import Path

import documents
from containers import Entry, Files, gzip_bytes, tar_file, text
from project import ROOT, Project, debian_version

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CONFIGURATION = "etc/tidegate/tidegate.yaml"
SCRIPTS = ("postinst", "prerm", "postrm")
COMPRESSION_PRESET = 4


def control(project: Project, architecture: str, size_kib: int) -> str:
    depends = ["libc6 (>= {}.{})".format(*project.program.glibc)] if project.program.glibc else []
    depends += ["libgcc-s1"] if "libgcc_s.so.1" in project.program.libraries else []
    depends_line = f"Depends: {', '.join(depends)}\n" if depends else ""
    return f"""\
Package: {project.name}
Version: {debian_version(project.version)}
Section: database
Priority: optional
Architecture: {architecture}
Maintainer: The maintainers of Tidegate <{project.repository}>
Installed-Size: {size_kib}
{depends_line}Recommends: ca-certificates
Homepage: {project.repository}
Description: MCP server for files, PostgreSQL and SQLite
 {project.description}
"""


def copyright_text(project: Project) -> str:
    return f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Source: {project.repository}

Files: *
Copyright: the authors of Tidegate
License: {project.licence}
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0. The licences of the libraries in the program are in
 /usr/share/doc/{project.name}/THIRD-PARTY-LICENCES.txt.gz.
"""


def content(project: Project, licences: str) -> Files:
    source = ROOT / "packaging" / "debian"
    scripts = documents.completions(project)
    files = {
        f"usr/bin/{project.name}": Entry(project.binary.read_bytes(), executable=True),
        "usr/lib/systemd/system/tidegate.service": Entry((source / "tidegate.service").read_bytes()),
        CONFIGURATION: Entry((source / "tidegate.yaml").read_bytes()),
        f"usr/share/doc/{project.name}/copyright": text(copyright_text(project)),
        f"usr/share/doc/{project.name}/THIRD-PARTY-LICENCES.txt.gz": Entry(gzip_bytes(licences.encode())),
        f"usr/share/doc/{project.name}/changelog.gz": Entry(gzip_bytes((ROOT / "CHANGELOG.md").read_bytes())),
        "usr/share/bash-completion/completions/tidegate": scripts["tidegate.bash"],
        "usr/share/zsh/vendor-completions/_tidegate": scripts["_tidegate"],
        "usr/share/fish/vendor_completions.d/tidegate.fish": scripts["tidegate.fish"],
    }
    return files | {f"usr/share/man/man1/{name}": page for name, page in documents.manual_pages(project, compressed=True).items()}


def folders_of(files: Files) -> dict[str, int]:
    """All folders above the files: dpkg creates no folder that the archive does not contain."""
    return {f"./{parent}": 0o755 for name in files for parent in Path(name).parents if str(parent) != "."}


def ar_file(members: dict[str, bytes], epoch: int) -> bytes:
    parts = [b"!<arch>\n"]
    for name, data in members.items():
        parts.append(f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode())
        parts.append(data + b"\n" * (len(data) % 2))
    return b"".join(parts)


def build(project: Project, licences: str) -> Path:
    architecture = ARCHITECTURES[project.program.machine]
    files = content(project, licences)
    size_kib = sum(-(-len(entry.content) // 1024) for entry in files.values())
    sums = "".join(f"{hashlib.md5(files[name].content).hexdigest()}  {name}\n" for name in sorted(files) if name != CONFIGURATION)
    information = {
        "./control": text(control(project, architecture, size_kib)),
        "./conffiles": text(f"/{CONFIGURATION}\n"),
        "./md5sums": text(sums),
    }
    source = ROOT / "packaging" / "debian"
    information |= {f"./{name}": Entry((source / name).read_bytes(), executable=True) for name in SCRIPTS}
    data = tar_file({f"./{name}": entry for name, entry in files.items()}, project.epoch, folders_of(files))
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": gzip_bytes(tar_file(information, project.epoch)),
        "data.tar.xz": lzma.compress(data, preset=COMPRESSION_PRESET),
    }
    name = f"{project.name}_{debian_version(project.version)}_{architecture}.deb"
    return project.write(name, ar_file(members, project.epoch))
