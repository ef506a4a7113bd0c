//! All fields of the schema as an enum.

macro_rules! fields {
    ($($name:ident $text:literal),* $(,)?) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Field {
            TypeName,
            /// The introspection fields `__schema` and `__type`.
            Introspection,
            $($name,)*
        }

        impl Field {
            /// Find a field by its name `Type.field`.
            pub fn of(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Field::$name),)*
                    _ => None,
                }
            }
        }
    };
}

fields! {
    QueryAccount "Query.account", QueryBlock "Query.block", QueryBlocks "Query.blocks", QueryPending "Query.pending",
    QueryTransaction "Query.transaction", QueryLogs "Query.logs", QueryGasPrice "Query.gasPrice",
    QueryPriorityFee "Query.maxPriorityFeePerGas", QueryProtocolVersion "Query.protocolVersion",
    QuerySyncing "Query.syncing", QueryChainId "Query.chainID", SendRawTransaction "Mutation.sendRawTransaction",

    AccountAddress "Account.address", AccountBalance "Account.balance", AccountNonce "Account.transactionCount",
    AccountCode "Account.code", AccountStorage "Account.storage",

    LogIndex "Log.index", LogAccount "Log.account", LogTopics "Log.topics", LogData "Log.data",
    LogTransaction "Log.transaction",

    AccessAddress "AccessTuple.address", AccessStorageKeys "AccessTuple.storageKeys",

    TxHash "Transaction.hash", TxNonce "Transaction.nonce", TxIndex "Transaction.index", TxFrom "Transaction.from",
    TxTo "Transaction.to", TxValue "Transaction.value", TxGasPrice "Transaction.gasPrice",
    TxMaxFee "Transaction.maxFeePerGas", TxMaxPriorityFee "Transaction.maxPriorityFeePerGas",
    TxMaxBlobFee "Transaction.maxFeePerBlobGas", TxEffectiveTip "Transaction.effectiveTip",
    TxEffectivePrice "Transaction.effectiveGasPrice", TxGas "Transaction.gas", TxInput "Transaction.inputData",
    TxBlock "Transaction.block", TxStatus "Transaction.status", TxGasUsed "Transaction.gasUsed",
    TxCumulativeGas "Transaction.cumulativeGasUsed", TxBlobGasUsed "Transaction.blobGasUsed",
    TxBlobGasPrice "Transaction.blobGasPrice", TxBlobHashes "Transaction.blobVersionedHashes",
    TxCreatedContract "Transaction.createdContract", TxLogs "Transaction.logs", TxR "Transaction.r",
    TxS "Transaction.s", TxV "Transaction.v", TxParity "Transaction.yParity", TxType "Transaction.type",
    TxAccessList "Transaction.accessList", TxRaw "Transaction.raw", TxRawReceipt "Transaction.rawReceipt",
    TxRevertReason "Transaction.revertReason",

    WithdrawalIndex "Withdrawal.index", WithdrawalValidator "Withdrawal.validator",
    WithdrawalAddress "Withdrawal.address", WithdrawalAmount "Withdrawal.amount",

    BlockNumber "Block.number", BlockHash "Block.hash", BlockParent "Block.parent", BlockNonce "Block.nonce",
    BlockTransactionsRoot "Block.transactionsRoot", BlockTransactionCount "Block.transactionCount",
    BlockStateRoot "Block.stateRoot", BlockReceiptsRoot "Block.receiptsRoot", BlockMiner "Block.miner",
    BlockExtraData "Block.extraData", BlockGasLimit "Block.gasLimit", BlockGasUsed "Block.gasUsed",
    BlockBaseFee "Block.baseFeePerGas", BlockNextBaseFee "Block.nextBaseFeePerGas", BlockTimestamp "Block.timestamp",
    BlockLogsBloom "Block.logsBloom", BlockMixHash "Block.mixHash", BlockDifficulty "Block.difficulty",
    BlockTotalDifficulty "Block.totalDifficulty", BlockOmmerCount "Block.ommerCount", BlockOmmers "Block.ommers",
    BlockOmmerAt "Block.ommerAt", BlockOmmerHash "Block.ommerHash", BlockTransactions "Block.transactions",
    BlockTransactionAt "Block.transactionAt", BlockLogs "Block.logs", BlockAccount "Block.account",
    BlockCall "Block.call", BlockEstimateGas "Block.estimateGas", BlockRawHeader "Block.rawHeader",
    BlockRaw "Block.raw", BlockWithdrawalsRoot "Block.withdrawalsRoot", BlockWithdrawals "Block.withdrawals",
    BlockBlobGasUsed "Block.blobGasUsed", BlockExcessBlobGas "Block.excessBlobGas",

    PendingTransactionCount "Pending.transactionCount", PendingTransactions "Pending.transactions",
    PendingAccount "Pending.account", PendingCall "Pending.call", PendingEstimateGas "Pending.estimateGas",

    SyncStarting "SyncState.startingBlock", SyncCurrent "SyncState.currentBlock", SyncHighest "SyncState.highestBlock",
    SyncPulled "SyncState.pulledStates", SyncKnown "SyncState.knownStates",

    CallData "CallResult.data", CallGasUsed "CallResult.gasUsed", CallStatus "CallResult.status",
}
