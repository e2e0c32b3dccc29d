"""From nothing to an answered question by one command: Debian with nothing but Python, and Debian with nothing but Node.js.

The stock client outside starts the command inside. The package index on the loopback address is reached from inside.
"""

import os
import shutil
from pathlib import Path

from chroots import fresh_root, in_root
from first_answer import ask, write_data
from package_index import PackageIndex
from report import Report


def check_python(index: PackageIndex, report: Report) -> None:
    report.subject = "Debian with Python"
    with fresh_root("python") as root:
        write_data(root / "work")
        install = f"python3 -m venv /opt/tidegate && /opt/tidegate/bin/pip install --quiet --index-url {index.url}/simple/ tidegate"
        with report.check("pip install, then tidegate stdio ./data, as one command"):
            command = f"cd /work && {install} 1>&2 && exec /opt/tidegate/bin/tidegate stdio ./data"
            seconds = ask(in_root(root, "sh", "-c", command), root, dict(os.environ))
            print(f"     first answer after {seconds:.1f} s, with the installation")
    with fresh_root("python") as root:
        write_data(root / "work")
        for name in ("uv", "uvx"):
            shutil.copy(Path(os.environ["TIDEGATE_UVX"]).with_name(name), root / "usr/local/bin")
        with report.check("uvx tidegate stdio ./data"):
            command = f"cd /work && exec uvx --quiet --index-url {index.url}/simple/ tidegate stdio ./data"
            seconds = ask(in_root(root, "sh", "-c", command), root, dict(os.environ))
            print(f"     first answer after {seconds:.1f} s, with the installation")


def check_node(index: PackageIndex, report: Report) -> None:
    report.subject = "Debian with Node.js"
    with fresh_root("node") as root:
        write_data(root / "work")
        with report.check("npx tidegate stdio ./data"):
            command = f"cd /work && exec npx --registry {index.url} --yes tidegate stdio ./data"
            seconds = ask(in_root(root, "sh", "-c", command), root, dict(os.environ))
            print(f"     first answer after {seconds:.1f} s, with the installation")


def check_chroots(index: PackageIndex, report: Report) -> None:
    check_python(index, report)
    check_node(index, report)
