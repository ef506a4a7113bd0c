"""If permission files cannot be written or read, the node returns the documented error and changes neither rules nor
file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ophion.testing import node_process
from ophion.testing.node_process import NodeProcess, RpcFailure
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.test_robust_disk import own_file_systems

LISTED, OTHER = DEV_KEYS[1:]
MANY = [f"0x{LISTED.address.hex()}", *(f"0x{number:040x}" for number in range(110))]
NEW = "0x" + "ab" * 20
NOT_PERSISTED = "Unable to persist changes to whitelist configuration file. Changes reverted"
LATER_WORDS = "Unable to persist changes to allowlist configuration file. Changes reverted"
OUT_OF_SYNC = (
    "The permissioning whitelist configuration file is out of sync.  The changes have been applied, but not persisted"
    " to disk"
)
RELOAD_FAILED = (
    "Error reloading permissions file. Please use perm_getAccountsWhitelist and perm_getNodesWhitelist to review the"
    " current state of the whitelists"
)


def written(accounts: Sequence[str]) -> str:
    return f"# who may send\naccounts-whitelist={json.dumps(accounts)}\n"


class Ruled(NodeProcess):
    """A node whose permission files are on a small disk. The disk has two blocks for the files and one free block."""

    def __init__(self, folder: Path) -> None:
        disk = folder / "disk"
        disk.mkdir()
        (folder / "rules.toml").write_text(written(MANY))
        self._rules = disk / "rules.toml"
        super().__init__(
            folder / "data",
            "--network=dev",
            "--rpc-http-api=ETH,PERM",
            "--permissions-accounts-config-file-enabled",
            f"--permissions-accounts-config-file={self._rules}",
        )
        mounted = f"mount -t tmpfs -o size=12k none {disk} && cp {folder}/rules.toml {disk}"
        self._launcher = (*own_file_systems(mounted), *node_process.COMMAND)

    @property
    def rules(self) -> Path:
        """Return the path of the file inside the process's namespace."""
        return Path(f"/proc/{self.pid}/root{self._rules}")

    def refused(self, method: str, *params: object) -> str:
        with pytest.raises(RpcFailure) as raised:
            self.rpc(method, *params)
        assert raised.value.code == -32000
        return raised.value.message

    def keeps(self, accounts: Sequence[str], nonce: int) -> None:
        """Check that exactly these rules apply."""
        assert self.rpc("perm_getAccountsWhitelist") == accounts
        self.send(legacy_transaction(LISTED, nonce))
        with pytest.raises(RpcFailure, match="-32007 Sender account not authorized to send transactions"):
            self.send(legacy_transaction(OTHER, 0))


def test_old_rules_stay_in_force_and_the_file_is_never_half_written(tmp_path: Path) -> None:
    with Ruled(tmp_path) as node:
        whole = written(MANY)
        # a full disk makes the write of the rules file fail
        assert node.refused("perm_addAccountsToWhitelist", [NEW]) == NOT_PERSISTED
        assert node.refused("perm_removeAccountsFromAllowlist", MANY[1:2]) == LATER_WORDS
        assert [one.name for one in node.rules.parent.iterdir()] == ["rules.toml"]
        assert node.rules.read_text() == whole
        node.keeps(MANY, 0)
        # make the rules file read-only
        node.rules.chmod(0o444)
        assert node.refused("perm_addAccountsToAllowlist", [NEW]) == LATER_WORDS
        assert node.rules.read_text() == whole
        node.keeps(MANY, 1)
        node.rules.chmod(0o644)
        # write invalid TOML to the rules file before the reload
        node.rules.write_text("accounts-whitelist=[")
        assert node.refused("perm_reloadPermissionsFromFile") == RELOAD_FAILED
        assert node.rules.read_text() == "accounts-whitelist=["
        node.keeps(MANY, 2)
        # make the list in the file differ from the list in memory
        node.rules.write_text(written(MANY[:1]))
        assert node.refused("perm_addAccountsToWhitelist", [NEW]) == OUT_OF_SYNC
        assert node.rules.read_text() == written(MANY[:1])
        node.keeps([*MANY, NEW], 3)
        # after a valid reload, the node accepts changes again
        assert node.rpc("perm_reloadPermissionsFromFile") == "Success"
        assert node.rpc("perm_addAccountsToWhitelist", [NEW]) == "Success"
        assert json.loads(node.rules.read_text().splitlines()[1].partition("=")[2]) == [MANY[0], NEW]
        node.keeps([MANY[0], NEW], 4)
    assert "Traceback" not in node.output()
