#!/bin/sh
# Three nodes on this machine: A makes the blocks, B and C follow. Ctrl-C ends all of them.
set -e
cd "$(dirname "$0")"
first=enode://c3891061be4192c5c4ad508b70b93ac7cfc43194229ad13ffb728d9a97e384e600613d7acb7b9a0f95339e5e5a20ae7b5584d1577930daacc01ff5dfb96e6f3b@127.0.0.1:30303
node() {
    name=$1 p2p=$2 rpc=$3
    shift 3
    ophion --genesis-file=genesis.json --data-path="${DATA:-data}/$name" --min-gas-price=0 \
        --privacy-enabled --privacy-delivery=queue \
        --p2p-interface=127.0.0.1 --p2p-port="$p2p" --bootnodes="$first" \
        --rpc-http-enabled --rpc-http-port="$rpc" --rpc-http-api=ETH,NET,WEB3,EEA "$@" &
}
trap 'kill 0' INT TERM EXIT
node a 30303 8545 --node-private-key-file=key.priv
node b 30304 8546
node c 30305 8547
wait
