"""Which statements of a script are questions about tables only: those can be asked over files, too."""

import re

from psql_script import bare_of
from server import Server

QUESTION = re.compile(r"[\s(]*(select|values|with|table)\b", re.IGNORECASE)
# What a statement contains that asks for more than its tables, by the reason.
PATTERNS = {
    "it writes or locks": r"\binto\b|\bfor\s+(no\s+key\s+)?(update|share|key\s+share)\b|\b(insert|update|delete|merge)\b",
    "catalogs": r"\bpg_(?!typeof\b|size_pretty\b)\w+|\binformation_schema\b|\breg(class|type|proc|procedure|oper|operator|namespace|role|config|dictionary|collation)\b"
    r"|\bto_reg\w+|\b(obj|col|shobj)_description\b|\bhas_\w+_privilege\b|\b\w*(query|table|schema|database|cursor)_to_xml\w*",
    "system columns": r"\b(oid|ctid|tableoid|xmin|xmax|cmin|cmax)\b",
    "sequences and settings": r"\b(nextval|currval|lastval|setval|set_config|current_setting)\b|\btxid_\w+|\bsetseed\b",
    "time, chance, session": r"\b(now|random|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|gen_random_uuid)\s*\("
    r"|\b(current_(date|time|timestamp|user|role|schema|catalog|database)|localtime|localtimestamp|session_user|current_schemas|version)\b",
    "server functions": r"\b(lo_\w+|dblink\w*|brin_\w+|gin_\w+|binary_coercible|has_\w+|inet_(client|server)\w+|row_security_active)\b",
    "functions that its manual does not have": r"\b(float[48]send|booleq|boolne|int4mul|\w+_(accum|combine|statefunc|hash))\s*\(",
    "a type that no file has": r"\b(tsvector|tsquery|\w*to_tsvector|\w*to_tsquery|ts_headline|int2vector|oidvector|timetz|time\s+with\s+time\s+zone)\b",
    "inheritance": r"\bonly\s+[(\"a-z_]|\btablesample\b",
}
PATTERNS = {reason: re.compile(pattern, re.IGNORECASE) for reason, pattern in PATTERNS.items()}
# In texts: the time at which the statement runs.
MOMENTS = re.compile(r"'(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
DEFINES = re.compile(r"\s*(create|drop|alter|begin|rollback|commit|set|reset|do|call)\b", re.IGNORECASE)
OWN = """SELECT 'function', proname FROM pg_proc WHERE pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    UNION SELECT 'type', typname FROM pg_type WHERE typnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
        AND typtype IN ('b', 'd', 'e', 'r', 'm', 'c') AND typcategory <> 'A' AND NOT EXISTS (SELECT FROM pg_class WHERE pg_class.oid = typrelid AND relkind <> 'c')
    UNION SELECT 'operator', oprname FROM pg_operator o WHERE oprnamespace <> 'pg_catalog'::regnamespace
        AND NOT EXISTS (SELECT FROM pg_operator p WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprname = o.oprname)
    UNION SELECT 'schema', nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema')
    UNION SELECT 'collation', collname FROM pg_collation WHERE collnamespace <> 'pg_catalog'::regnamespace"""


class ServerState:
    """Functions, types, operators and schemas that the scripts have created so far."""

    def __init__(self, server: Server):
        self.server = server
        self.is_current = False
        self.words: dict[str, str] = {}
        self.functions: set[str] = set()
        self.operators: list[str] = []

    def changed_by(self, sql: str):
        if DEFINES.match(sql):
            self.is_current = False

    def refresh(self):
        if self.is_current:
            return
        self.words, self.functions, self.operators = {}, set(), []
        for kind, name in self.server.rows(OWN):
            if kind == "function":
                self.functions.add(name.lower())
            elif kind == "operator":
                self.operators.append(name)
            else:
                self.words[name.lower()] = f"a {kind} of the script"
        self.is_current = True

    def reason_against(self, sql: str) -> str | None:
        """Why the statement is not a question about tables only."""
        bare = bare_of(sql)
        if found := next((reason for reason, pattern in PATTERNS.items() if pattern.search(bare)), None):
            return found
        if MOMENTS.search(sql):
            return "time, chance, session"
        self.refresh()
        words = {word.lower() for word in re.findall(r"[A-Za-z_]\w*", bare)}
        if own := next((reason for word, reason in self.words.items() if word in words), None):
            return own
        calls = {word.lower() for word in re.findall(r'([A-Za-z_]\w*)"?\s*\(', bare)}
        if calls & self.functions:
            return "a function of the script"
        return "an operator of the script" if any(operator in bare for operator in self.operators) else None
