"""A web page uses every transport, in headless Chromium: on an allowed origin all of them work, on another origin none does.

TIDEGATE_BINARY names the binary. The command of the browser is `chromium`, or what TIDEGATE_CHROMIUM names.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

from report import HERE, Report
from with_server import run_server

BROWSER = os.environ.get("TIDEGATE_CHROMIUM", "chromium")
BROWSER_SECONDS_MAX = 120
ALLOWED_HOST = "app.example.com"
OTHER_HOST = "evil.example.com"
CONFIGURATION = """\
server: {{allow_origins: ["{origin}"]}}
databases: [{{name: shop, files: shop}}]
"""
WITH_KEYS = """\
roles: [{name: analyst, toolsets: ["*"], databases: ["*"]}]
auth: {keys: keys.json}
"""

Outcomes = dict[str, str]


class Pages:
    """A server of the page, under any host name, which receives the outcomes."""

    def __init__(self) -> None:
        outcomes: "queue.Queue[Outcomes]" = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._respond(HERE.joinpath("browser.html").read_bytes() if self.path.startswith("/page?") else b"")

            def do_POST(self) -> None:
                outcomes.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self._respond(b"")

            def _respond(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.outcomes = outcomes
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def visit(self, host: str, base: str, key: str) -> Outcomes:
        """The outcomes of the page at `host`, which uses the server at `base`."""
        url = f"http://{host}:{self.port}/page?{urlencode({'base': base, 'key': key})}"
        with tempfile.TemporaryDirectory(prefix="tidegate-browser-", ignore_cleanup_errors=True) as profile:
            rules = ", ".join(f"MAP {name} 127.0.0.1" for name in (ALLOWED_HOST, OTHER_HOST))
            command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
            command += ["--no-first-run", f"--user-data-dir={profile}", f"--host-resolver-rules={rules}", url]
            browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                return self.outcomes.get(timeout=BROWSER_SECONDS_MAX)
            finally:
                browser.terminate()
                browser.wait()


@contextmanager
def serve(pages: Pages, with_keys: bool) -> Iterator[tuple[str, str]]:
    """A node that allows the page's origin: its address, and a key if it requires one."""
    binary = os.environ["TIDEGATE_BINARY"]
    with tempfile.TemporaryDirectory(prefix="tidegate-") as temporary:
        folder = Path(temporary)
        folder.joinpath("shop").mkdir()
        folder.joinpath("shop/orders.csv").write_text("id,customer\n1,Ann\n2,Bob\n", encoding="utf-8")
        configuration = folder / "tidegate.yaml"
        text = CONFIGURATION.format(origin=f"http://{ALLOWED_HOST}:{pages.port}")
        configuration.write_text(text + (WITH_KEYS if with_keys else ""), encoding="utf-8")
        key = ""
        if with_keys:
            command = [binary, "key", "add", "ann", "--role", "analyst", "--config", str(configuration)]
            key = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        with run_server([binary, "serve", "--config", str(configuration), "--listen", "127.0.0.1:0"]) as url:
            yield url.removesuffix("/mcp"), key


def main() -> int:
    report, pages = Report(), Pages()
    for subject, with_keys in (("page", False), ("page with a key", True)):
        report.subject = subject
        with serve(pages, with_keys) as (base, key):
            allowed = pages.visit(ALLOWED_HOST, base, key)
            for name, outcome in allowed.items():
                with report.check(f"{name} works on an allowed origin"):
                    assert outcome == "ok", outcome
            for name, outcome in pages.visit(OTHER_HOST, base, key).items():
                with report.check(f"{name} does not work on another origin"):
                    assert outcome != "ok", outcome
            with report.check("every transport was tried"):
                assert len(allowed) == (5 if with_keys else 6), allowed
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
