"""The list of all components of the program, as [CycloneDX 1.6](https://cyclonedx.org/docs/1.6/json/)."""

import hashlib
import json
import time
import uuid

from dependencies import Crate
from project import Project


def reference(name: str, version: str) -> str:
    return f"pkg:cargo/{name}@{version}"


def component(crate: Crate, kind: str = "library") -> dict[str, object]:
    described: dict[str, object] = {
        "type": kind,
        "bom-ref": reference(crate.name, crate.version),
        "name": crate.name,
        "version": crate.version,
        "licenses": [{"expression": crate.licence}],
    }
    if crate.checksum:
        described["purl"] = reference(crate.name, crate.version)
        described["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    if crate.repository:
        described["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    return described


def bill_of_materials(project: Project, crates: list[Crate]) -> str:
    program = next(crate for crate in crates if crate.name == project.name)
    digest = hashlib.sha256(project.binary.read_bytes()).hexdigest()
    described = component(program, "application")
    described["hashes"] = [{"alg": "SHA-256", "content": digest}]
    content = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same program has the same number.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{project.repository}#{digest}')}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(project.epoch)),
            "component": described,
        },
        "components": [component(crate) for crate in crates if crate is not program],
        "dependencies": [
            {
                "ref": reference(crate.name, crate.version),
                "dependsOn": [reference(*dependency) for dependency in crate.dependencies],
            }
            for crate in crates
        ],
    }
    return json.dumps(content, indent=1) + "\n"
