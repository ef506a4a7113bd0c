//! Changes of accounts that nothing has read yet.
//!
//! A plain transfer changes balances and a nonce by amounts that do not depend on their values. So a replay that only
//! needs the traces of a block does not read these accounts. When a later transaction reads such an account, the
//! changes are added to it.

use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, U256};
use ophion_primitives::errors::{Error, Result};
use revm::state::AccountInfo;

/// What transfers have added to an account and taken from it.
#[derive(Clone, Copy, Default)]
pub struct AccountChange {
    /// Amount in wei that the account has received.
    pub received: U256,
    /// Amount in wei that the account has spent, with fees.
    pub spent: U256,
    /// Number of transactions that the account has sent.
    pub sent: u64,
}

impl AccountChange {
    /// Apply the changes to an account. An empty account becomes None (EIP-161).
    pub fn apply(&self, account: &mut Option<AccountInfo>) -> Result<()> {
        self.apply_to(account.get_or_insert_default())?;
        account.take_if(|info| info.is_empty());
        Ok(())
    }

    /// Apply the changes to an account that may become empty.
    pub fn apply_to(&self, info: &mut AccountInfo) -> Result<()> {
        let balance = info.balance.checked_add(self.received).and_then(|sum| sum.checked_sub(self.spent));
        let (Some(balance), Some(nonce)) = (balance, info.nonce.checked_add(self.sent)) else {
            return Err(Error::damaged("a stored transfer does not fit the state before its block"));
        };
        (info.balance, info.nonce) = (balance, nonce);
        Ok(())
    }

    fn add(&mut self, other: &AccountChange) {
        self.received = self.received.saturating_add(other.received);
        self.spent = self.spent.saturating_add(other.spent);
        self.sent += other.sent;
    }
}

/// Changes by address.
#[derive(Default)]
pub struct UnreadAccounts(AddressMap<AccountChange>);

impl UnreadAccounts {
    pub fn add(&mut self, address: &Address, change: &AccountChange) {
        self.0.entry(*address).or_default().add(change);
    }

    /// Remove and return the changes of an account that is read now.
    pub fn take(&mut self, address: &Address) -> Option<AccountChange> {
        if self.0.is_empty() { None } else { self.0.remove(address) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_up_and_are_taken_once() {
        let (mut unread, address) = (UnreadAccounts::default(), Address::repeat_byte(7));
        let wei = U256::from::<u64>;
        unread.add(&address, &AccountChange { received: wei(5), ..Default::default() });
        unread.add(&address, &AccountChange { spent: wei(8), sent: 1, ..Default::default() });
        let change = unread.take(&address).unwrap();
        assert!(unread.take(&address).is_none());
        let mut account = Some(AccountInfo { balance: wei(10), nonce: 3, ..Default::default() });
        change.apply(&mut account).unwrap();
        let after = account.unwrap();
        assert_eq!((after.balance, after.nonce), (wei(7), 4));
        assert!(change.apply(&mut None).is_err(), "an account cannot spend what it does not have");
    }

    #[test]
    fn an_empty_account_does_not_exist() {
        for mut account in [None, Some(AccountInfo::default())] {
            AccountChange::default().apply(&mut account).unwrap();
            assert!(account.is_none());
        }
    }
}
