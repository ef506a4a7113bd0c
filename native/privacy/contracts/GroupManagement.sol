// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// The members of a flexible group. Nodes read its slots: see native/privacy/src/flexible_groups.rs.
contract GroupManagement {
    address private constant PROXY = 0x000000000000000000000000000000000000007c;
    uint256 private constant MOST_MEMBERS = 256;

    bool private isOpen; // slot 0, its last byte; nothing but management happens while it is false
    address private owner; // slot 0, before it: whoever made the group
    bytes32 private version; // slot 1; another one after each change
    bytes32[] private keys; // slot 2
    mapping(bytes32 => uint256) private position; // slot 3; counted from 1

    modifier byOwner() {
        require(msg.sender == PROXY, "The group is managed at its proxy");
        require(tx.origin == owner, "Only whoever made the group may do this");
        _;
    }

    modifier adding() {
        if (owner == address(0)) {
            owner = tx.origin;
        }
        require(msg.sender == PROXY, "The group is managed at its proxy");
        require(tx.origin == owner, "Only whoever made the group may do this");
        require(!isOpen, "The group must be locked");
        _;
        require(keys.length > 0 && keys.length <= MOST_MEMBERS, "A group has from 1 to 256 members");
        isOpen = true;
        version = keccak256(abi.encode(version, keys));
    }

    function addParticipants(bytes[] calldata added) external adding returns (bool) {
        for (uint256 index = 0; index < added.length; index++) {
            add(keyOf(added[index]));
        }
        return true;
    }

    /// The form of earlier versions.
    function addParticipants(bytes32[] calldata added) external adding returns (bool) {
        for (uint256 index = 0; index < added.length; index++) {
            add(added[index]);
        }
        return true;
    }

    function add(bytes32 key) private {
        if (position[key] == 0) {
            keys.push(key);
            position[key] = keys.length;
        }
    }

    function removeParticipant(bytes calldata removed) external returns (bool) {
        return removeParticipant(keyOf(removed));
    }

    function removeParticipant(bytes32 key) public byOwner returns (bool) {
        require(isOpen, "The group is locked");
        uint256 place = position[key];
        if (place == 0 || keys.length == 1) {
            return false;
        }
        bytes32 last = keys[keys.length - 1];
        keys[place - 1] = last;
        position[last] = place;
        delete position[key];
        keys.pop();
        version = keccak256(abi.encode(version, keys));
        return true;
    }

    function lock() external byOwner {
        require(isOpen, "The group is locked");
        isOpen = false;
    }

    function unlock() external byOwner {
        require(!isOpen, "The group is not locked");
        isOpen = true;
    }

    function getParticipants() external view returns (bytes[] memory found) {
        found = new bytes[](keys.length);
        for (uint256 index = 0; index < keys.length; index++) {
            found[index] = abi.encodePacked(keys[index]);
        }
    }

    function canExecute() external view returns (bool) {
        return isOpen;
    }

    function getVersion() external view returns (bytes32) {
        return version;
    }

    function keyOf(bytes calldata text) private pure returns (bytes32) {
        require(text.length == 32, "A key has 32 bytes");
        return bytes32(text);
    }
}
