#!/bin/sh
# Entry point of the image: like Besu's, it starts the node as the user besu, also where the container starts as root.
set -eu

if [ "$(id -u)" = 0 ] && [ "${BESU_USER_NAME:-besu}" != root ]; then
    # volumes of a new container belong to root
    chown besu:besu /opt/besu/data 2>/dev/null || true
    exec setpriv --reuid=besu --regid=besu --init-groups /opt/besu/bin/besu "$@"
fi
exec /opt/besu/bin/besu "$@"
