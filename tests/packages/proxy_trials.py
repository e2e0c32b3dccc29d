"""The configurations of docs/how-to/behind-a-proxy.md, run by nginx and Caddy: every transport through the proxy, and rows that arrive while the answer is made.

    proxy_trials.py    TIDEGATE_BINARY names the program; needs nginx and caddy (Debian packages nginx-light, caddy)
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from mcp import Client
from report import Report
from with_server import run_server

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "behind-a-proxy.md"
NAME = "data.example.com"
START_SECONDS_MAX = 30
POLL_SECONDS = 0.05
# Far more rows than any buffer on the way contains, so that the first ones can only arrive before the last ones are made.
LONG = "SELECT a.time_hour, b.dep_delay FROM flights a, flights b"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def nginx_command(folder: Path, port: int, server: str) -> list[str]:
    site, mapping = blocks("nginx")
    # Without TLS, whose certificate only the reader has.
    site = re.sub(r"^\s*ssl_.*\n", "", site, flags=re.MULTILINE).replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    site = site.replace("127.0.0.1:7070", server)
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    text = f"daemon off;\nuser root;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{mapping}\n{site}\n}}\n"
    (folder / "nginx.conf").write_text(text)
    return ["nginx", "-e", "stderr", "-c", str(folder / "nginx.conf")]


def caddy_command(folder: Path, port: int, server: str) -> list[str]:
    (site,) = blocks("caddy")
    site = site.replace(NAME, f"http://{NAME}:{port}, http://127.0.0.1:{port}", 1).replace("127.0.0.1:7070", server)
    (folder / "Caddyfile").write_text(f"{{\nadmin off\n}}\n{site}")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@contextmanager
def run_proxy(command: list[str], folder: Path, port: int) -> Iterator[str]:
    with (folder / "log").open("w") as log:
        proxy = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)})
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert proxy.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[-1000:]
                time.sleep(POLL_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        proxy.terminate()
        proxy.wait(START_SECONDS_MAX)


def get(url: str, host: str) -> tuple[int, bool]:
    """The status, and whether there is a body. Caddy answers with an empty one where it has no site of that name."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Host": host}), timeout=START_SECONDS_MAX) as response:
            return response.status, bool(response.read())
    except urllib.error.HTTPError as error:
        return error.code, True


async def count_flights(url: str) -> str:
    async with Client(f"{url}/mcp") as client:
        result = await client.call_tool("sql", {"sql": "SELECT count(*) AS n FROM flights"})
        return result.content[0].text


def web_socket_status(port: int) -> str:
    lines = [
        "GET /mcp/ws HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: mcp",
    ]
    with socket.create_connection(("127.0.0.1", port), START_SECONDS_MAX) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return connection.recv(1000).decode().split("\r\n")[0]


def check_proxy(url: str, port: int, report: Report) -> None:
    with report.check("the name of the page is accepted, another one is refused"):
        assert get(f"{url}/ready", NAME) == (200, True)
        assert get(f"{url}/ready", "other.example.com") != (200, True)
    with report.check("PyPI mcp calls a tool"):
        answer = anyio.run(count_flights, url)
        assert "336776" in answer, answer
    with report.check("a WebSocket is opened"):
        status = web_socket_status(port)
        assert " 101 " in status, status
    with report.check("rows arrive while the answer is made"):
        request = urllib.request.Request(f"{url}/rest/sql?format=csv", LONG.encode(), {"Content-Type": "application/sql"})
        with urllib.request.urlopen(request, timeout=START_SECONDS_MAX) as response:
            assert response.readline().strip() == b"time_hour,dep_delay" and response.readline()


def main() -> int:
    report = Report()
    data = f"nycflights13={ROOT / 'data' / 'demo'}"
    serve = [os.environ["TIDEGATE_BINARY"], "serve", data, "--listen", "127.0.0.1:0", "--allow-host", NAME, "--log", "error"]
    with run_server(serve) as server_url:
        address = server_url.split("/")[2]
        for name, command in (("nginx", nginx_command), ("Caddy", caddy_command)):
            report.subject = name
            port = free_port()
            with tempfile.TemporaryDirectory(prefix="tidegate-proxy-") as folder:
                with run_proxy(command(Path(folder), port, address), Path(folder), port) as url:
                    check_proxy(url, port, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
