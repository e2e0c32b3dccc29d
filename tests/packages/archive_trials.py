"""The archive, the container image, the MCP bundle and the descriptions: their content, and the program in them."""

import hashlib
import json
import os
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

from chroots import in_root
from first_answer import ask, clean_environment, write_data
from report import Report

ROOT = Path(__file__).parent.parent.parent


def check_archive(archive: Path, folder: Path, report: Report) -> None:
    report.subject = "archive"
    folder.mkdir()
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (content,) = folder.iterdir()
    write_data(folder / "home")
    with report.check("the program answers a stock client"):
        ask([str(content / "tidegate"), "stdio", "./data"], folder / "home", clean_environment(folder / "home"))
    with report.check("it has licences, completions and manual pages"):
        licences = (content / "THIRD-PARTY-LICENCES.txt").read_text()
        for text in ("datafusion ", "tokio ", "aws-lc-sys ", "Apache License", "MIT", "CC0 1.0"):
            assert text in licences, text
        assert {path.name for path in (content / "completions").iterdir()} == {"tidegate.bash", "_tidegate", "tidegate.fish"}
        assert (content / "man" / "tidegate.1").exists()
    with report.check("manual pages are valid"):
        for page in (content / "man").iterdir():
            done = subprocess.run(["man", "--warnings", "-l", str(page)], env={"MANROFFSEQ": "", **os.environ}, capture_output=True, text=True)
            assert done.returncode == 0 and not done.stderr.strip(), f"{page.name}: {done.stderr[:300]}"
    with report.check("the list of components names all crates of the licences, each once"):
        components = json.loads((content / "sbom.cdx.json").read_text())["components"]
        names = [f"{component['name']} {component['version']}" for component in components]
        assert len(names) == len(set(names)) > 300, len(names)
        lock = {f"{package['name']} {package['version']}" for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
        assert set(names) <= lock, sorted(set(names) - lock)[:5]


def check_container(image: Path, folder: Path, report: Report) -> None:
    report.subject = "container"
    folder.mkdir()
    with tarfile.open(image) as opened:
        opened.extractall(folder, filter="data")

    def blob(descriptor: dict) -> bytes:
        content = (folder / "blobs/sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == descriptor["digest"] and len(content) == descriptor["size"]
        return content

    root = folder / "root"
    with report.check("the image has the hashes of its parts, a user without rights, and no shell"):
        (named,) = json.loads((folder / "index.json").read_text())["manifests"]
        manifest = json.loads(blob(named))
        configuration = json.loads(blob(manifest["config"]))
        assert configuration["config"]["User"] == "65532:65532"
        layer = folder / "layer.tar.gz"
        layer.write_bytes(blob(manifest["layers"][0]))
        root.mkdir()
        with tarfile.open(layer) as opened:
            opened.extractall(root, filter="tar")
        assert not list(root.glob("**/bin/*sh")), "there is a shell"
    with report.check("its root file system answers a stock client, as that user"):
        write_data(root / "srv")
        ask(in_root(root, "/usr/bin/tidegate", "stdio", "/srv/data", user="65532:65532"), folder, dict(os.environ))


def check_descriptions(folder: Path, report: Report) -> None:
    report.subject = "descriptions"
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    with report.check("server.json names the packages of this version"):
        described = json.loads((folder / "server.json").read_text())
        assert described["version"] == version and len(described["description"]) <= 100
        assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", described["name"])
        assert {package["registryType"] for package in described["packages"]} == {"pypi", "npm"}
    with report.check("the formula has the hash of the archive"):
        formula = (folder / "tidegate.rb").read_text()
        archive = next(folder.glob("*.tar.gz"))
        assert archive.name in formula and hashlib.sha256(archive.read_bytes()).hexdigest() in formula and "@" not in formula
    with report.check("SHA256SUMS fits"):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


def check_bundle(bundle: Path, folder: Path, report: Report) -> None:
    report.subject = "MCP bundle"
    with report.check("the command of the manifest answers a stock client"):
        with zipfile.ZipFile(bundle) as opened:
            opened.extractall(folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        program = folder / manifest["server"]["entry_point"]
        # Python's zipfile does not restore permissions; clients do.
        program.chmod(0o755)
        data = write_data(folder / "home")
        values = {"${__dirname}": str(folder), "${user_config.folder}": str(data)}
        server = manifest["server"]["mcp_config"]
        words = [server["command"], *server["args"]]
        for name, value in values.items():
            words = [word.replace(name, value) for word in words]
        ask(words, folder, clean_environment(folder / "home"))
