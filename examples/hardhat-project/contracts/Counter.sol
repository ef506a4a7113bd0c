// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// Counts, and emits an event with the caller.
contract Counter {
    uint256 public count;

    event Counted(address indexed who, uint256 count);

    error TooMuch(uint256 step);

    constructor(uint256 start) {
        count = start;
    }

    function add(uint256 step) external {
        if (step > 100) revert TooMuch(step);
        count += step;
        emit Counted(msg.sender, count);
    }
}
