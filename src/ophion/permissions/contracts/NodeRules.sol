// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import "./Rules.sol";

/// The nodes that may connect to each other, each by id (two words), address (IPv4 as ::ffff:a.b.c.d) and TCP port.
contract NodeRules is Rules {
    event NodeAdded(bool nodeAdded, bytes32 enodeHigh, bytes32 enodeLow, bytes16 enodeIp, uint16 enodePort);
    event NodeRemoved(bool nodeRemoved, bytes32 enodeHigh, bytes32 enodeLow, bytes16 enodeIp, uint16 enodePort);

    struct Enode {
        bytes32 high;
        bytes32 low;
        bytes16 ip;
        uint16 port;
    }

    Enode[] private enodes; // slot 1
    mapping(bytes32 => uint256) private position; // slot 2; by the hash of an enode, counted from 1

    constructor(address at) Rules(at) {}

    function connectionAllowed(
        bytes32 sourceHigh, bytes32 sourceLow, bytes16 sourceIp, uint16 sourcePort,
        bytes32 destinationHigh, bytes32 destinationLow, bytes16 destinationIp, uint16 destinationPort
    ) external view returns (bytes32) {
        if (
            enodePermitted(sourceHigh, sourceLow, sourceIp, sourcePort)
                && enodePermitted(destinationHigh, destinationLow, destinationIp, destinationPort)
        ) {
            return 0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff;
        }
        return 0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff;
    }

    function enodePermitted(bytes32 high, bytes32 low, bytes16 ip, uint16 port) public view returns (bool) {
        return position[key(high, low, ip, port)] != 0;
    }

    function getSize() external view returns (uint256) {
        return enodes.length;
    }

    function getByIndex(uint256 index)
        external
        view
        returns (bytes32 enodeHigh, bytes32 enodeLow, bytes16 enodeIp, uint16 enodePort)
    {
        Enode storage enode = enodes[index];
        return (enode.high, enode.low, enode.ip, enode.port);
    }

    function addEnode(bytes32 high, bytes32 low, bytes16 ip, uint16 port)
        external
        onlyAdmin
        whenWritable
        returns (bool)
    {
        bytes32 hash = key(high, low, ip, port);
        bool added = position[hash] == 0;
        if (added) {
            enodes.push(Enode(high, low, ip, port));
            position[hash] = enodes.length;
            ingress.emitRulesChangeEvent(false);
        }
        emit NodeAdded(added, high, low, ip, port);
        return added;
    }

    function removeEnode(bytes32 high, bytes32 low, bytes16 ip, uint16 port)
        external
        onlyAdmin
        whenWritable
        returns (bool)
    {
        bytes32 hash = key(high, low, ip, port);
        uint256 at = position[hash];
        if (at != 0) {
            Enode memory last = enodes[enodes.length - 1];
            enodes[at - 1] = last;
            position[key(last.high, last.low, last.ip, last.port)] = at;
            position[hash] = 0;
            enodes.pop();
            ingress.emitRulesChangeEvent(true);
        }
        emit NodeRemoved(at != 0, high, low, ip, port);
        return at != 0;
    }

    function key(bytes32 high, bytes32 low, bytes16 ip, uint16 port) private pure returns (bytes32) {
        return keccak256(abi.encode(high, low, ip, port));
    }
}
