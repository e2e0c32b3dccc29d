-- The tables that the statements of honest.sql read, and what those of attempts.sql try to misuse.
-- Runs as the owner of an empty database, PostgreSQL 15 or later; needs no extension.

CREATE TYPE status AS ENUM ('open', 'paid', 'shipped', 'cancelled');

CREATE TABLE customers (
    id integer PRIMARY KEY,
    name text NOT NULL,
    email varchar(80),
    city text,
    tags text[] NOT NULL DEFAULT '{}',
    joined date NOT NULL,
    credit numeric(12, 2),
    active boolean NOT NULL DEFAULT true
);
COMMENT ON TABLE customers IS 'who buys';

CREATE TABLE orders (
    id bigint PRIMARY KEY,
    customer_id integer REFERENCES customers (id),
    placed_at timestamptz NOT NULL,
    status status NOT NULL DEFAULT 'open',
    total numeric(10, 2) NOT NULL,
    note text,
    delivery daterange
);

CREATE TABLE items (
    order_id bigint NOT NULL REFERENCES orders (id),
    line smallint NOT NULL,
    product text NOT NULL,
    quantity integer NOT NULL,
    price double precision NOT NULL,
    PRIMARY KEY (order_id, line)
);

CREATE TABLE events (
    id bigint PRIMARY KEY,
    happened timestamp NOT NULL,
    kind text NOT NULL,
    body jsonb NOT NULL,
    raw json,
    readings double precision[],
    window_of tstzrange,
    address inet,
    token uuid,
    payload bytea
);

CREATE TABLE "Odd Names" (
    "the.dot" integer,
    "a/b" text,
    "say ""hi""" text,
    "select" integer,
    "Ünï" text
);

CREATE SCHEMA archive;
CREATE TABLE archive.orders (LIKE orders);
CREATE TABLE "2013.csv" (n integer);

CREATE SEQUENCE ticket START 100;

INSERT INTO customers VALUES
    (1, 'Ada', 'ada@example.com', 'London', '{early,vip}', '2020-01-15', 1000.50, true),
    (2, 'Boris', 'boris@example.com', 'Sofia', '{}', '2020-06-01', NULL, true),
    (3, 'Chloé', NULL, 'Paris', '{vip}', '2021-03-08', 0, false),
    (4, 'Dmitri O''Hara', 'd.ohara@example.com', NULL, '{late,"two words"}', '2022-12-31', 250, true);
INSERT INTO orders VALUES
    (10, 1, '2024-01-05 10:00:00+00', 'shipped', 120.00, 'leave at the door', '[2024-01-06,2024-01-09)'),
    (11, 1, '2024-02-10 18:30:00+00', 'paid', 80.50, NULL, '[2024-02-11,2024-02-12)'),
    (12, 2, '2024-02-11 09:15:00+00', 'open', 15.25, 'back\slash', NULL),
    (13, 3, '2024-03-01 23:59:59+00', 'cancelled', 300.00, '100% "sure"', '[2024-03-02,)'),
    (14, 4, '2024-03-15 12:00:00+00', 'open', 42.00, '', '(,2024-04-01)');
INSERT INTO items VALUES
    (10, 1, 'lamp', 2, 40), (10, 2, 'desk', 1, 40), (11, 1, 'chair', 1, 80.5),
    (12, 1, 'pen', 5, 3.05), (13, 1, 'sofa', 1, 300), (14, 1, 'lamp', 1, 42);
INSERT INTO events VALUES
    (1, '2024-01-01 00:00:00', 'login', '{"user": {"id": 1, "name": "Ada"}, "ok": true, "tries": 1}', '{"a": [1, 2, 3]}',
     '{1.5,2.5,3.5}', '[2024-01-01 00:00+00,2024-01-01 01:00+00)', '192.168.1.10/24',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\xdeadbeef'),
    (2, '2024-01-01 06:30:00', 'purchase', '{"user": {"id": 1}, "items": [{"sku": "x", "n": 2}, {"sku": "y", "n": 1}]}', '{"a": []}',
     '{}', NULL, '10.0.0.1', NULL, '\x00ff'),
    (3, '2024-01-02 12:00:00', 'login', '{"user": {"id": 2, "name": "Boris"}, "ok": false, "tries": 3}', NULL,
     NULL, '[2024-01-02 12:00+00,)', 'fe80::1', NULL, NULL);
INSERT INTO "Odd Names" VALUES (1, 'slash', 'quote', 7, 'umlaut');
INSERT INTO archive.orders SELECT * FROM orders WHERE id < 12;
INSERT INTO "2013.csv" VALUES (1), (2);

-- What other objects of a database may hide. Nothing in a statement's text tells that they write: no
-- parser can refuse them, so the transaction and the role must.
CREATE TABLE evil_log (at timestamptz DEFAULT now(), who text);

CREATE FUNCTION evil_fn() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO evil_log (who) VALUES (current_user);
    RETURN 1;
END $$;

CREATE FUNCTION evil_of(customers) RETURNS integer LANGUAGE sql AS 'SELECT evil_fn()';

CREATE FUNCTION evil_compare(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil_fn() > 0';
CREATE OPERATOR ~~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil_compare);

CREATE TYPE evil_type AS (n integer);
CREATE FUNCTION evil_cast(text) RETURNS evil_type LANGUAGE sql AS 'SELECT ROW(evil_fn())::evil_type';
CREATE CAST (text AS evil_type) WITH FUNCTION evil_cast(text);

CREATE FUNCTION evil_rows() RETURNS SETOF integer LANGUAGE sql AS 'SELECT evil_fn()';
CREATE FUNCTION evil_step(integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT evil_fn() + $1';
CREATE AGGREGATE evil_sum(integer) (SFUNC = evil_step, STYPE = integer, INITCOND = '0');
CREATE VIEW evil_view AS SELECT evil_fn() AS n;
CREATE FUNCTION evil_as_owner() RETURNS integer LANGUAGE sql SECURITY DEFINER AS 'SELECT evil_fn()';
CREATE FUNCTION evil_default(n integer DEFAULT evil_fn()) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE DOMAIN evil_domain AS text CHECK (evil_compare(VALUE, 'x'));
CREATE TYPE evil_holder AS (held evil_type);
CREATE DOMAIN evil_over AS evil_domain;
CREATE TYPE evil_outer AS (inner_row evil_over[]);

-- Functions that only read, as a database offers them.
CREATE FUNCTION report(year integer) RETURNS TABLE (month date, revenue numeric) LANGUAGE sql STABLE AS $$
    SELECT date_trunc('month', o.placed_at AT TIME ZONE 'UTC')::date, sum(o.total) FROM orders o
    WHERE extract(year FROM o.placed_at AT TIME ZONE 'UTC') = year GROUP BY 1
$$;
CREATE FUNCTION label(customers) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1.name || ' of ' || $1.city $$;
