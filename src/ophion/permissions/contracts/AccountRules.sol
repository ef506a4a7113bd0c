// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import "./Rules.sol";

/// The accounts that may send transactions.
contract AccountRules is Rules {
    event AccountAdded(bool accountAdded, address accountAddress);
    event AccountRemoved(bool accountRemoved, address accountAddress);

    address[] private accounts; // slot 1
    mapping(address => uint256) private position; // slot 2; counted from 1

    constructor(address at) Rules(at) {
        add(msg.sender);
    }

    function transactionAllowed(
        address sender, address, uint256, uint256, uint256, bytes calldata
    ) external view returns (bool) {
        return position[sender] != 0;
    }

    function accountPermitted(address account) external view returns (bool) {
        return position[account] != 0;
    }

    function getSize() external view returns (uint256) {
        return accounts.length;
    }

    function getByIndex(uint256 index) external view returns (address account) {
        return accounts[index];
    }

    function getAccounts() external view returns (address[] memory) {
        return accounts;
    }

    function addAccount(address account) public onlyAdmin whenWritable returns (bool) {
        bool added = add(account);
        if (added) {
            ingress.emitRulesChangeEvent(false);
        }
        emit AccountAdded(added, account);
        return added;
    }

    function addAccounts(address[] calldata more) external onlyAdmin whenWritable returns (bool) {
        bool all = true;
        for (uint256 i = 0; i < more.length; i++) {
            bool added = add(more[i]);
            emit AccountAdded(added, more[i]);
            all = all && added;
        }
        ingress.emitRulesChangeEvent(false);
        return all;
    }

    function removeAccount(address account) external onlyAdmin whenWritable returns (bool) {
        uint256 at = position[account];
        if (at != 0) {
            address last = accounts[accounts.length - 1];
            accounts[at - 1] = last;
            position[last] = at;
            position[account] = 0;
            accounts.pop();
            ingress.emitRulesChangeEvent(true);
        }
        emit AccountRemoved(at != 0, account);
        return at != 0;
    }

    function add(address account) private returns (bool) {
        if (position[account] != 0) {
            return false;
        }
        accounts.push(account);
        position[account] = accounts.length;
        return true;
    }
}
