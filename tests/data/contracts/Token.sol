// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A token with two bugs for tests: `burnFrom` checks no allowance, `skim` creates tokens.
contract Token {
    error InsufficientBalance(address owner, uint256 available, uint256 required);

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    struct Holder {
        address owner;
        uint256 balance;
        string note;
    }

    string public name;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    uint256 private calls;

    constructor(string memory name_, uint256 supply) payable {
        name = name_;
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        require(allowance[from][msg.sender] >= value, "allowance too low");
        allowance[from][msg.sender] -= value;
        _move(from, to, value);
        return true;
    }

    function burnFrom(address from, uint256 value) external {
        balanceOf[from] -= value;
        totalSupply -= value;
    }

    function skim(uint256 value) external {
        calls += 1;
        if (calls > 2 && value % 2 == 1) {
            balanceOf[msg.sender] += 1;
        }
    }

    function holder(address owner, string calldata note) external view returns (Holder memory) {
        return Holder(owner, balanceOf[owner], note);
    }

    function pair() external view returns (uint256 supply, uint256 time) {
        return (totalSupply, block.timestamp);
    }

    function overloaded(uint256 value) external pure returns (uint256) {
        return value + 1;
    }

    function overloaded(string calldata value) external pure returns (string memory) {
        return value;
    }

    function divide(uint256 left, uint256 right) external pure returns (uint256) {
        return left / right;
    }

    function spin() external {
        while (true) {
            calls += 1;
        }
    }

    function _move(address from, address to, uint256 value) private {
        if (balanceOf[from] < value) {
            revert InsufficientBalance(from, balanceOf[from], value);
        }
        unchecked {
            balanceOf[from] -= value;
            balanceOf[to] += value;
        }
        emit Transfer(from, to, value);
    }
}

/// Calls a token, for call trees.
contract Vault {
    Token public token;

    event Deposited(address indexed owner, uint256 value);

    constructor(Token token_) {
        token = token_;
    }

    function deposit(uint256 value) external {
        token.transferFrom(msg.sender, address(this), value);
        emit Deposited(msg.sender, value);
    }

    function deployToken(string calldata name) external returns (Token) {
        return new Token(name, 5);
    }
}
