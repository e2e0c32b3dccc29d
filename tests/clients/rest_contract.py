"""What the REST door says of itself, `openapi.json`, against what it does: schemathesis makes up calls and judges the answers.

    rest_contract.py

Starts the server twice: open, with any names in the paths; and with keys, with the names of what is there. TIDEGATE_BINARY
names it. A finding shows the command that reproduces it.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import data_folder
from report import Report
from with_server import listening

# The same calls each time: a run must not turn red by itself.
SEED = "1"
EXAMPLES_MAX = "8"
RUN_SECONDS_MAX = 120
# Whether an answer may be a refusal although the arguments fit their schema: here it may, since no schema knows which
# tables there are, nor what is a statement.
EXCLUDED_CHECKS = "positive_data_acceptance"

CONFIGURATION = """\
databases:
  - name: shop
    files: {folder}
roles:
  - name: reader
    toolsets: ["*"]
auth:
  keys: {keys}
"""
# What stands in each path of the second run.
NAMES = """\
[parameters]
"path.database" = "shop"
"path.table" = "orders"
"""


def contract(url: str, folder: Path, *options: str) -> None:
    """One run; AssertionError with what schemathesis found."""
    program = Path(sys.executable).with_name("st")
    command = [str(program), *(["--config-file", str(folder / "names.toml")] if options else []), "run"]
    command += [f"{url}/openapi.json", "--seed", SEED, "--max-examples", EXAMPLES_MAX, "--checks", "all"]
    command += ["--exclude-checks", EXCLUDED_CHECKS, "--continue-on-failure", "--warnings", "off", "--no-color", *options]
    # What it keeps between runs would make the next one another.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    counted = re.search(r"^ +(\d+) generated.*$", done.stdout, re.MULTILINE)
    print(f"     {counted[0].strip() if counted else 'no calls were made'}")
    # Its own heading is left out; what it found stands from here on.
    found = done.stdout.split("= FAILURES =")[-1].split("= ERRORS =")[-1]
    assert done.returncode == 0, f"exit code {done.returncode}:\n{found[:8000]}{done.stderr[-2000:]}"
    assert counted and int(counted[1]) > 100, done.stdout[-2000:]


def check_refused(url: str) -> None:
    """Nothing is told to who shows no key."""
    for path in ("openapi.json", "tools", "databases/shop/tables/orders/rows", "jobs"):
        try:
            urllib.request.urlopen(f"{url}/{path}")
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            assert error.code == 401 and error.headers["WWW-Authenticate"], f"{path}: {error}"
            assert problem["type"].endswith(":problem/unauthenticated"), problem
        else:
            raise AssertionError(f"{path} was answered")


def main() -> int:
    binary = os.environ["TIDEGATE_BINARY"]
    serve = [binary, "serve", "--listen", "127.0.0.1:0", "--log", "error"]
    report = Report()
    report.subject = "rest"
    with tempfile.TemporaryDirectory(prefix="tidegate-rest-") as temporary:
        folder = Path(temporary)
        shop = data_folder.write(folder)
        with listening([*serve, str(shop)]) as url:
            with report.check("the door does what openapi.json says, open"):
                contract(url.removesuffix("/mcp") + "/rest", folder)
        configuration = folder / "tidegate.yaml"
        configuration.write_text(CONFIGURATION.format(folder=shop, keys=folder / "keys.json"), encoding="utf-8")
        (folder / "names.toml").write_text(NAMES, encoding="utf-8")
        add = [binary, "key", "add", "tester", "--role", "reader", "--config", str(configuration)]
        key = subprocess.run(add, check=True, capture_output=True, text=True).stdout.strip()
        with listening([*serve, "--config", str(configuration)]) as url:
            door = url.removesuffix("/mcp") + "/rest"
            with report.check("who shows no key is refused"):
                check_refused(door)
            with report.check("the door does what openapi.json says, with a key"):
                contract(door, folder, "--header", f"Authorization: Bearer {key}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
