"""Error codes of enclaves (privacy.md 11). A code is the `code` of an `EnclaveError`; clients receive it unchanged."""

from __future__ import annotations

from typing import Final

WORDS: Final = frozenset(
    {
        "NodeMissingPeerUrl",
        "NodePushingToPeer",
        "NodePropagatingToAllPeers",
        "NoSenderKey",
        "InvalidPayload",
        "EnclaveCreateKeyPair",
        "EnclaveDecodePublicKey",
        "EnclaveDecryptWrongPrivateKey",
        "EnclaveEncryptCombineKeys",
        "EnclaveMissingPrivateKeyPasswords",
        "EnclaveNoMatchingPrivateKey",
        "EnclaveNotPayloadOwner",
        "EnclaveUnsupportedPrivateKeyType",
        "EnclaveStorageDecrypt",
        "EnclavePrivacyGroupIdCreation",
        "EnclavePayloadNotFound",
        "EnclaveKeysCannotDecryptPayload",
        "CreatePrivacyGroupShouldIncludeSelf",
        "PrivacyGroupNotStored",
        "PrivacyGroupNotDeleted",
        "PrivacyGroupNotPushed",
        "PrivacyGroupNotFound",
        "PrivacyGroupQueryError",
        "MethodUnimplemented",
        # Tessera's error texts, from which the enclave keys are removed
        "Recipient not found for key:",
        "The list of members in a privacy group should include self",
    }
)
