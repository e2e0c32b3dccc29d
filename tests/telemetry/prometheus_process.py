"""Debian's `prometheus` with a configuration, for the test programs beside this one."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import requests
from node import wait_until

# The number of ports that are tried.
PORTS_MAX = 5


def start_prometheus(folder: Path, configuration: Callable[[str], str]) -> tuple[subprocess.Popen, str]:
    """The process and its address, with which `configuration` is called. The process ends if another program takes the port first; then
    another port is tried."""
    file = folder / "prometheus.yml"
    for _ in range(PORTS_MAX):
        own = free_address()
        file.write_text(configuration(own))
        command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={own}"]
        with open(folder / "prometheus.log", "wb") as log:
            prometheus = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(lambda: prometheus.poll() is not None or is_ready(own), "prometheus answers")
        if prometheus.poll() is None:
            return prometheus, own
    sys.exit("prometheus does not start:\n" + (folder / "prometheus.log").read_text())


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def is_ready(address: str) -> bool:
    try:
        # Another program at the address may never answer.
        return requests.get(f"http://{address}/-/ready", timeout=5).ok
    except requests.RequestException:
        return False
