"""Write a root file system as an OCI image archive, which `podman load` and `skopeo` read.

    python3 packaging/oci/image.py ROOT TARGET.tar

Needs nothing but Python. The same files give the same image: times are left out and names are sorted.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import sys
import tarfile
from pathlib import Path
from typing import Any

_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_PORTS = ("8545/tcp", "8546/tcp", "8547/tcp", "8550/tcp", "8551/tcp", "9545/tcp", "30303/tcp", "30303/udp")
_SECOND_NS = 10**9
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

CONFIG: dict[str, Any] = {
    "Entrypoint": ["besu-entry.sh"],
    "WorkingDir": "/opt/besu",
    "Env": [
        "PATH=/opt/besu/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "BESU_RPC_HTTP_HOST=0.0.0.0",
        "BESU_RPC_WS_HOST=0.0.0.0",
        "BESU_GRAPHQL_HTTP_HOST=0.0.0.0",
        "BESU_PID_PATH=/tmp/pid",
        "BESU_USER_NAME=besu",
    ],
    "ExposedPorts": {port: {} for port in _PORTS},
    # Docker and Podman read this member, though the OCI specification has none
    "Healthcheck": {
        "Test": ["CMD-SHELL", "[ -f /tmp/pid ]"],
        "StartPeriod": 5 * _SECOND_NS,
        "Interval": 5 * _SECOND_NS,
        "Timeout": _SECOND_NS,
        "Retries": 10,
    },
    "Labels": {"org.opencontainers.image.title": "Ophion in place of Besu"},
}
"""Entry point, variables, ports and health check of Besu's image."""


def layer_of(root: Path) -> tuple[bytes, str]:
    """Return the compressed layer and the digest of the layer before compression."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            entry = archive.gettarinfo(path, str(path.relative_to(root)))
            if entry is None:  # `gettarinfo` returns None for a socket
                continue
            entry.mtime = 0
            # the image has users of its own: the names of this machine would give files to others
            entry.uname = entry.gname = ""
            if entry.isreg():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)
    content = plain.getvalue()
    return gzip.compress(content, 6, mtime=0), _digest(content)


def write_image(root: Path, target: Path) -> str:
    """Write the archive; return the digest of the image."""
    layer, diff_id = layer_of(root)
    config = _json(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": CONFIG,
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer)],
        }
    )
    named = {**_descriptor(_MANIFEST, manifest), "annotations": {"org.opencontainers.image.ref.name": "ophion-besu"}}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [named]}),
        **{f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (config, manifest, layer)},
    }
    with tarfile.open(target, "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return _digest(manifest)


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: image.py ROOT TARGET.tar")
    sys.stdout.write(write_image(Path(sys.argv[1]), Path(sys.argv[2])) + "\n")
