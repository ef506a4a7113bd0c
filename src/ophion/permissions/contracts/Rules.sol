// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IIngress {
    function isAuthorized(address account) external view returns (bool);
    function emitRulesChangeEvent(bool addsRestrictions) external;
}

/// What rules of accounts and of nodes have in common: administrators change them, unless they are locked.
abstract contract Rules {
    IIngress public ingress; // slot 0, with the next
    bool private readOnly;

    constructor(address at) {
        ingress = IIngress(at);
    }

    modifier onlyAdmin() {
        require(ingress.isAuthorized(msg.sender), "Sender not authorized");
        _;
    }

    modifier whenWritable() {
        require(!readOnly, "In read only mode: rules cannot be modified");
        _;
    }

    function isReadOnly() external view returns (bool) {
        return readOnly;
    }

    function enterReadOnly() external onlyAdmin returns (bool) {
        require(!readOnly, "Already in read only mode");
        readOnly = true;
        return true;
    }

    function exitReadOnly() external onlyAdmin returns (bool) {
        require(readOnly, "Not in read only mode");
        readOnly = false;
        return true;
    }
}
