#!/bin/sh
# Builds an OCI image in which /opt/besu/bin/besu is Ophion, from Debian packages and the wheel, without a registry.
#
#     packaging/oci/build.sh dist/ophion-VERSION-cp311-abi3-PLATFORM.whl ophion-besu.tar
#
# Needs root, debootstrap and Python 3.11. DEBIAN_MIRROR chooses another mirror, ROOT_FS another folder for the files.
set -eu

wheel=$1
target=$2
here=$(dirname "$0")
root=${ROOT_FS:-$(mktemp -d)/root}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if [ ! -x "$root/usr/bin/python3" ]; then
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root" "$mirror"
fi

# the user, home and volume of Besu's image: files of old volumes belong to uid 1000
chroot "$root" /usr/sbin/useradd --uid 1000 --user-group --create-home --home-dir /opt/besu --shell /bin/bash besu || true
# a container may run as any user, also where useradd closes homes to others
chmod 755 "$root/opt/besu"
mkdir -p "$root/opt/besu/bin" "$root/opt/besu/data"
chroot "$root" /usr/bin/python3 -m venv /opt/ophion
cp "$wheel" "$root/tmp/"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# the package index may be behind a proxy whose certificate authority only this machine knows
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [ -f "$certificates" ]; then
    cp "$certificates" "$root/tmp/machine-certificates.crt"
    export PIP_CERT=/tmp/machine-certificates.crt REQUESTS_CA_BUNDLE=/tmp/machine-certificates.crt
fi
chroot "$root" /opt/ophion/bin/pip install --no-cache-dir "/tmp/$(basename "$wheel")"
ln -sf /opt/ophion/bin/ophion "$root/opt/besu/bin/besu"
ln -sf /opt/ophion/bin/ophion "$root/usr/local/bin/ophion"
install -m 755 "$here/besu-entry.sh" "$root/opt/besu/bin/besu-entry.sh"
chroot "$root" /bin/chown -R besu:besu /opt/besu
rm -rf "$root/tmp/"* "$root/var/cache/apt/archives/"*.deb "$root/var/lib/apt/lists/"*

python3 "$here/image.py" "$root" "$target"
