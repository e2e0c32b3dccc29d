"""The Helm chart: a Deployment with probes, its configuration and a Service. The template engine is Helm's; none runs here."""

from pathlib import Path

from containers import Files, tar_gz, text
from project import ROOT, Project


def build(project: Project) -> Path:
    source = ROOT / "packaging" / "chart"
    files: Files = {}
    for path in sorted(source.rglob("*.yaml")):
        content = path.read_text()
        for name, value in {"@DESCRIPTION@": project.description, "@VERSION@": project.version, "@REPOSITORY@": project.repository}.items():
            content = content.replace(name, value)
        files[f"{project.name}/{path.relative_to(source)}"] = text(content)
    return project.write(f"{project.name}-chart-{project.version}.tgz", tar_gz(files, project.epoch))
