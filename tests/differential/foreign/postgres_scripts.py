"""PostgreSQL's own regression scripts: what its server answers is what the node answers over files of the same tables, or the node refuses.

    scripts/postgres run -- postgres_scripts.py FOLDER [AREA…] [--write-docs] [--output FILE]

FOLDER is `src/test/regress` of PostgreSQL's source, with `sql` and `data`: in Debian, `apt-get source postgresql-15`. The server of
TIDEGATE_TEST_POSTGRES runs each script, statement by statement; what it answers to a question about tables only is kept, with the
state of these tables. A node of TIDEGATE_BINARY then answers the same questions over files.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from answers import Answer, difference_of, from_arrow
from databases_node import DatabasesNode, NodeError
from outcomes import Judged, apply_known, judged_answer, report, write_document, write_output
from psql_script import Script, bare_of
from server import Server, ServerError
from server_state import QUESTION, ServerState
from table_files import SEQUENCES, TableFile, TableFiles

DATABASE = "regression"
# Scripts that are not asked: they are about types that no file has, or about the server itself.
TYPES_OF_POSTGRES = """bit money rangetypes multirangetypes pg_lsn regproc point lseg line box path polygon circle inet macaddr macaddr8 geometry tstypes
    xid txid oid enum domain rowtypes tsearch tsdicts xml xmlmap timetz tid tidscan tidrangescan"""
ABOUT_THE_SERVER = """tablespace type_sanity opr_sanity misc_sanity sanity_check comments mvcc database euc_kr encoding infinite_recurse prepared_xacts
    privileges init_privs security_label lock replica_identity rowsecurity object_address password create_role roleattributes async dbsize
    publication subscription advisory_lock guc dependency largeobject conversion stats reloptions event_trigger oidjoins compression
    vacuum vacuum_parallel maintain_every sysviews psql psql_crosstab collate.icu.utf8 collate.linux.utf8 foreign_data copy2 plpgsql hash_func"""
# Their tables are needed by others.
ONLY_RUN = {"test_setup", "create_index", "create_misc", "create_aggregate", "create_function_sql", "create_operator", "create_type", "create_table", "create_view", "copy"}
LEFT_OUT = set((TYPES_OF_POSTGRES + ABOUT_THE_SERVER).split())
SETTING = re.compile(r"\s*(set|reset)\s+(session\s+|local\s+)?(time\s+zone|timezone|datestyle|intervalstyle|statement_timeout|bytea_output|extra_float_digits|role|all)\b", re.IGNORECASE)
# What may depend on the sequence of rows.
DEPENDS_ON_SEQUENCE = re.compile(r"\b(over|limit|offset|fetch|distinct\s+on|lateral|mode|\w*agg\w*)\b", re.IGNORECASE)
# A server that allocates or sleeps without end, or ends.
UNWANTED = re.compile(r"pg_sleep|pg_terminate|\binfinite_recurse\b|alter\s+system|\bcheckpoint\b", re.IGNORECASE)


@dataclass
class Question:
    area: str
    line: int
    sql: str
    answer: Answer
    tables: dict[str, TableFile]


@dataclass
class Recording:
    """What the server answered."""

    questions: list[Question] = field(default_factory=list)
    skipped: Counter = field(default_factory=Counter)


def schedule(folder: Path) -> list[str]:
    lines = (folder / "parallel_schedule").read_text().splitlines()
    return [name for line in lines if line.startswith("test:") for name in line.split()[1:]]


def record_script(area: str, folder: Path, server: Server, files: TableFiles, state: ServerState, recording: Recording):
    environment = {"PG_ABS_SRCDIR": str(folder), "PG_ABS_BUILDDIR": str(folder), "PG_LIBDIR": "", "PG_DLSUFFIX": ".so"}
    for statement in Script(folder / "sql" / f"{area}.sql", environment).statements():
        sql = statement.sql
        if SETTING.match(sql) or UNWANTED.search(sql):
            continue
        try:
            if not QUESTION.match(sql) or statement.rows is not None:
                server.run(sql, statement.rows)
                files.changes += 1
                state.changed_by(sql)
                continue
            answer = server.answer(sql)
        except (ServerError, ValueError) as error:
            files.changes += 1
            if QUESTION.match(sql):
                recording.skipped["not answered by PostgreSQL" if isinstance(error, ServerError) else "unreadable answers"] += 1
            continue
        # A question may have side effects, such as those of functions.
        reason = state.reason_against(sql)
        if reason:
            files.changes += 1
            recording.skipped[reason] += 1
            continue
        if area in ONLY_RUN and area != "create_index":
            recording.skipped["scripts of others' tables"] += 1
            continue
        tables = files.mentioned(bare_of(sql))
        if missing := missing_part(sql, tables):
            recording.skipped["a table that no file can be"] += 1
            continue
        if DEPENDS_ON_SEQUENCE.search(bare_of(sql)) and is_undetermined(sql, answer, files, list(tables)):
            recording.skipped["the sequence of a table's rows decides the answer"] += 1
            continue
        recording.questions.append(Question(area, statement.line, sql, answer, tables))


def is_undetermined(sql: str, answer: Answer, files: TableFiles, tables: list[str]) -> bool:
    """Whether PostgreSQL itself answers otherwise when the same rows are stored in another sequence."""
    order = ordered_columns(sql, answer.names)
    try:
        return bool(tables) and any(difference_of(answer, files.answer_over(sequence, sql, tables), order) for sequence in SEQUENCES)
    except ServerError:
        return False


def missing_part(sql: str, tables: dict[str, TableFile]) -> str | None:
    """What of the statement's tables no file has."""
    bare = bare_of(sql)
    for name, file in tables.items():
        if file.path is None:
            return file.reason
        has_all = re.search(rf"(select|,|\.)\s*\*|\btable\s+{re.escape(name)}\b|\bnatural\b", bare, re.IGNORECASE)
        for column, reason in file.missing.items():
            if has_all or re.search(rf"\b{re.escape(column)}\b", bare, re.IGNORECASE):
                return f"{name}.{column}: {reason}"
    return None


