// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import "./Ingress.sol";

interface IAccountRules {
    function transactionAllowed(
        address sender, address target, uint256 value, uint256 gasPrice, uint256 gasLimit, bytes calldata payload
    ) external view returns (bool);
}

/// What nodes ask about transactions.
contract AccountIngress is Ingress {
    event AccountPermissionsUpdated(bool addsRestrictions);

    function emitRulesChangeEvent(bool addsRestrictions) external {
        require(msg.sender == getContractAddress(RULES_CONTRACT), "Only Rules contract can trigger Rules change events");
        emit AccountPermissionsUpdated(addsRestrictions);
    }

    /// Without rules every transaction is allowed.
    function transactionAllowed(
        address sender, address target, uint256 value, uint256 gasPrice, uint256 gasLimit, bytes calldata payload
    ) external view returns (bool) {
        address rules = getContractAddress(RULES_CONTRACT);
        if (rules == address(0)) {
            return true;
        }
        return IAccountRules(rules).transactionAllowed(sender, target, value, gasPrice, gasLimit, payload);
    }
}
