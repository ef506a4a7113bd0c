"""Unit tests mirror the sources one to one. Exceptions are listed with a reason."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT

SOURCES = ROOT / "src" / "ophion"
TESTS = ROOT / "tests" / "unit"

ELSEWHERE = {
    "sdk/account_access.py": "tests/unit/sdk/test_chain.py",
    "sdk/database.py": "tests/unit/sdk/test_chain.py",
    "sdk/account.py": "tests/unit/sdk/test_chain.py",
    "sdk/backend.py": "a protocol and plain records; tests/unit/sdk tests all that implement it",
    "sdk/block_access.py": "tests/unit/sdk/test_chain.py",
    "sdk/call_tree.py": "tests/unit/sdk/test_chain.py",
    "sdk/contract.py": "tests/unit/sdk/test_chain.py",
    "sdk/embedded_core.py": "tests/unit/sdk/test_chain.py",
    "sdk/embedded_node.py": "tests/unit/sdk/test_chain.py",
    "sdk/errors.py": "tests/unit/sdk/test_chain.py",
    "sdk/eth_tester_objects.py": "tests/unit/sdk/test_eth_tester_backend.py",
    "sdk/loop_runner.py": "tests/unit/sdk/test_chain.py",
    "sdk/execution_log/attach.py": "tests/integration/test_dev_node.py",
    "sdk/execution_log/execution_log.py": "tests/integration/test_dev_node.py",
    "sdk/remote_node.py": "tests/unit/sdk/test_http_server.py",
    "sdk/receipt.py": "tests/unit/sdk/test_chain.py",
    "sdk/rpc_dispatch.py": "tests/unit/sdk/test_chain.py",
    "sdk/rpc_objects.py": "tests/unit/sdk/test_html.py",
    "__main__.py": "tests/integration/test_cli_frame.py",
    "version.py": "tests/integration/test_cli_frame.py",
    "peers/open_connections.py": "tests/unit/peers/test_service.py",
    "peers/connection/channel.py": "tests/unit/peers/connection/test_connection.py",
    "peers/connection/context.py": "a protocol and plain records; tests/unit/peers/connection/test_connection.py",
    "peers/connection/task_group.py": "tests/unit/peers/connection/test_connection.py",
    "privacy/late_payloads.py": "tests/unit/privacy/test_private_executor.py",
    "privacy/marker_settings.py": "tests/unit/privacy/test_private_executor.py",
    "enclave/missed_payloads.py": "tests/unit/peers/priv/test_peer.py",
    "peers/eth/held_blocks.py": "tests/unit/peers/eth/test_block_gossip.py",
    "peers/ports.py": "tests/unit/peers/test_service.py",
    "cli/arguments.py": "tests/unit/cli/test_main.py",
    "cli/blocks.py": "tests/integration/test_cli_blocks.py",
    "cli/command.py": "tests/unit/cli/test_main.py",
    "cli/command_table.py": "tests/unit/cli/test_main.py",
    "cli/dev.py": "tests/integration/test_cli_dev.py",
    "dev/block_dump.py": "tests/integration/test_dev_state.py",
    "dev/dumped_chain.py": "tests/integration/test_dev_state.py",
    "dev/engine.py": "tests/integration/test_dev_node.py",
    "dev/fork/replay.py": "tests/integration/test_dev_fork.py",
    "dev/genesis_number.py": "tests/integration/test_anvil_link.py",
    "dev/erc20.py": "tests/clients/test_anvil_differential.py",
    "dev/cheat_codes.py": "tests/integration/test_dev_node.py",
    "consensus/bft_form_choices.py": "two enumerations; tests/unit/producer/test_options.py",
    "runtime/metric_category.py": "an enumeration; tests/unit/runtime/test_metrics.py",
    "dev/execution_observer.py": "a protocol and a record; tests/integration/test_dev_node.py tests the observer",
    "node/rpc_workers/__main__.py": "tests/integration/test_rpc_workers.py",
    "node/rpc_workers/node_state.py": "tests/unit/node/rpc_workers/test_worker_dispatcher.py",
    "node/rpc_workers/setup.py": "tests/integration/test_rpc_workers.py",
    "node/rpc_workers/supervision.py": "tests/integration/test_rpc_workers.py",
    "node/rpc_workers/wiring.py": "tests/integration/test_rpc_workers.py",
    "node/rpc_workers/worker.py": "tests/integration/test_rpc_workers.py",
    "node/rpc_workers/worker_link.py": "tests/unit/node/rpc_workers/test_forwarded_requests.py",
    "node/dev_core.py": "tests/integration/test_dev_node.py",
    "node/dev_files.py": "tests/integration/test_dev_node.py",
    "node/dev_genesis.py": "tests/integration/test_dev_node.py",
    "node/dev_options.py": "tests/integration/test_dev_node.py",
    "rpc/methods/dev_accounts.py": "tests/clients/test_anvil_differential.py",
    "rpc/methods/dev_impersonation.py": "tests/integration/test_dev_node.py",
    "rpc/methods/dev_node.py": "tests/clients/test_anvil_differential.py",
    "rpc/methods/dev_pool.py": "tests/clients/test_anvil_differential.py",
    "rpc/services/private_access.py": "tests/unit/rpc/methods/test_priv_transactions.py",
    "rpc/methods/dev_blocks.py": "tests/clients/test_anvil_differential.py",
    "rpc/methods/dev_time.py": "tests/clients/test_anvil_differential.py",
    "rpc/methods/dev_snapshots.py": "tests/integration/test_dev_node.py",
    "pool/replacement.py": "tests/unit/pool/test_pool.py",
    "rpc/methods/dev_state.py": "tests/clients/test_anvil_differential.py",
    "rpc/services/cheat_code_params.py": "tests/clients/test_anvil_differential.py",
    "rpc/transport/websocket/upgrade.py": "tests/integration/test_dev_node.py",
    "cli/export.py": "tests/integration/test_cli_export.py",
    "cli/sql.py": "tests/integration/test_cli_export.py",
    "cli/proof.py": "tests/integration/test_cli_proof.py",
    "proofs/builder.py": "tests/unit/proofs/test_verify.py",
    "proofs/header_verification.py": "tests/unit/proofs/test_verify.py",
    "proofs/trust_anchor.py": "tests/unit/proofs/test_verify.py",
    "proofs/vote_headers.py": "tests/unit/proofs/test_verify.py",
    "rpc/methods/proof_bundle.py": "tests/conformance/test_proofs.py",
    "data/arrow.py": "tests/integration/test_cli_export.py",
    "data/decoded_datasets.py": "tests/integration/test_cli_export.py",
    "data/database_reader.py": "tests/integration/test_cli_export.py",
    "data/export.py": "tests/integration/test_cli_export.py",
    "data/continuous_export.py": "tests/integration/test_cli_export.py",
    "data/optional_packages.py": "an import with a message",
    "data/table_reader.py": "a protocol and plain records",
    "data/rpc_reader.py": "tests/integration/test_cli_export.py",
    "data/rpc_rows.py": "tests/integration/test_cli_export.py",
    "data/spark.py": "tests/integration/test_spark.py",
    "data/selection.py": "tests/integration/test_cli_export.py",
    "data/writers.py": "tests/integration/test_cli_export.py",
    "native/tables.py": "names of the extension, passed on; used by the tests of data",
    "cli/evm.py": "tests/integration/test_cli_evm.py",
    "cli/rolling_upgrade.py": "tests/integration/test_rolling_upgrade.py",
    "cli/upgrade_checks.py": "tests/integration/test_rolling_upgrade.py",
    "cli/input_output.py": "tests/unit/cli/test_rlp.py",
    "cli/help.py": "tests/unit/cli/test_main.py",
    "cli/migrate_comparison.py": "tests/integration/test_migrate_rpc.py",
    "cli/migrate_private.py": "tests/integration/test_migrate_private.py",
    "enclave/tessera/cbor.py": "tests/unit/enclave/tessera/test_payloads.py",
    "enclave/tessera/fields.py": "tests/unit/enclave/tessera/test_party_info.py",
    "enclave/tessera/groups.py": "tests/unit/enclave/tessera/test_payloads.py",
    "migration/private/comparison.py": "tests/integration/test_migrate_private.py",
    "cli/migrate.py": "tests/integration/test_cli_migrate.py",
    "migration/freezer.py": "tests/unit/migration/test_geth.py",
    "migration/leveldb/varints.py": "tests/unit/migration/leveldb/test_log_records.py",
    "migration/rocksdb_reader.py": "tests/unit/migration/test_besu.py",
    "cli/public_key.py": "tests/integration/test_cli_tools.py",
    "cli/option_loading.py": "tests/unit/cli/test_main.py",
    "cli/permissions.py": "tests/integration/test_permissions_nodes.py",
    "cli/quickstart_options.py": "tests/integration/test_quickstart.py",
    "cli/quickstart.py": "tests/integration/test_quickstart.py",
    "cli/bench.py": "tests/integration/test_cli_bench.py",
    "cli/storage.py": "tests/integration/test_cli_storage.py",
    "cli/privacy.py": "tests/integration/test_privacy_nodes.py",
    "cli/x_help.py": "tests/unit/cli/test_main.py",
    "cli/untrusted_text.py": "tests/unit/cli/test_doctor.py",
    "enclave/interface.py": "a protocol and plain records; what they promise is tested with both enclaves",
    "gateway/connection.py": "tests/integration/test_gateway.py",
    "gateway/landing_page.py": "tests/integration/test_gateway.py",
    "gateway/options.py": "declarations; tests/unit/node/test_config.py reads every option",
    "gateway/process.py": "tests/integration/test_quickstart.py",
    "gateway/node_status.py": "tests/integration/test_gateway.py",
    "enclave/delivery.py": "tests/unit/peers/priv/test_peer.py",
    "enclave/peer_directory.py": "tests/unit/peers/priv/test_peer.py",
    "enclave/key_loading.py": "tests/unit/enclave/test_keyfile.py",
    "enclave/options.py": "declarations; tests/unit/node/test_config.py reads every option",
    "dev/fork/remote_state.py": "tests/integration/test_dev_fork.py",
    "dev/fork/fork_block.py": "tests/integration/test_dev_fork.py",
    "dev/fork/start.py": "tests/integration/test_dev_fork.py",
    "native/fork.py": "names of the extension, passed on; used by the tests of forks",
    "node/dev_fork.py": "tests/integration/test_dev_fork.py",
    "rpc/services/fork_prefetch.py": "tests/integration/test_dev_fork.py",
    "rpc/services/fork_requests.py": "tests/integration/test_dev_fork.py",
    "rpc/services/fork_routes.py": "tests/integration/test_dev_fork.py",
    "enclave/outbox.py": "tests/unit/peers/priv/test_peer.py",
    "enclave/payload_exchange.py": "plain records and a protocol; used by the tests of delivery and of peers/priv",
    "enclave/encoding.py": "tests/unit/enclave/test_keyfile.py",
    "enclave/store_writer.py": "tests/unit/enclave/test_embedded.py",
    "enclave/payload_access.py": "tests/unit/peers/priv/test_peer.py",
    "enclave_http/pending_requests.py": "tests/unit/enclave_http/test_application.py",
    "enclave_http/request_bodies.py": "tests/unit/enclave_http/test_application.py",
    "enclave_http/peer_application.py": "tests/unit/enclave_http/test_http_peers.py",
    "metrics/metric_declarations.py": "tests/unit/metrics/test_node_metrics.py",
    "node/core_config.py": "tests/unit/sdk/test_chain_config.py",
    "node/access_options.py": "tests/unit/node/test_config.py",
    "node/limit_options.py": "tests/unit/node/test_config.py",
    "native/cancellation.py": "names of the extension, passed on; used by the tests of lanes",
    "native/ethash.py": "names of the extension, passed on; used by the tests of consensus",
    "native/executor.py": "names of the extension, passed on; used by the tests of chain",
    "native/simulation.py": "names of the extension, passed on; used by the tests of eth_simulateV1",
    "native/store.py": "names of the extension, passed on; used by the tests of chain and node",
    "native/tracing.py": "names of the extension, passed on; used by the tests of debug_* and trace_*",
    "native/vectors.py": "tests/integration/test_cli_evm.py",
    "consensus/bft/height_timers.py": "tests/unit/consensus/bft/test_height.py",
    "consensus/bft/own_messages.py": "tests/unit/consensus/bft/test_height.py",
    "consensus/bft/sent_messages.py": "tests/unit/consensus/bft/test_state_machine.py",
    "consensus/bft/prepare_commit.py": "tests/unit/consensus/bft/test_height.py",
    "producer/bft_blocks.py": "tests/unit/producer/test_bft_driver.py",
    "producer/bft_inbox.py": "tests/unit/producer/test_bft_driver.py",
    "producer/bft_tuning.py": "plain settings; tests/unit/producer/test_bft_driver.py uses them",
    "producer/clock_skew.py": "tests/unit/producer/test_bft_driver.py",
    "peers/subprotocol.py": "two protocols without code; what they promise is tested with connections",
    "peers/connection/listener.py": "tests/unit/peers/test_service.py",
    "peers/connection/pre_handshake.py": "tests/unit/peers/test_service.py",
    "peers/inbound.py": "tests/unit/peers/test_service.py",
    "peers/priv/protocol.py": "tests/unit/peers/priv/test_peer.py",
    "peers/priv/payload_push.py": "tests/unit/peers/priv/test_peer.py",
    "peers/eth/block_fetcher.py": "tests/unit/peers/eth/test_block_gossip.py",
    "peers/eth/peer_head.py": "a plain record; used by the tests of peer and sync",
    "peers/eth/peers.py": "tests/unit/peers/eth/test_protocol.py",
    "permissions/contract_calls.py": "tests/unit/permissions/test_account_contract.py",
    "permissions/options.py": "declarations; tests/unit/node/test_config.py reads every option",
    "pool/events.py": "plain records; used by the tests of pool",
    "pool/local_transactions.py": "tests/unit/pool/test_pool.py",
    "pool/options.py": "declarations; tests/unit/node/test_config.py reads every option",
    "node/build.py": "tests/integration/test_node_lifecycle.py",
    "privacy/execution_events.py": "tests/unit/privacy/test_private_executor.py",
    "privacy/options.py": "declarations; tests/unit/node/test_config.py reads every option",
    "privacy/payload_handover.py": "tests/unit/privacy/test_flexible_groups.py",
    "privacy/payloads.py": "tests/unit/privacy/test_private_executor.py",
    "privacy/rpc_objects.py": "tests/unit/rpc/methods/test_priv_transactions.py",
    "privacy/service.py": "tests/unit/rpc/methods/test_priv_transactions.py",
    "privacy/submission.py": "tests/unit/rpc/methods/test_priv_transactions.py",
    "rpc/schema/caller.py": "two protocols without code; used by the tests of dispatch and subscriptions",
    "rpc/schema/private_types.py": "tests/unit/rpc/methods/test_priv_transactions.py",
    "rpc/services/private_filters.py": "tests/unit/rpc/methods/test_priv_state.py",
    "rpc/services/private_logs.py": "tests/unit/rpc/methods/test_priv_state.py",
    "rpc/services/private_subscriptions.py": "tests/unit/rpc/methods/test_priv_state.py",
    "node/enclave.py": "tests/integration/test_enclave_nodes.py",
    "node/node.py": "tests/integration/test_node_lifecycle.py",
    "node/web_interface.py": "tests/integration/test_gateway.py",
    "node/listeners.py": "tests/unit/node/test_services.py",
    "node/services.py": "tests/integration/test_node_lifecycle.py",
    "node/storage_options.py": "tests/unit/node/test_config.py",
    "node/besu/honoured.py": "tests/unit/node/besu/test_option_table.py",
    "node/besu/ignored.py": "tests/unit/node/besu/test_option_table.py",
    "node/besu/profiles.py": "tests/unit/node/besu/test_settings.py",
    "node/besu/refused.py": "tests/unit/node/besu/test_option_table.py",
    "node/besu/values.py": "tests/unit/node/besu/test_settings.py",
    "quickstart/node_status.py": "tests/integration/test_quickstart.py",
    "quickstart/child_process.py": "tests/integration/test_quickstart.py",
    "quickstart/control_socket.py": "tests/integration/test_quickstart.py",
    "quickstart/monitoring.py": "tests/unit/quickstart/test_network_directory.py",
    "quickstart/report.py": "tests/integration/test_quickstart.py",
    "quickstart/supervisor.py": "tests/integration/test_quickstart.py",
    "rpc/endpoints/method_access.py": "tests/unit/rpc/auth/test_auth_setup.py",
    "rpc/endpoints/http.py": "tests/unit/rpc/endpoints/test_services.py",
    "rpc/endpoints/websocket.py": "tests/unit/rpc/auth/test_auth_setup.py",
    "rpc/transport/http/policy.py": "protocols and plain records; used by the tests of connection and reader",
    "rpc/transport/http/state.py": "tests/unit/rpc/transport/http/test_connection.py",
    "rpc/transport/remote_end.py": "tests/unit/rpc/transport/http/test_connection.py",
    "rpc/transport/options.py": "declarations; tests/unit/node/test_config.py reads every option",
    "rpc/transport/websocket/service.py": "tests/unit/rpc/endpoints/test_services.py",
    "runtime/options/declare.py": "tests/unit/runtime/options/test_options.py",
    "runtime/options/load.py": "tests/unit/runtime/options/test_options.py",
    "runtime/options/render.py": "tests/unit/runtime/options/test_options.py",
    "runtime/options/sources.py": "tests/unit/runtime/options/test_options.py",
    "runtime/options/values.py": "tests/unit/runtime/options/test_options.py",
    "producer/executed_candidates.py": "tests/unit/producer/test_bft_driver.py",
    "cli/url_option.py": "tests/unit/cli/test_node_client.py",
    "data/executable_chain.py": "tests/integration/test_cli_export.py",
    "data/parquet.py": "tests/integration/test_cli_export.py",
    "node/sql.py": "tests/integration/test_sql_queries.py",
    "rpc/methods/sql.py": "tests/integration/test_sql_queries.py",
    "rpc/services/sql_queries.py": "tests/integration/test_sql_queries.py",
}
"""Modules without their own test file, with the place of their tests or the reason."""

TOPICS = {
    "test_start_modules.py": "the modules that commands and `Chain` import",
    "sdk/test_documentation.py": "the examples of docs/python.md",
    "sdk/test_notebook.py": "the notebook in examples/notebooks",
    "chain/test_fee_suggestions.py": "suggested prices beside the checks of the pool",
    "graphql/test_answers.py": "what fields answer, through the whole of GraphQL",
    "graphql/test_documents.py": "the language of documents, through the whole of GraphQL",
    "peers/priv/test_hostile.py": "whoever breaks priv/1, and who is no member, on real sessions",
    "rpc/dispatch/test_raw_transaction_reply.py": "fast path of eth_sendRawTransaction and its handler",
    "rpc/methods/test_debug_standard.py": "debug_trace* with the options of today's standard",
    "rpc/methods/test_debug_tracers.py": "the named tracers of debug_trace*",
    "rpc/methods/test_privacy_words.py": "errors of private transactions, with a remote enclave that refuses",
    "rpc/methods/test_trace_original.py": "trace_* by the rules of docs/decisions/0030, on chains of its own",
    "runtime/options/test_options.py": "the five modules of the package, through its public names",
    "test_contributing.py": "files and functions that CONTRIBUTING.md names",
    "test_collection_order.py": "the order of tests in tests/conftest.py",
    "test_vocabulary.py": "words that docs/glossary.md replaces",
    "test_citations.py": "citations of docs/spec in sources, tests and documents",
    "test_crates.py": "the Rust half: folders and circles of its crates",
    "test_document_links.py": "documents: links and numbers of decisions",
    "test_layout.py": "this file",
}
"""Test files that belong to no single module, with their subject."""


def modules() -> list[str]:
    """Return every module of the package except `__init__` files."""
    return sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if path.name != "__init__.py")


def is_named_in_tests(module: str, texts: list[str]) -> bool:
    """Return whether a test imports the module by name."""
    dotted = f"ophion.{module.removesuffix('.py').replace('/', '.')}"
    package, _, name = dotted.rpartition(".")
    pattern = re.compile(rf"{re.escape(dotted)}\b|from {re.escape(package)} import (?:\(\s*)?[\w,\s]*\b{name}\b")
    return any(pattern.search(text) for text in texts)


def test_every_module_has_a_test_file_or_a_reason() -> None:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    orphans = [
        name
        for name in modules()
        if name not in ELSEWHERE
        # modules in testing/ need no test file, because the tests that use them test them
        and not name.startswith("testing/")
        and not (TESTS / Path(name).with_name(f"test_{Path(name).name}")).exists()
        and not is_named_in_tests(name, texts)
    ]
    assert orphans == []


def test_every_test_file_has_a_module_or_a_reason() -> None:
    known = {str(Path(name).with_name(f"test_{Path(name).name}")) for name in modules()}
    found = [str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")]
    assert [name for name in sorted(found) if name not in known and name not in TOPICS] == []


def test_only_the_facade_imports_the_extension() -> None:
    pattern = re.compile(r"^\s*(from|import) ophion\._native|^\s*from ophion import .*_native", re.MULTILINE)
    found = [name for name in modules() if pattern.search((SOURCES / name).read_text())]
    assert [name for name in found if not name.startswith("native/")] == []


def test_every_reason_is_about_something_that_exists() -> None:
    assert [name for name in ELSEWHERE if not (SOURCES / name).exists()] == []
    assert [name for name in TOPICS if not (TESTS / name).exists()] == []
    places = [place for place in ELSEWHERE.values() if place.startswith("tests/")]
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_no_package_of_the_interface_holds_a_quarter_of_it() -> None:
    """No package of `rpc` has a quarter of the code of `rpc`. Methods do not count, because they are a flat list."""
    lines = {path: path.read_text().count("\n") for path in (SOURCES / "rpc").rglob("*.py")}
    rooms: dict[str, int] = {}
    for path, count in lines.items():
        room = path.relative_to(SOURCES / "rpc").parts[0]
        rooms[room] = rooms.get(room, 0) + count
    del rooms["methods"]
    assert max(rooms.values()) < sum(lines.values()) / 4, rooms
