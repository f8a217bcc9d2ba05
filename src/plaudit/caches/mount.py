"""Whether a path lies on a network file system, where shared memory between processes cannot be trusted."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

NETWORK_KINDS = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "orangefs", "pvfs2", "smb3", "smbfs", "wekafs",
})  # fmt: skip
MOUNTS = Path("/proc/self/mountinfo")


def network_kind(path: Path) -> str | None:
    """The kind of network file system that holds this path; None for a local disk, or where nobody says."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None  # no Linux
    kind = kind_of(path.resolve(), mounts)
    return kind if kind in NETWORK_KINDS else None


def kind_of(path: PurePosixPath | Path, mounts: str) -> str | None:
    """The file system of the innermost mount above a path, from the text of /proc/self/mountinfo."""
    kind, depth = None, -1
    for line in mounts.splitlines():
        place, _, rest = line.partition(" - ")
        fields = place.split(" ")
        if len(fields) < 5 or not rest:
            continue
        point = PurePosixPath(fields[4].replace("\\040", " "))
        inner = len(point.parts)
        if inner >= depth and path.is_relative_to(point):  # of two at one place, the later hides the earlier
            kind, depth = rest.split(" ")[0], inner
    return kind
