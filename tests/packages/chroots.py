"""Root file systems of Debian with nothing but one interpreter, made with debootstrap and kept in the user's cache. Needs root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate" / "chroots"
# By name: the packages beside those of a minimal system.
PACKAGES = {"minimal": ["ca-certificates"], "python": ["python3", "python3-venv"], "node": ["nodejs", "npm"]}
COMMAND_SECONDS_MAX = 900


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-1000:]}")


def prepare(name: str) -> Path:
    """The kept file system, made if it is missing."""
    kept = CACHE / f"{RELEASE}-{name}"
    if kept.exists():
        return kept
    CACHE.mkdir(parents=True, exist_ok=True)
    if shutil.which("debootstrap") is None:
        run(["apt-get", "install", "-y", "-qq", "debootstrap"])
    base = kept
    if name != "minimal":
        base = prepare("minimal")
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="new-") as temporary:
        new = Path(temporary) / name
        if base is kept:
            run(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES[name])}", RELEASE, str(new), MIRROR])
        else:
            run(["cp", "-a", str(base), str(new)])
            shutil.copy("/etc/resolv.conf", new / "etc/resolv.conf")
            run(["chroot", str(new), "apt-get", "update", "-qq"])
            run(["chroot", str(new), "apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES[name]])
        new.rename(kept)
    return kept


@contextmanager
def fresh_root(name: str) -> Iterator[Path]:
    """A copy that ends with the block."""
    kept = prepare(name)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="trial-") as temporary:
        root = Path(temporary) / "root"
        run(["cp", "-a", "--reflink=auto", str(kept), str(root)])
        # Nothing is mounted in it, so removing it removes only copies.
        yield root


def in_root(root: Path, *command: str, user: str = "root") -> list[str]:
    """The command, run in the root file system with an empty environment.

    It has /proc, as every container and every system has: the server opens files of tables through it. The mount is in a namespace of its own and ends with the
    command.
    """
    environment = ["env", "-i", "HOME=/root", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "XDG_CACHE_HOME=/tmp"]
    mounted = f'mkdir -p {root}/proc && mount -t proc proc {root}/proc && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mounted, "-", *environment, "chroot", f"--userspec={user}", str(root), *command]


if __name__ == "__main__":
    for chroot in PACKAGES:
        print(prepare(chroot))
