"""The commands of docs/reference/transports and of the bridge are run as they stand there, each block of `sh` whole, against a server with data/demo.

    pages.py

The address in a block becomes that of the server. What a block must say is told here: a page without an entry, an entry
without a page, or a page without a block, is a failure. TIDEGATE_BINARY names the binary, TIDEGATE_NODE Node.js.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from report import Report
from with_server import listening

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted((ROOT / "docs" / "reference" / "transports").glob("*.md")), ROOT / "docs" / "how-to" / "bridge.md"]
DEFAULT_ADDRESS = "127.0.0.1:7070"
# Stand for any server and any key; here it is the server that runs, which asks for none.
ANOTHER_SERVER = "https://data.example.com/mcp"
ANY_KEY = "tide_…"
BLOCK_SECONDS_MAX = 60

# What each block of a page must print, in their order.
SAID = {
    "how-to/bridge.md": [['"id":1', '"tools"', '"get_schema"']],
    "transports/rest.md": [['{"name":"demo"', "dep_delay", "carrier,n"]],
    "transports/sse.md": [["event: message", '"protocolVersion":"2024-11-05"', '"id":2', '"get_schema"']],
    "transports/websocket.md": [['"id":1', '"get_schema"', "\n1005"]],
}
# What is written to a block's standard input: the bridge speaks MCP with whoever starts it.
TYPED = {
    "how-to/bridge.md": '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
}
# Pages that only describe, and those whose commands need something of the reader's own: a stored result.
WITHOUT_COMMANDS = {"transports/bridge.md", "transports/results.md"}


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(block: str, url: str, typed: str, folder: str) -> str:
    """What the block prints; its last command must succeed."""
    with_address = block.replace(ANOTHER_SERVER, url).replace(ANY_KEY, "tide_any").replace(DEFAULT_ADDRESS, url.split("/")[2])
    (Path(folder) / "tidegate").unlink(missing_ok=True)
    (Path(folder) / "tidegate").symlink_to(os.environ["TIDEGATE_BINARY"])
    path = [folder, str(Path(os.environ["TIDEGATE_NODE"]).parent), os.environ["PATH"]]
    output = Path(folder) / "output"
    # A file, not a pipe: what a block leaves running in the background would keep a pipe open.
    with output.open("w") as file:
        done = subprocess.run(
            ["bash", "-c", with_address],
            input=typed,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BLOCK_SECONDS_MAX,
            cwd=folder,
            env={**os.environ, "PATH": ":".join(path)},
        )
    said = output.read_text(encoding="utf-8")
    assert done.returncode == 0, f"exit code {done.returncode}: {said[-1000:]}"
    return said


def main() -> int:
    report = Report()
    report.subject = "page"
    pages = {f"{page.parent.name}/{page.name}": page for page in PAGES}
    with report.check("every page is known here"):
        assert pages.keys() - WITHOUT_COMMANDS == SAID.keys(), pages.keys() ^ SAID.keys()
    data = str(ROOT / "data" / "demo")
    serve = [os.environ["TIDEGATE_BINARY"], "serve", data, "--listen", "127.0.0.1:0", "--log", "error"]
    with tempfile.TemporaryDirectory(prefix="tidegate-pages-") as folder, listening(serve) as url:
        for name, wanted in SAID.items():
            found = blocks(pages[name]) if name in pages else []
            with report.check(f"{name} has {len(wanted)} commands"):
                assert len(found) == len(wanted), len(found)
            for number, (block, parts) in enumerate(zip(found, wanted), start=1):
                with report.check(f"{name}: command {number} works as it stands"):
                    said = run(block, url, TYPED.get(name, ""), folder)
                    for part in parts:
                        assert part in said, f"no {part} in: {said[:1500]}"
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
