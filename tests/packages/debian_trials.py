"""The Debian package, installed with dpkg in a root file system without anything else."""

import os
import shutil
import subprocess
from pathlib import Path

from chroots import fresh_root, in_root
from first_answer import ask, write_data
from report import Report

INSTALL_SECONDS_MAX = 300


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    assert done.returncode == 0, f"exit code {done.returncode}: {(done.stdout + done.stderr)[-1000:]}"
    return done.stdout


def check_unit(deb: Path, folder: Path, report: Report) -> None:
    run(["dpkg-deb", "-x", str(deb), str(folder)])
    unit = folder / "usr/lib/systemd/system/tidegate.service"
    with report.check("systemd accepts the unit, and rates it as safe"):
        # The verification resolves the units of the system, which only the machine's own folders contain.
        copy = folder / unit.name
        copy.write_text(unit.read_text().replace("/usr/bin/tidegate", str(folder / "usr/bin/tidegate")))
        run(["systemd-analyze", "verify", "--man=no", str(copy)])
        rated = run(["systemd-analyze", "security", "--offline=yes", "--no-pager", f"--root={folder}", unit.name])
        level = float(rated.strip().splitlines()[-1].split(":")[1].split()[0])
        assert level < 2.5, f"exposure level {level}"


def check_debian(deb: Path, folder: Path, report: Report) -> None:
    report.subject = "Debian"
    check_unit(deb, folder, report)
    with fresh_root("minimal") as root:
        shutil.copy(deb, root / "tmp")
        write_data(root / "work")
        with report.check("dpkg installs it on a minimal system"):
            run(in_root(root, "dpkg", "--install", f"/tmp/{deb.name}"))
            assert run(in_root(root, "dpkg", "--verify", "tidegate")) == "", "files differ from the list"
        with report.check("the installed program answers a stock client"):
            ask(in_root(root, "sh", "-c", "cd /work && exec tidegate stdio ./data"), root, dict(os.environ))
        with report.check("the configuration of the service is valid"):
            printed = run(in_root(root, "tidegate", "config", "check", "/etc/tidegate/tidegate.yaml"))
            assert "nothing wrong" in printed, printed
        with report.check("manual pages and completions are there"):
            for path in ("usr/share/man/man1/tidegate.1.gz", "usr/share/bash-completion/completions/tidegate"):
                # A minimal system leaves documentation out only if it is configured to.
                assert (root / path).is_file(), path
        with report.check("an upgrade keeps the configuration, and a purge removes everything"):
            configuration = root / "etc/tidegate/tidegate.yaml"
            configuration.write_text("databases: [{name: mine, files: /work/data}]\n")
            run(in_root(root, "dpkg", "--install", "--force-confdef", f"/tmp/{deb.name}"))
            assert "mine" in configuration.read_text()
            run(in_root(root, "dpkg", "--purge", "tidegate"))
            left = [path for path in ("usr/bin/tidegate", "etc/tidegate") if (root / path).exists()]
            assert not left, left
