-- The tables that the statements of honest.sql read, and what those of attempts.sql try to misuse.
-- SQLite 3.38 or later, with FTS5.

CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT,
    city TEXT,
    joined TEXT NOT NULL,
    credit REAL,
    active INTEGER NOT NULL DEFAULT 1
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customers (id),
    placed_at TEXT NOT NULL,
    status TEXT NOT NULL,
    total NUMERIC NOT NULL,
    note TEXT
);

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    happened INTEGER NOT NULL,
    body TEXT NOT NULL,
    payload BLOB
);

CREATE TABLE "Odd Names" ("the.dot" INTEGER, "a/b" TEXT, "back`tick" TEXT, "select" INTEGER);

CREATE VIRTUAL TABLE notes USING fts5 (title, body);

INSERT INTO customers VALUES
    (1, 'Ada', 'ada@example.com', 'London', '2020-01-15', 1000.5, 1),
    (2, 'Boris', 'boris@example.com', 'Sofia', '2020-06-01', NULL, 1),
    (3, 'Chloé', NULL, 'Paris', '2021-03-08', 0, 0),
    (4, 'Dmitri O''Hara', 'd.ohara@example.com', NULL, '2022-12-31', 250, 1);
INSERT INTO orders VALUES
    (10, 1, '2024-01-05 10:00:00', 'shipped', 120, 'leave at the door'),
    (11, 1, '2024-02-10 18:30:00', 'paid', 80.5, NULL),
    (12, 2, '2024-02-11 09:15:00', 'open', 15.25, 'back\slash'),
    (13, 3, '2024-03-01 23:59:59', 'cancelled', 300, '100% "sure"'),
    (14, 4, '2024-03-15 12:00:00', 'open', 42, '');
INSERT INTO events VALUES
    (1, 1704067200, '{"user": {"id": 1, "name": "Ada"}, "tags": ["a", "b"]}', x'deadbeef'),
    (2, 1704153600, '{"user": {"id": 2}, "tags": []}', NULL);
INSERT INTO "Odd Names" VALUES (1, 'slash', 'tick', 7);
INSERT INTO notes VALUES ('first', 'the quick brown fox'), ('second', 'a lazy dog');

CREATE VIEW evil_view AS SELECT id, (SELECT count(*) FROM sqlite_schema) AS n FROM customers;