def record(folder: Path, areas: list[str], scratch: Path) -> Recording:
    recording = Recording()
    with Server("postgres") as server:
        server.run(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    names = [name for name in schedule(folder) if name not in LEFT_OUT and (folder / "sql" / f"{name}.sql").exists()]
    for area in names:
        if areas and area not in areas and area not in ONLY_RUN:
            continue
        with Server(DATABASE) as server:
            files = TableFiles(server, scratch)
            record_script(area, folder, server, files, ServerState(server), recording)
    return recording


def ordered_columns(sql: str, names: list[str]) -> list[int] | None:
    """The columns by which the outermost query is sorted, up to the first key that is not a column of the answer."""
    bare = bare_of(sql)
    depth, start = 0, None
    for found in re.finditer(r"[()]|\border\s+by\b|\b(union|intersect|except)\b", bare, re.IGNORECASE):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        elif depth == 0:
            start = found.end() if found[1] is None else None
    if start is None:
        return None
    keys = re.split(r"\b(?:limit|offset|fetch|for)\b", bare[start:], maxsplit=1, flags=re.IGNORECASE)[0].rstrip("; \n")
    columns = []
    for key in split_outside_parentheses(keys):
        key = re.sub(r"\s+(asc|desc)\b|\s+nulls\s+(first|last)\b|\s+using\s+\S+", "", key.strip(), flags=re.IGNORECASE).strip()
        name = re.sub(r"^\w+\.", "", key).strip('"')
        if key.isdigit() and int(key) <= len(names):
            columns.append(int(key) - 1)
        elif names.count(name) == 1:
            columns.append(names.index(name))
        else:
            break
    return columns


def split_outside_parentheses(text: str) -> list[str]:
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


class States:
    """Databases of a node: each has the files of tables in one state."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.tables: list[dict[str, Path]] = []

    def database_of(self, tables: dict[str, TableFile]) -> str:
        """The last database, unless another state of one of these tables is in it."""
        paths = {name: file.path for name, file in tables.items()}
        if not self.tables or any(self.tables[-1].get(name, path) != path for name, path in paths.items()):
            self.tables.append({})
        self.tables[-1].update(paths)
        return f"state{len(self.tables)}"

    def write(self) -> list[str]:
        for number, tables in enumerate(self.tables, 1):
            folder = self.folder / f"state{number}"
            folder.mkdir()
            for name, path in tables.items():
                shutil.copyfile(path, folder / f"{name}{path.suffix}")
            if not tables:
                (folder / "nothing.csv").write_text("nothing\n1\n")
        return [f"state{number}" for number in range(1, len(self.tables) + 1)]


def ask(questions: list[Question], scratch: Path) -> list[Judged]:
    """The node's answers to the questions of one area."""
    judged: list[Judged] = []
    rest = questions
    while rest:
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            states = States(Path(name))
            places = [states.database_of(question.tables) for question in rest]
            with DatabasesNode(Path(name), states.write()) as node:
                for number, (question, database) in enumerate(zip(rest, places, strict=True), 1):
                    judged.append(judge(question, node.ask(database, question.sql)))
                    if node.process.poll() is not None or node.killed:
                        break
        rest = rest[number:]
    return judged


def judge(question: Question, ours) -> Judged:
    if not isinstance(ours, NodeError):
        try:
            ours = from_arrow(ours)
        except Exception as error:
            ours = NodeError("unreadable", f"Python cannot read the answer: {error!r}")
    outcome, detail = judged_answer(question.answer, ours, ordered_columns(question.sql, question.answer.names))
    return Judged(question.area, question.line, question.sql, outcome, detail, question.answer, ours)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("TIDEGATE_POSTGRES_REGRESS"))
    parser.add_argument("areas", nargs="*", help="only these scripts, and those that make their tables")
    parser.add_argument("--write-docs", action="store_true", help="write the totals to docs/reference/sql.md")
    parser.add_argument("--output", type=Path, help="write what is not equal to this file, as JSON lines")
    options = parser.parse_args()
    if options.folder is None or not (options.folder / "sql").is_dir():
        parser.error("FOLDER, or TIDEGATE_POSTGRES_REGRESS, must be a folder with `sql` and `data`")
    judged: list[Judged] = []
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "tables").mkdir()
        recording = record(options.folder.absolute(), options.areas, Path(scratch) / "tables")
        for area in dict.fromkeys(question.area for question in recording.questions):
            judged += ask([question for question in recording.questions if question.area == area], Path(scratch))
            print(f"{area}: {Counter(one.outcome for one in judged if one.area == area)}", file=sys.stderr, flush=True)
            if options.output:
                write_output(options.output, judged)
    if not options.areas:
        apply_known(judged, "postgres")
        if options.write_docs:
            write_document("PostgreSQL's regression scripts", judged, recording.skipped)
    return report(judged, recording.skipped)


if __name__ == "__main__":
    sys.exit(main())
