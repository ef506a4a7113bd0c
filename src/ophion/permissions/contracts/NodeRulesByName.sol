// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import "./Rules.sol";

/// The nodes that may connect, by the second interface: id in hex, host and TCP port as text and number.
contract NodeRulesByName is Rules {
    event NodeAdded(bool nodeAdded, string enodeId, string enodeHost, uint16 enodePort);
    event NodeRemoved(bool nodeRemoved, string enodeId, string enodeHost, uint16 enodePort);

    struct Enode {
        string id;
        string host;
        uint16 port;
    }

    Enode[] private enodes; // slot 1
    mapping(bytes32 => uint256) private position; // slot 2; by the hash of an enode, counted from 1

    constructor(address at) Rules(at) {}

    function connectionAllowed(string calldata id, string calldata host, uint16 port) external view returns (bool) {
        return position[key(id, host, port)] != 0;
    }

    function getSize() external view returns (uint256) {
        return enodes.length;
    }

    function getByIndex(uint256 index) external view returns (string memory id, string memory host, uint16 port) {
        Enode storage enode = enodes[index];
        return (enode.id, enode.host, enode.port);
    }

    function addEnode(string calldata id, string calldata host, uint16 port)
        external
        onlyAdmin
        whenWritable
        returns (bool)
    {
        bytes32 hash = key(id, host, port);
        bool added = position[hash] == 0;
        if (added) {
            enodes.push(Enode(id, host, port));
            position[hash] = enodes.length;
            ingress.emitRulesChangeEvent(false);
        }
        emit NodeAdded(added, id, host, port);
        return added;
    }

    function removeEnode(string calldata id, string calldata host, uint16 port)
        external
        onlyAdmin
        whenWritable
        returns (bool)
    {
        bytes32 hash = key(id, host, port);
        uint256 at = position[hash];
        if (at != 0) {
            Enode memory last = enodes[enodes.length - 1];
            enodes[at - 1] = last;
            position[key(last.id, last.host, last.port)] = at;
            position[hash] = 0;
            enodes.pop();
            ingress.emitRulesChangeEvent(true);
        }
        emit NodeRemoved(at != 0, id, host, port);
        return at != 0;
    }

    function key(string memory id, string memory host, uint16 port) private pure returns (bytes32) {
        return keccak256(abi.encode(id, host, port));
    }
}
