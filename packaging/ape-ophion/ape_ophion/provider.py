"""`OphionProvider`: answers Ape's requests with a `Chain` of this process."""

from __future__ import annotations

from typing import Any

from ape.api import PluginConfig, TestProviderAPI
from ape.exceptions import ConfigError, ProviderError, ProviderNotConnectedError, UnknownSnapshotError
from ape.utils.testing import DEFAULT_TEST_CHAIN_ID, DEFAULT_TEST_HD_PATH
from ape_ethereum.provider import Web3Provider
from eth_utils import to_hex
from pydantic import PrivateAttr
from web3 import Web3

from ophion import Chain, ChainError
from ophion.sdk.web3_provider import ChainProvider

_WEI_PER_ETHER = 10**18


class OphionConfig(PluginConfig):
    """The section `ophion` of ape-config.yaml."""

    chain_id: int = DEFAULT_TEST_CHAIN_ID
    hardfork: str | None = None
    fork: str | None = None
    block: int | None = None


class OphionProvider(TestProviderAPI, Web3Provider):
    """Ape's local network. Each connection has a chain of its own."""

    _chain: Chain | None = PrivateAttr(default=None)
    _is_mining: bool = PrivateAttr(default=True)

    @property
    def chain(self) -> Chain:
        """The chain of this connection."""
        if self._chain is None:
            raise ProviderNotConnectedError
        return self._chain

    def connect(self) -> None:
        """Create a chain with the accounts of Ape's configuration."""
        accounts = self.config_manager.get_config("test")
        settings = self._settings
        if (accounts.hd_path or DEFAULT_TEST_HD_PATH).rstrip("/") != DEFAULT_TEST_HD_PATH:
            raise ConfigError(f"The provider ophion supports only the hd_path {DEFAULT_TEST_HD_PATH}.")
        try:
            self._chain = Chain(
                chain_id=None if settings.fork else settings.chain_id,
                hardfork=settings.hardfork,
                fork=settings.fork,
                block=settings.block,
                accounts=accounts.number_of_accounts,
                balance=accounts.balance / _WEI_PER_ETHER,
                mnemonic=accounts.mnemonic,
            )
        except ChainError as error:
            raise ProviderError(str(error)) from error
        self._is_mining = True
        self._web3 = Web3(ChainProvider(self._chain))

    def disconnect(self) -> None:
        """Close the chain and forget its snapshots."""
        if self._chain is not None:
            self.chain_manager._snapshots[self.chain_id] = []
            self._chain.close()
        self._chain = None
        self._web3 = None

    def update_settings(self, new_settings: dict[str, Any]) -> None:
        """Start again with other settings."""
        self.disconnect()
        self.provider_settings = {**self.provider_settings, **new_settings}
        self.connect()

    @property
    def http_uri(self) -> None:
        return None

    @property
    def ws_uri(self) -> None:
        return None

    @property
    def ipc_path(self) -> None:
        return None

    @property
    def supports_tracing(self) -> bool:
        return True

    @property
    def chain_id(self) -> int:
        """Return the chain id, also before the connection."""
        return self._settings.chain_id if self._chain is None else self._chain.chain_id

    @property
    def _settings(self) -> OphionConfig:
        return OphionConfig.model_validate({**self.config.model_dump(), **self.provider_settings})

    @property
    def priority_fee(self) -> int:
        """Return 0, because the chain includes transactions without a tip."""
        return 0

    @property
    def auto_mine(self) -> bool:
        """Whether each transaction is mined at once."""
        return self._is_mining

    @auto_mine.setter
    def auto_mine(self, value: bool) -> None:
        self.chain.rpc("evm_setAutomine", bool(value))
        self._is_mining = bool(value)

    def mine(self, num_blocks: int = 1) -> None:
        self.chain.mine(num_blocks)

    def set_timestamp(self, new_timestamp: int) -> None:
        """Set the timestamp of the next block. Does nothing if the pending block already has this timestamp."""
        if new_timestamp != int(self.chain.rpc("eth_getBlockByNumber", "pending", False)["timestamp"], 16):
            try:
                self.chain.time = new_timestamp
            except ChainError as error:
                raise ProviderError(f"Failed to time travel: {error}") from error

    def snapshot(self) -> int:
        return self.chain.save()

    def restore(self, snapshot_id: int) -> None:
        """Revert to a snapshot. A snapshot can be used only once."""
        try:
            self.chain.restore(snapshot_id)
        except ChainError as error:
            raise UnknownSnapshotError(snapshot_id) from error

    def set_balance(self, address: str, amount: int) -> None:
        self.chain.set_balance(address, amount)

    def set_code(self, address: str, code: Any) -> bool:
        self.chain.set_code(address, code if isinstance(code, str) else bytes(code))
        return True

    def set_storage(self, address: str, slot: int, value: Any) -> None:
        self.chain.set_storage(address, slot, int.from_bytes(bytes(value), "big"))

    def unlock_account(self, address: str) -> bool:
        self.chain.impersonate(address)
        return True

    def relock_account(self, address: str) -> None:
        self.chain.stop_impersonating(address)

    def get_test_account(self, index: int) -> Any:
        """Return an account of the mnemonic with its key."""
        accounts = self.chain.accounts
        if index >= len(accounts):
            raise IndexError(f"No account at index '{index}'")
        account = accounts[index]
        return self.account_manager.init_test_account(index, account.address, to_hex(account.key))
