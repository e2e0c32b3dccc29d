"""The files that the client tests query: small, with deliberately irregular content, written for each run."""

import gzip
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

# The folder's name is the database's name.
DATABASE = "shop"
MEASUREMENTS = 20_000
NUMBERS = 10_000_000

ORDERS = """\
id,customer,amount,placed_at,note
1,Ann,12.5,2024-01-02,"said ""hello, world\"""
2,Bob,7.25,2024-01-03,
3,Ann,30,2024-02-01,"two
lines"
4,Zoë,,2024-02-02,comma and tab\there
5,Bob,40,2024-03-01,plain
"""

ODD = """\
order id,Größe,select
1,L'été,a
2,XL,b
3,L'été,c
"""

CUSTOMERS = [
    {"name": "Ann", "city": "Oslo", "tags": ["new", "vip"]},
    {"name": "Bob", "city": None, "tags": []},
    {"name": "Zoë", "city": "Kraków", "tags": ["vip"]},
]


CONFIGURATION = """\
databases:
  - name: {database}
    files: {shop}
  - name: large
    files: {large}
  - name: ledger
    sqlite: {ledger}
  - name: system
    system: {{}}
logs:
  - {{name: notes, table: {database}.orders, time: placed_at, message: note}}
metrics:
  - {{name: sales, table: {database}.orders, time: placed_at, columns: [amount], labels: [customer]}}
tools:
  - name: largest
    description: The longest message that the default bounds allow, as CSV; its rows are also structured content.
    database: {database}
    sql: SELECT repeat(chr(1), 39595) AS t
  - name: refund
    description: Refunds an order after a person has confirmed.
    database: {database}
    sql: SELECT id, CAST(:amount AS DOUBLE) AS refunded FROM orders WHERE id = :purchase
    confirm: "Refund {{{{amount}}}} for order {{{{purchase}}}}?"
    input: {{purchase: {{type: integer}}, amount: {{type: number}}}}
  - name: orders_of
    description: The orders of one customer.
    database: {database}
    sql: SELECT id FROM orders WHERE customer = :customer ORDER BY id
    input: {{customer: {{type: string, ask: "Which customer?"}}}}
limits:
  task_after: 1s
"""


def write_configuration(parent: Path, shop: Path, large: Path) -> Path:
    """Writes a configuration with both folders, a ledger and declared tools into `parent`."""
    file = parent / "tidegate.yaml"
    # JSON is valid YAML and quotes any character of the path.
    paths = {"shop": shop, "large": large, "ledger": write_ledger(parent)}
    texts = {name: json.dumps(str(path)) for name, path in paths.items()}
    file.write_text(CONFIGURATION.format(database=DATABASE, **texts), encoding="utf-8")
    return file


def write_ledger(parent: Path) -> Path:
    """Writes a SQLite ledger, whose count has no progress, into `parent`."""
    file = parent / "ledger.db"
    with closing(sqlite3.connect(file)) as ledger:
        ledger.execute("CREATE TABLE refunds (purchase INTEGER NOT NULL, amount REAL NOT NULL)")
        ledger.commit()
    return file


def write(parent: Path) -> Path:
    """Writes the database's folder into `parent`."""
    folder = parent / DATABASE
    folder.mkdir()
    (folder / "orders.csv").write_text(ORDERS, encoding="utf-8")
    (folder / 'odd "name", 2024.csv').write_text(ODD, encoding="utf-8")
    (folder / "customers.json").write_text(json.dumps(CUSTOMERS, ensure_ascii=False), encoding="utf-8")
    with gzip.open(folder / "measurements.csv.gz", "wt", encoding="utf-8") as file:
        file.write("id,sensor,celsius\n")
        file.writelines(f"{n},sensor-{n % 7},{n % 400 / 10}\n" for n in range(MEASUREMENTS))
    return folder


def write_numbers(parent: Path) -> Path:
    """Writes a folder with ten million rows in one table, for slow calls. Reuses an existing folder."""
    folder = parent / "large"
    file = folder / "numbers.csv"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / "numbers.unfinished"
        with unfinished.open("wb") as output:
            output.write(b"n\n")
            output.flush()
            subprocess.run(["seq", str(NUMBERS)], stdout=output, check=True)
        unfinished.rename(file)
    return folder
