#!/bin/sh
# The README's two commands in a minimal Debian 12: python3, venv, git, make, nothing else.
# Needs root and mmdebstrap. Package sources are reached the way this machine reaches them: pip's
# and npm's own settings, and the certificates, are copied in.
set -eu
[ "$(id -u)" = 0 ] || { echo "skipped: test-fresh needs root (it makes a Debian tree)"; exit 0; }
if ! command -v mmdebstrap >/dev/null; then
  echo "==> installing mmdebstrap"
  apt-get update -qq && apt-get install -y -qq mmdebstrap >/dev/null
fi
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd -P)
tree=$(mktemp -d "${TMPDIR:-/tmp}/specrack-fresh.XXXXXX")
cleanup() {
  for at in dev/shm dev proc; do umount "$tree/root/$at" 2>/dev/null || true; done
  rm -rf --one-file-system "$tree"
}
trap cleanup EXIT INT TERM

echo "==> a minimal Debian 12"
mmdebstrap --quiet --variant=minbase \
  --include=python3,python3-venv,git,make,ca-certificates bookworm "$tree/root" \
  ${SPECRACK_FRESH_MIRROR:+"$SPECRACK_FRESH_MIRROR"}
mount -t proc proc "$tree/root/proc"
mount --bind /dev "$tree/root/dev"
mkdir -p "$tree/root/dev/shm" && mount --bind /dev/shm "$tree/root/dev/shm" || true
cp /etc/resolv.conf "$tree/root/etc/resolv.conf" 2>/dev/null || true
cp /etc/hosts "$tree/root/etc/hosts"
cp -r /usr/local/share/ca-certificates/. "$tree/root/usr/local/share/ca-certificates/" 2>/dev/null || true
cp /etc/ssl/certs/ca-certificates.crt "$tree/root/etc/ssl/certs/ca-certificates.crt"
for file in /etc/pip.conf /root/.npmrc /usr/etc/npmrc; do
  [ -f "$file" ] && mkdir -p "$tree/root$(dirname "$file")" && cp "$file" "$tree/root$file"
done

echo "==> a user, a clone"
chroot "$tree/root" useradd --create-home --shell /bin/sh newcomer
git clone --quiet "$here" "$tree/root/home/newcomer/a clone"
cp "$tree/root/root/.npmrc" "$tree/root/home/newcomer/.npmrc" 2>/dev/null || true
chroot "$tree/root" chown -R newcomer /home/newcomer

inside() {
  chroot "$tree/root" su newcomer -c "cd '/home/newcomer/a clone' && \
    export PATH=/usr/local/bin:/usr/bin:/bin PIP_CERT='${PIP_CERT:-}' \
      NODE_EXTRA_CA_CERTS='${NODE_EXTRA_CA_CERTS:-}' && \
    [ -n \"\$PIP_CERT\" ] || unset PIP_CERT NODE_EXTRA_CA_CERTS; $1"
}
for command in ${SPECRACK_FRESH_COMMANDS:-"demo" "demo" "test"}; do
  echo "==> make $command"
  start=$(date +%s)
  inside "make $command"
  echo "==> make $command: $(($(date +%s) - start)) s"
done
