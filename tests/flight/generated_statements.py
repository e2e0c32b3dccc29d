"""Random statements on the tables `readings` and `sites` of a network, which mean the same in Tidegate and in DuckDB.

Orders state where nulls are, nothing depends on how floats are rounded, and rows with a limit have a unique order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow

# Statements and tables that have one of these are drawn only on request. Remove what is solved.
NODES = ("cork", "oslo", "rome", "turin", "vaasa")
LABELS = ("", "a", "b", "ab", "A%", "ä", "Öl", "日本", "it's")
KINDS = ("heat", "cold", "", None)
PATTERNS = ("%", "a%", "%b", "_", "%ä%", "__", "日_", "A%", "%'%", "", "a", "%o%", "h%")
DAY, TIME = date(2026, 1, 1), datetime(2026, 1, 1)


@dataclass(frozen=True)
class Column:
    """A column of `readings`: its type, with others that it has on some nodes, and a random value in a table of some rows."""

    types: tuple[pyarrow.DataType, ...]
    draw: Callable[[random.Random, int], object]


COLUMNS = {
    "label": Column((pyarrow.string(), pyarrow.large_string()), lambda choice, _: choice.choice(LABELS)),
    "small": Column((pyarrow.int32(), pyarrow.int16(), pyarrow.int64()), lambda choice, _: choice.randint(-4, 6)),
    # Often the `id` of a row.
    "number": Column((pyarrow.int64(),), lambda choice, rows: choice.randint(*choice.choice([(0, rows), (0, rows), (-(1 << 62), 1 << 62)]))),
    "price": Column((pyarrow.decimal128(12, 2), pyarrow.decimal128(15, 3)), lambda choice, _: draw_price(choice)),
    "value": Column((pyarrow.float64(),), lambda choice, _: choice.randint(-200, 200) * 0.25),
    "flag": Column((pyarrow.bool_(),), lambda choice, _: choice.random() < 0.7),
    "day": Column((pyarrow.date32(),), lambda choice, _: DAY + timedelta(days=choice.choice([choice.randint(0, 30), -20_000]))),
    "time": Column((pyarrow.timestamp("us"),), lambda choice, _: TIME + timedelta(hours=choice.randint(-48, 96), microseconds=choice.randint(0, 1))),
}
TYPES = {"id": pyarrow.int64(), **{name: column.types[0] for name, column in COLUMNS.items()}}
SITES_TYPES = {"label": pyarrow.string(), "kind": pyarrow.string()}
TABLES = {"readings": ("_node", *TYPES), "sites": ("_node", *SITES_TYPES)}
NUMBERS = ("id", "small", "number", "price", "value")
COMPARED = (*NUMBERS, "label", "day", "time", "kind")


def draw_price(choice: random.Random) -> Decimal:
    return Decimal(choice.randint(*choice.choice([(-500, 500), (-(10**7), 10**7), (10**12 - 1, 10**12 - 1)]))).scaleb(-2)


@dataclass(frozen=True)
class Source:
    """What follows FROM: the table of each alias, and columns that identify a row."""

    sql: str
    tables: dict[str, str]
    keys: list[str]

    def columns(self, *names: str) -> list[str]:
        return [f"{alias}.{name}" for alias, table in self.tables.items() for name in names if name in TABLES[table]]


@dataclass(frozen=True)
class Statement:
    sql: str
    is_ordered: bool
    # How many columns identify a row of the answer and are exact; other floats have different last digits.
    keys: int


def literal(value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    kind = "TIMESTAMP" if isinstance(value, datetime) else "DATE"
    return f"{kind} '{value}'" if isinstance(value, date) else str(value)


def named(columns: list[str]) -> str:
    return ", ".join(f"{column} AS c{number}" for number, column in enumerate(columns, 1))


def positions(columns: list[str]) -> list[str]:
    return [str(number + 1) for number in range(len(columns))]


class Generator:
    """Random statements that mean the same in Tidegate and in DuckDB."""

    def __init__(self, choice: random.Random, readings: list[dict]):
        """`readings` are the rows of the network."""
        self._choice, self._readings = choice, readings

    def _pick(self, *options):
        return self._choice.choice(options)

    def _is(self, share: float) -> bool:
        return self._choice.random() < share

    def _column(self, source: Source, *names: str) -> str:
        return self._pick(*source.columns(*names))

    def _value(self, column: str) -> str:
        """A literal for a column, mostly a value of a row."""
        name = column.partition(".")[2]
        if name in ("kind", "_node"):
            return literal(self._pick(*(NODES if name == "_node" else KINDS[:3])))
        value = self._pick(*self._readings)[name] if self._readings else None
        return literal(value if value is not None else COLUMNS[name].draw(self._choice, 100) if name != "id" else 7)

    def _source(self) -> Source:
        match self._pick("one", "one", "one", "sites", "sites", "readings"):
            case "sites":
                join = self._pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
                on = self._pick("r.label = s.label", "r.label = s.label", "s.label = r.label AND r._node = s._node")
                # An outer join has other rows with a condition here than with one in WHERE.
                on += f" AND s.kind = {self._value('s.kind')}" if self._is(0.3) else ""
                return Source(f"readings AS r {join} sites AS s ON {on}", {"r": "readings", "s": "sites"}, ["r.id", "s.label", "s.kind"])
            case "readings":
                join = self._pick("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN")
                on = self._pick("r.id = o.number", "r.number = o.id", "r.id = o.id", "r.price = o.price AND r.day = o.day", "r.time = o.time")
                return Source(f"readings AS r {join} readings AS o ON {on}", {"r": "readings", "o": "readings"}, ["r.id", "o.id"])
        alias = self._pick("r", "readings")
        return Source("readings" if alias == "readings" else "readings AS r", {alias: "readings"}, [f"{alias}.id"])

    def _condition(self, source: Source, depth: int = 0) -> str:
        if depth < 2 and self._is(0.3):
            operator = self._pick("AND", "AND", "OR")
            sides = [self._condition(source, depth + 1) for _ in range(2)]
            return f"({sides[0]} {operator} {sides[1]})"
        if self._is(0.08):
            return f"NOT ({self._condition(source, depth + 1)})"
        if self._is(0.3) and "x" not in source.tables:
            return self._subquery(source)
        not_ = self._pick("", "", "NOT ")
        match self._pick("comparison", "comparison", "in", "like", "between", "null", "flag", "node"):
            case "in":
                column = self._column(source, *COMPARED, "_node")
                values = [self._value(column) for _ in range(self._choice.randint(1, 5))] + ["NULL"] * self._is(0.1)
                return f"{column} {not_}IN ({', '.join(values)})"
            case "like":
                return f"{self._column(source, 'label', 'kind', '_node')} {not_}LIKE {literal(self._pick(*PATTERNS))}"
            case "between":
                column = self._column(source, "day", "time", "price", "id", "value", "small")
                return f"{column} {not_}BETWEEN {self._value(column)} AND {self._value(column)}"
            case "null":
                return f"{self._column(source, *COLUMNS, 'kind')} IS {not_}NULL"
            case "flag":
                return self._pick("{}", "NOT {}", "{} IS TRUE", "{} IS NOT TRUE", "{} = FALSE").format(self._column(source, "flag"))
            case "node":
                return f"{self._column(source, '_node')} {self._pick('=', '=', '<>', '>')} {literal(self._pick(*NODES))}"
        return self._comparison(source)

    def _comparison(self, source: Source) -> str:
        operator = self._pick("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        column = self._column(source, *COMPARED)
        value = self._value(column)
        if self._is(0.15):
            column, value = self._column(source, *NUMBERS), self._column(source, *NUMBERS)
        return f"{column} {operator} {value}"

    def _subquery(self, source: Source) -> str:
        def inner(table: str) -> str:
            further = f"x.kind = {self._value('x.kind')}" if table == "sites" else self._condition(Source("", {"x": table}, []), 1)
            return f"FROM {table} AS x" + (f" WHERE {further}" if self._is(0.7) else " WHERE TRUE")

        not_ = self._pick("", "", "NOT ")
        table, outer, name = self._pick(
            ("sites", "label", "label"), ("readings", "id", "number"), ("readings", "number", "id"), ("readings", "day", "day")
        )
        column = self._column(source, outer)
        match self._pick("in", "exists", "value", "value"):
            case "in":
                return f"{column} {not_}IN (SELECT x.{name} {inner(table)})"
            case "value":
                column = self._column(source, *COMPARED[:-1])
                function = self._pick("min", "max", "max")
                return f"{column} {self._pick('=', '=', '<', '>=', '<>')} (SELECT {function}(x.{column.partition('.')[2]}) {inner('readings')})"
        return f"{not_}EXISTS (SELECT 1 {inner(table)} AND x.{name} = {column})"

    def _aggregate(self, source: Source) -> tuple[str, bool]:
        """An aggregate, and whether it is exact."""
        number, compared = self._column(source, *NUMBERS), self._column(source, *COMPARED)
        spread, flag = self._column(source, "small", "value", "price"), self._column(source, "flag")
        exact = ["count(*)", f"count({compared})", f"count(DISTINCT {compared})", f"min({compared})", f"max({compared})"]
        exact += [f"bool_and({flag})", f"bool_or({flag})", f"sum({self._column(source, *NUMBERS[:-1])})"]
        floats = [f"avg({number})", f"sum({self._pick('', 'DISTINCT ')}{number})", f"stddev_samp({spread})", f"var_pop({spread})"]
        # Without prices: whether equal ones have a correlation depends on the last digits.
        floats.append(f"corr({self._column(source, 'value', 'small')}, {self._column(source, 'value', 'small')})")
        aggregate = self._pick(*exact, *floats)
        return aggregate + (f" FILTER (WHERE {self._comparison(source)})" if self._is(0.15) else ""), aggregate in exact

    def _key(self, source: Source) -> str:
        column = self._column(source, "label", "label", "small", "flag", "day", "_node", "kind", "price", "time", "value")
        match column.partition(".")[2]:
            case "time":
                return self._pick(f"date_trunc('day', {column})", f"date_trunc('hour', {column})", f"extract(hour FROM {column})")
            case "small":
                return self._pick(column, f"{column} % 2", f"CASE WHEN {column} > 0 THEN 'positive' ELSE 'other' END")
            case "label":
                return self._pick(column, column, f"lower({column})", f"length({column})")
        return column

    def _rest(self, source: Source) -> str:
        return f" FROM {source.sql}" + (f" WHERE {self._condition(source)}" if self._is(0.75) else "")

    def statement(self) -> Statement:
        source = self._source()
        match self._pick("rows", "rows", "rows", "groups", "groups", "groups", "total", "distinct", "derived"):
            case "groups":
                return self._groups(source)
            case "total":
                aggregates = [self._aggregate(source)[0] for _ in range(self._choice.randint(1, 4))]
                return Statement(f"SELECT {named(aggregates)}{self._rest(source)}", False, 0)
            case "distinct":
                columns = [self._key(source) for _ in range(self._choice.randint(1, 3))]
                return self._ordered(f"SELECT DISTINCT {named(columns)}{self._rest(source)}", len(columns), positions(columns))
            case "derived":
                inner = self._rows(source) if self._is(0.5) else self._groups(source)
                return Statement(f"SELECT t.c1 AS c1, count(*) AS c2 FROM ({inner.sql}) AS t GROUP BY t.c1", False, 1)
        return self._rows(source)

    def _rows(self, source: Source) -> Statement:
        columns = self._choice.sample(source.columns("_node", *TYPES, "kind"), self._choice.randint(1, 6))
        sql = f"SELECT {named(columns)}{self._rest(source)}"
        if self._is(0.2):
            sql += f" {self._pick('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT')} SELECT {named(columns)}{self._rest(source)}"
            return self._ordered(sql, len(columns), positions(columns))
        further = self._choice.sample(source.columns("_node", *COMPARED), self._choice.randint(0, 2))
        return self._ordered(sql, len(columns), [*further, *source.keys])

    def _groups(self, source: Source) -> Statement:
        keys = list(dict.fromkeys(self._key(source) for _ in range(self._choice.randint(1, 3))))
        aggregates = [self._aggregate(source) for _ in range(self._choice.randint(1, 4))]
        sql = f"SELECT {named(keys + [aggregate for aggregate, _ in aggregates])}{self._rest(source)}"
        sql += f" GROUP BY {', '.join(self._pick(keys, positions(keys)))}"
        column = self._column(source, *COMPARED)
        sql += self._pick("", "", "", f" HAVING count(*) > {self._pick(1, 2, 10)}", f" HAVING max({column}) >= {self._value(column)}")
        exact = [str(len(keys) + number + 1) for number, (_, is_exact) in enumerate(aggregates) if is_exact]
        first = [self._pick(*exact)] if exact and self._is(0.5) else []
        return self._ordered(sql, len(keys), first + positions(keys))

    def _ordered(self, sql: str, keys: int, order: list[str]) -> Statement:
        """The statement, mostly ordered by `order`, which identifies a row, and then mostly with a limit."""
        if self._is(0.4):
            return Statement(sql, False, keys)
        directions = [f"{key} {self._pick('ASC', 'DESC')} NULLS {self._pick('FIRST', 'LAST')}" for key in order]
        limit = f" LIMIT {self._pick(0, 1, 3, 10, 10, 100, 100)}{self._pick('', '', ' OFFSET 1', ' OFFSET 7')}" if self._is(0.7) else ""
        return Statement(f"{sql} ORDER BY {', '.join(directions)}{limit}", True, keys)
