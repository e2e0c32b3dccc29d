"""The container image: the folder for `podman build` or `docker build`, and the same image as an OCI archive that needs no engine to build.

The archive cannot begin with a distroless base, which is in a registry of containers. It contains instead the libraries and certificates of the machine that
makes it, and nothing else: no shell, no package manager. It follows the [image layout](https://github.com/opencontainers/image-spec/blob/main/image-layout.md).
"""

import hashlib
import json
import subprocess
import time
from pathlib import Path

from containers import Entry, Files, gzip_bytes, tar_file, text
from project import ROOT, Project

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
USER = 65532
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
FOLDERS = {"./tmp": 0o1777, "./srv": 0o755, "./etc": 0o755, "./usr": 0o755}
MEDIA = "application/vnd.oci.image"


def libraries(project: Project) -> Files:
    """The shared libraries of the program, at the paths where its loader finds them."""
    if not project.program.libraries:
        return {}
    listed = subprocess.run(["ldd", project.binary], capture_output=True, text=True, check=True).stdout
    paths = [word for line in listed.splitlines() for word in line.split() if word.startswith("/")]
    return {f".{path}": Entry(Path(path).resolve().read_bytes(), executable=True) for path in sorted(set(paths))}


def root_files(project: Project, licences: str) -> Files:
    files = {
        f"./usr/bin/{project.name}": Entry(project.binary.read_bytes(), executable=True),
        f"./usr/share/doc/{project.name}/LICENSE": Entry((ROOT / "LICENSE").read_bytes()),
        f"./usr/share/doc/{project.name}/THIRD-PARTY-LICENCES.txt": text(licences),
        "./etc/passwd": text(f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/srv:/sbin/nologin\n"),
        "./etc/group": text(f"root:x:0:\nnonroot:x:{USER}:\n"),
        "./etc/nsswitch.conf": text("hosts: files dns\n"),
    }
    if CERTIFICATES.exists():
        files[f".{CERTIFICATES}"] = Entry(CERTIFICATES.read_bytes())
    return files | libraries(project)


def blob(content: bytes, kind: str) -> tuple[dict[str, object], str, Entry]:
    digest = hashlib.sha256(content).hexdigest()
    descriptor = {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}
    return descriptor, f"blobs/sha256/{digest}", Entry(content)


def image(project: Project, licences: str) -> bytes:
    layer = tar_file(root_files(project, licences), project.epoch, FOLDERS)
    configuration = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(project.epoch)),
        "architecture": ARCHITECTURES[project.program.machine],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"7070/tcp": {}},
            "Env": ["PATH=/usr/bin", "XDG_CACHE_HOME=/tmp"],
            "Entrypoint": [f"/usr/bin/{project.name}"],
            "Cmd": ["serve", "--config", "/etc/tidegate/tidegate.yaml"],
            "WorkingDir": "/srv",
            "Labels": {
                "org.opencontainers.image.title": "Tidegate",
                "org.opencontainers.image.version": project.version,
                "org.opencontainers.image.source": project.repository,
                "org.opencontainers.image.licenses": project.licence,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    layer_part = blob(gzip_bytes(layer), f"{MEDIA}.layer.v1.tar+gzip")
    configuration_part = blob(json.dumps(configuration).encode(), f"{MEDIA}.config.v1+json")
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": configuration_part[0],
        "layers": [layer_part[0]],
    }
    manifest_part = blob(json.dumps(manifest).encode(), f"{MEDIA}.manifest.v1+json")
    named = manifest_part[0] | {"annotations": {"org.opencontainers.image.ref.name": project.version}}
    index = {"schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json", "manifests": [named]}
    files = {name: entry for _, name, entry in (layer_part, configuration_part, manifest_part)}
    files |= {"oci-layout": text('{"imageLayoutVersion": "1.0.0"}'), "index.json": text(json.dumps(index))}
    return tar_file(files, project.epoch)


def build(project: Project, licences: str) -> Path:
    folder = project.output / "container"
    folder.mkdir(exist_ok=True)
    (folder / "Containerfile").write_bytes((ROOT / "packaging" / "container" / "Containerfile").read_bytes())
    (folder / project.name).write_bytes(project.binary.read_bytes())
    (folder / project.name).chmod(0o755)
    (folder / "LICENSE").write_bytes((ROOT / "LICENSE").read_bytes())
    (folder / "THIRD-PARTY-LICENCES.txt").write_text(licences)
    return project.write(f"{project.name}-{project.version}-{project.target}.oci.tar", image(project, licences))
