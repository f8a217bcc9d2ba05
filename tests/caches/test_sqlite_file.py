"""Which file systems are on the network."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from plaudit.caches.sqlite_file import NETWORK_KINDS, kind_of, network_kind

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:50 / /home rw,relatime shared:5 master:2 - nfs4 server:/home rw,vers=4.2
31 30 0:51 / /home/me/scratch rw - ext4 /dev/vdb rw
32 22 0:52 / /data\040sets rw - lustre mds@tcp:/data rw
33 22 0:53 / /twice rw - ext4 /dev/vdc rw
34 33 0:54 / /twice rw - cifs //nas/share rw
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/cache/verdicts.sqlite", "ext4"),
        ("/home/me/.cache/plaudit/verdicts.sqlite", "nfs4"),
        ("/home/me/scratch/verdicts.sqlite", "ext4"),
        ("/homely/verdicts.sqlite", "ext4"),
        ("/data sets/verdicts.sqlite", "lustre"),
        ("/twice/verdicts.sqlite", "cifs"),
    ],
)
def test_the_innermost_mount_decides(path: str, kind: str) -> None:
    assert kind_of(PurePosixPath(path), MOUNTS) == kind


def test_lines_that_make_no_sense_are_passed_over() -> None:
    assert kind_of(PurePosixPath("/a"), "nonsense\n\n1 2 3\n") is None


def test_a_test_folder_is_on_a_local_disk(tmp_path: Path) -> None:
    assert network_kind(tmp_path) not in NETWORK_KINDS
