"""An etcd cluster on loopback. ETCD names the program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from ophion.testing.ports import free_ports

ETCD = shutil.which(os.environ.get("ETCD", ""))
REASON = "ETCD does not name an etcd program"


class EtcdCluster:
    """A cluster of etcd servers; each can be signalled, stopped and started again."""

    def __init__(self, path: Path, members: int = 1, tls: Sequence[str] = ()) -> None:
        """Create a cluster. `tls` contains options of etcd for encrypted client connections."""
        ports = free_ports(2 * members)
        self.urls = [f"{'https' if tls else 'http'}://127.0.0.1:{port}" for port in ports[:members]]
        self._tls = tls
        self.address = "etcd://" + ",".join(url.removeprefix("http://") for url in self.urls) + "/test"
        """The value of `--vote-store`."""
        self._peer_urls = [f"http://127.0.0.1:{port}" for port in ports[members:]]
        self._path = path
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, index: int = 0) -> None:
        """Start an etcd server of the cluster."""
        assert ETCD is not None, REASON
        client, peer = self.urls[index], self._peer_urls[index]
        cluster = ",".join(f"member{number}={url}" for number, url in enumerate(self._peer_urls))
        self._processes[index] = subprocess.Popen(
            [
                ETCD,
                f"--name=member{index}",
                f"--data-dir={self._path / f'member{index}'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster={cluster}",
                *self._tls,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def signal(self, number: int, index: int = 0) -> None:
        """Send a signal to an etcd server."""
        self._processes[index].send_signal(number)

    def stop(self, index: int = 0) -> None:
        """Kill an etcd server."""
        process = self._processes.pop(index)
        process.kill()
        process.wait()

    def back_up(self) -> None:
        """Copy the data of the first server, which is stopped meanwhile."""
        self.stop()
        shutil.copytree(self._path / "member0", self._path / "backup")
        self.start()

    def restore(self) -> None:
        """Start the first server again with the data of the backup."""
        self.stop()
        shutil.rmtree(self._path / "member0")
        shutil.copytree(self._path / "backup", self._path / "member0")
        self.start()

    def __enter__(self) -> EtcdCluster:
        self._path.mkdir(parents=True, exist_ok=True)
        for index in range(len(self.urls)):
            self.start(index)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for index in list(self._processes):
            self.stop(index)
