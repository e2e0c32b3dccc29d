"""Runs the lines of docs/reference/clients.md with which programs call a server: each block of Python and of the shell, unchanged but for
the address, against a server without keys or, if it names the variable of the key, one with keys.

Runs in the environment of `requirements-fastmcp.txt`. TIDEGATE_BINARY names the binary, TIDEGATE_NODE Node.js, and TIDEGATE_NODE_PACKAGES
the npm packages.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import data_folder
from report import Report
from with_server import run_server

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "clients.md"
ADDRESS = "http://127.0.0.1:7070/mcp"
KEY = "TIDEGATE_KEY"
INSPECTOR = "npx -y @modelcontextprotocol/inspector"
LAUNCHER = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
# Without and with a key: fastmcp, mcp and the inspector.
BLOCKS = 6
WAIT_SECONDS_MAX = 60

CONFIGURATION = """\
databases: [{{name: shop, files: '{folder}'}}]
roles: [{{name: reader, toolsets: ['*'], databases: [shop]}}]
auth: {{keys: '{keys}'}}
"""


def blocks() -> list[tuple[str, str]]:
    """The language and the text of each block that a program runs."""
    return re.findall(r"^```(python|bash)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(language: str, text: str, environment: dict[str, str]) -> str:
    if language == "python":
        command = [sys.executable, "-c", text]
    else:
        launcher = Path(os.environ["TIDEGATE_NODE_PACKAGES"]) / LAUNCHER
        assert INSPECTOR in text, text
        command = ["bash", "-c", text.replace(INSPECTOR, f"'{os.environ['TIDEGATE_NODE']}' '{launcher}'")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, env=environment)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-1500:]}"
    return done.stdout


def main() -> int:
    binary = os.environ["TIDEGATE_BINARY"]
    serve = [binary, "serve", "--listen", "127.0.0.1:0", "--log", "error"]
    report = Report()
    report.subject = "lines for programs"
    with tempfile.TemporaryDirectory(prefix="tidegate-lines-") as temporary:
        folder = Path(temporary)
        shop = data_folder.write(folder)
        configuration = folder / "tidegate.yaml"
        configuration.write_text(CONFIGURATION.format(folder=shop, keys=folder / "keys.json"), encoding="utf-8")
        add = [binary, "key", "add", "tester", "--role", "reader", "--config", str(configuration)]
        key = subprocess.run(add, check=True, capture_output=True, text=True).stdout.strip()
        # The inspector stores a catalog of servers in the home folder, which must not be the user's.
        environment = {**os.environ, "HOME": temporary}
        with run_server([*serve, f"shop={shop}"]) as open_url, run_server([*serve, "--config", str(configuration)]) as keyed_url:
            with report.check(f"the page has {BLOCKS} blocks"):
                assert len(blocks()) == BLOCKS, len(blocks())
            for number, (language, text) in enumerate(blocks(), start=1):
                url = keyed_url if KEY in text else open_url
                with report.check(f"block {number}, {language}"):
                    assert ADDRESS in text, text
                    output = run(language, text.replace(ADDRESS, url), {**environment, KEY: key})
                    assert "shop" in output and "files" in output, output[-1500:]
            with report.check("a server with keys refuses the lines without one"):
                try:
                    output = run("python", blocks()[0][1].replace(ADDRESS, keyed_url), environment)
                except AssertionError as error:
                    assert "authentication is required" in str(error), error
                else:
                    raise AssertionError(f"it was answered: {output}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
