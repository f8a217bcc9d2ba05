"""What goes out with a release: its links, its version, its changelog; and what is checked before."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parent.parent
URL = "https://github.com/someone/plaudit"


def set_links(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/set-links on a copy of the files that it rewrites."""
    (folder / ".ci").mkdir(exist_ok=True)
    for name in ("README.md", "pyproject.toml", ".ci/set-links"):
        if not (folder / name).exists():
            shutil.copy(ROOT / name, folder / name)
    if not (folder / "benchmarks").exists():
        (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    command = [sys.executable, str(folder / ".ci" / "set-links"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_page_links_to_the_repository_that_released_it(tmp_path: Path) -> None:
    assert set_links(tmp_path, URL, "v1.2.3").returncode == 0
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Repository"] == URL
    assert set(project["urls"]) == {"Repository", "Documentation", "Changelog", "Issues"}
    assert project["scripts"] == {"plaudit": "plaudit_command:main"}


def test_no_link_of_the_readme_is_relative_then_and_each_leads_to_a_file(tmp_path: Path) -> None:
    set_links(tmp_path, URL, "v1.2.3")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", (tmp_path / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 20
    for picture, link in links:
        if link.startswith("#"):
            continue  # a section of the README itself
        kind, _, path = link.removeprefix(f"{URL}/").partition("/v1.2.3/")
        file = ROOT / path.partition("#")[0]
        assert kind == ("raw" if picture else "tree" if file.is_dir() else "blob"), link
        assert file.exists(), link


def test_a_wrong_address_or_a_second_run_is_refused(tmp_path: Path) -> None:
    assert "is not the address of a repository" in set_links(tmp_path, "someone/plaudit", "v1").stderr
    set_links(tmp_path, URL, "v1")
    assert "already has [project.urls]" in set_links(tmp_path, URL, "v1").stderr


def test_the_changelog_has_a_section_for_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert re.search(
        rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )


def workflow(name: str) -> Any:
    return msgspec.yaml.decode((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_the_workflow_makes_all_that_our_own_checks_make() -> None:
    ours = re.findall(r"^make [a-z]\S*", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    jobs = workflow("ci.yml")["jobs"]
    made = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert sorted(made) == sorted(ours)


def test_the_supported_versions_of_python_are_those_that_are_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    tried = workflow("ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert tried == {"os": ["ubuntu-latest", "macos-latest"], "python": named}
    assert project["requires-python"] == f">={named[0]}"


def test_every_file_of_github_s_is_yaml_and_every_action_has_a_version() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) >= 7
    for file in files:
        assert msgspec.yaml.decode(file.read_text(encoding="utf-8")), file
        used = re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8"))
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action) for action in used), used
