"""A node over folders of files, each of which is a database, for statements of others."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).absolute().parents[2] / "collections"))
from node import ARROW, QUERY_MEMORY, Ended, Node


@dataclass
class NodeError:
    """Why the node does not answer; `kind` is that of docs/reference/errors.md, or `crashed` or `hung`."""

    kind: str
    message: str
    hint: str = ""

    @property
    def is_internal(self) -> bool:
        return self.kind in ("internal", "timed_out", "crashed", "hung")


class DatabasesNode(Node):
    """Runs as long as the block, over the folders below `folder`."""

    def __init__(self, folder: Path, databases: list[str]):
        super().__init__(folder)
        configuration = {
            "databases": [{"name": name, "files": f"./{name}"} for name in databases],
            "limits": {"memory": QUERY_MEMORY},
        }
        (folder / "tidegate.yaml").write_text(json.dumps(configuration))

    def ask(self, database: str, sql: str) -> pa.Table | NodeError:
        path = f"/rest/sql?database={quote(database)}&max_rows=100000000"
        try:
            status, answer = self.request("POST", path, sql.encode(), ARROW)
        except Ended as ended:
            return NodeError(ended.outcome, str(ended))
        except Exception as error:
            # The answer broke off after its first rows.
            return self.late_error(path, sql) or NodeError("internal", str(error))
        if status == 200:
            try:
                return pa.ipc.open_stream(io.BytesIO(answer)).read_all()
            except (pa.ArrowException, OSError) as error:
                return self.late_error(path, sql) or NodeError("internal", f"the answer is no Arrow stream: {error}")
        return self.problem(answer)

    def problem(self, answer: bytes) -> NodeError:
        try:
            problem = json.loads(answer)
        except ValueError:
            return NodeError("internal", repr(answer[:200]))
        if not isinstance(problem, dict):
            return NodeError("internal", repr(problem))
        kind = problem.get("type", "").rpartition("/")[2]
        message = problem.get("detail") or str(problem)
        if kind == "internal":
            message = self.logged(problem.get("id", "")) or message
        hint = problem.get("hint") or ", ".join(map(str, problem.get("choices") or ()))
        return NodeError(kind, message, hint)

    def late_error(self, path: str, sql: str) -> NodeError | None:
        """Why an answer breaks off: NDJSON has the reason in its last line."""
        try:
            status, answer = self.request("POST", path, sql.encode(), "application/x-ndjson")
        except Ended as ended:
            return NodeError(ended.outcome, str(ended))
        except Exception as error:
            answer = getattr(error.__cause__, "partial", b"")
            status = 200
        if status != 200:
            return self.problem(answer)
        try:
            error = json.loads(answer.splitlines()[-1])["error"]
        except (ValueError, IndexError, KeyError, TypeError):
            return None
        return NodeError("failed", error) if isinstance(error, str) else self.problem(json.dumps(error).encode())
