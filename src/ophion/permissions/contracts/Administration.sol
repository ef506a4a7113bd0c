// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// Who may change the rules. Whoever deploys it is the first; in a genesis file the first are written into storage.
contract Administration {
    event AdminAdded(bool adminAdded, address account, string message);
    event AdminRemoved(bool adminRemoved, address account);

    address[] private admins; // slot 0
    mapping(address => uint256) private position; // slot 1; counted from 1, so that 0 is nobody

    modifier onlyAdmin() {
        require(isAuthorized(msg.sender), "Sender not authorized");
        _;
    }

    constructor() {
        admins.push(msg.sender);
        position[msg.sender] = 1;
    }

    function isAuthorized(address account) public view returns (bool) {
        return position[account] != 0;
    }

    function addAdmin(address account) external onlyAdmin returns (bool) {
        if (position[account] != 0) {
            emit AdminAdded(false, account, "Account is already an Admin");
            return false;
        }
        admins.push(account);
        position[account] = admins.length;
        emit AdminAdded(true, account, "Admin account added successfully");
        return true;
    }

    /// Nobody removes themselves: the last administrator cannot be lost by mistake.
    function removeAdmin(address account) external onlyAdmin returns (bool) {
        require(account != msg.sender, "Cannot remove oneself");
        uint256 at = position[account];
        if (at != 0) {
            address last = admins[admins.length - 1];
            admins[at - 1] = last;
            position[last] = at;
            position[account] = 0;
            admins.pop();
        }
        emit AdminRemoved(at != 0, account);
        return at != 0;
    }

    function getAdmins() external view returns (address[] memory) {
        return admins;
    }
}
