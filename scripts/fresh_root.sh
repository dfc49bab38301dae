#!/usr/bin/env bash
# fresh_root.sh DIR [COMMAND...]: runs COMMAND (default: scripts/demo.sh) on the last commit of this repository inside a bare
# Debian 12 that it makes with debootstrap in DIR, as a newcomer's machine would. Needs root, debootstrap, about 3 GB. DIR/root is
# kept and used again by the next call; remove DIR to start from nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=${1:?usage: fresh_root.sh DIR [COMMAND...]}
shift
(($#)) || set -- scripts/demo.sh
((EUID == 0)) || { echo "fresh_root: needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fresh_root: install debootstrap" >&2; exit 1; }
mkdir -p "$directory"
root=$(realpath "$directory")/root

if [[ ! -e $root/.made ]]; then
  debootstrap --variant=minbase bookworm "$root"
  touch "$root/.made"
fi
# The host's way to the network, if it has an unusual one: names, apt's settings and certificates.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
for file in /etc/apt/apt.conf.d/*; do
  if grep -qsE 'Proxy|CaInfo|Verify|Check-' "$file"; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
done
if [[ -d /etc/ssl/certs && ! -d $root/etc/ssl/certs ]]; then mkdir -p "$root/etc/ssl" && cp -rL /etc/ssl/certs "$root/etc/ssl/"; fi

mounted=()
unmount() { for point in "${mounted[@]}"; do umount -l "$point" || true; done; }
trap unmount EXIT
mount -t proc proc "$root/proc" && mounted+=("$root/proc")
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev" && mounted+=("$root/dev")

rm -rf "$root/quartet"
git clone -q --no-hardlinks . "$root/quartet"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent LC_ALL=C.UTF-8 TERM="${TERM:-dumb}" \
  bash -c 'cd /quartet && "$@"' bash "$@"
