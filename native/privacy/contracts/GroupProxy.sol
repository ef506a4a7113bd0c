// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// Where the members of a flexible group are managed: passes every call on to the contract that keeps them.
contract GroupProxy {
    address private management; // slot 0, set in the first state of the group

    fallback() external {
        address target = management;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let isDone := call(gas(), target, 0, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(isDone) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}
