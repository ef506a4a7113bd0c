// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IAdministration {
    function isAuthorized(address account) external view returns (bool);
}

/// A fixed address that nodes ask, and behind it contracts that administrators can replace.
abstract contract Ingress {
    event RegistryUpdated(address contractAddress, bytes32 contractName);

    bytes32 public RULES_CONTRACT = "rules"; // slot 0
    bytes32 public ADMIN_CONTRACT = "administration"; // slot 1
    mapping(bytes32 => address) private registry; // slot 2
    bytes32[] private names; // slot 3
    uint256 private version = 1000000; // slot 4

    modifier onlyAdmin() {
        require(isAuthorized(msg.sender), "Not authorized to update contract registry");
        _;
    }

    /// Until an administration is registered, everybody is an administrator.
    function isAuthorized(address account) public view returns (bool) {
        address administration = registry[ADMIN_CONTRACT];
        return administration == address(0) || IAdministration(administration).isAuthorized(account);
    }

    function getContractAddress(bytes32 name) public view returns (address) {
        return registry[name];
    }

    function getContractVersion() external view returns (uint256) {
        return version;
    }

    function getAllContractKeys() external view returns (bytes32[] memory) {
        return names;
    }

    function getSize() external view returns (uint256) {
        return names.length;
    }

    function setContractAddress(bytes32 name, address to) external onlyAdmin returns (bool) {
        require(name != 0, "Contract name must not be empty.");
        require(to != address(0), "Contract address must not be zero.");
        if (registry[name] == address(0)) {
            names.push(name);
        }
        registry[name] = to;
        emit RegistryUpdated(to, name);
        return true;
    }

    function removeContract(bytes32 name) external onlyAdmin returns (bool) {
        for (uint256 i = 0; i < names.length; i++) {
            if (names[i] == name) {
                names[i] = names[names.length - 1];
                names.pop();
                delete registry[name];
                emit RegistryUpdated(address(0), name);
                return true;
            }
        }
        return false;
    }
}
