#!/bin/sh
# Entry point of the image, for the same uses as Besu's: starts the node as the user besu, also where the container
# starts as root, and gives this user the data path and the genesis file where the user lacks permissions.
set -eu
trap 'exit 143' TERM
trap 'exit 130' INT

besu=/opt/besu/bin/besu
user=${BESU_USER_NAME:-besu}

# Besu's entry point (24.12 and newer) passes its words through a shell. So charts and compose files have quotes and
# variables in them: --host-allowlist="*". Words without these characters stay as they are, as in older images.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
        *[\"\'\$\`]*) eval "set -- \"\$@\" $1" ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done

if [ "$(id -u)" != 0 ] || [ "$user" = root ]; then
    exec env --block-signal=TERM,INT "$besu" "$@"
fi

# volumes of a new container belong to root; commands write there too
if [ -d /opt/besu/data ]; then
    chown "$user:" /opt/besu/data 2>/dev/null || true
fi
# -h and find: never follow a link that the node's user may have made
{ "$besu" --print-paths-and-exit="$user" "$@" 2>/dev/null || true; } | while IFS= read -r line; do
    case $line in
        PERMISSION_CHECK_PATH:*:READ_WRITE)
            path=${line#*:}
            path=${path%:*}
            (umask 022 && mkdir -p "$path")
            chown -hR "$user:" "$path"
            find "$path" -type d -exec chmod u+rwx {} + -o -type f -exec chmod u+rw {} +
            ;;
        PERMISSION_CHECK_PATH:*:READ)
            path=${line#*:}
            path=${path%:*}
            chown -h "$user:" "$path"
            chmod u+r "$path"
            ;;
    esac
done || true

HOME=$(getent passwd "$user" | cut -d: -f6)
export HOME
# as process 1 the node would lose a stop signal that arrives before Python can handle it: the signal waits instead
exec env --block-signal=TERM,INT setpriv --reuid="$user" --regid="$(id -gn "$user")" --init-groups "$besu" "$@"
