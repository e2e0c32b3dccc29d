"""The npm packages, run with npx without an installation, by the Node.js of the machine and by the pinned one.

Node.js 22 replaces itself by the program; older versions keep it as a child.
"""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from first_answer import ask, clean_environment, write_data
from package_index import PackageIndex
from report import Report

STOP_SECONDS_MAX = 30


def check_start(report: Report, start: list[str], folder: Path, environment: dict[str, str]) -> None:
    """The script that starts the program passes signals and the exit code on."""
    with report.check("a signal stops the server"):
        server = subprocess.Popen([*start, "demo", "--listen", "127.0.0.1:0"], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr.readline().startswith("listening on"), "the server does not listen"
            server.send_signal(signal.SIGTERM)
            assert server.wait(STOP_SECONDS_MAX) == 0, server.returncode
        finally:
            server.kill()
    with report.check("the exit code and the message are those of the program"):
        done = subprocess.run([*start, "query", "SELECT nothing", "./data"], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode not in (0, None) and "nothing" in done.stderr, (done.returncode, done.stderr)
        assert "ExperimentalWarning" not in done.stderr, done.stderr


def check_node(node: Path, index: PackageIndex, folder: Path, report: Report) -> None:
    home = folder / "home"
    write_data(home)
    npm = Path(os.path.realpath(shutil.which("npm"))).parent
    environment = clean_environment(home, npm_config_registry=index.url, npm_config_update_notifier="false")
    environment["PATH"] = f"{node.parent}:{environment['PATH']}"
    npx = [str(node), str(npm / "npx-cli.js"), "--yes", "tidegate"]
    with report.check("npx tidegate stdio ./data in an empty folder with an empty cache"):
        seconds = ask([*npx, "stdio", "./data"], home, environment)
        print(f"     first answer after {seconds:.1f} s, with the installation")
    with report.check("npx tidegate stdio ./data again"):
        seconds = ask([*npx, "stdio", "./data"], home, environment)
        print(f"     first answer after {seconds:.1f} s")
    with report.check("the entry for a client starts npx"):
        done = subprocess.run([*npx, "client", "cursor", "./data"], cwd=home, env=environment, capture_output=True, text=True, check=True)
        entry = json.loads(done.stdout)["mcpServers"]["tidegate"]
        assert (entry["command"], entry["args"][:3]) == ("npx", ["-y", "tidegate", "stdio"]), entry
    project = folder / "project"
    project.mkdir()
    install = [str(node), str(npm / "npm-cli.js"), "install", "--no-audit", "--no-fund", "tidegate"]
    with report.check("npm install tidegate runs no script and makes the command"):
        (project / "package.json").write_text("{}")
        done = subprocess.run([*install, "--ignore-scripts"], cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        version = subprocess.run(["node_modules/.bin/tidegate", "--version"], cwd=project, env=environment, capture_output=True, text=True)
        assert version.stdout.startswith("tidegate "), version.stderr
    check_start(report, [str(node), str(project / "node_modules/tidegate/bin/start.js")], home, environment)
    with report.check("without the platform package, the message names it"):
        shutil.rmtree(project / "node_modules" / "@tidegate")
        done = subprocess.run(["node_modules/.bin/tidegate", "--version"], cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and "@tidegate/linux-" in done.stderr and "--omit=optional" in done.stderr, done.stderr


def check_npm(index: PackageIndex, folder: Path, report: Report) -> None:
    nodes = [Path(shutil.which("node")), Path(os.environ["TIDEGATE_NODE"])]
    for node in nodes:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        report.subject = f"npm, Node.js {version}"
        check_node(node, index, folder / version, report)
