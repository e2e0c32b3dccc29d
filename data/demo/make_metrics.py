"""Makes the demo's metrics of the web shop from its logs, so that both agree: the same bytes in each run.

    python3 data/demo/make_metrics.py
"""

import collections
import gzip
import pathlib
import re
from datetime import datetime, timedelta, timezone

HERE = pathlib.Path(__file__).parent
START = datetime(2026, 3, 14, 12, tzinfo=timezone.utc)
MINUTES = 360
# What the service of payments has by its release, as its log says.
POOL = re.compile(r"setting pool_max changed from \d+ to (\d+)")
PAID = re.compile(r"order \d+ paid after (\d+) ms")
FAILED = re.compile(r"order \d+: payment did not answer in (\d+) ms")
ACCESS = re.compile(r'\[([^]]+)\] "\S+ \S+ \S+" (\d)')
APP = re.compile(r'ts=(\S+) \S+ \S+ msg="(.*)"')


def main() -> None:
    requests = collections.Counter()
    checkouts = collections.defaultdict(list)
    pool_changes = [(START, 20)]
    for line in lines("shop_access.log.gz"):
        stamp, status = ACCESS.search(line).groups()
        requests[minute(datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z")), f"{status}xx"] += 1
    for line in lines("shop_app.log.gz"):
        stamp, message = APP.match(line).groups()
        time = datetime.fromisoformat(stamp)
        if found := PAID.search(message) or FAILED.search(message):
            checkouts[minute(time)].append(int(found[1]))
        elif found := POOL.search(message):
            pool_changes.append((time, int(found[1])))
    rows, totals = [], collections.Counter()
    for ended in range(1, MINUTES + 1):
        at = START + timedelta(minutes=ended)
        stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        for status in ("2xx", "4xx", "5xx"):
            totals[status] += requests[ended - 1, status]
            rows.append(f"{stamp},http_requests_total,requests,web,{status},{totals[status]}")
        if durations := checkouts[ended - 1]:
            rows.append(f"{stamp},checkout_duration,ms,checkout,,{round(sum(durations) / len(durations))}")
        size = [size for time, size in pool_changes if time < at][-1]
        rows.append(f"{stamp},pool_connections_max,connections,payment,,{size}")
    text = "".join(f"{row}\n" for row in ["time,metric,unit,service,status,value", *rows])
    # Without the time of day and the name, so that the file is the same in each run.
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    (HERE / "shop_metrics.csv.gz").write_bytes(packed)
    print(f"shop_metrics.csv.gz: {len(rows)} rows, {len(packed)} bytes")


def minute(time: datetime) -> int:
    return int((time - START).total_seconds() // 60)


def lines(name: str) -> list[str]:
    return gzip.decompress((HERE / name).read_bytes()).decode().splitlines()


if __name__ == "__main__":
    main()
