"""Package registries on the loopback address that contain only the given packages: that of pip and uv, and that of npm.

For pip: the [simple index](https://packaging.python.org/en/latest/specifications/simple-repository-api/). For npm: the
[documents of packages](https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md) and their files. Any other name is not found.
"""

import base64
import hashlib
import io
import json
import tarfile
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def npm_manifest(content: bytes) -> dict[str, object] | None:
    """None for another file that ends in `.tgz`, such as a Helm chart."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        if "package/package.json" not in archive.getnames():
            return None
        return json.load(archive.extractfile("package/package.json"))


class PackageIndex:
    """The packages of some folders, read when the server starts."""

    def __init__(self, folders: list[Path]) -> None:
        self.url = ""
        self.requests: list[str] = []
        files = [path for folder in folders for path in sorted(folder.iterdir())]
        self._files = {path.name: path.read_bytes() for path in files if path.suffix in (".whl", ".tgz")}
        self._wheels: dict[str, list[str]] = {}
        self._npm: dict[str, dict[str, dict[str, object]]] = {}
        for name, content in self._files.items():
            if name.endswith(".whl"):
                self._wheels.setdefault(name.split("-")[0].replace("_", "-").lower(), []).append(name)
            elif manifest := npm_manifest(content):
                digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
                manifest["dist"] = {"integrity": f"sha512-{digest}", "file": name}
                self._npm.setdefault(str(manifest["name"]), {})[str(manifest["version"])] = manifest

    def respond(self, path: str) -> tuple[str, bytes] | None:
        """The media type and the body, or None if there is no such package."""
        path = urllib.parse.unquote(path)
        self.requests.append(path)
        if path.startswith("/files/"):
            content = self._files.get(path.removeprefix("/files/"))
            return content and ("application/octet-stream", content)
        if path.startswith("/simple/"):
            names = self._wheels.get(path.removeprefix("/simple/").strip("/"))
            links = "".join(
                f'<a href="{self.url}/files/{name}#sha256={hashlib.sha256(self._files[name]).hexdigest()}">{name}</a>\n' for name in names or []
            )
            return names and ("text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode())
        versions = self._npm.get(path.removeprefix("/"))
        return versions and ("application/json", json.dumps(self._npm_document(versions)).encode())

    def _npm_document(self, versions: dict[str, dict[str, object]]) -> dict[str, object]:
        described = {}
        for version, manifest in versions.items():
            dist = dict(manifest["dist"])
            dist["tarball"] = f"{self.url}/files/{dist.pop('file')}"
            described[version] = {**manifest, "dist": dist}
        return {"name": next(iter(described.values()))["name"], "dist-tags": {"latest": max(described)}, "versions": described}


@contextmanager
def serve_packages(folders: list[Path]) -> Iterator[PackageIndex]:
    index = PackageIndex(folders)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            found = index.respond(self.path.partition("?")[0])
            kind, body = found or ("text/plain", b"not found")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        # npm sends the list of packages to a service that checks for vulnerabilities, which does not exist here.
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
