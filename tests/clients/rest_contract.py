"""Checks the REST endpoint against its `openapi.json`: schemathesis generates calls and checks the answers.

    rest_contract.py

Starts the server twice: open, with generated names in the paths; and with keys, with existing names. TIDEGATE_BINARY names
the server. A finding has a command that reproduces it.
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
from with_server import run_server

# The same calls each time, so that a run fails only after a change.
SEED = "1"
EXAMPLES_MAX = "8"
RUN_SECONDS_MAX = 300
# The excluded check requires success for all arguments that fit their schema. The schemas do not describe which tables
# exist, nor the syntax of statements.
EXCLUDED_CHECKS = "positive_data_acceptance"
ENVIRONMENT = os.environ | {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("rest_hooks.py"))}

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
# The names in the paths of the second run.
NAMES = """\
[parameters]
"path.database" = "shop"
"path.table" = "orders"
"""


def contract(url: str, folder: Path, *options: str) -> None:
    """Runs schemathesis once; raises an AssertionError with its findings."""
    program = Path(sys.executable).with_name("st")
    command = [str(program), *(["--config-file", str(folder / "names.toml")] if options else []), "run"]
    command += [f"{url}/openapi.json", "--seed", SEED, "--max-examples", EXAMPLES_MAX, "--checks", "all"]
    command += ["--exclude-checks", EXCLUDED_CHECKS, "--continue-on-failure", "--warnings", "off", "--no-color", *options]
    # A fresh folder, because stored data of a run would change the next one.
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    counted = re.search(r"^ +(\d+) generated.*$", done.stdout, re.MULTILINE)
    print(f"     {counted[0].strip() if counted else 'no calls were made'}")
    # Omits the heading; the findings start here.
    findings = done.stdout.split("= FAILURES =")[-1].split("= ERRORS =")[-1]
    assert done.returncode == 0, f"exit code {done.returncode}:\n{findings[:8000]}{done.stderr[-2000:]}"
    assert counted and int(counted[1]) > 100, done.stdout[-2000:]


def check_rejected(url: str) -> None:
    """Requests without a key receive no data."""
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
        with run_server([*serve, str(shop)]) as url:
            with report.check("REST conforms to openapi.json, open"):
                contract(url.removesuffix("/mcp") + "/rest", folder)
        configuration = folder / "tidegate.yaml"
        configuration.write_text(CONFIGURATION.format(folder=shop, keys=folder / "keys.json"), encoding="utf-8")
        (folder / "names.toml").write_text(NAMES, encoding="utf-8")
        add = [binary, "key", "add", "tester", "--role", "reader", "--config", str(configuration)]
        key = subprocess.run(add, check=True, capture_output=True, text=True).stdout.strip()
        with run_server([*serve, "--config", str(configuration)]) as url:
            rest_url = url.removesuffix("/mcp") + "/rest"
            with report.check("requests without a key are rejected"):
                check_rejected(rest_url)
            with report.check("REST conforms to openapi.json, with a key"):
                contract(rest_url, folder, "--header", f"Authorization: Bearer {key}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
