"""Flight SQL over TLS, with and without client certificates, by PyPI `adbc-driver-flightsql`. Needs `openssl`."""

import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import adbc_client
import adbc_driver_flightsql.dbapi as flight_sql
from adbc_driver_flightsql import DatabaseOptions

CONFIGURATION = """
server:
  listen: "127.0.0.1:0"
  flight: "127.0.0.1:0"
  tls: {certificate: server.pem, key: server.key, client_ca: ca.pem}
databases:
  - {name: shop, files: data}
auth:
  certificates: [{name: ann, subject: "CN=ann", roles: [reader]}]
roles:
  - {name: reader, databases: [shop], toolsets: ["*"]}
"""


def openssl(folder: Path, *arguments: str):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certificate(folder: Path, name: str, extension: str):
    """A certificate of the authority `ca` for `name`."""
    (folder / f"{name}.ext").write_text(extension)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]
    openssl(folder, "req", *key, "-subj", f"/CN={name}", "-out", f"{name}.csr")
    authority = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", *authority, "-extfile", f"{name}.ext", "-out", f"{name}.pem")


def start(folder: Path):
    (folder / "data").mkdir()
    (folder / "data" / "people.csv").write_text("id,name\n1,ann\n")
    (folder / "tidegate.yaml").write_text(CONFIGURATION)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key"]
    openssl(folder, "req", "-x509", *key, "-subj", "/CN=ca", "-days", "2", "-out", "ca.pem")
    certificate(folder, "server", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    certificate(folder, "ann", "extendedKeyUsage=clientAuth\n")
    command = [adbc_client.BINARY, "serve", "--config", str(folder / "tidegate.yaml")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log, address = [], None
    for line in process.stderr:
        log.append(line)
        if found := re.search(r"listening on (grpc\S+)", line):
            address = found.group(1)
            break
    if not address:
        sys.exit("the server did not start:\n" + "".join(log))
    threading.Thread(target=lambda: [None for _ in process.stderr], daemon=True).start()
    return process, address


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process, address = start(folder)
        try:
            assert address.startswith("grpc+tls://"), address
            trusted = {DatabaseOptions.TLS_ROOT_CERTS.value: (folder / "ca.pem").read_text()}
            client = trusted | {
                DatabaseOptions.MTLS_CERT_CHAIN.value: (folder / "ann.pem").read_text(),
                DatabaseOptions.MTLS_PRIVATE_KEY.value: (folder / "ann.key").read_text(),
            }
            with flight_sql.connect(address, db_kwargs=client, autocommit=True) as connection:
                assert adbc_client.rows(connection, "SELECT name FROM people") == [("ann",)]
            print("ok      a client certificate identifies its caller")
            with flight_sql.connect(address, db_kwargs=trusted, autocommit=True) as connection:
                message = adbc_client.error_of(lambda: adbc_client.rows(connection, "SELECT name FROM people"))
                assert "UNAUTHENTICATED" in message.upper(), message
            print("ok      a client without a certificate is refused")
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
