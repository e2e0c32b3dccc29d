"""Runs the commands of docs/reference/transports and of the bridge page, one `sh` block at a time, against a server with the demo data.

    pages.py

The address in a block is replaced by that of the server, and `timeout 1` by `timeout 10`, because a busy server answers later.
EXPECTED_OUTPUT has the output of each block: a page without an entry, an entry without a page, or a page without a block, is a failure.
TIDEGATE_BINARY names the binary, TIDEGATE_NODE Node.js.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from report import Report
from with_server import run_server

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted((ROOT / "docs" / "reference" / "transports").glob("*.md")), ROOT / "docs" / "how-to" / "bridge.md"]
DEFAULT_ADDRESS = "127.0.0.1:7070"
# Placeholders for any server and any key, replaced by the running server, which requires no key.
ANOTHER_SERVER = "https://data.example.com/mcp"
ANY_KEY = "tg_…"
BLOCK_SECONDS_MAX = 60

# The texts that each block of a page must print, in the order of the blocks.
EXPECTED_OUTPUT = {
    "how-to/bridge.md": [['"id":1', '"tools"', '"get_schema"']],
    "transports/rest.md": [['{"name":"nycflights13"', "dep_delay", "carrier,n"]],
    "transports/sse.md": [["event: message", '"protocolVersion":"2024-11-05"', '"id":2', '"get_schema"']],
    "transports/websocket.md": [['"id":1', '"get_schema"', "\n1005"]],
}
# The standard input of the block; the bridge reads MCP messages from it.
STANDARD_INPUT = {
    "how-to/bridge.md": '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
}
# Pages without commands, and pages whose commands need a stored result of the reader.
WITHOUT_COMMANDS = {"transports/bridge.md", "transports/flight-sql.md", "transports/results.md"}


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(block: str, url: str, standard_input: str, folder: str) -> str:
    """Runs a block, whose last command must succeed, and returns its output."""
    with_address = block.replace(ANOTHER_SERVER, url).replace(ANY_KEY, "tg_any").replace(DEFAULT_ADDRESS, url.split("/")[2])
    script = with_address.replace("timeout 1 ", "timeout 10 ")
    (Path(folder) / "tidegate").unlink(missing_ok=True)
    (Path(folder) / "tidegate").symlink_to(os.environ["TIDEGATE_BINARY"])
    path = [folder, str(Path(os.environ["TIDEGATE_NODE"]).parent), os.environ["PATH"]]
    output = Path(folder) / "output"
    # A file, not a pipe, which the background processes of a block would hold open.
    with output.open("w") as file:
        done = subprocess.run(
            ["bash", "-c", script],
            input=standard_input,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BLOCK_SECONDS_MAX,
            cwd=folder,
            env={**os.environ, "PATH": ":".join(path)},
        )
    output_text = output.read_text(encoding="utf-8")
    assert done.returncode == 0, f"exit code {done.returncode}: {output_text[-1000:]}"
    return output_text


def main() -> int:
    report = Report()
    report.subject = "page"
    pages = {f"{page.parent.name}/{page.name}": page for page in PAGES}
    with report.check("every page has an entry"):
        assert pages.keys() - WITHOUT_COMMANDS == EXPECTED_OUTPUT.keys(), pages.keys() ^ EXPECTED_OUTPUT.keys()
    # As `tidegate demo` names it.
    data = f"nycflights13={ROOT / 'data' / 'demo'}"
    serve = [os.environ["TIDEGATE_BINARY"], "serve", data, "--listen", "127.0.0.1:0", "--log", "error"]
    with tempfile.TemporaryDirectory(prefix="tidegate-pages-") as folder, run_server(serve) as url:
        for name, expected in EXPECTED_OUTPUT.items():
            page_blocks = blocks(pages[name]) if name in pages else []
            with report.check(f"{name} has {len(expected)} commands"):
                assert len(page_blocks) == len(expected), len(page_blocks)
            for number, (block, parts) in enumerate(zip(page_blocks, expected), start=1):
                with report.check(f"{name}: command {number} works unchanged"):
                    output_text = run(block, url, STANDARD_INPUT.get(name, ""), folder)
                    for part in parts:
                        assert part in output_text, f"no {part} in: {output_text[:1500]}"
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
