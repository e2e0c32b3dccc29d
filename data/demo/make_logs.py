"""Makes the demo's logs of a web shop, which does not exist: the same bytes in each run.

    python3 data/demo/make_logs.py

A deployment of the payment service at 15:01:48 makes its connection pool too small. Checkouts fail until it is undone.
"""

import gzip
import pathlib
import random
from datetime import datetime, timedelta, timezone

HERE = pathlib.Path(__file__).parent
START = datetime(2026, 3, 14, 12, tzinfo=timezone.utc)
END = START + timedelta(hours=6)
DEPLOYED = datetime(2026, 3, 14, 15, 1, 48, tzinfo=timezone.utc)
# Connections last for a while: the first one is missing some seconds later.
FAILING_FROM = DEPLOYED + timedelta(seconds=22)
UNDONE = datetime(2026, 3, 14, 15, 31, 5, tzinfo=timezone.utc)
REQUESTS = 12_000
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "kube-probe/1.32",
)
PAGES = (("/", 20), ("/items", 45), ("/search", 14), ("/cart", 9), ("/checkout", 6), ("/health", 6))


def main() -> None:
    spread = random.Random(2026)
    access, events = [], []
    seconds = sorted(spread.random() * (END - START).total_seconds() for _ in range(REQUESTS))
    for order, second in enumerate(seconds, 40_001):
        time = START + timedelta(seconds=second)
        page = spread.choices([name for name, _ in PAGES], [weight for _, weight in PAGES])[0]
        line, found = request(spread, time, page, order)
        access.append(line)
        events.extend(found)
    events.extend(operations(spread))
    events.sort(key=lambda event: event[0])
    write("shop_access.log.gz", access)
    write("shop_app.log.gz", [text for _, text in events])


def request(spread: random.Random, time: datetime, page: str, order: int) -> tuple[str, list[tuple[datetime, str]]]:
    """The line of the access log, and what the services log about it."""
    method, path, status, size, events = "GET", page, 200, spread.randrange(2_000, 40_000), []
    agent = spread.choices(AGENTS[:3], (5, 3, 4))[0]
    address = f"203.0.113.{spread.randrange(1, 250)}"
    if page == "/items":
        path = f"/items/{spread.randrange(1, 400)}"
        if spread.random() < 0.02:
            status, size = 404, 153
    elif page == "/search":
        path = f"/search?q={spread.choice(('lamp', 'chair', 'desk', 'shelf', 'rug', 'mirror'))}"
        if spread.random() < 0.004:
            status, size = 500, 177
            events.append(event(time, "error", "search", f"index shard {spread.randrange(4)} did not answer in 2000 ms"))
    elif page == "/health":
        agent, address, size = AGENTS[3], "10.0.0.7", 2
    elif page == "/checkout":
        method, size = "POST", spread.randrange(400, 900)
        fails = FAILING_FROM <= time < UNDONE and spread.random() < 0.8
        if fails:
            status, size = 504, 167
            waited = time - timedelta(milliseconds=spread.randrange(5, 40))
            message = f"order {order}: connection pool exhausted: 2 of 2 connections in use, waited 5000 ms"
            events.append(event(waited, "error", "payment", message))
            events.append(event(time, "error", "checkout", f"order {order}: payment did not answer in 5000 ms"))
        else:
            taken = spread.randrange(80, 400)
            events.append(event(time, "info", "checkout", f"order {order} paid after {taken} ms"))
    referrer = "-" if agent == AGENTS[3] else "https://shop.example/"
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000")
    line = f'{address} - - [{stamp}] "{method} {path} HTTP/1.1" {status} {size} "{referrer}" "{agent}"'
    return line, events


def operations(spread: random.Random) -> list[tuple[datetime, str]]:
    """What the services log without a request."""
    events = []
    for minutes in range(0, 360, 5):
        time = START + timedelta(minutes=minutes, seconds=spread.randrange(20), milliseconds=spread.randrange(1_000))
        events.append(event(time, "info", "stock", f"{spread.randrange(90, 140)} items counted in {spread.randrange(30, 90)} ms"))
        if spread.random() < 0.15:
            late = time + timedelta(seconds=spread.randrange(5, 200))
            events.append(event(late, "warn", "mail", f"delivery delayed by {spread.randrange(2, 30)} s"))
    events += [
        event(START + timedelta(minutes=71, seconds=12), "info", "search", "release 2.11.0 started"),
        event(DEPLOYED, "info", "payment", "release 4.7.1 started"),
        event(DEPLOYED + timedelta(milliseconds=310), "warn", "payment", "setting pool_max changed from 20 to 2"),
        event(UNDONE, "info", "payment", "release 4.7.0 started"),
        event(UNDONE + timedelta(milliseconds=290), "warn", "payment", "setting pool_max changed from 2 to 20"),
    ]
    return events


def event(time: datetime, level: str, service: str, message: str) -> tuple[datetime, str]:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1_000:03}Z"
    return time, f'ts={stamp} level={level} service={service} msg="{message}"'


def write(name: str, lines: list[str]) -> None:
    # Without the time of day and the name, so that the file is the same in each run.
    packed = gzip.compress("".join(f"{line}\n" for line in lines).encode(), compresslevel=9, mtime=0)
    (HERE / name).write_bytes(packed)
    print(f"{name}: {len(lines)} lines, {len(packed)} bytes")


if __name__ == "__main__":
    main()
