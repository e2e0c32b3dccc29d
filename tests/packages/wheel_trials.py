"""The wheel, installed with pip, and run with uvx without an installation."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from base64 import urlsafe_b64encode
from pathlib import Path
from zipfile import ZipFile

from first_answer import ask, clean_environment, write_data
from package_index import PackageIndex
from report import Report

INSTALL_SECONDS_MAX = 120
LISTENING = re.compile(r"listening on (http://[^/]+)/mcp")


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-1000:]}"
    return done.stdout


def check_content(wheel: Path, report: Report) -> None:
    with report.check("the list of files has the hash of each file"), ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        listed = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        assert listed.keys() == set(archive.namelist()), listed.keys() ^ set(archive.namelist())
        for name in listed.keys() - {record}:
            digest = urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
            assert listed[name].startswith(f"sha256={digest},"), name
    with report.check("the tag is the newest version of glibc that binutils finds in the program"), ZipFile(wheel) as archive:
        program = next(name for name in archive.namelist() if "/scripts/" in name)
        symbols = subprocess.run(
            ["bash", "-c", "cat >$0 && objdump -T $0 && rm $0", str(wheel.parent / ".program")],
            input=archive.read(program),
            capture_output=True,
            check=True,
        ).stdout.decode()
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+)", symbols)}
        expected = "manylinux_{}_{}_".format(*max(versions))
        assert expected in wheel.name, f"{wheel.name} should contain {expected}"


def check_demo(report: Report, uvx: list[str], folder: Path, environment: dict[str, str]) -> None:
    with report.check("uvx tidegate demo answers over HTTP, and stops at a signal"):
        server = subprocess.Popen(
            [*uvx, "tidegate", "demo", "--listen", "127.0.0.1:0"], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
        )
        try:
            match = next(found for line in server.stderr if (found := LISTENING.search(line)))
            request = urllib.request.Request(f"{match[1]}/rest/sql?format=csv", b"SELECT count(*) AS n FROM flights")
            request.add_header("Content-Type", "application/sql")
            with urllib.request.urlopen(request, timeout=INSTALL_SECONDS_MAX) as response:
                answer = response.read().decode()
            assert "336776" in answer, answer
            server.send_signal(signal.SIGTERM)
            assert server.wait(INSTALL_SECONDS_MAX) == 0, server.returncode
        finally:
            server.kill()


def check_wheel(wheel: Path, index: PackageIndex, folder: Path, report: Report) -> None:
    report.subject = "wheel"
    check_content(wheel, report)
    home = folder / "home"
    write_data(home)
    simple = f"{index.url}/simple/"
    environment = clean_environment(home)
    with report.check("pip install tidegate in a new environment"):
        run([sys.executable, "-m", "venv", "environment"], folder, environment)
        install = ["environment/bin/pip", "install", "--disable-pip-version-check", "--index-url", simple, "--no-cache-dir", "tidegate"]
        run(install, folder, environment)
        assert run(["environment/bin/tidegate", "--version"], folder, environment).startswith("tidegate ")
    with report.check("the installed program answers a stock client"):
        ask([str(folder / "environment/bin/tidegate"), "stdio", "./data"], home, environment)
    with report.check("pip removes all files"):
        run(["environment/bin/pip", "uninstall", "--yes", "tidegate"], folder, environment)
        assert not (folder / "environment/bin/tidegate").exists()
    uvx = [os.environ["TIDEGATE_UVX"], "--index-url", simple, "--quiet"]
    with report.check("uvx tidegate stdio ./data in an empty folder with an empty cache"):
        seconds = ask([*uvx, "tidegate", "stdio", "./data"], home, environment)
        print(f"     first answer after {seconds:.1f} s, with the installation")
    with report.check("uvx tidegate stdio ./data again"):
        seconds = ask([*uvx, "tidegate", "stdio", "./data"], home, environment)
        print(f"     first answer after {seconds:.1f} s")
    with report.check("the entry for a client starts uvx"):
        entry = json.loads(run([*uvx, "tidegate", "client", "cursor", "./data"], home, environment))["mcpServers"]["tidegate"]
        assert (entry["command"], entry["args"][:2]) == ("uvx", ["tidegate", "stdio"]), entry
    check_demo(report, uvx, home, environment)
