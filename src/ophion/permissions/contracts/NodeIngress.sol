// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import "./Ingress.sol";

interface INodeRules {
    function connectionAllowed(
        bytes32 sourceHigh, bytes32 sourceLow, bytes16 sourceIp, uint16 sourcePort,
        bytes32 destinationHigh, bytes32 destinationLow, bytes16 destinationIp, uint16 destinationPort
    ) external view returns (bytes32);
    function connectionAllowed(string calldata id, string calldata host, uint16 port) external view returns (bool);
}

/// What nodes ask about connections, by either interface. Without rules nobody may connect.
contract NodeIngress is Ingress {
    event NodePermissionsUpdated(bool addsRestrictions);

    function emitRulesChangeEvent(bool addsRestrictions) external {
        require(msg.sender == getContractAddress(RULES_CONTRACT), "Only Rules contract can trigger Rules change events");
        emit NodePermissionsUpdated(addsRestrictions);
    }

    function connectionAllowed(
        bytes32 sourceHigh, bytes32 sourceLow, bytes16 sourceIp, uint16 sourcePort,
        bytes32 destinationHigh, bytes32 destinationLow, bytes16 destinationIp, uint16 destinationPort
    ) external view returns (bytes32) {
        address rules = getContractAddress(RULES_CONTRACT);
        if (rules == address(0)) {
            return 0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff;
        }
        return INodeRules(rules).connectionAllowed(
            sourceHigh, sourceLow, sourceIp, sourcePort, destinationHigh, destinationLow, destinationIp, destinationPort
        );
    }

    function connectionAllowed(string calldata id, string calldata host, uint16 port) external view returns (bool) {
        address rules = getContractAddress(RULES_CONTRACT);
        return rules != address(0) && INodeRules(rules).connectionAllowed(id, host, port);
    }
}
