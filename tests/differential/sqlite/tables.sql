-- The tables of the statements for SQLite.

CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER, kind TEXT COLLATE NOCASE, added TEXT, raw BLOB, doc TEXT);
INSERT INTO item VALUES
    (1, 'Chair', 49.5, 10, 'Home', '2023-01-15', x'00ff', '{"a": 1, "b": [1, 2, 3], "c": {"d": "deep"}}'),
    (2, 'Desk', 120.0, 3, 'home', '2023-02-28 12:30:00', x'', '[1, "two", null, true, 2.5]'),
    (3, 'Lamp', 19.99, 0, 'LIGHT', '2024-02-29', NULL, '{}'),
    (4, 'Öllampe', NULL, 7, 'light', '2024-12-31 23:59:59.5', x'c3b6', NULL),
    (5, NULL, -1.25, NULL, NULL, NULL, x'616263', '"text"'),
    (6, 'a%b_c', 0.0, 9223372036854775807, 'other', '1969-12-31', x'0a', '42');
CREATE TABLE sale (id INTEGER PRIMARY KEY, item_id INTEGER, day TEXT NOT NULL, amount INTEGER NOT NULL, note);
INSERT INTO sale VALUES
    (1, 1, '2024-01-01', 2, 'x'), (2, 1, '2024-01-02', 1, 1), (3, 2, '2024-01-02', 5, 2.5), (4, 3, '2024-01-03', 1, NULL),
    (5, 3, '2024-01-05', 4, x'01'), (6, 4, '2024-01-05', 3, '10'), (7, NULL, '2024-01-06', 9, 'none'), (8, 1, '2024-01-07', 6, -3);
CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER, label TEXT);
INSERT INTO node VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'aa'), (5, 4, 'aaa');
CREATE VIEW sold AS SELECT i.name AS name, sum(s.amount) AS amount FROM sale s JOIN item i ON i.id = s.item_id GROUP BY i.name;
